//===- ListScheduling.cpp - every task in simulated time ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: tasks, what they need of each other, and constraints. Out: an order for
// each group, and when everything happens.
//
//   1. Data edges and constraints make one graph. If it has a cycle, that is
//      the answer, in words.
//   2. Time goes on from one moment at which a group could begin something to
//      the next. Of what it could begin there, the group takes what the
//      preference puts first, and that fits its memory.
//
// Memory. A group must never fill itself with microbatches that it then cannot
// finish. A task may start only if, after it, the older microbatches of the
// group still find all that they will take. Stages take microbatches in order,
// so what an older microbatch still takes is never more than what the one
// before this one still takes: one comparison decides. (What is not of the
// pipeline needs to fit, no more.) Then the oldest microbatch that is not done
// can always go on, and so the schedule ends, if one microbatch fits at all.
//
// Sends take time, but no stream: transfers do not slow each other down here.
//
// Cost: O((tasks + edges) log tasks), and where memory is short one look at the
// tasks that the group could begin for each that it does.
//===----------------------------------------------------------------------===//
#include "lib/Scheduler/Constraints.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <tuple>

namespace mlir::hyperparallel::scheduler {
namespace {

struct Successor {
  uint32_t task;
  double seconds;
  const char *why; ///< null: it needs what the other makes
};

/// Data edges and constraints, by the task that comes first.
class Graph {
public:
  Graph(const Problem &problem, const std::vector<Constraint> &constraints)
      : first(problem.tasks.size() + 1), numBefore(problem.tasks.size()) {
    for (const Edge &edge : problem.edges)
      ++first[edge.from + 1], ++numBefore[edge.to];
    for (const Constraint &c : constraints)
      ++first[c.before + 1], ++numBefore[c.after];
    for (size_t i = 1; i < first.size(); ++i)
      first[i] += first[i - 1];
    successors.resize(first.back());
    std::vector<uint32_t> next(first.begin(), first.end() - 1);
    for (const Edge &edge : problem.edges)
      successors[next[edge.from]++] = {edge.to, edge.seconds, nullptr};
    for (const Constraint &c : constraints)
      successors[next[c.before]++] = {c.after, 0, c.why};
  }

  uint32_t size() const { return numBefore.size(); }
  const Successor *begin(uint32_t task) const {
    return successors.data() + first[task];
  }
  const Successor *end(uint32_t task) const {
    return successors.data() + first[task + 1];
  }

  /// A topological order; shorter than the graph if there is a cycle.
  std::vector<uint32_t> sort() const {
    std::vector<uint32_t> order, left = numBefore;
    order.reserve(size());
    for (uint32_t task = 0; task < size(); ++task)
      if (!left[task])
        order.push_back(task);
    for (size_t i = 0; i < order.size(); ++i)
      for (const Successor *s = begin(order[i]); s != end(order[i]); ++s)
        if (!--left[s->task])
          order.push_back(s->task);
    return order;
  }

  std::vector<uint32_t> first, numBefore;
  std::vector<Successor> successors;
};

/// A cycle in words; `sorted` is what Graph::sort could sort.
std::string describeCycle(const Problem &problem, const Graph &graph,
                          const std::vector<uint32_t> &sorted) {
  std::vector<char> isSorted(graph.size());
  for (uint32_t task : sorted)
    isSorted[task] = 1;
  // Everything left has something left before it: go there until a task comes
  // up again.
  std::vector<const Successor *> into(graph.size());
  std::vector<uint32_t> before(graph.size());
  for (uint32_t task = 0; task < graph.size(); ++task)
    if (!isSorted[task])
      for (const Successor *s = graph.begin(task); s != graph.end(task); ++s)
        into[s->task] = s, before[s->task] = task;
  uint32_t task = 0;
  while (isSorted[task])
    ++task;
  std::vector<char> isSeen(graph.size());
  for (; !isSeen[task]; task = before[task])
    isSeen[task] = 1;
  std::vector<uint32_t> cycle = {task};
  for (uint32_t at = before[task]; at != task; at = before[at])
    cycle.push_back(at);
  std::reverse(cycle.begin(), cycle.end());

  std::string text = "expected an order in which everything can happen, but ";
  constexpr size_t most = 8;
  for (size_t i = 0; i < cycle.size() && i < most; ++i) {
    uint32_t next = cycle[(i + 1) % cycle.size()];
    text += describe(problem, cycle[i]) + " must come before " +
            describe(problem, next);
    text += into[next]->why ? std::string(" (") + into[next]->why + ")"
                            : std::string(" (which needs what it makes)");
    text += i + 1 < cycle.size() && i + 1 < most ? ", and " : "";
  }
  return text + (cycle.size() > most ? ", and so on in a circle" : "");
}

/// What each group holds, and what microbatches under way still take.
class Memory {
public:
  Memory(const Problem &problem, bool keepLimits)
      : problem(problem), keepLimits(keepLimits), used(problem.groups.size()),
        left(keepLimits ? problem.groups.size() * problem.numMicrobatches : 0) {
    if (keepLimits)
      for (const Task &task : problem.tasks)
        if (isInPipeline(task.kind))
          leftOf(task.group, task.microbatch) += task.startBytes;
  }

  /// Bytes that the group must be able to hold so that the task can start.
  int64_t needed(uint32_t number) {
    const Task &task = problem.tasks[number];
    int64_t bytes = used[task.group] + task.startBytes;
    if (isInPipeline(task.kind) && task.microbatch > 0)
      bytes += leftOf(task.group, task.microbatch - 1);
    return bytes;
  }
  bool fits(uint32_t number) {
    if (!keepLimits)
      return true;
    int64_t limit = problem.limits[problem.tasks[number].group];
    return limit < 0 || needed(number) <= limit;
  }
  void run(uint32_t number) {
    const Task &task = problem.tasks[number];
    used[task.group] += task.startBytes + task.endBytes;
    if (keepLimits && isInPipeline(task.kind))
      leftOf(task.group, task.microbatch) -= task.startBytes;
  }

private:
  int64_t &leftOf(uint32_t group, uint32_t microbatch) {
    return left[uint64_t(group) * problem.numMicrobatches + microbatch];
  }

  const Problem &problem;
  bool keepLimits;
  std::vector<int64_t> used, left;
};

/// The longest way from the start of each task to the end of the step.
std::vector<double> secondsToTheEnd(const Problem &problem, const Graph &graph,
                                    const std::vector<uint32_t> &sorted) {
  std::vector<double> result(graph.size());
  for (size_t i = sorted.size(); i-- > 0;) {
    double rest = 0;
    for (const Successor *s = graph.begin(sorted[i]); s != graph.end(sorted[i]);
         ++s)
      rest = std::max(rest, s->seconds + result[s->task]);
    result[sorted[i]] = problem.tasks[sorted[i]].seconds + rest;
  }
  return result;
}

/// Less is first.
using Rank = std::tuple<double, uint32_t, uint32_t, uint32_t, uint32_t>;

class Simulation {
public:
  Simulation(const Problem &problem, const Graph &graph,
             const std::vector<uint32_t> &sorted, Preference preference,
             bool keepLimits)
      : problem(problem), graph(graph), memory(problem, keepLimits),
        left(graph.numBefore), ready(graph.size()),
        groups(problem.groups.size()) {
    if (preference == Preference::LongestPath)
      distance = secondsToTheEnd(problem, graph, sorted);
    schedule.order.resize(groups.size());
    schedule.start.resize(graph.size());
    schedule.end.resize(graph.size());
  }

  Schedule run() {
    for (uint32_t task = 0; task < graph.size(); ++task)
      if (!left[task])
        arrive(task);
    while (!moments.empty()) {
      auto [time, group] = moments.top();
      moments.pop();
      act(groups[group], group, time);
    }
    if (schedule.global.size() < graph.size())
      schedule.fault = describeFull();
    return std::move(schedule);
  }

private:
  struct Arrival {
    double time;
    uint32_t task;
    bool operator>(const Arrival &other) const {
      return std::tie(time, task) > std::tie(other.time, other.task);
    }
  };
  template <typename T>
  using Earliest = std::priority_queue<T, std::vector<T>, std::greater<T>>;
  struct Group {
    double free = 0;
    Earliest<Arrival> arriving;
    std::set<Rank> available;
  };

  void arrive(uint32_t task) {
    uint32_t group = problem.tasks[task].group;
    groups[group].arriving.push({ready[task], task});
    moments.push({std::max(ready[task], groups[group].free), group});
  }

  Rank rank(uint32_t number) const {
    const Task &task = problem.tasks[number];
    static constexpr uint32_t byKind[] = {1, 0, 0, 3, 4, 2};
    uint32_t kind = byKind[static_cast<uint32_t>(task.kind)];
    return {distance.empty() ? 0 : -distance[number], kind, task.microbatch,
            task.stage, number};
  }

  void act(Group &group, uint32_t number, double time) {
    if (group.free > time)
      return; // there is a moment at its end
    for (; !group.arriving.empty() && group.arriving.top().time <= time;
         group.arriving.pop())
      group.available.insert(rank(group.arriving.top().task));
    for (auto it = group.available.begin(); it != group.available.end(); ++it) {
      uint32_t task = std::get<4>(*it);
      if (!memory.fits(task))
        continue;
      group.available.erase(it);
      start(group, number, task, time);
      return;
    }
  }

  void start(Group &group, uint32_t number, uint32_t task, double time) {
    double end = time + problem.tasks[task].seconds;
    schedule.start[task] = time;
    schedule.end[task] = end;
    schedule.seconds = std::max(schedule.seconds, end);
    schedule.order[number].push_back(task);
    schedule.global.push_back(task);
    memory.run(task);
    group.free = end;
    for (const Successor *s = graph.begin(task); s != graph.end(task); ++s) {
      ready[s->task] = std::max(ready[s->task], end + s->seconds);
      if (!--left[s->task])
        arrive(s->task);
    }
    moments.push({end, number});
  }

  /// Of what waits for memory, what needs least beyond its group's limit.
  std::string describeFull() {
    int64_t least = std::numeric_limits<int64_t>::max();
    std::string text;
    for (Group &group : groups)
      for (const Rank &rank : group.available) {
        uint32_t number = std::get<4>(rank);
        uint32_t owner = problem.tasks[number].group;
        int64_t needed = memory.needed(number);
        if (needed - problem.limits[owner] >= least)
          continue;
        least = needed - problem.limits[owner];
        text = "expected group '" + problem.groups[owner] + "' to hold " +
               std::to_string(needed) + " bytes, which it needs at " +
               describe(problem, number) + ", but its limit is " +
               std::to_string(problem.limits[owner]) +
               "; give it more, or make its stages or microbatches smaller";
      }
    return text;
  }

  const Problem &problem;
  const Graph &graph;
  Memory memory;
  std::vector<uint32_t> left;
  std::vector<double> ready, distance;
  std::vector<Group> groups;
  Earliest<std::pair<double, uint32_t>> moments;
  Schedule schedule;
};

} // namespace

Schedule listSchedule(const Problem &problem,
                      const std::vector<Constraint> &constraints,
                      Preference preference, bool keepLimits) {
  Graph graph(problem, constraints);
  std::vector<uint32_t> sorted = graph.sort();
  if (sorted.size() < graph.size()) {
    Schedule failed;
    failed.fault = describeCycle(problem, graph, sorted);
    return failed;
  }
  return Simulation(problem, graph, sorted, preference, keepLimits).run();
}

} // namespace mlir::hyperparallel::scheduler
