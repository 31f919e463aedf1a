//===- Simulator.cpp - discrete-event simulation --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/Simulator.h"
#include "python/bindings/Module.h"

#include "mlir/Bindings/Python/Diagnostics.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace nb = nanobind;
using mlir::python::CollectDiagnosticsToStringScope;

namespace {

/// Owns a simulation; numbers that name nothing are IndexError.
class Simulation {
public:
  Simulation(uint32_t numStreams, const std::vector<double> &segments,
             const std::vector<double> &tiers)
      : self(hpSimulationCreate(numStreams, segments.size(), segments.data(),
                                tiers.size(), tiers.data())),
        numStreams(numStreams), numSegments(segments.size()),
        numTiers(tiers.size()) {}
  Simulation(const Simulation &) = delete;
  ~Simulation() { hpSimulationDestroy(self); }

  void add(uint32_t stream, double seconds, double bytes, double rate,
           double members, const std::vector<uint32_t> &segments,
           const std::vector<uint32_t> &dependencies,
           std::optional<uint32_t> partner,
           const std::vector<std::tuple<uint32_t, double, double>> &residency) {
    std::vector<uint32_t> tiers;
    std::vector<double> atStart, atEnd;
    for (auto [tier, start, end] : residency) {
      tiers.push_back(tier);
      atStart.push_back(start);
      atEnd.push_back(end);
    }
    hpSimulationAddTask(self, stream, seconds, bytes, rate, members,
                        segments.size(), segments.data(), dependencies.size(),
                        dependencies.data(), partner.value_or(HP_NO_TASK),
                        tiers.size(), tiers.data(), atStart.data(),
                        atEnd.data());
  }

  void run(double noise, uint64_t seed) {
    isRun = hpSimulationRun(self, noise, seed);
    if (isRun)
      return;
    MlirStringRef error = hpSimulationGetError(self);
    throw nb::value_error(std::string(error.data, error.length).c_str());
  }

  double seconds() const {
    expectRun();
    return hpSimulationGetSeconds(self);
  }
  std::vector<std::pair<double, double>> spans() const {
    expectRun();
    std::vector<std::pair<double, double>> result;
    for (intptr_t i = 0; i < hpSimulationGetNumTasks(self); ++i)
      result.emplace_back(hpSimulationGetStart(self, i),
                          hpSimulationGetEnd(self, i));
    return result;
  }
  template <typename Get>
  std::vector<double> collect(uint32_t count, Get get) const {
    expectRun();
    std::vector<double> result;
    for (uint32_t i = 0; i < count; ++i)
      result.push_back(get(self, i));
    return result;
  }
  std::vector<double> busy() const {
    return collect(numStreams, hpSimulationGetBusy);
  }
  std::vector<double> moved() const {
    return collect(numSegments, hpSimulationGetMoved);
  }
  std::vector<double> peak() const {
    return collect(numTiers, hpSimulationGetPeak);
  }
  std::vector<std::pair<double, double>> residency(uint32_t tier) const {
    expectRun();
    if (tier >= numTiers)
      throw nb::index_error("no such tier");
    std::vector<std::pair<double, double>> result;
    for (intptr_t i = 0; i < hpSimulationGetNumLevels(self, tier); ++i)
      result.emplace_back(hpSimulationGetLevelTime(self, tier, i),
                          hpSimulationGetLevelBytes(self, tier, i));
    return result;
  }

private:
  void expectRun() const {
    if (!isRun)
      throw nb::value_error("expected run() to have succeeded before");
  }

  HpSimulation self;
  uint32_t numStreams, numSegments, numTiers;
  bool isRun = false;
};

} // namespace

static void append(MlirStringRef part, void *data) {
  static_cast<std::string *>(data)->append(part.data, part.length);
}

void hyperparallel::bindSimulator(nb::module_ &m) {
  nb::class_<Simulation>(m, "Simulation", "See hyperparallel.simulator.")
      .def(nb::init<uint32_t, const std::vector<double> &,
                    const std::vector<double> &>(),
           nb::arg("num_streams"), nb::arg("segments"), nb::arg("tiers"))
      .def("add", &Simulation::add, nb::arg("stream"), nb::arg("seconds"),
           nb::arg("bytes"), nb::arg("rate"), nb::arg("members"),
           nb::arg("segments"), nb::arg("dependencies"),
           nb::arg("partner").none(), nb::arg("residency"))
      .def("run", &Simulation::run, nb::arg("noise"), nb::arg("seed"))
      .def_prop_ro("seconds", &Simulation::seconds)
      .def_prop_ro("spans", &Simulation::spans)
      .def_prop_ro("busy", &Simulation::busy)
      .def_prop_ro("moved", &Simulation::moved)
      .def_prop_ro("peak", &Simulation::peak)
      .def("residency", &Simulation::residency, nb::arg("tier"));
  m.def(
      "simulate_program",
      [](MlirModule module, const std::string &function, double noise,
         uint64_t seed) {
        CollectDiagnosticsToStringScope scope(mlirModuleGetContext(module));
        std::string text;
        MlirStringRef name =
            mlirStringRefCreate(function.data(), function.size());
        if (mlirLogicalResultIsFailure(
                hpSimulateProgram(module, name, noise, seed, append, &text)))
          throw nb::value_error(scope.takeMessage().c_str());
        return text;
      },
      nb::arg("module"), nb::arg("function"), nb::arg("noise"), nb::arg("seed"),
      "The timeline that a simulation of the program gives, as JSON.");
}
