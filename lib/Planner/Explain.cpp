//===- Explain.cpp - why a plan is as it is -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A slot waits for copies out first, then for copies in. Its wait goes to them
// in the order in which they end: to each what it adds.
//
// Cost: O(slots + gaps + spills log spills).
//===----------------------------------------------------------------------===//
#include "lib/Planner/Explain.h"
#include "lib/Planner/Lifetimes.h"

#include <algorithm>

using namespace mlir::hyperparallel::planner;

namespace {
struct Wait {
  int32_t slot;
  double end;
  uint32_t spill;
};
} // namespace

/// Adds what each copy makes its slot wait, where waiting begins at `begins`.
static void share(std::vector<Wait> waits, const std::vector<double> &begins,
                  std::vector<GapReport> &reports) {
  std::sort(waits.begin(), waits.end(), [](const Wait &a, const Wait &b) {
    return std::make_pair(a.slot, a.end) < std::make_pair(b.slot, b.end);
  });
  int32_t slot = -1;
  double now = 0;
  for (const Wait &wait : waits) {
    if (wait.slot != slot) {
      slot = wait.slot;
      now = begins[slot];
    }
    reports[wait.spill].exposedSeconds += std::max(0.0, wait.end - now);
    now = std::max(now, wait.end);
  }
}

/// Bytes per second at which copies of a storage fit into that time, their
/// latencies too; 0 if none are fast enough.
static double breakEven(const Problem &problem, uint32_t storage, uint32_t tier,
                        int ways, double seconds) {
  int64_t bytes = problem.storages[storage].bytes;
  if (tier < problem.tiers.size() && ways > 0) {
    const Tier &below = problem.tiers[tier];
    seconds -= below.in.latency * double(below.in.chunks(bytes));
    if (ways > 1)
      seconds -= below.out.latency * double(below.out.chunks(bytes));
  }
  return seconds > 0 ? ways * double(bytes) / seconds : 0;
}

static GapReport describe(const Problem &problem, const Execution &run,
                          uint32_t storage, int32_t after, int32_t before,
                          uint32_t tier, int ways) {
  int32_t slots = int32_t(run.start.size());
  GapReport report{storage, after, before};
  double end = before < slots ? run.start[before]
                              : run.seconds + run.start[before - slots];
  report.gapSeconds = std::max(0.0, end - (after < 0 ? 0 : run.end[after]));
  report.breakEvenBandwidth =
      breakEven(problem, storage, tier, ways, report.gapSeconds);
  return report;
}

std::vector<GapReport>
mlir::hyperparallel::planner::explainSpills(const Problem &problem,
                                            const Plan &plan) {
  const Execution &run = plan.execution;
  int32_t slots = int32_t(run.start.size());
  std::vector<GapReport> reports;
  std::vector<Wait> out, in;
  for (uint32_t s = 0; s < plan.spills.size(); ++s) {
    const Spill &spill = plan.spills[s];
    reports.push_back(describe(problem, run, spill.storage, spill.after,
                               spill.before, spill.tier,
                               int(spill.copiesOut()) + int(spill.copiesIn())));
    if (spill.copiesOut()) {
      reports[s].copySeconds += run.outEnd[s] - run.outStart[s];
      if (spill.freed < slots)
        out.push_back({spill.freed, run.outEnd[s], s});
    }
    if (spill.copiesIn()) {
      reports[s].copySeconds += run.inEnd[s] - run.inStart[s];
      in.push_back({spill.before % slots, run.inEnd[s], s});
    }
  }
  share(std::move(out), run.reached, reports);
  share(std::move(in), run.taken, reports);
  for (GapReport &report : reports)
    report.hiddenSeconds =
        std::max(0.0, report.copySeconds - report.exposedSeconds);
  return reports;
}

/// The longest gap in which the storage could leave; false if there is none.
static bool findLongest(const Problem &problem, const Execution &run,
                        const Lifetimes &lifetimes, uint32_t storage,
                        GapReport &longest) {
  uint32_t begin = lifetimes.firstGap[storage],
           end = lifetimes.firstGap[storage + 1];
  int ways = problem.storages[storage].clean ? 1 : 2;
  for (uint32_t g = begin; g < end; ++g) {
    GapReport report = describe(problem, run, storage, lifetimes.gaps[g].after,
                                lifetimes.gaps[g].before, /*tier=*/0, ways);
    if (g == begin || report.gapSeconds > longest.gapSeconds)
      longest = report;
  }
  return begin < end;
}

std::vector<StorageReport>
mlir::hyperparallel::planner::explainStorages(const Problem &problem,
                                              const Plan &plan) {
  Lifetimes lifetimes(problem);
  std::vector<GapReport> bySpill = explainSpills(problem, plan);
  std::vector<std::vector<uint32_t>> spillsOf(problem.storages.size());
  for (uint32_t s = 0; s < plan.spills.size(); ++s)
    spillsOf[plan.spills[s].storage].push_back(s);
  std::vector<StorageReport> reports;
  for (uint32_t storage = 0; storage < spillsOf.size(); ++storage) {
    StorageReport report;
    if (spillsOf[storage].empty()) {
      if (findLongest(problem, plan.execution, lifetimes, storage, report.gap))
        reports.push_back(report);
      continue;
    }
    report.fate = Fate::Recomputed;
    bool isFirst = true, isStored = false;
    double copies = 0, exposed = 0;
    for (uint32_t s : spillsOf[storage]) {
      const Spill &spill = plan.spills[s];
      if (!spill.recomputed) {
        report.fate = Fate::Moved;
        report.tier = spill.tier;
      }
      isStored |= spill.copiesOut();
      copies += bySpill[s].copySeconds;
      exposed += bySpill[s].exposedSeconds;
      // What is only stored never leaves.
      bool isAway = spill.freed < spill.fetched;
      if (isAway &&
          (isFirst || bySpill[s].gapSeconds > report.gap.gapSeconds)) {
        report.gap = bySpill[s];
        isFirst = false;
      }
    }
    if (isFirst)
      report.gap = bySpill[spillsOf[storage].front()];
    isStored |= report.fate == Fate::Recomputed;
    report.gap.copySeconds = copies;
    report.gap.exposedSeconds = exposed;
    report.gap.hiddenSeconds = std::max(0.0, copies - exposed);
    report.gap.breakEvenBandwidth = breakEven(
        problem, storage, report.tier, isStored ? 2 : 1, report.gap.gapSeconds);
    reports.push_back(report);
  }
  return reports;
}
