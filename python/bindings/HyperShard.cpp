//===- HyperShard.cpp - attributes of the HyperShard dialect --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/HyperShard.h"
#include "python/bindings/Module.h"

#include "mlir/Bindings/Python/Diagnostics.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <string>
#include <vector>

namespace nb = nanobind;
using namespace mlir::python::nanobind_adaptors;
using mlir::python::CollectDiagnosticsToStringScope;

static MlirStringRef ref(const std::string &text) {
  return mlirStringRefCreate(text.data(), text.size());
}

static std::string str(MlirStringRef text) {
  return std::string(text.data, text.length);
}

/// Runs `make` and turns its diagnostic into a ValueError.
template <typename Make>
static MlirAttribute checked(MlirContext context, Make make) {
  if (mlirDialectIsNull(
          mlirContextGetOrLoadDialect(context, ref("hypershard"))))
    throw nb::value_error(
        "expected a context that knows the hypershard dialect: this one is "
        "older than the import of hyperparallel.dialects; call "
        "hyperparallel.dialects.register(context)");
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

template <typename Get>
static std::vector<MlirAttribute> collect(intptr_t size, Get get) {
  std::vector<MlirAttribute> attrs;
  for (intptr_t i = 0; i < size; ++i)
    attrs.push_back(get(i));
  return attrs;
}

static void bindMesh(nb::module_ &m) {
  mlir_attribute_subclass(m, "MeshAttr", hpAttributeIsAMesh,
                          hpMeshAttrGetTypeID)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::vector<std::string> &names,
             const std::vector<int64_t> &sizes,
             const std::vector<int64_t> &deviceIds, MlirContext context) {
            if (names.size() != sizes.size())
              throw nb::value_error("expected one size per axis name");
            std::vector<MlirStringRef> refs;
            for (const std::string &name : names)
              refs.push_back(ref(name));
            return cls(checked(context, [&](MlirLocation loc) {
              return hpMeshAttrGet(loc, refs.size(), refs.data(), sizes.data(),
                                   deviceIds.size(), deviceIds.data());
            }));
          },
          nb::arg("cls"), nb::arg("names"), nb::arg("sizes"),
          nb::arg("device_ids") = std::vector<int64_t>(),
          nb::arg("context") = nb::none(),
          "A mesh of the named axes; ValueError says what is wrong.")
      .def_property_readonly(
          "axes",
          [](MlirAttribute self) {
            nb::list axes;
            for (intptr_t i = 0; i < hpMeshAttrGetNumAxes(self); ++i)
              axes.append(nb::make_tuple(str(hpMeshAttrGetAxisName(self, i)),
                                         hpMeshAttrGetAxisSize(self, i)));
            return axes;
          })
      .def_property_readonly("num_devices", hpMeshAttrGetNumDevices)
      .def_property_readonly("device_ids", [](MlirAttribute self) {
        std::vector<int64_t> ids;
        for (intptr_t i = 0; i < hpMeshAttrGetNumDeviceIds(self); ++i)
          ids.push_back(hpMeshAttrGetDeviceId(self, i));
        return ids;
      });
}

static void bindParts(nb::module_ &m) {
  mlir_attribute_subclass(m, "AxisRefAttr", hpAttributeIsAAxisRef,
                          hpAxisRefAttrGetTypeID)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::string &name, int64_t preSize,
             int64_t size, MlirContext context) {
            return cls(checked(context, [&](MlirLocation loc) {
              return hpAxisRefAttrGet(loc, ref(name), preSize, size);
            }));
          },
          nb::arg("cls"), nb::arg("name"), nb::arg("pre_size") = 0,
          nb::arg("size") = 0, nb::arg("context") = nb::none(),
          "The whole axis (size 0), or its sub-axis (pre_size)size.")
      .def_property_readonly(
          "name",
          [](MlirAttribute self) { return str(hpAxisRefAttrGetName(self)); })
      .def_property_readonly("pre_size", hpAxisRefAttrGetPreSize)
      .def_property_readonly("size", hpAxisRefAttrGetSize);

  mlir_attribute_subclass(m, "DimShardingAttr", hpAttributeIsADimSharding,
                          hpDimShardingAttrGetTypeID)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::vector<MlirAttribute> &axes,
             bool isOpen, int64_t priority, MlirContext context) {
            return cls(checked(context, [&](MlirLocation loc) {
              return hpDimShardingAttrGet(loc, axes.size(), axes.data(), isOpen,
                                          priority);
            }));
          },
          nb::arg("cls"), nb::arg("axes"), nb::arg("is_open") = false,
          nb::arg("priority") = 0, nb::arg("context") = nb::none(),
          "The axes that split a dimension, major to minor.")
      .def_property_readonly(
          "axes",
          [](MlirAttribute self) {
            return collect(hpDimShardingAttrGetNumAxes(self), [&](intptr_t i) {
              return hpDimShardingAttrGetAxis(self, i);
            });
          })
      .def_property_readonly("is_open", hpDimShardingAttrIsOpen)
      .def_property_readonly("priority", hpDimShardingAttrGetPriority);
}

void hyperparallel::bindHyperShard(nb::module_ &m) {
  bindMesh(m);
  bindParts(m);
  mlir_attribute_subclass(m, "ShardingAttr", hpAttributeIsASharding,
                          hpShardingAttrGetTypeID)
      .def_classmethod(
          "get",
          [](nb::object cls, const std::string &mesh,
             const std::vector<MlirAttribute> &dims,
             const std::vector<MlirAttribute> &replicated,
             const std::string &partialKind,
             const std::vector<MlirAttribute> &partial, MlirContext context) {
            return cls(checked(context, [&](MlirLocation loc) {
              return hpShardingAttrGet(loc, ref(mesh), dims.size(), dims.data(),
                                       replicated.size(), replicated.data(),
                                       ref(partialKind), partial.size(),
                                       partial.data());
            }));
          },
          nb::arg("cls"), nb::arg("mesh"), nb::arg("dims"),
          nb::arg("replicated") = std::vector<MlirAttribute>(),
          nb::arg("partial_kind") = "",
          nb::arg("partial_axes") = std::vector<MlirAttribute>(),
          nb::arg("context") = nb::none(),
          "A sharding over the mesh of that symbol name.")
      .def_property_readonly(
          "mesh",
          [](MlirAttribute self) { return str(hpShardingAttrGetMesh(self)); })
      .def_property_readonly(
          "dims",
          [](MlirAttribute self) {
            return collect(hpShardingAttrGetNumDims(self), [&](intptr_t i) {
              return hpShardingAttrGetDim(self, i);
            });
          })
      .def_property_readonly(
          "replicated",
          [](MlirAttribute self) {
            return collect(hpShardingAttrGetNumReplicated(self),
                           [&](intptr_t i) {
                             return hpShardingAttrGetReplicated(self, i);
                           });
          })
      .def_property_readonly("partial_kind",
                             [](MlirAttribute self) {
                               return str(hpShardingAttrGetPartialKind(self));
                             })
      .def_property_readonly("partial_axes", [](MlirAttribute self) {
        return collect(hpShardingAttrGetNumPartial(self), [&](intptr_t i) {
          return hpShardingAttrGetPartial(self, i);
        });
      });
}
