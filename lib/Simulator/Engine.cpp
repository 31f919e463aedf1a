//===- Engine.cpp - discrete-event execution of tasks ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// 1. A task is ready when it is the first of its stream that has not run, and
//    the tasks it depends on have ended. It starts at once, or with its partner
//    when that is ready, too; it ends when both are through.
// 2. It spends its seconds. If it moves bytes, it then becomes a flow.
// 3. A segment of capacity C gives each of its flows the level L for which the
//    sum of weight * min(rate, L) is C (water filling), or no limit if all go
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
// Limits: what ends sooner may meet more traffic, so that a faster part can
// make a program slower, as on a real machine (with one flow at a time it
// cannot). Flows that are held back on one segment leave what they do not use
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
  /// Of a task with a partner: it could begin, it is through.
  bool isReady = false;
  bool isThrough = false;
  double remaining = 0;
  double rate = 0;
  /// When `remaining` was right.
  double since = 0;
};

struct Flow {
  TaskId task;
  double weight;
};

struct Segment {
  double capacity;
  double level = kNoLimit;
  std::vector<Flow> flows;
};

class Simulation {
public:
  explicit Simulation(const Problem &problem)
      : problem(problem), random(problem.seed) {}

  Result run();

private:
  bool prepare();
  bool check(TaskId id);
  bool checkReleases();
  void startIfReady(TaskId task);
  void begin(TaskId task);
  void beginFlow(TaskId task);
  void endFlow(TaskId task);
  void through(TaskId task);
  void end(TaskId task);
  void findLevel(Segment &segment);
  void updateRates(const std::vector<Use> &uses);
  void setRate(TaskId task, double rate);
  void change(TierId tier, double bytes);
  double noisy(double value);
  TaskId waitedFor(TaskId task) const;
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
  /// Which releases wait for a task, and for how many tasks each still waits.
  std::vector<std::vector<uint32_t>> releasesOf;
  std::vector<uint32_t> releaseWaitsFor;
  std::vector<double> resident;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events;
  size_t ended = 0;
  std::vector<Flow> touched;
};

} // namespace

static bool isNumber(double value) {
  return value >= 0 && std::isfinite(value);
}

/// Checks a task; false with an error.
bool Simulation::check(TaskId id) {
  const Task &task = problem.tasks[id];
  auto fail = [&](std::string message) {
    result.error = "expected task " + std::to_string(id) + " " + message;
    return false;
  };
  auto oneOf = [&](const char *verb, size_t count, const char *what,
                   size_t got) {
    return fail(std::string(verb) + " one of " + std::to_string(count) + " " +
                what + " but got " + std::to_string(got));
  };
  if (task.stream >= problem.numStreams)
    return oneOf("to be on", problem.numStreams, "streams", task.stream);
  if (!isNumber(task.seconds) || !isNumber(task.bytes))
    return fail("to take no negative time or bytes");
  if (task.bytes > 0 && !(task.rate > 0))
    return fail("to move its bytes at a positive rate");
  for (const Use &use : task.uses) {
    if (use.segment >= segments.size())
      return oneOf("to use", segments.size(), "segments", use.segment);
    if (!(use.weight > 0 && std::isfinite(use.weight)))
      return fail("to use a segment with a positive weight");
  }
  for (const Residency &part : task.residency)
    if (part.tier >= problem.tiers.size())
      return oneOf("to use", problem.tiers.size(), "tiers", part.tier);
  for (TaskId before : task.dependencies)
    if (before >= problem.tasks.size())
      return oneOf("to depend on", problem.tasks.size(), "tasks", before);
  if (task.partner == kNoTask)
    return true;
  if (task.partner >= problem.tasks.size())
    return oneOf("to meet", problem.tasks.size(), "tasks", task.partner);
  const Task &partner = problem.tasks[task.partner];
  if (partner.partner != id || partner.stream == task.stream)
    return fail("to meet a task of another stream that meets it");
  return true;
}

bool Simulation::checkReleases() {
  releasesOf.resize(problem.tasks.size());
  for (size_t i = 0; i < problem.releases.size(); ++i) {
    const Release &release = problem.releases[i];
    bool isGood = release.tier < problem.tiers.size() && !release.after.empty();
    for (TaskId task : release.after) {
      if ((isGood = isGood && task < problem.tasks.size()))
        releasesOf[task].push_back(i);
    }
    if (!isGood) {
      result.error = "expected release " + std::to_string(i) +
                     " to be of a tier and after tasks that are there";
      return false;
    }
    releaseWaitsFor.push_back(release.after.size());
  }
  return true;
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
    if (!check(i))
      return false;
    const Task &task = problem.tasks[i];
    for (TaskId before : task.dependencies)
      ++first[before + 1];
    states[i].waitsFor = task.dependencies.size();
    streams[task.stream].push_back(i);
  }
  if (!checkReleases())
    return false;
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
  if (states[task].waitsFor != 0 || done[stream] == streams[stream].size() ||
      streams[stream][done[stream]] != task)
    return;
  TaskId partner = problem.tasks[task].partner;
  states[task].isReady = true;
  if (partner != kNoTask && !states[partner].isReady)
    return;
  begin(task);
  if (partner != kNoTask)
    begin(partner);
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
  for (Use use : task.uses)
    segments[use.segment].flows.push_back({id, use.weight});
  setRate(id, task.rate);
  updateRates(task.uses);
}

void Simulation::endFlow(TaskId id) {
  const Task &task = problem.tasks[id];
  for (Use use : task.uses) {
    std::vector<Flow> &flows = segments[use.segment].flows;
    flows.erase(std::find_if(flows.begin(), flows.end(), [&](const Flow &flow) {
      return flow.task == id;
    }));
    result.moved[use.segment] += task.bytes * use.weight;
  }
  updateRates(task.uses);
}

/// Partners end together, in the order of their numbers.
void Simulation::through(TaskId task) {
  TaskId partner = problem.tasks[task].partner;
  if (partner == kNoTask)
    return end(task);
  states[task].isThrough = true;
  if (!states[partner].isThrough)
    return;
  end(std::min(task, partner));
  end(std::max(task, partner));
}

void Simulation::end(TaskId task) {
  StreamId stream = problem.tasks[task].stream;
  Span &span = result.spans[task];
  span.end = now;
  result.busy[stream] += span.end - span.start;
  for (const Residency &part : problem.tasks[task].residency)
    change(part.tier, part.atEnd);
  for (uint32_t release : releasesOf[task])
    if (--releaseWaitsFor[release] == 0)
      change(problem.releases[release].tier, -problem.releases[release].bytes);
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
  auto rateOf = [&](const Flow &flow) { return problem.tasks[flow.task].rate; };
  double wanted = 0, weights = 0;
  for (const Flow &flow : segment.flows) {
    wanted += flow.weight * rateOf(flow);
    weights += flow.weight;
  }
  segment.level = kNoLimit;
  if (wanted <= segment.capacity)
    return;
  touched = segment.flows;
  std::sort(touched.begin(), touched.end(), [&](const Flow &a, const Flow &b) {
    return std::pair(rateOf(a), a.task) < std::pair(rateOf(b), b.task);
  });
  double left = segment.capacity;
  for (const Flow &flow : touched) {
    if (rateOf(flow) * weights > left) {
      segment.level = left / weights;
      return;
    }
    left -= flow.weight * rateOf(flow);
    weights -= flow.weight;
  }
}

void Simulation::updateRates(const std::vector<Use> &changed) {
  for (Use use : changed)
    findLevel(segments[use.segment]);
  for (Use use : changed)
    for (const Flow &flow : segments[use.segment].flows) {
      double rate = problem.tasks[flow.task].rate;
      for (Use other : problem.tasks[flow.task].uses)
        rate = std::min(rate, segments[other.segment].level);
      setRate(flow.task, rate);
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

/// What the first task of a stream waits for: a task it depends on, or its
/// partner.
TaskId Simulation::waitedFor(TaskId task) const {
  auto hasEnded = [&](TaskId other) {
    const std::vector<TaskId> &order = streams[problem.tasks[other].stream];
    auto end = order.begin() + done[problem.tasks[other].stream];
    return std::find(order.begin(), end, other) != end;
  };
  for (TaskId before : problem.tasks[task].dependencies)
    if (!hasEnded(before))
      return before;
  return problem.tasks[task].partner;
}

void Simulation::reportStuck() {
  result.error = "deadlock: ";
  unsigned named = 0;
  for (StreamId stream = 0; stream < problem.numStreams && named < 4;
       ++stream) {
    if (done[stream] == streams[stream].size())
      continue;
    TaskId task = streams[stream][done[stream]];
    TaskId before = waitedFor(task);
    if (before == kNoTask)
      continue;
    result.stuck.push_back({task, before});
    result.error += (named++ ? "; " : "") + ("task " + std::to_string(task)) +
                    " on stream " + std::to_string(stream) +
                    " waits for task " + std::to_string(before) +
                    " on stream " +
                    std::to_string(problem.tasks[before].stream);
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
    through(event.task);
  }
  result.seconds = now;
  if (ended < problem.tasks.size())
    reportStuck();
  return std::move(result);
}

Result mlir::hyperparallel::simulator::simulate(const Problem &problem) {
  return Simulation(problem).run();
}
