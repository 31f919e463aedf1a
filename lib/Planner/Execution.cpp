//===- Execution.cpp - what carrying out a plan takes ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// One program issues everything in order. At slot i:
//
//   1. copies out of storages whose last use was operation i - 1 are issued;
//   2. copies out with `freed` i are waited for, and their sources freed;
//   3. copies in with `fetched` i are issued;
//   4. copies in with `before` i are waited for;
//   5. the operation runs, after what is to be computed again for it.
//
// The copies that a slot issues on a link are submitted together, and take its
// latency once.
//
// With spills over the end of the step, two steps run and the second is
// reported: by then copies of the step before are under way as they will
// always be.
//
// Cost: O(operations + spills), and that of the copies.
//===----------------------------------------------------------------------===//
#include "lib/Planner/Copies.h"
#include "lib/Planner/Lifetimes.h"

#include <algorithm>
#include <limits>

using namespace mlir::hyperparallel::planner;

namespace {

/// The spills by the slot of one of their moments.
class BySlot {
public:
  template <typename Key, typename Then>
  BySlot(const std::vector<Spill> &spills, int32_t slots, Key key, Then then) {
    std::vector<uint32_t> order(spills.size());
    for (uint32_t i = 0; i < spills.size(); ++i)
      order[i] = i;
    numbers.resize(spills.size());
    sortInto(order, numbers, 2 * slots,
             [&](uint32_t i) { return then(spills[i]) + 1; });
    sortInto(numbers, order, slots,
             [&](uint32_t i) { return key(spills[i]) % slots; });
    numbers.swap(order);
  }

  template <typename Visit>
  void visit(int32_t slot, Visit visit) const {
    for (uint32_t i = first[slot]; i < first[slot + 1]; ++i)
      visit(numbers[i]);
  }

private:
  /// Stable, by a number below `count`; `first` is where each begins.
  template <typename Key>
  void sortInto(const std::vector<uint32_t> &from, std::vector<uint32_t> &to,
                int32_t count, Key key) {
    first.assign(count + 2, 0);
    for (uint32_t number : from)
      ++first[key(number) + 2];
    for (int32_t i = 2; i < count + 2; ++i)
      first[i] += first[i - 1];
    for (uint32_t number : from)
      to[first[key(number) + 1]++] = number;
  }

  std::vector<uint32_t> first, numbers;
};

class Run {
public:
  Run(const Problem &problem, const std::vector<Spill> &spills)
      : problem(problem), spills(spills),
        slots(int32_t(problem.operations.size()) + 1),
        byIssued(
            spills, slots, [](const Spill &s) { return s.issued(); },
            [](const Spill &s) { return s.freed; }),
        byFreed(
            spills, slots, [](const Spill &s) { return s.freed; },
            [](const Spill &s) { return s.after; }),
        byFetched(
            spills, slots, [](const Spill &s) { return s.fetched; },
            [](const Spill &s) { return s.before; }),
        byBefore(
            spills, slots, [](const Spill &s) { return s.before; },
            [](const Spill &s) { return s.fetched; }),
        copies(problem), lastSlot(2 * problem.tiers.size(), -1) {}

  Execution run();

private:
  void runSlot(int32_t slot);
  void issue(uint32_t link, int32_t slot, uint32_t storage, double *start,
             double *end) {
    copies.issue(link, problem.storages[storage].bytes,
                 /*joined=*/lastSlot[link] == slot, start, end);
    lastSlot[link] = slot;
  }

  const Problem &problem;
  const std::vector<Spill> &spills;
  int32_t slots;
  BySlot byIssued, byFreed, byFetched, byBefore;
  Copies copies;
  /// By link: the slot that has issued a copy last.
  std::vector<int32_t> lastSlot;
  Execution result;
};

} // namespace

void Run::runSlot(int32_t slot) {
  result.reached[slot] = copies.now();
  byIssued.visit(slot, [&](uint32_t s) {
    const Spill &spill = spills[s];
    if (spill.copiesOut())
      issue(Copies::outLink(spill.tier), slot, spill.storage,
            &result.outStart[s], &result.outEnd[s]);
    else
      result.outStart[s] = result.outEnd[s] = copies.now();
  });
  byFreed.visit(slot, [&](uint32_t s) { copies.wait(&result.outEnd[s]); });
  result.taken[slot] = copies.now();
  result.waitsOut += result.taken[slot] - result.reached[slot];
  byFetched.visit(slot, [&](uint32_t s) {
    const Spill &spill = spills[s];
    if (spill.copiesIn())
      issue(Copies::inLink(spill.tier), slot, spill.storage, &result.inStart[s],
            &result.inEnd[s]);
    else
      result.inStart[s] = result.inEnd[s] = copies.now();
  });
  double again = 0;
  byBefore.visit(slot, [&](uint32_t s) {
    if (spills[s].recomputed)
      again += problem.storages[spills[s].storage].recomputeSeconds;
    else
      copies.wait(&result.inEnd[s]);
  });
  result.start[slot] = copies.now();
  result.waitsIn += result.start[slot] - result.taken[slot];
  copies.run(again, 0);
  byBefore.visit(slot, [&](uint32_t s) {
    if (spills[s].recomputed) {
      result.inStart[s] = result.start[slot];
      result.inEnd[s] = copies.now();
    }
  });
  if (slot + 1 < slots) {
    const Operation &op = problem.operations[slot];
    double begin = copies.now();
    copies.run(op.seconds, op.memoryBytes);
    result.slowedDown += copies.now() - begin - op.seconds;
  }
  result.end[slot] = copies.now();
}

Execution Run::run() {
  for (auto *times :
       {&result.reached, &result.taken, &result.start, &result.end})
    times->assign(slots, 0);
  for (auto *times :
       {&result.outStart, &result.outEnd, &result.inStart, &result.inEnd})
    times->assign(spills.size(), 0);
  bool wraps = std::any_of(spills.begin(), spills.end(),
                           [&](const Spill &s) { return s.before >= slots; });
  double begin = 0;
  for (int step = 0; step < (wraps ? 2 : 1); ++step) {
    begin = copies.now();
    lastSlot.assign(lastSlot.size(), -1);
    result.waitsOut = result.waitsIn = result.slowedDown = 0;
    for (int32_t slot = 0; slot < slots; ++slot)
      runSlot(slot);
  }
  result.seconds = copies.now() - begin;
  // What is still under way belongs to the next step; its end is known then.
  copies.advance(std::numeric_limits<double>::infinity());
  for (auto *times :
       {&result.reached, &result.taken, &result.start, &result.end,
        &result.outStart, &result.outEnd, &result.inStart, &result.inEnd})
    for (double &time : *times)
      time -= begin;
  result.slowedDown = std::max(result.slowedDown, 0.0);
  return std::move(result);
}

Execution
mlir::hyperparallel::planner::execute(const Problem &problem,
                                      const std::vector<Spill> &spills) {
  return Run(problem, spills).run();
}
