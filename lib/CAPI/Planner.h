/*===- Planner.h - C API: placing storages in memory tiers -------*- C -*-==*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===--------------------------------------------------------------------===*/
#ifndef HYPERPARALLEL_LIB_CAPI_PLANNER_H
#define HYPERPARALLEL_LIB_CAPI_PLANNER_H

#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/* See lib/Planner/Problem.h and Plan.h for what the fields mean. */

typedef struct {
  double seconds;
  int64_t workspace;
  int64_t memoryBytes;
} HpPlannerOperation;

typedef struct {
  int64_t bytes;
  bool persistent, mayStartBelow, clean, pinned;
  uint32_t homeTier;
  double recomputeSeconds;
} HpPlannerStorage;

typedef struct {
  uint32_t operation, storage;
  bool reads, writes;
} HpPlannerUse;

typedef struct {
  double latency, bandwidth;
  int32_t segment;
  int64_t stagingBytes;
} HpPlannerLink;

typedef struct {
  uint32_t storage;
  int32_t after, before, freed, fetched;
  uint32_t tier;
  bool isClean, recomputed;
  int32_t delay;
} HpPlannerSpill;

typedef enum {
  HpPlannerPlanned,
  HpPlannerDeviceTooSmall,
  HpPlannerTiersTooSmall,
} HpPlannerStatus;

typedef enum {
  HpPlannerKept,
  HpPlannerMoved,
  HpPlannerRecomputed,
} HpPlannerFate;

/** Why a storage goes or stays; see lib/Planner/Explain.h. */
typedef struct {
  uint32_t storage;
  HpPlannerFate fate;
  uint32_t tier;
  int32_t after, before;
  double gapSeconds, copySeconds, hiddenSeconds, exposedSeconds;
  double breakEvenBandwidth;
} HpPlannerStorageReport;

/** What is known of a plan besides its spills. */
typedef struct {
  HpPlannerStatus status;
  double seconds, boundSeconds, computeSeconds;
  double waitsOut, waitsIn, slowedDown;
  int64_t peakBytes, bytesOut, bytesIn;
  int32_t tightestSlot, maxLiveSlot;
  int64_t tightestBytes, maxLiveBytes;
  int64_t tierNeededBytes, tierCapacityBytes;
} HpPlannerSummary;

/** Times of a plan that is carried out: by slot, or by spill. */
typedef enum {
  HpPlannerSlotReached,
  HpPlannerSlotTaken,
  HpPlannerSlotStart,
  HpPlannerSlotEnd,
  HpPlannerSpillOutStart,
  HpPlannerSpillOutEnd,
  HpPlannerSpillInStart,
  HpPlannerSpillInEnd,
} HpPlannerTimes;

/** A problem, and the plan for it. */
typedef struct {
  void *ptr;
} HpPlanner;

MLIR_CAPI_EXPORTED HpPlanner hpPlannerCreate(int64_t capacity,
                                             int64_t alignment,
                                             int64_t minimumBytes,
                                             double memoryBandwidth);
MLIR_CAPI_EXPORTED void hpPlannerDestroy(HpPlanner planner);
MLIR_CAPI_EXPORTED void hpPlannerAddSegment(HpPlanner planner,
                                            double bandwidth);
MLIR_CAPI_EXPORTED void hpPlannerAddTier(HpPlanner planner, int64_t capacity,
                                         HpPlannerLink out, HpPlannerLink in);
MLIR_CAPI_EXPORTED void hpPlannerAddOperation(HpPlanner planner,
                                              HpPlannerOperation operation);
MLIR_CAPI_EXPORTED void hpPlannerAddStorage(HpPlanner planner,
                                            HpPlannerStorage storage,
                                            intptr_t numRecomputeFrom,
                                            const uint32_t *recomputeFrom);
MLIR_CAPI_EXPORTED void hpPlannerAddUse(HpPlanner planner, HpPlannerUse use);

/** What is wrong with the problem; empty if nothing is. It must be empty before
 * anything below is called. */
MLIR_CAPI_EXPORTED void hpPlannerFindFault(HpPlanner planner,
                                           MlirStringCallback callback,
                                           void *userData);
/** Makes a plan. */
MLIR_CAPI_EXPORTED void hpPlannerPlan(HpPlanner planner);
/** Takes a plan from somebody else, and finds out what it takes. What is wrong
 * with it is handed to the callback; nothing is if it is safe. */
MLIR_CAPI_EXPORTED void hpPlannerTake(HpPlanner planner, intptr_t numSpills,
                                      const HpPlannerSpill *spills,
                                      MlirStringCallback callback,
                                      void *userData);

MLIR_CAPI_EXPORTED HpPlannerSummary hpPlannerGetSummary(HpPlanner planner);
MLIR_CAPI_EXPORTED MlirStringRef hpPlannerGetMethod(HpPlanner planner);
MLIR_CAPI_EXPORTED intptr_t hpPlannerGetNumSpills(HpPlanner planner);
MLIR_CAPI_EXPORTED HpPlannerSpill hpPlannerGetSpill(HpPlanner planner,
                                                    intptr_t index);
/** `numTimes` is set to how many there are. */
MLIR_CAPI_EXPORTED const double *
hpPlannerGetTimes(HpPlanner planner, HpPlannerTimes times, intptr_t *numTimes);
/** Bytes by slot on the device (tier -1) or in a tier below, as integers. */
MLIR_CAPI_EXPORTED const int64_t *
hpPlannerGetBytes(HpPlanner planner, int32_t tier, intptr_t *numSlots);
/** Calls back for every storage that could leave, in the order of numbers. */
MLIR_CAPI_EXPORTED void
hpPlannerExplain(HpPlanner planner,
                 void (*callback)(HpPlannerStorageReport report, void *),
                 void *userData);

/* Static offsets; see lib/Planner/Arena.h. */

typedef struct {
  int64_t lower, upper, size;
} HpArenaBuffer;

typedef struct {
  int64_t height, maxLive;
} HpArenaSummary;

/** Writes an offset for each buffer; how they were found goes to the callback.
 * `goal`: the height that is enough, 0 for the least that could be. */
MLIR_CAPI_EXPORTED HpArenaSummary hpArenaAssign(intptr_t numBuffers,
                                                const HpArenaBuffer *buffers,
                                                int64_t alignment, int64_t goal,
                                                bool exact, int64_t *offsets,
                                                MlirStringCallback callback,
                                                void *userData);
/** What is wrong with the offsets goes to the callback, if anything is. */
MLIR_CAPI_EXPORTED void
hpArenaFindOverlap(intptr_t numBuffers, const HpArenaBuffer *buffers,
                   const int64_t *offsets, int64_t alignment,
                   MlirStringCallback callback, void *userData);

#ifdef __cplusplus
}
#endif

#endif /* HYPERPARALLEL_LIB_CAPI_PLANNER_H */
