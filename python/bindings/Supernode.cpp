//===- Supernode.cpp - attributes of the Supernode dialect ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/Supernode.h"
#include "lib/CAPI/CostReport.h"
#include "python/bindings/Module.h"

#include "mlir/Bindings/Python/Diagnostics.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace mlir::python::nanobind_adaptors;
using mlir::python::CollectDiagnosticsToStringScope;

using Strings = std::vector<std::string>;
using Attributes = std::vector<MlirAttribute>;

static MlirStringRef ref(const std::string &text) {
  return mlirStringRefCreate(text.data(), text.size());
}

static std::vector<MlirStringRef> refs(const Strings &texts) {
  std::vector<MlirStringRef> result;
  for (const std::string &text : texts)
    result.push_back(ref(text));
  return result;
}

static std::string str(MlirStringRef text) {
  return std::string(text.data, text.length);
}

/// Runs `make` and turns its diagnostic into a ValueError.
template <typename Make>
static MlirAttribute checked(MlirContext context, Make make) {
  CollectDiagnosticsToStringScope scope(context);
  MlirAttribute attr = make(mlirLocationUnknownGet(context));
  if (mlirAttributeIsNull(attr)) {
    std::string message = scope.takeMessage();
    while (!message.empty() && message.back() == '\n')
      message.pop_back();
    if (message.rfind("error: ", 0) == 0)
      message.erase(0, 7);
    throw nb::value_error(message.c_str());
  }
  return attr;
}

/// Attributes of the wrong kind are an error here, and a crash below.
static void expectAll(const Attributes &attrs, bool (*isA)(MlirAttribute),
                      const char *what) {
  for (MlirAttribute attr : attrs)
    if (!isA(attr))
      throw nb::value_error(
          (std::string("expected only ") + what + " attributes").c_str());
}

template <typename Size, typename Get>
static auto collect(MlirAttribute self, Size size, Get get) {
  std::vector<decltype(get(self, 0))> result;
  for (intptr_t i = 0; i < size(self); ++i)
    result.push_back(get(self, i));
  return result;
}

template <typename Size, typename Get>
static Strings collectStrings(MlirAttribute self, Size size, Get get) {
  Strings result;
  for (intptr_t i = 0; i < size(self); ++i)
    result.push_back(str(get(self, i)));
  return result;
}

static void bindRate(nb::module_ &m) {
  mlir_attribute_subclass(m, "RateAttr", hpAttributeIsARate)
      .def_classmethod(
          "get",
          [](nb::object cls, MlirType elementType, double rate,
             MlirContext context) {
            return cls(checked(context, [&](MlirLocation loc) {
              return hpRateAttrGet(loc, elementType, rate);
            }));
          },
          nb::arg("cls"), nb::arg("element_type"), nb::arg("rate"),
          nb::arg("context") = nb::none(),
          "Operations per second on one element type.")
      .def_property_readonly("element_type", hpRateAttrGetElementType)
      .def_property_readonly("rate", hpRateAttrGetRate);
}

static void bindCores(nb::module_ &m) {
  mlir_attribute_subclass(m, "CoresAttr", hpAttributeIsACores)
      .def_classmethod(
          "get",
          [](nb::object cls, int64_t count, double gain, double cut,
             double wake, MlirContext context) {
            return cls(checked(context, [&](MlirLocation loc) {
              return hpCoresAttrGet(loc, count, gain, cut, wake);
            }));
          },
          nb::arg("cls"), nb::arg("count"), nb::arg("gain"), nb::arg("cut"),
          nb::arg("wake"), nb::arg("context") = nb::none(),
          "Cores of one host that virtual devices share.")
      .def_property_readonly("count", hpCoresAttrGetCount)
      .def_property_readonly("gain", hpCoresAttrGetGain)
      .def_property_readonly("cut", hpCoresAttrGetCut)
      .def_property_readonly("wake", hpCoresAttrGetWake);
}

static void bindDeviceGroup(nb::module_ &m) {
  mlir_attribute_subclass(m, "DeviceGroupAttr", hpAttributeIsADeviceGroup)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::string &name, int64_t count,
             const std::string &memory, double launch, double vector,
             double efficiency, const Attributes &rates, double packing,
             const std::optional<std::string> &cache,
             std::optional<MlirAttribute> cores, MlirContext context) {
            expectAll(rates, hpAttributeIsARate, "Rate");
            if (cores)
              expectAll({*cores}, hpAttributeIsACores, "Cores");
            std::string cacheName = cache.value_or("");
            return cls(checked(context, [&](MlirLocation loc) {
              return hpDeviceGroupAttrGet(
                  loc, ref(name), count, ref(memory), launch, vector,
                  efficiency, packing, ::ref(cacheName),
                  cores.value_or(MlirAttribute{}), rates.size(), rates.data());
            }));
          },
          nb::arg("cls"), nb::arg("name"), nb::arg("count"), nb::arg("memory"),
          nb::arg("launch"), nb::arg("vector"), nb::arg("efficiency"),
          nb::arg("rates"), nb::arg("packing") = 0.0,
          nb::arg("cache") = nb::none(), nb::arg("cores") = nb::none(),
          nb::arg("context") = nb::none(),
          "Equal devices: how many, and how fast.")
      .def_property_readonly("name",
                             [](MlirAttribute self) {
                               return str(hpDeviceGroupAttrGetName(self));
                             })
      .def_property_readonly("count", hpDeviceGroupAttrGetCount)
      .def_property_readonly("memory",
                             [](MlirAttribute self) {
                               return str(hpDeviceGroupAttrGetMemory(self));
                             })
      .def_property_readonly("launch", hpDeviceGroupAttrGetLaunch)
      .def_property_readonly("vector", hpDeviceGroupAttrGetVector)
      .def_property_readonly("efficiency", hpDeviceGroupAttrGetEfficiency)
      .def_property_readonly("packing", hpDeviceGroupAttrGetPacking)
      .def_property_readonly(
          "cache",
          [](MlirAttribute self) -> std::optional<std::string> {
            std::string name = str(hpDeviceGroupAttrGetCache(self));
            if (name.empty())
              return std::nullopt;
            return name;
          })
      .def_property_readonly(
          "cores",
          [](MlirAttribute self) -> std::optional<MlirAttribute> {
            MlirAttribute cores = hpDeviceGroupAttrGetCores(self);
            if (mlirAttributeIsNull(cores))
              return std::nullopt;
            return cores;
          })
      .def_property_readonly("rates", [](MlirAttribute self) {
        return collect(self, hpDeviceGroupAttrGetNumRates,
                       hpDeviceGroupAttrGetRate);
      });
}

static void bindLevel(nb::module_ &m) {
  mlir_attribute_subclass(m, "LevelAttr", hpAttributeIsALevel)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::string &name, int64_t size,
             double latency, double bandwidth, const Strings &algorithms,
             const Strings &shared, MlirContext context) {
            std::vector<MlirStringRef> algorithmsRefs = refs(algorithms);
            std::vector<MlirStringRef> sharedRefs = refs(shared);
            return cls(checked(context, [&](MlirLocation loc) {
              return hpLevelAttrGet(loc, ref(name), size, latency, bandwidth,
                                    algorithmsRefs.size(),
                                    algorithmsRefs.data(), sharedRefs.size(),
                                    sharedRefs.data());
            }));
          },
          nb::arg("cls"), nb::arg("name"), nb::arg("size"), nb::arg("latency"),
          nb::arg("bandwidth"), nb::arg("algorithms") = Strings(),
          nb::arg("shared") = Strings(), nb::arg("context") = nb::none(),
          "A level of the network.")
      .def_property_readonly(
          "name",
          [](MlirAttribute self) { return str(hpLevelAttrGetName(self)); })
      .def_property_readonly("size", hpLevelAttrGetSize)
      .def_property_readonly("latency", hpLevelAttrGetLatency)
      .def_property_readonly("bandwidth", hpLevelAttrGetBandwidth)
      .def_property_readonly("algorithms",
                             [](MlirAttribute self) {
                               return collectStrings(
                                   self, hpLevelAttrGetNumAlgorithms,
                                   hpLevelAttrGetAlgorithm);
                             })
      .def_property_readonly("shared", [](MlirAttribute self) {
        return collectStrings(self, hpLevelAttrGetNumShared,
                              hpLevelAttrGetShared);
      });
}

static void bindTier(nb::module_ &m) {
  mlir_attribute_subclass(m, "TierAttr", hpAttributeIsATier)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::string &name, const std::string &scope,
             double capacity, double bandwidth, const Strings &shared,
             MlirContext context) {
            std::vector<MlirStringRef> sharedRefs = refs(shared);
            return cls(checked(context, [&](MlirLocation loc) {
              return hpTierAttrGet(loc, ref(name), ref(scope), capacity,
                                   bandwidth, sharedRefs.size(),
                                   sharedRefs.data());
            }));
          },
          nb::arg("cls"), nb::arg("name"), nb::arg("scope"),
          nb::arg("capacity"), nb::arg("bandwidth"),
          nb::arg("shared") = Strings(), nb::arg("context") = nb::none(),
          "Memory of one kind.")
      .def_property_readonly(
          "name",
          [](MlirAttribute self) { return str(hpTierAttrGetName(self)); })
      .def_property_readonly(
          "scope",
          [](MlirAttribute self) { return str(hpTierAttrGetScope(self)); })
      .def_property_readonly("capacity", hpTierAttrGetCapacity)
      .def_property_readonly("bandwidth", hpTierAttrGetBandwidth)
      .def_property_readonly("shared", [](MlirAttribute self) {
        return collectStrings(self, hpTierAttrGetNumShared,
                              hpTierAttrGetShared);
      });
}

static void bindSegment(nb::module_ &m) {
  mlir_attribute_subclass(m, "SegmentAttr", hpAttributeIsASegment)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::string &name, const std::string &scope,
             double bandwidth, const std::optional<std::string> &within,
             MlirContext context) {
            const std::string outer = within.value_or("");
            return cls(checked(context, [&](MlirLocation loc) {
              return hpSegmentAttrGet(loc, ref(name), ref(scope), bandwidth,
                                      ref(outer));
            }));
          },
          nb::arg("cls"), nb::arg("name"), nb::arg("scope"),
          nb::arg("bandwidth"), nb::arg("within") = nb::none(),
          nb::arg("context") = nb::none(),
          "A piece of wire that transfers share.")
      .def_property_readonly(
          "name",
          [](MlirAttribute self) { return str(hpSegmentAttrGetName(self)); })
      .def_property_readonly(
          "scope",
          [](MlirAttribute self) { return str(hpSegmentAttrGetScope(self)); })
      .def_property_readonly("bandwidth", hpSegmentAttrGetBandwidth)
      .def_property_readonly(
          "within", [](MlirAttribute self) -> std::optional<std::string> {
            std::string name = str(hpSegmentAttrGetWithin(self));
            if (name.empty())
              return std::nullopt;
            return name;
          });
}

static void bindLink(nb::module_ &m) {
  mlir_attribute_subclass(m, "LinkAttr", hpAttributeIsALink)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::string &from, const std::string &to,
             double latency, double bandwidth, const Strings &shared,
             double staging, MlirContext context) {
            std::vector<MlirStringRef> sharedRefs = refs(shared);
            return cls(checked(context, [&](MlirLocation loc) {
              return hpLinkAttrGet(loc, ref(from), ref(to), latency, bandwidth,
                                   staging, sharedRefs.size(),
                                   sharedRefs.data());
            }));
          },
          nb::arg("cls"), nb::arg("source"), nb::arg("target"),
          nb::arg("latency"), nb::arg("bandwidth"),
          nb::arg("shared") = Strings(), nb::arg("staging") = 0.0,
          nb::arg("context") = nb::none(),
          "A one-way link between memory tiers.")
      .def_property_readonly(
          "source",
          [](MlirAttribute self) { return str(hpLinkAttrGetFrom(self)); })
      .def_property_readonly(
          "target",
          [](MlirAttribute self) { return str(hpLinkAttrGetTo(self)); })
      .def_property_readonly("latency", hpLinkAttrGetLatency)
      .def_property_readonly("bandwidth", hpLinkAttrGetBandwidth)
      .def_property_readonly("staging", hpLinkAttrGetStaging)
      .def_property_readonly("shared", [](MlirAttribute self) {
        return collectStrings(self, hpLinkAttrGetNumShared,
                              hpLinkAttrGetShared);
      });
}

static void bindMachine(nb::module_ &m) {
  mlir_attribute_subclass(m, "MachineAttr", hpAttributeIsAMachine)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::string &name, const Attributes &groups,
             const Attributes &levels, const Attributes &tiers,
             const Attributes &segments, const Attributes &links,
             MlirContext context) {
            expectAll(groups, hpAttributeIsADeviceGroup, "DeviceGroup");
            expectAll(levels, hpAttributeIsALevel, "Level");
            expectAll(tiers, hpAttributeIsATier, "Tier");
            expectAll(segments, hpAttributeIsASegment, "Segment");
            expectAll(links, hpAttributeIsALink, "Link");
            return cls(checked(context, [&](MlirLocation loc) {
              return hpMachineAttrGet(
                  loc, ref(name), groups.size(), groups.data(), levels.size(),
                  levels.data(), tiers.size(), tiers.data(), segments.size(),
                  segments.data(), links.size(), links.data());
            }));
          },
          nb::arg("cls"), nb::arg("name"), nb::arg("groups"),
          nb::arg("levels") = Attributes(), nb::arg("tiers") = Attributes(),
          nb::arg("segments") = Attributes(), nb::arg("links") = Attributes(),
          nb::arg("context") = nb::none(),
          "A machine; ValueError says what is wrong.")
      .def_classmethod(
          "preset",
          [](nb::object cls, const std::string &name, MlirContext context) {
            MlirAttribute attr = hpMachineAttrGetPreset(context, ref(name));
            if (mlirAttributeIsNull(attr)) {
              std::string known;
              for (intptr_t i = 0; i < hpMachineGetNumPresets(); ++i)
                known += (i ? ", " : "") + str(hpMachineGetPresetName(i));
              throw nb::value_error(
                  ("expected a preset (" + known + ") but got \"" + name + '"')
                      .c_str());
            }
            return cls(attr);
          },
          nb::arg("cls"), nb::arg("name"), nb::arg("context") = nb::none(),
          "The machine that comes with the package under that name.")
      .def_property_readonly(
          "name",
          [](MlirAttribute self) { return str(hpMachineAttrGetName(self)); })
      .def_property_readonly("groups",
                             [](MlirAttribute self) {
                               return collect(self, hpMachineAttrGetNumGroups,
                                              hpMachineAttrGetGroup);
                             })
      .def_property_readonly("levels",
                             [](MlirAttribute self) {
                               return collect(self, hpMachineAttrGetNumLevels,
                                              hpMachineAttrGetLevel);
                             })
      .def_property_readonly("tiers",
                             [](MlirAttribute self) {
                               return collect(self, hpMachineAttrGetNumTiers,
                                              hpMachineAttrGetTier);
                             })
      .def_property_readonly("segments",
                             [](MlirAttribute self) {
                               return collect(self, hpMachineAttrGetNumSegments,
                                              hpMachineAttrGetSegment);
                             })
      .def_property_readonly("links", [](MlirAttribute self) {
        return collect(self, hpMachineAttrGetNumLinks, hpMachineAttrGetLink);
      });
}

void hyperparallel::bindSupernode(nb::module_ &m) {
  m.def(
      "cost_report",
      [](MlirModule module) {
        std::string text;
        hpCostReport(
            module,
            [](MlirStringRef part, void *data) {
              static_cast<std::string *>(data)->append(part.data, part.length);
            },
            &text);
        return text;
      },
      nb::arg("module"),
      "The cost of every task of a module, as JSON; see hyperparallel.cost.");

  bindRate(m);
  bindCores(m);
  bindDeviceGroup(m);
  bindLevel(m);
  bindTier(m);
  bindSegment(m);
  bindLink(m);
  bindMachine(m);
}
