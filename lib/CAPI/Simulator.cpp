//===- Simulator.cpp - C API: discrete-event simulation -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/Simulator.h"

#include "lib/Simulator/Program.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/CAPI/Utils.h"

using namespace mlir::hyperparallel::simulator;

namespace {
struct Simulation {
  Problem problem;
  Result result;
};
} // namespace

static Simulation *unwrap(HpSimulation simulation) {
  return static_cast<Simulation *>(simulation.ptr);
}

static const Result &result(HpSimulation simulation) {
  return unwrap(simulation)->result;
}

HpSimulation hpSimulationCreate(uint32_t numStreams, intptr_t numSegments,
                                const double *bandwidths, intptr_t numTiers,
                                const double *resident) {
  auto *simulation = new Simulation;
  simulation->problem.numStreams = numStreams;
  simulation->problem.segments.assign(bandwidths, bandwidths + numSegments);
  simulation->problem.tiers.assign(resident, resident + numTiers);
  return {simulation};
}

void hpSimulationDestroy(HpSimulation simulation) { delete unwrap(simulation); }

void hpSimulationAddTask(HpSimulation simulation, uint32_t stream,
                         double seconds, double bytes, double rate,
                         double members, intptr_t numSegments,
                         const uint32_t *segments, intptr_t numDependencies,
                         const uint32_t *dependencies, uint32_t partner,
                         intptr_t numTiers, const uint32_t *tiers,
                         const double *atStart, const double *atEnd) {
  Task task;
  task.stream = stream;
  task.seconds = seconds;
  task.bytes = bytes;
  task.rate = rate;
  task.partner = partner;
  for (intptr_t i = 0; i < numSegments; ++i)
    task.uses.push_back({segments[i], members});
  task.dependencies.assign(dependencies, dependencies + numDependencies);
  for (intptr_t i = 0; i < numTiers; ++i)
    task.residency.push_back({tiers[i], atStart[i], atEnd[i]});
  unwrap(simulation)->problem.tasks.push_back(std::move(task));
}

bool hpSimulationRun(HpSimulation simulation, double noise, uint64_t seed) {
  Simulation *self = unwrap(simulation);
  self->problem.noise = noise;
  self->problem.seed = seed;
  self->result = simulate(self->problem);
  return self->result.error.empty();
}

MlirStringRef hpSimulationGetError(HpSimulation simulation) {
  const std::string &error = result(simulation).error;
  return mlirStringRefCreate(error.data(), error.size());
}

double hpSimulationGetSeconds(HpSimulation simulation) {
  return result(simulation).seconds;
}
double hpSimulationGetStart(HpSimulation simulation, uint32_t task) {
  return result(simulation).spans[task].start;
}
double hpSimulationGetEnd(HpSimulation simulation, uint32_t task) {
  return result(simulation).spans[task].end;
}
intptr_t hpSimulationGetNumTasks(HpSimulation simulation) {
  return result(simulation).spans.size();
}
double hpSimulationGetBusy(HpSimulation simulation, uint32_t stream) {
  return result(simulation).busy[stream];
}
double hpSimulationGetMoved(HpSimulation simulation, uint32_t segment) {
  return result(simulation).moved[segment];
}
double hpSimulationGetPeak(HpSimulation simulation, uint32_t tier) {
  return result(simulation).peak[tier];
}
intptr_t hpSimulationGetNumLevels(HpSimulation simulation, uint32_t tier) {
  return result(simulation).residency[tier].size();
}
double hpSimulationGetLevelTime(HpSimulation simulation, uint32_t tier,
                                intptr_t index) {
  return result(simulation).residency[tier][index].time;
}
double hpSimulationGetLevelBytes(HpSimulation simulation, uint32_t tier,
                                 intptr_t index) {
  return result(simulation).residency[tier][index].bytes;
}

MlirLogicalResult hpSimulateProgram(MlirModule module, MlirStringRef function,
                                    double noise, uint64_t seed,
                                    MlirStringCallback callback,
                                    void *userData) {
  mlir::detail::CallbackOstream stream(callback, userData);
  return wrap(mlir::hyperparallel::simulateProgram(
      unwrap(module), unwrap(function), {noise, seed}, stream));
}
