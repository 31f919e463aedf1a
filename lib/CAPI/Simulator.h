/*===- Simulator.h - C API: discrete-event simulation ------------*- C -*-==*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===--------------------------------------------------------------------===*/
#ifndef HYPERPARALLEL_LIB_CAPI_SIMULATOR_H
#define HYPERPARALLEL_LIB_CAPI_SIMULATOR_H

#include "mlir-c/IR.h"
#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Tasks to simulate, and what came of it. */
typedef struct {
  void *ptr;
} HpSimulation;

#define HP_NO_TASK UINT32_MAX

/** `bandwidths`: bytes per second of each segment; `resident`: bytes in each
 * tier at the beginning. */
MLIR_CAPI_EXPORTED HpSimulation hpSimulationCreate(uint32_t numStreams,
                                                   intptr_t numSegments,
                                                   const double *bandwidths,
                                                   intptr_t numTiers,
                                                   const double *resident);
MLIR_CAPI_EXPORTED void hpSimulationDestroy(HpSimulation simulation);

/** Adds a task to the end of a stream: `seconds`, then `bytes` at up to `rate`
 * through the segments, for `members` devices at once. It takes `atStart` bytes
 * from each of `tiers` when it starts, and adds `atEnd` when it ends. It begins
 * with its `partner`, of which it is the partner (HP_NO_TASK: it has none).
 * Tasks are numbered from 0. */
MLIR_CAPI_EXPORTED void
hpSimulationAddTask(HpSimulation simulation, uint32_t stream, double seconds,
                    double bytes, double rate, double members,
                    intptr_t numSegments, const uint32_t *segments,
                    intptr_t numDependencies, const uint32_t *dependencies,
                    uint32_t partner, intptr_t numTiers, const uint32_t *tiers,
                    const double *atStart, const double *atEnd);

/** False if it cannot be done: hpSimulationGetError says why. */
MLIR_CAPI_EXPORTED bool hpSimulationRun(HpSimulation simulation, double noise,
                                        uint64_t seed);
MLIR_CAPI_EXPORTED MlirStringRef hpSimulationGetError(HpSimulation simulation);

MLIR_CAPI_EXPORTED double hpSimulationGetSeconds(HpSimulation simulation);
MLIR_CAPI_EXPORTED double hpSimulationGetStart(HpSimulation simulation,
                                               uint32_t task);
MLIR_CAPI_EXPORTED double hpSimulationGetEnd(HpSimulation simulation,
                                             uint32_t task);
MLIR_CAPI_EXPORTED intptr_t hpSimulationGetNumTasks(HpSimulation simulation);
MLIR_CAPI_EXPORTED double hpSimulationGetBusy(HpSimulation simulation,
                                              uint32_t stream);
MLIR_CAPI_EXPORTED double hpSimulationGetMoved(HpSimulation simulation,
                                               uint32_t segment);
MLIR_CAPI_EXPORTED double hpSimulationGetPeak(HpSimulation simulation,
                                              uint32_t tier);
/** The changes of what is resident in a tier, in order of time. */
MLIR_CAPI_EXPORTED intptr_t hpSimulationGetNumLevels(HpSimulation simulation,
                                                     uint32_t tier);
MLIR_CAPI_EXPORTED double hpSimulationGetLevelTime(HpSimulation simulation,
                                                   uint32_t tier,
                                                   intptr_t index);
MLIR_CAPI_EXPORTED double hpSimulationGetLevelBytes(HpSimulation simulation,
                                                    uint32_t tier,
                                                    intptr_t index);

/** Simulates a compiled module, the entry being `function`, and hands the
 * timeline as JSON to `callback`. Failure comes with a diagnostic. */
MLIR_CAPI_EXPORTED MlirLogicalResult
hpSimulateProgram(MlirModule module, MlirStringRef function, double noise,
                  uint64_t seed, MlirStringCallback callback, void *userData);

#ifdef __cplusplus
}
#endif

#endif /* HYPERPARALLEL_LIB_CAPI_SIMULATOR_H */
