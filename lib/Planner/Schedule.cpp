//===- Schedule.cpp - when chosen gaps are freed and fetched --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Against a clock (when each slot is expected):
//
//   1. Copies out queue on their link as soon as their gap begins, or are
//      issued later, if another order lets others go first. `freed` is the
//      first slot that is reached after the copy has ended.
//   2. Copies in queue backwards from the uses that end the gaps, as late as
//      possible. `fetched` is the last slot that is taken before the copy must
//      begin.
//   3. Repair, from left to right: where a slot holds too much, either a copy
//      out that is under way is waited for there (the one that ends first), or
//      a copy in is put off (the one that is needed last), whichever is
//      expected to cost less; if there is neither, another gap is spilled.
//   4. What room is left is used: waits for copies out that would stall move
//      to later slots, copies in to earlier ones, and spills that turn out to
//      be needless are dropped.
//   5. Copies in are issued at the first slot that has room and no earlier than
//      those before them, and small copies out wait for the next one: copies of
//      one slot are submitted together and share a latency.
//
// Only step 3 decides whether the plan is safe, and it knows integers only.
// Cost: O((slots + gaps) log).
//===----------------------------------------------------------------------===//
#include "lib/Planner/Schedule.h"
#include "lib/Planner/SegmentTree.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

using namespace mlir::hyperparallel::planner;

Clock::Clock(const Problem &problem) {
  double now = 0;
  for (const Operation &op : problem.operations) {
    start.push_back(now);
    now += op.seconds;
    end.push_back(now);
  }
  start.push_back(now);
  end.push_back(now);
  reached = taken = start;
  seconds = now;
}

Clock::Clock(const Execution &execution)
    : seconds(execution.seconds), reached(execution.reached),
      taken(execution.taken), start(execution.start), end(execution.end) {}

namespace {

class Scheduler {
public:
  Scheduler(const Problem &problem, const Lifetimes &lifetimes,
            const Choice &choice, const Clock &clock, int64_t capacity)
      : problem(problem), lifetimes(lifetimes), choice(choice), clock(clock),
        capacity(capacity), slots(lifetimes.slots), tree(lifetimes.live),
        isChosen(choice.isChosen) {}

  bool run();
  std::vector<Spill> take();

private:
  struct Item {
    uint32_t gap;
    int32_t after, before, freed, fetched;
    int64_t bytes;
    uint8_t tier;
    bool isClean;
    /// When the copy out is expected to end, and what each copy takes.
    double outEnd, outSeconds, inSeconds;
    int32_t delay = 0;
  };
  /// An item as repair sees it from a slot j: its times are those of slot
  /// j + shift, where shift is `slots` for the part after the step's end.
  struct Candidate {
    double key;
    uint32_t item;
    int32_t shift;
    bool operator<(const Candidate &other) const {
      return std::make_pair(key, item) < std::make_pair(other.key, other.item);
    }
  };

  double at(const std::vector<double> &times, int32_t slot) const {
    return slot < slots ? times[slot] : clock.seconds + times[slot - slots];
  }
  /// The first slot in (after, before] with times[slot] >= moment; or before.
  int32_t firstAt(const std::vector<double> &times, int32_t from, int32_t to,
                  double moment) const;
  void collect();
  void queueOut();
  void queueOutInOrder();
  void queueIn();
  void occupy(int32_t from, int32_t to, int64_t bytes) {
    forSlots(from, to, slots,
             [&](int32_t a, int32_t b) { tree.add(a, b, bytes); });
  }
  bool repair();
  bool repairSlot(int32_t slot);
  void enter(int32_t slot);
  bool waitEarlier(int32_t slot, const Candidate &candidate);
  void fetchLater(int32_t slot, const Candidate &candidate);
  bool spillAnother(int32_t slot);
  void waitLater(bool onlyIfItStalls);
  void fetchEarlier();
  bool servesLater(const Item &item) const;
  void dropNeedless();
  void joinOut();

  const Problem &problem;
  const Lifetimes &lifetimes;
  const Choice &choice;
  const Clock &clock;
  int64_t capacity;
  int32_t slots;
  SegmentTree tree;
  std::vector<bool> isChosen;
  std::vector<Item> items;
  /// Items by `after`, and by `before`.
  std::vector<uint32_t> byAfter, byBefore;

  // Repair.
  std::priority_queue<Candidate> leaving, arriving;
  std::priority_queue<
      std::pair<int32_t, std::pair<uint32_t, int32_t>>,
      std::vector<std::pair<int32_t, std::pair<uint32_t, int32_t>>>,
      std::greater<>>
      laterLeaving, laterArriving;
  std::vector<uint32_t> otherGaps;
  size_t nextOther = 0;
  std::priority_queue<std::pair<int32_t, uint32_t>> others;
};

} // namespace

int32_t Scheduler::firstAt(const std::vector<double> &times, int32_t from,
                           int32_t to, double moment) const {
  while (from < to) {
    int32_t middle = from + (to - from) / 2;
    if (at(times, middle) >= moment)
      to = middle;
    else
      from = middle + 1;
  }
  return from;
}

void Scheduler::collect() {
  std::vector<bool> isClean = lifetimes.findClean(problem, isChosen);
  for (uint32_t g = 0; g < lifetimes.gaps.size(); ++g) {
    if (!isChosen[g])
      continue;
    const Gap &gap = lifetimes.gaps[g];
    uint8_t tier = choice.tier[g];
    const Tier &below = problem.tiers[tier];
    int64_t bytes = problem.storages[gap.storage].bytes;
    items.push_back({g, gap.after, gap.before, gap.after + 1, gap.before,
                     gap.bytes, tier, isClean[g], 0,
                     problem.seconds(below.out, bytes),
                     problem.seconds(below.in, bytes)});
  }
  byAfter.resize(items.size());
  for (uint32_t i = 0; i < items.size(); ++i)
    byAfter[i] = i;
  byBefore = byAfter;
  std::sort(byAfter.begin(), byAfter.end(), [&](uint32_t a, uint32_t b) {
    return std::make_tuple(items[a].after, items[a].before, a) <
           std::make_tuple(items[b].after, items[b].before, b);
  });
  std::sort(byBefore.begin(), byBefore.end(), [&](uint32_t a, uint32_t b) {
    return std::make_tuple(items[a].before, items[a].after, a) <
           std::make_tuple(items[b].before, items[b].after, b);
  });
}

void Scheduler::queueOut() {
  std::vector<double> free(problem.tiers.size(), 0);
  for (uint32_t i : byAfter) {
    Item &item = items[i];
    double begin = item.after < 0 ? 0 : clock.end[item.after];
    item.outEnd = begin;
    if (item.isClean)
      continue;
    double &link = free[item.tier];
    link = item.outEnd = std::max(begin, link) + item.outSeconds;
    item.freed =
        firstAt(clock.reached, item.after + 1, item.before, item.outEnd);
  }
}

/// Whenever a link is free, the first by the order of those that could begin.
void Scheduler::queueOutInOrder() {
  std::vector<std::vector<uint32_t>> lists(problem.tiers.size());
  auto begin = [&](uint32_t i) {
    return items[i].after < 0 ? 0 : clock.end[items[i].after];
  };
  for (uint32_t i : byAfter)
    if (items[i].isClean)
      items[i].outEnd = begin(i);
    else
      lists[items[i].tier].push_back(i);
  auto key = [&](uint32_t i) {
    const Item &item = items[i];
    double value = choice.outOrder == OutOrder::Smallest ? double(item.bytes)
                   : choice.outOrder == OutOrder::SoonestNext ? item.before
                                                              : -item.before;
    return std::make_pair(value, i);
  };
  for (const std::vector<uint32_t> &list : lists) {
    std::priority_queue<std::pair<double, uint32_t>,
                        std::vector<std::pair<double, uint32_t>>,
                        std::greater<>>
        waiting;
    double free = 0;
    for (size_t next = 0; next < list.size() || !waiting.empty();) {
      if (waiting.empty())
        free = std::max(free, begin(list[next]));
      for (; next < list.size() && begin(list[next]) <= free; ++next)
        waiting.push(key(list[next]));
      Item &item = items[waiting.top().second];
      waiting.pop();
      // The last slot that is reached by the time.
      int32_t late = firstAt(clock.reached, item.after + 1, item.before,
                             std::nextafter(free, clock.seconds + free + 1));
      item.delay = std::max(late - 1, item.after + 1) - item.after - 1;
      item.outEnd = free += item.outSeconds;
      item.freed =
          firstAt(clock.reached, item.after + 1, item.before, item.outEnd);
    }
  }
}

void Scheduler::queueIn() {
  std::vector<double> free(problem.tiers.size(), 3 * clock.seconds + 1);
  for (auto it = byBefore.rbegin(); it != byBefore.rend(); ++it) {
    Item &item = items[*it];
    double &link = free[item.tier];
    link = std::min(at(clock.start, item.before), link) - item.inSeconds;
    // The last slot that is taken in time is the one before the first that is
    // taken later.
    int32_t late = firstAt(clock.taken, item.freed, item.before + 1,
                           std::nextafter(link, 3 * clock.seconds + 2));
    item.fetched = std::max(item.freed, late - 1);
  }
}

/// Moves what concerns the slot into the heaps.
void Scheduler::enter(int32_t slot) {
  while (!laterLeaving.empty() && laterLeaving.top().first < slot) {
    auto [item, shift] = laterLeaving.top().second;
    laterLeaving.pop();
    double end = items[item].outEnd - (shift ? clock.seconds : 0);
    leaving.push({-end, item, shift});
  }
  while (!laterArriving.empty() && laterArriving.top().first <= slot) {
    auto [item, shift] = laterArriving.top().second;
    laterArriving.pop();
    arriving.push({double(items[item].before - shift), item, shift});
  }
  while (nextOther < otherGaps.size() &&
         lifetimes.gaps[otherGaps[nextOther]].after < slot) {
    uint32_t gap = otherGaps[nextOther++];
    others.push({lifetimes.gaps[gap].before, gap});
  }
  auto isLeaving = [&](const Candidate &c) {
    const Item &item = items[c.item];
    return slot + c.shift > item.after && slot + c.shift < item.freed;
  };
  while (!leaving.empty() && !isLeaving(leaving.top()))
    leaving.pop();
  auto isArriving = [&](const Candidate &c) {
    const Item &item = items[c.item];
    return item.fetched <= slot + c.shift && slot + c.shift < item.before;
  };
  while (!arriving.empty() && !isArriving(arriving.top()))
    arriving.pop();
}

bool Scheduler::waitEarlier(int32_t slot, const Candidate &candidate) {
  Item &item = items[candidate.item];
  int32_t freed = slot + candidate.shift;
  occupy(freed, item.freed, -item.bytes);
  item.freed = freed;
  return true;
}

void Scheduler::fetchLater(int32_t slot, const Candidate &candidate) {
  Item &item = items[candidate.item];
  // To the next slot that has room, so that no item moves slot by slot.
  int32_t last = item.before - candidate.shift;
  int32_t until = std::min(last, slots);
  int32_t to = int32_t(tree.firstAtMost(slot + 1, until, capacity));
  if (to == until && last > slots)
    to = slots;
  // The slots up to `to` are taken from: they hold too much with the item.
  int32_t fetched = to + candidate.shift;
  occupy(item.fetched, fetched, -item.bytes);
  item.fetched = fetched;
  arriving.pop();
  laterArriving.push({to, {candidate.item, candidate.shift}});
}

bool Scheduler::spillAnother(int32_t slot) {
  while (!others.empty()) {
    auto [before, g] = others.top();
    const Gap &gap = lifetimes.gaps[g];
    if (before <= slot) {
      // The farthest next use is over: so are all others.
      while (!others.empty())
        others.pop();
      return false;
    }
    others.pop();
    isChosen[g] = true;
    const Storage &storage = problem.storages[gap.storage];
    uint8_t tier = choice.tier[g];
    const Tier &below = problem.tiers[tier];
    uint32_t i = uint32_t(items.size());
    double now = clock.reached[slot];
    items.push_back({g, gap.after, before, slot, slot + 1, gap.bytes, tier,
                     false, now, problem.seconds(below.out, storage.bytes),
                     problem.seconds(below.in, storage.bytes)});
    occupy(slot, slot + 1, -gap.bytes);
    laterArriving.push({slot + 1, {i, 0}});
    return true;
  }
  return false;
}

bool Scheduler::repairSlot(int32_t slot) {
  enter(slot);
  while (tree.max(slot, slot + 1) > capacity) {
    double waitCost = 0, lateCost = 0;
    if (!leaving.empty()) {
      const Candidate &c = leaving.top();
      waitCost = std::max(0.0, -c.key - clock.reached[slot]);
    }
    if (!arriving.empty()) {
      const Candidate &c = arriving.top();
      const Item &item = items[c.item];
      double end = at(clock.taken, slot + c.shift + 1) + item.inSeconds;
      lateCost = std::max(0.0, end - at(clock.start, item.before));
    }
    if (!leaving.empty() && (arriving.empty() || waitCost <= lateCost))
      waitEarlier(slot, Candidate(leaving.top()));
    else if (!arriving.empty())
      fetchLater(slot, Candidate(arriving.top()));
    else if (!spillAnother(slot))
      return false;
    enter(slot);
  }
  return true;
}

bool Scheduler::repair() {
  for (uint32_t i = 0; i < items.size(); ++i) {
    const Item &item = items[i];
    for (int32_t shift : {0, slots}) {
      if (shift && item.before < slots)
        continue;
      if (!item.isClean && item.freed > item.after + 1)
        laterLeaving.push({item.after - shift, {i, shift}});
      laterArriving.push({item.fetched - shift, {i, shift}});
    }
  }
  for (uint32_t g = 0; g < lifetimes.gaps.size(); ++g)
    if (!isChosen[g] && !lifetimes.wraps(lifetimes.gaps[g]))
      otherGaps.push_back(g);
  std::sort(otherGaps.begin(), otherGaps.end(), [&](uint32_t a, uint32_t b) {
    return std::make_pair(lifetimes.gaps[a].after, a) <
           std::make_pair(lifetimes.gaps[b].after, b);
  });
  int64_t slot = 0;
  while ((slot = tree.firstAbove(slot, slots, capacity)) < slots)
    if (!repairSlot(int32_t(slot)))
      return false;
  return true;
}

void Scheduler::waitLater(bool onlyIfItStalls) {
  for (uint32_t i : byAfter) {
    Item &item = items[i];
    if (item.isClean || item.freed >= item.fetched || item.freed >= slots)
      continue;
    int32_t limit = std::min(item.fetched, slots);
    if (onlyIfItStalls)
      limit = std::min(limit,
                       firstAt(clock.reached, item.freed, limit, item.outEnd));
    int32_t freed =
        int32_t(tree.firstAbove(item.freed, limit, capacity - item.bytes));
    occupy(item.freed, freed, item.bytes);
    item.freed = freed;
  }
}

void Scheduler::fetchEarlier() {
  std::vector<int32_t> previous(problem.tiers.size(), 0);
  for (uint32_t i : byBefore) {
    Item &item = items[i];
    if (item.freed >= item.fetched)
      continue; // it stays
    int32_t shift = item.fetched >= slots ? slots : 0;
    int32_t from = std::max(item.freed - shift, 0);
    if (!shift)
      from = std::max(from, previous[item.tier]);
    int32_t to = item.fetched - shift;
    if (from < to) {
      int32_t fetched =
          int32_t(tree.lastAbove(from, to, capacity - item.bytes) + 1);
      occupy(fetched + shift, item.fetched, item.bytes);
      item.fetched = fetched + shift;
    }
    if (!shift)
      previous[item.tier] = std::max(previous[item.tier], item.fetched);
  }
}

/// A later spill of the storage is dropped because of this one's copy.
bool Scheduler::servesLater(const Item &item) const {
  uint32_t storage = lifetimes.gaps[item.gap].storage;
  if (item.isClean)
    return false;
  for (uint32_t g = item.gap + 1; g < lifetimes.firstGap[storage + 1] &&
                                  !lifetimes.gaps[g].isWrittenBefore;
       ++g)
    if (isChosen[g])
      return true;
  return false;
}

void Scheduler::dropNeedless() {
  std::vector<uint32_t> order(items.size());
  for (uint32_t i = 0; i < items.size(); ++i)
    order[i] = i;
  // What is off for the shortest time is the first to stay.
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::make_pair(items[a].fetched - items[a].freed, a) <
           std::make_pair(items[b].fetched - items[b].freed, b);
  });
  for (uint32_t i : order) {
    Item &item = items[i];
    bool fits = true;
    forSlots(item.freed, item.fetched, slots, [&](int32_t a, int32_t b) {
      fits &= tree.max(a, b) <= capacity - item.bytes;
    });
    if (!fits)
      continue;
    occupy(item.freed, item.fetched, item.bytes);
    if (choice.copiesEarly && item.before < slots && servesLater(item)) {
      item.freed = item.fetched = item.before;
      continue;
    }
    item.fetched = item.freed;
    isChosen[item.gap] = false;
  }
}

/// Copies out that take less than the link's latency are issued with the next
/// one, if that is no later than they would have begun to flow.
void Scheduler::joinOut() {
  std::vector<const Item *> next(problem.tiers.size(), nullptr);
  for (auto it = byAfter.rbegin(); it != byAfter.rend(); ++it) {
    Item &item = items[*it];
    const Link &link = problem.tiers[item.tier].out;
    if (!isChosen[item.gap] || item.isClean)
      continue;
    const Item *other = next[item.tier];
    next[item.tier] = &item;
    if (!other || link.latency <= 0 ||
        double(item.bytes) > link.latency * problem.rate(link))
      continue;
    int32_t slot = other->after + 1 + other->delay;
    if (slot <= item.after + 1 + item.delay || slot > item.freed ||
        slot >= slots ||
        clock.reached[slot] > clock.end[std::max(item.after, 0)] + link.latency)
      continue;
    item.delay = slot - item.after - 1;
  }
}

bool Scheduler::run() {
  collect();
  if (choice.outOrder == OutOrder::First)
    queueOut();
  else
    queueOutInOrder();
  queueIn();
  for (const Item &item : items)
    occupy(item.freed, item.fetched, -item.bytes);
  if (!repair())
    return false;
  if (byAfter.size() < items.size()) {
    // Gaps that repair added.
    for (uint32_t i = uint32_t(byAfter.size()); i < items.size(); ++i) {
      byAfter.push_back(i);
      byBefore.push_back(i);
    }
    std::stable_sort(byAfter.begin(), byAfter.end(),
                     [&](uint32_t a, uint32_t b) {
                       return items[a].after < items[b].after;
                     });
    std::stable_sort(byBefore.begin(), byBefore.end(),
                     [&](uint32_t a, uint32_t b) {
                       return items[a].before < items[b].before;
                     });
  }
  dropNeedless();
  waitLater(/*onlyIfItStalls=*/true);
  fetchEarlier();
  waitLater(/*onlyIfItStalls=*/false);
  joinOut();
  return true;
}

std::vector<Spill> Scheduler::take() {
  std::vector<bool> isClean = lifetimes.findClean(problem, isChosen);
  std::vector<Spill> spills;
  for (uint32_t i : byAfter) {
    const Item &item = items[i];
    if (!isChosen[item.gap])
      continue;
    Spill spill;
    spill.storage = lifetimes.gaps[item.gap].storage;
    spill.after = item.after;
    spill.before = item.before;
    spill.freed = item.freed;
    spill.fetched = item.fetched;
    spill.tier = item.tier;
    spill.isClean = isClean[item.gap];
    if (!spill.isClean)
      spill.delay = std::clamp(
          item.delay, 0, std::min(item.freed, slots - 1) - item.after - 1);
    spills.push_back(spill);
  }
  return spills;
}

bool mlir::hyperparallel::planner::schedule(
    const Problem &problem, const Lifetimes &lifetimes, const Choice &choice,
    const Clock &clock, int64_t capacity, std::vector<Spill> &spills) {
  Scheduler scheduler(problem, lifetimes, choice, clock, capacity);
  if (!scheduler.run())
    return false;
  spills = scheduler.take();
  return true;
}
