//===- Engine.cpp - discrete-event execution of tasks ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// 1. A task is ready when it is the first of its stream that has not run, and
//    the tasks it depends on have ended. It starts at once.
// 2. It spends its seconds. If it moves bytes, it then becomes a flow.
// 3. A segment of capacity C gives each of its flows the level L for which the
//    sum of members * min(rate, L) is C (water filling), or no limit if all go
//    at full rate. A flow goes at the least of its rate and of the levels of
//    its segments.
// 4. When a flow begins or ends, the levels of its segments are found anew, and
//    the flows whose rate changed get new ends; an end that was superseded
//    stays in the queue and is skipped.
//
// Events at one moment are handled in the order of task numbers, so that the
// result depends on the problem alone.
//
// Cost: O((tasks + changes of rate) log tasks); an event on a segment with k
// flows costs O(k log k).
// Limits: flows that are held back on one segment leave what they do not use
// there to the flows of that segment only as far as their own rates tell (caps
// are followed, bottlenecks elsewhere are not): rates are safe, not maximal.
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <random>
#include <tuple>

using namespace mlir::hyperparallel::simulator;

static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

namespace {

enum class EventKind : uint8_t { LatencyOver, FlowOver };

struct Event {
  double time;
  TaskId task;
  EventKind kind;
  uint32_t version;

  bool operator>(const Event &other) const {
    return std::tie(time, task, kind) >
           std::tie(other.time, other.task, other.kind);
  }
};

/// What the simulation knows of a task while it has not ended.
struct State {
  uint32_t waitsFor = 0;
  uint32_t version = 0;
  double remaining = 0;
  double rate = 0;
  /// When `remaining` was right.
  double since = 0;
};

struct Segment {
  double capacity;
  double level = kNoLimit;
  std::vector<TaskId> flows;
};

class Simulation {
public:
  explicit Simulation(const Problem &problem)
      : problem(problem), random(problem.seed) {}

  Result run();

private:
  bool prepare();
  void startIfReady(TaskId task);
  void begin(TaskId task);
  void beginFlow(TaskId task);
  void endFlow(TaskId task);
  void end(TaskId task);
  void findLevel(Segment &segment);
  void updateRates(const std::vector<SegmentId> &segments);
  void setRate(TaskId task, double rate);
  void change(TierId tier, double bytes);
  double noisy(double value);
  void reportStuck();

  const Problem &problem;
  Result result;
  std::mt19937_64 random;
  double now = 0;
  std::vector<State> states;
  std::vector<Segment> segments;
  /// The tasks of each stream in order, and how many of them have ended.
  std::vector<std::vector<TaskId>> streams;
  std::vector<uint32_t> done;
  /// Who waits for a task: successors[first[t] .. first[t + 1]).
  std::vector<uint32_t> first;
  std::vector<TaskId> successors;
  std::vector<double> resident;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events;
  size_t ended = 0;
  std::vector<TaskId> touched;
};

} // namespace

static bool isNumber(double value) {
  return value >= 0 && std::isfinite(value);
}

/// Checks the problem and builds the tables; false with an error.
bool Simulation::prepare() {
  auto fail = [&](std::string message) {
    result.error = std::move(message);
    return false;
  };
  size_t count = problem.tasks.size();
  if (!(problem.noise >= 0 && problem.noise < 1))
    return fail("expected noise in [0, 1)");
  for (size_t i = 0; i < problem.segments.size(); ++i)
    if (!(problem.segments[i] > 0))
      return fail("expected segment " + std::to_string(i) +
                  " to have a positive bandwidth");
  states.resize(count);
  streams.resize(problem.numStreams);
  done.assign(problem.numStreams, 0);
  first.assign(count + 1, 0);
  for (double capacity : problem.segments)
    segments.push_back({capacity, kNoLimit, {}});
  for (size_t i = 0; i < count; ++i) {
    const Task &task = problem.tasks[i];
    std::string name = "task " + std::to_string(i);
    if (task.stream >= problem.numStreams)
      return fail("expected " + name + " to be on one of " +
                  std::to_string(problem.numStreams) + " streams but got " +
                  std::to_string(task.stream));
    if (!isNumber(task.seconds) || !isNumber(task.bytes))
      return fail("expected " + name + " to take no negative time or bytes");
    if (task.bytes > 0 && !(task.rate > 0))
      return fail("expected " + name + " to move its bytes at a positive rate");
    if (!(task.members >= 1))
      return fail("expected " + name + " to stand for at least 1 device");
    for (SegmentId segment : task.segments)
      if (segment >= segments.size())
        return fail("expected " + name + " to use one of " +
                    std::to_string(segments.size()) + " segments but got " +
                    std::to_string(segment));
    for (const Residency &part : task.residency)
      if (part.tier >= problem.tiers.size())
        return fail("expected " + name + " to use one of " +
                    std::to_string(problem.tiers.size()) + " tiers but got " +
                    std::to_string(part.tier));
    for (TaskId before : task.dependencies) {
      if (before >= count)
        return fail("expected " + name + " to depend on one of " +
                    std::to_string(count) + " tasks but got " +
                    std::to_string(before));
      ++first[before + 1];
    }
    states[i].waitsFor = task.dependencies.size();
    streams[task.stream].push_back(i);
  }
  for (size_t i = 0; i < count; ++i)
    first[i + 1] += first[i];
  successors.resize(first[count]);
  std::vector<uint32_t> next(first.begin(), first.end() - 1);
  for (size_t i = 0; i < count; ++i)
    for (TaskId before : problem.tasks[i].dependencies)
      successors[next[before]++] = i;

  result.spans.resize(count);
  result.busy.assign(problem.numStreams, 0);
  result.moved.assign(segments.size(), 0);
  result.residency.resize(problem.tiers.size());
  resident = result.peak = problem.tiers;
  for (size_t tier = 0; tier < resident.size(); ++tier)
    result.residency[tier].push_back({0, resident[tier]});
  return true;
}

double Simulation::noisy(double value) {
  if (problem.noise == 0)
    return value;
  double unit = static_cast<double>(random() >> 11) * 0x1.0p-53; // [0, 1)
  return value * (1 + problem.noise * (2 * unit - 1));
}

void Simulation::change(TierId tier, double bytes) {
  if (bytes == 0)
    return;
  std::vector<Level> &levels = result.residency[tier];
  resident[tier] += bytes;
  if (levels.back().time == now)
    levels.back().bytes = resident[tier];
  else
    levels.push_back({now, resident[tier]});
  result.peak[tier] = std::max(result.peak[tier], resident[tier]);
}

//===----------------------------------------------------------------------===//
// The life of a task
//===----------------------------------------------------------------------===//

void Simulation::startIfReady(TaskId task) {
  StreamId stream = problem.tasks[task].stream;
  if (states[task].waitsFor == 0 && done[stream] < streams[stream].size() &&
      streams[stream][done[stream]] == task)
    begin(task);
}

void Simulation::begin(TaskId task) {
  result.spans[task].start = now;
  for (const Residency &part : problem.tasks[task].residency)
    change(part.tier, part.atStart);
  events.push({now + noisy(problem.tasks[task].seconds), task,
               EventKind::LatencyOver, 0});
}

void Simulation::beginFlow(TaskId id) {
  const Task &task = problem.tasks[id];
  State &state = states[id];
  state.remaining = noisy(task.bytes);
  state.since = now;
  for (SegmentId segment : task.segments)
    segments[segment].flows.push_back(id);
  setRate(id, task.rate);
  updateRates(task.segments);
}

void Simulation::endFlow(TaskId id) {
  const Task &task = problem.tasks[id];
  for (SegmentId segment : task.segments) {
    std::vector<TaskId> &flows = segments[segment].flows;
    flows.erase(std::find(flows.begin(), flows.end(), id));
    result.moved[segment] += task.bytes * task.members;
  }
  updateRates(task.segments);
}

void Simulation::end(TaskId task) {
  StreamId stream = problem.tasks[task].stream;
  Span &span = result.spans[task];
  span.end = now;
  result.busy[stream] += span.end - span.start;
  for (const Residency &part : problem.tasks[task].residency)
    change(part.tier, part.atEnd);
  ++ended;
  ++done[stream];
  for (uint32_t i = first[task]; i < first[task + 1]; ++i)
    if (--states[successors[i]].waitsFor == 0)
      startIfReady(successors[i]);
  // A successor that is next in the stream was started above, once.
  if (done[stream] < streams[stream].size()) {
    TaskId next = streams[stream][done[stream]];
    bool isSuccessor = std::find(successors.begin() + first[task],
                                 successors.begin() + first[task + 1],
                                 next) != successors.begin() + first[task + 1];
    if (!isSuccessor)
      startIfReady(next);
  }
}

//===----------------------------------------------------------------------===//
// Sharing
//===----------------------------------------------------------------------===//

/// Water filling: flows in order of their rates; those below the level keep
/// theirs, and the rest share what is left.
void Simulation::findLevel(Segment &segment) {
  double wanted = 0, members = 0;
  for (TaskId flow : segment.flows) {
    const Task &task = problem.tasks[flow];
    wanted += task.members * task.rate;
    members += task.members;
  }
  segment.level = kNoLimit;
  if (wanted <= segment.capacity)
    return;
  touched = segment.flows;
  std::sort(touched.begin(), touched.end(), [&](TaskId a, TaskId b) {
    return std::tie(problem.tasks[a].rate, a) <
           std::tie(problem.tasks[b].rate, b);
  });
  double left = segment.capacity;
  for (TaskId flow : touched) {
    const Task &task = problem.tasks[flow];
    if (task.rate * members > left) {
      segment.level = left / members;
      return;
    }
    left -= task.members * task.rate;
    members -= task.members;
  }
}

void Simulation::updateRates(const std::vector<SegmentId> &changed) {
  for (SegmentId id : changed)
    findLevel(segments[id]);
  for (SegmentId id : changed)
    for (TaskId flow : segments[id].flows) {
      double rate = problem.tasks[flow].rate;
      for (SegmentId segment : problem.tasks[flow].segments)
        rate = std::min(rate, segments[segment].level);
      setRate(flow, rate);
    }
}

void Simulation::setRate(TaskId task, double rate) {
  State &state = states[task];
  if (state.rate == rate)
    return;
  state.remaining =
      std::max(0.0, state.remaining - state.rate * (now - state.since));
  state.since = now;
  state.rate = rate;
  events.push({now + state.remaining / rate, task, EventKind::FlowOver,
               ++state.version});
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

void Simulation::reportStuck() {
  result.error = "deadlock: ";
  unsigned named = 0;
  for (StreamId stream = 0; stream < problem.numStreams && named < 4;
       ++stream) {
    if (done[stream] == streams[stream].size())
      continue;
    TaskId task = streams[stream][done[stream]];
    for (TaskId before : problem.tasks[task].dependencies) {
      const std::vector<TaskId> &order = streams[problem.tasks[before].stream];
      bool hasEnded =
          std::find(
              order.begin(), order.begin() + done[problem.tasks[before].stream],
              before) != order.begin() + done[problem.tasks[before].stream];
      if (hasEnded)
        continue;
      result.error += (named++ ? "; " : "") + ("task " + std::to_string(task)) +
                      " on stream " + std::to_string(stream) +
                      " waits for task " + std::to_string(before) +
                      " on stream " +
                      std::to_string(problem.tasks[before].stream);
      break;
    }
  }
}

Result Simulation::run() {
  if (!prepare())
    return std::move(result);
  for (StreamId stream = 0; stream < problem.numStreams; ++stream)
    if (!streams[stream].empty())
      startIfReady(streams[stream].front());
  while (!events.empty()) {
    Event event = events.top();
    events.pop();
    State &state = states[event.task];
    if (event.kind == EventKind::FlowOver && event.version != state.version)
      continue;
    now = event.time;
    if (event.kind == EventKind::LatencyOver &&
        problem.tasks[event.task].bytes > 0) {
      beginFlow(event.task);
      continue;
    }
    if (event.kind == EventKind::FlowOver)
      endFlow(event.task);
    end(event.task);
  }
  result.seconds = now;
  if (ended < problem.tasks.size())
    reportStuck();
  return std::move(result);
}

Result mlir::hyperparallel::simulator::simulate(const Problem &problem) {
  return Simulation(problem).run();
}
