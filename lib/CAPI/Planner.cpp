//===- Planner.cpp - C API: placing storages in memory tiers --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/Planner.h"

#include "lib/Planner/Arena.h"
#include "lib/Planner/Check.h"
#include "lib/Planner/Explain.h"

#include <algorithm>

using namespace mlir::hyperparallel::planner;

namespace {
struct Planner {
  Problem problem;
  Plan plan;
  std::vector<int64_t> resident;
  std::vector<std::vector<int64_t>> below;
};
} // namespace

static Planner *unwrap(HpPlanner planner) {
  return static_cast<Planner *>(planner.ptr);
}

static void hand(const std::string &text, MlirStringCallback callback,
                 void *userData) {
  if (!text.empty())
    callback({text.data(), text.size()}, userData);
}

HpPlanner hpPlannerCreate(int64_t capacity, int64_t alignment,
                          int64_t minimumBytes, double memoryBandwidth) {
  auto *planner = new Planner;
  planner->problem.capacity = capacity;
  planner->problem.alignment = alignment;
  planner->problem.minimumBytes = minimumBytes;
  planner->problem.memoryBandwidth = memoryBandwidth;
  return {planner};
}

void hpPlannerDestroy(HpPlanner planner) { delete unwrap(planner); }

void hpPlannerAddSegment(HpPlanner planner, double bandwidth) {
  unwrap(planner)->problem.segments.push_back(bandwidth);
}

void hpPlannerAddTier(HpPlanner planner, int64_t capacity, HpPlannerLink out,
                      HpPlannerLink in) {
  auto link = [](HpPlannerLink link) {
    return Link{link.latency, link.bandwidth, link.segment, link.stagingBytes};
  };
  unwrap(planner)->problem.tiers.push_back({capacity, link(out), link(in)});
}

void hpPlannerAddOperation(HpPlanner planner, HpPlannerOperation operation) {
  unwrap(planner)->problem.operations.push_back(
      {operation.seconds, operation.workspace, operation.memoryBytes});
}

void hpPlannerAddStorage(HpPlanner planner, HpPlannerStorage storage,
                         intptr_t numRecomputeFrom,
                         const uint32_t *recomputeFrom) {
  unwrap(planner)->problem.storages.push_back(
      {storage.bytes, storage.persistent, storage.mayStartBelow, storage.clean,
       storage.homeTier, storage.pinned, storage.recomputeSeconds,
       std::vector<uint32_t>(recomputeFrom, recomputeFrom + numRecomputeFrom)});
}

void hpPlannerAddUse(HpPlanner planner, HpPlannerUse use) {
  unwrap(planner)->problem.uses.push_back(
      {use.operation, use.storage, use.reads, use.writes});
}

void hpPlannerFindFault(HpPlanner planner, MlirStringCallback callback,
                        void *userData) {
  hand(findFault(unwrap(planner)->problem), callback, userData);
}

static void findBytes(Planner &planner) {
  planner.resident = residentBytes(planner.problem, planner.plan.spills);
  planner.below = tierBytes(planner.problem, planner.plan.spills);
}

void hpPlannerPlan(HpPlanner planner) {
  Planner &self = *unwrap(planner);
  self.plan = makePlan(self.problem);
  findBytes(self);
}

void hpPlannerTake(HpPlanner planner, intptr_t numSpills,
                   const HpPlannerSpill *spills, MlirStringCallback callback,
                   void *userData) {
  Planner &self = *unwrap(planner);
  std::vector<Spill> taken;
  for (intptr_t i = 0; i < numSpills; ++i)
    taken.push_back({spills[i].storage, spills[i].after, spills[i].before,
                     spills[i].freed, spills[i].fetched, spills[i].tier,
                     spills[i].isClean, spills[i].recomputed, spills[i].delay});
  std::string fault = findFault(self.problem, taken);
  if (!fault.empty())
    return hand(fault, callback, userData);
  self.plan = describePlan(self.problem, std::move(taken));
  findBytes(self);
}

HpPlannerSummary hpPlannerGetSummary(HpPlanner planner) {
  const Plan &plan = unwrap(planner)->plan;
  return {static_cast<HpPlannerStatus>(plan.status),
          plan.execution.seconds,
          plan.boundSeconds,
          plan.computeSeconds,
          plan.execution.waitsOut,
          plan.execution.waitsIn,
          plan.execution.slowedDown,
          plan.peakBytes,
          plan.bytesOut,
          plan.bytesIn,
          plan.tightestSlot,
          plan.maxLiveSlot,
          plan.tightestBytes,
          plan.maxLiveBytes,
          plan.tierNeededBytes,
          plan.tierCapacityBytes};
}

MlirStringRef hpPlannerGetMethod(HpPlanner planner) {
  const std::string &method = unwrap(planner)->plan.method;
  return mlirStringRefCreate(method.data(), method.size());
}

intptr_t hpPlannerGetNumSpills(HpPlanner planner) {
  return unwrap(planner)->plan.spills.size();
}

HpPlannerSpill hpPlannerGetSpill(HpPlanner planner, intptr_t index) {
  const Spill &spill = unwrap(planner)->plan.spills[index];
  return {spill.storage, spill.after,      spill.before,
          spill.freed,   spill.fetched,    spill.tier,
          spill.isClean, spill.recomputed, spill.delay};
}

const double *hpPlannerGetTimes(HpPlanner planner, HpPlannerTimes times,
                                intptr_t *numTimes) {
  const Execution &run = unwrap(planner)->plan.execution;
  const std::vector<double> *all[] = {&run.reached, &run.taken,    &run.start,
                                      &run.end,     &run.outStart, &run.outEnd,
                                      &run.inStart, &run.inEnd};
  *numTimes = all[times]->size();
  return all[times]->data();
}

const int64_t *hpPlannerGetBytes(HpPlanner planner, int32_t tier,
                                 intptr_t *numSlots) {
  Planner &self = *unwrap(planner);
  const std::vector<int64_t> &bytes =
      tier < 0 ? self.resident : self.below[tier];
  *numSlots = bytes.size();
  return bytes.data();
}

void hpPlannerExplain(HpPlanner planner,
                      void (*callback)(HpPlannerStorageReport report, void *),
                      void *userData) {
  Planner &self = *unwrap(planner);
  for (const StorageReport &report : explainStorages(self.problem, self.plan))
    callback({report.gap.storage, static_cast<HpPlannerFate>(report.fate),
              report.tier, report.gap.after, report.gap.before,
              report.gap.gapSeconds, report.gap.copySeconds,
              report.gap.hiddenSeconds, report.gap.exposedSeconds,
              report.gap.breakEvenBandwidth},
             userData);
}

static std::vector<Buffer> unwrap(intptr_t numBuffers,
                                  const HpArenaBuffer *buffers) {
  std::vector<Buffer> result;
  for (intptr_t i = 0; i < numBuffers; ++i)
    result.push_back({buffers[i].lower, buffers[i].upper, buffers[i].size});
  return result;
}

HpArenaSummary hpArenaAssign(intptr_t numBuffers, const HpArenaBuffer *buffers,
                             int64_t alignment, int64_t goal, bool exact,
                             int64_t *offsets, MlirStringCallback callback,
                             void *userData) {
  ArenaOptions options;
  options.alignment = alignment;
  options.goal = goal;
  options.exact = exact;
  Arena arena = assignOffsets(unwrap(numBuffers, buffers), options);
  std::copy(arena.offsets.begin(), arena.offsets.end(), offsets);
  hand(arena.method, callback, userData);
  return {arena.height, arena.maxLive};
}

void hpArenaFindOverlap(intptr_t numBuffers, const HpArenaBuffer *buffers,
                        const int64_t *offsets, int64_t alignment,
                        MlirStringCallback callback, void *userData) {
  hand(findOverlap(unwrap(numBuffers, buffers),
                   std::vector<int64_t>(offsets, offsets + numBuffers),
                   alignment),
       callback, userData);
}
