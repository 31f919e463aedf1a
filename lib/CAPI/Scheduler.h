/*===- Scheduler.h - C API: the order of work of device groups ---*- C -*-==*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===--------------------------------------------------------------------===*/
#ifndef HYPERPARALLEL_LIB_CAPI_SCHEDULER_H
#define HYPERPARALLEL_LIB_CAPI_SCHEDULER_H

#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/* See lib/Scheduler/Problem.h, Schedule.h and Deadlock.h for the meanings.
 * Faults, as everywhere: nothing is called back if there is none. */

typedef struct {
  uint32_t group, kind, stage, microbatch;
  double seconds;
  int64_t startBytes, endBytes;
} HpSchedulerTask;

typedef struct {
  double busySeconds, bubble;
  int64_t peakBytes;
} HpSchedulerGroup;

/** What a group does: 0 run task, 1 send edge, 2 receive edge. */
typedef struct {
  uint32_t what, index;
} HpSchedulerStep;

/** A problem, and the schedule for it. */
typedef struct {
  void *ptr;
} HpScheduler;

MLIR_CAPI_EXPORTED HpScheduler hpSchedulerCreate(uint32_t numStages,
                                                 uint32_t numMicrobatches);
MLIR_CAPI_EXPORTED void hpSchedulerDestroy(HpScheduler scheduler);
MLIR_CAPI_EXPORTED void hpSchedulerAddGroup(HpScheduler scheduler,
                                            MlirStringRef name, int64_t limit);
MLIR_CAPI_EXPORTED void hpSchedulerAddTask(HpScheduler scheduler,
                                           HpSchedulerTask task);
MLIR_CAPI_EXPORTED void hpSchedulerAddEdge(HpScheduler scheduler, uint32_t from,
                                           uint32_t to, double seconds);

/** Makes the schedule of that name. */
MLIR_CAPI_EXPORTED void hpSchedulerMake(HpScheduler scheduler,
                                        MlirStringRef name,
                                        MlirStringCallback fault,
                                        void *userData);
/** Takes an order: tasks of all groups one after the other, `sizes` of each. */
MLIR_CAPI_EXPORTED void
hpSchedulerTake(HpScheduler scheduler, intptr_t numGroups,
                const intptr_t *sizes, const uint32_t *tasks,
                MlirStringCallback fault, void *userData);

MLIR_CAPI_EXPORTED double hpSchedulerGetSeconds(HpScheduler scheduler);
MLIR_CAPI_EXPORTED double hpSchedulerGetBubble(HpScheduler scheduler);
MLIR_CAPI_EXPORTED void hpSchedulerGetMethod(HpScheduler scheduler,
                                             MlirStringCallback callback,
                                             void *userData);
/** Called once for each schedule that `auto` did not take. */
MLIR_CAPI_EXPORTED void hpSchedulerGetDeclined(HpScheduler scheduler,
                                               MlirStringCallback callback,
                                               void *userData);
MLIR_CAPI_EXPORTED HpSchedulerGroup hpSchedulerGetGroup(HpScheduler scheduler,
                                                        uint32_t group);
/** By stage. */
MLIR_CAPI_EXPORTED const uint32_t *hpSchedulerGetPeakLive(HpScheduler scheduler,
                                                          intptr_t *numStages);
/** Starts or ends by task. */
MLIR_CAPI_EXPORTED const double *
hpSchedulerGetTimes(HpScheduler scheduler, bool ends, intptr_t *numTasks);
MLIR_CAPI_EXPORTED const HpSchedulerStep *
hpSchedulerGetSteps(HpScheduler scheduler, uint32_t group, intptr_t *numSteps);

/** What a process does: 0 send, 1 receive, 2 meet. */
typedef struct {
  uint32_t process, what, peer;
  int64_t tag, bytes;
  MlirStringRef label;
} HpProcessAction;

/** Executes the processes' actions; the fault is what goes wrong. */
MLIR_CAPI_EXPORTED void
hpFindDeadlock(intptr_t numProcesses, const MlirStringRef *names,
               intptr_t numActions, const HpProcessAction *actions,
               intptr_t numCircles, const intptr_t *sizes,
               const uint32_t *members, bool buffered, MlirStringCallback fault,
               void *userData);

#ifdef __cplusplus
}
#endif

#endif /* HYPERPARALLEL_LIB_CAPI_SCHEDULER_H */
