//===- NamedSchedules.cpp - the rules of each pipeline schedule -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A schedule is a list of rules. A rule is a predicate on two tasks of one
// group: it maps the name of a task (kind, stage, microbatch) to the name of
// the task that must come after it, if there is one. Names of tasks that do
// not exist (microbatch 9 of 8) say nothing, so rules need no special cases for
// the ends, nor for programs without backward.
//
// To add a schedule: its rules here, its name in Schedule.h. Not here yet: zero
// bubble H2 (more forwards ahead) and V (two chunks, there and back), DualPipe
// (microbatches from both ends).
//
// Drawings: time goes right, one row per stage; F, B, W are forward, backward
// (by input, where W is there) and backward by weight, with the microbatch.
// Notation: S stages, M microbatches, s the stage, P groups, v = S / P.
//
// Sources: GPipe (Huang et al. 2019), PipeDream-flush (Narayanan et al. 2021a),
// interleaving (Narayanan et al. 2021b), zero bubble (Qi et al. 2023).
//===----------------------------------------------------------------------===//
#include "lib/Scheduler/Constraints.h"

#include <algorithm>
#include <array>

namespace mlir::hyperparallel::scheduler {
namespace {

struct Shape {
  int64_t stages, groups, microbatches;
};

/// What a task is called. A negative number is no task.
struct TaskName {
  Kind kind;
  int64_t stage, microbatch;
};

constexpr TaskName nothing{Kind::Other, -1, -1};
TaskName F(int64_t s, int64_t m) { return {Kind::Forward, s, m}; }
TaskName B(int64_t s, int64_t m) { return {Kind::Backward, s, m}; }
TaskName W(int64_t s, int64_t m) { return {Kind::BackwardWeight, s, m}; }

struct Rule {
  const char *says;
  /// The task that must come after `task`.
  TaskName (*after)(TaskName task, const Shape &shape);
};
using Rules = std::vector<Rule>;

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

const Rule microbatchOrder = {
    "a stage takes microbatches in order", [](TaskName t, const Shape &) {
      return TaskName{t.kind, t.stage, t.microbatch + 1};
    }};

//===----------------------------------------------------------------------===//
// GPipe: all forwards, then all backwards.
//
//   0  F0 F1 F2 F3 .. .. .. .. B0 B1 B2 B3
//   1  .. F0 F1 F2 F3 .. .. B0 B1 B2 B3 ..
//   2  .. .. F0 F1 F2 F3 B0 B1 B2 B3 .. ..
//
// Live microbatches: M. Bubble: (S-1) / (M+S-1) where stages are equal.
//===----------------------------------------------------------------------===//

const Rules gpipe = {
    microbatchOrder,
    {"backward begins when all forwards of the stage have ended",
     [](TaskName t, const Shape &n) {
       bool isLast =
           t.kind == Kind::Forward && t.microbatch + 1 == n.microbatches;
       return isLast ? B(t.stage, 0) : nothing;
     }},
};

//===----------------------------------------------------------------------===//
// 1F1B: a stage runs ahead by as many forwards as there are stages behind it,
// and then does one forward and one backward in turn.
//
//   0  F0 F1 F2 .. .. B0 F3 B1 .. B2 .. B3
//   1  .. F0 F1 .. B0 F2 B1 F3 B2 .. B3 ..
//   2  .. .. F0 B0 F1 B1 F2 B2 F3 B3 .. ..
//
// Live microbatches: S - s. Bubble as GPipe's.
//===----------------------------------------------------------------------===//

int64_t ahead(TaskName t, const Shape &n) { return n.stages - t.stage - 1; }

const Rule runAhead = {
    "a stage runs ahead by as many forwards as stages follow it",
    [](TaskName t, const Shape &n) {
      return t.kind == Kind::Forward ? B(t.stage, t.microbatch - ahead(t, n))
                                     : nothing;
    }};
const Rule takeTurns = {"after each backward a stage does one forward",
                        [](TaskName t, const Shape &n) {
                          return t.kind == Kind::Backward
                                     ? F(t.stage,
                                         t.microbatch + ahead(t, n) + 1)
                                     : nothing;
                        }};

const Rules oneFOneB = {microbatchOrder, runAhead, takeTurns};

//===----------------------------------------------------------------------===//
// Interleaved 1F1B: group g has the stages (chunks) g, P + g, 2P + g, ... A
// round of microbatches goes through a group's first chunk, then the second,
// and so on; backward the other way. Then 1F1B on that sequence. With two
// chunks, the second one's tasks marked by ':
//
//   0  F0  F1  F0' F1' ..  B0' ..  B1' B0  B1
//   1  ..  F0  F1  F0' B0' F1' B1' B0  B1  ..
//
// Rounds have P microbatches where P divides M; else P to 2P - 1, as equal as
// can be (one round if M < P). Group g runs 2 (P-g-1) + (v-1) r forwards ahead,
// r being the size of the first round.
// Bubble: (P-1) / (v M + P-1) for all M >= P where stages are equal.
//===----------------------------------------------------------------------===//

/// The two sequences of a group, as positions.
struct Rounds {
  explicit Rounds(const Shape &n)
      : chunks(n.stages / n.groups),
        count(std::max<int64_t>(n.microbatches / n.groups, 1)),
        least(n.microbatches / count), larger(n.microbatches % count) {}

  int64_t begin(int64_t round) const {
    return round * least + std::min(round, larger);
  }
  int64_t size(int64_t round) const { return least + (round < larger); }
  /// The round that holds the microbatch.
  int64_t roundOf(int64_t microbatch) const {
    int64_t inLarger = larger * (least + 1);
    return microbatch < inLarger ? microbatch / (least + 1)
                                 : larger + (microbatch - inLarger) / least;
  }
  int64_t position(int64_t chunk, int64_t microbatch) const {
    int64_t round = roundOf(microbatch);
    return begin(round) * chunks + chunk * size(round) + microbatch -
           begin(round);
  }
  /// The chunk and the microbatch there; microbatch -1 outside.
  std::pair<int64_t, int64_t> at(int64_t position) const {
    int64_t last = begin(count) * chunks;
    if (position < 0 || position >= last)
      return {0, -1};
    int64_t inLarger = larger * (least + 1) * chunks;
    int64_t round = position < inLarger
                        ? position / ((least + 1) * chunks)
                        : larger + (position - inLarger) / (least * chunks);
    int64_t offset = position - begin(round) * chunks;
    return {offset / size(round), begin(round) + offset % size(round)};
  }

  int64_t chunks, count, least, larger;
};

int64_t forwardPosition(TaskName t, const Shape &n) {
  return Rounds(n).position(t.stage / n.groups, t.microbatch);
}
int64_t backwardPosition(TaskName t, const Shape &n) {
  Rounds rounds(n);
  return rounds.position(rounds.chunks - 1 - t.stage / n.groups, t.microbatch);
}
TaskName forwardAt(int64_t position, int64_t group, const Shape &n) {
  auto [chunk, microbatch] = Rounds(n).at(position);
  return F(chunk * n.groups + group, microbatch);
}
TaskName backwardAt(int64_t position, int64_t group, const Shape &n) {
  Rounds rounds(n);
  auto [chunk, microbatch] = rounds.at(position);
  return B((rounds.chunks - 1 - chunk) * n.groups + group, microbatch);
}
int64_t aheadInterleaved(int64_t group, const Shape &n) {
  Rounds rounds(n);
  int64_t wanted =
      2 * (n.groups - group - 1) + (rounds.chunks - 1) * rounds.size(0);
  return std::min(wanted, rounds.chunks * n.microbatches - 1);
}

const Rules interleaved = {
    {"a group takes a round of microbatches through its stages in turn",
     [](TaskName t, const Shape &n) {
       int64_t group = t.stage % n.groups;
       if (t.kind == Kind::Forward)
         return forwardAt(forwardPosition(t, n) + 1, group, n);
       if (t.kind == Kind::Backward)
         return backwardAt(backwardPosition(t, n) + 1, group, n);
       return TaskName{t.kind, t.stage, t.microbatch + 1};
     }},
    {"a group runs ahead by two forwards for each group that follows, and by "
     "all but one of its stages for the first round",
     [](TaskName t, const Shape &n) {
       int64_t group = t.stage % n.groups;
       return t.kind == Kind::Forward
                  ? backwardAt(forwardPosition(t, n) -
                                   aheadInterleaved(group, n),
                               group, n)
                  : nothing;
     }},
    {"after each backward a group does one forward",
     [](TaskName t, const Shape &n) {
       int64_t group = t.stage % n.groups;
       return t.kind == Kind::Backward
                  ? forwardAt(backwardPosition(t, n) +
                                  aheadInterleaved(group, n) + 1,
                              group, n)
                  : nothing;
     }},
};

//===----------------------------------------------------------------------===//
// Zero bubble H1: 1F1B with backward in two parts. Only the part by input is
// waited for, so the other fills what would be bubbles; it lags behind by the
// stage's index, which keeps S microbatches live everywhere: 1F1B's most.
//
//   0  F0 F1 F2 .. .. B0 W0 F3 B1 W1 B2 W2 B3 W3
//   1  .. F0 F1 .. B0 F2 B1 W0 F3 B2 W1 B3 W2 W3
//   2  .. .. F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3
//
// Bubble for equal F, B and W and M >= S: (S-1) / (3M + S-1).
//===----------------------------------------------------------------------===//

const Rules zeroBubbleH1 = {
    microbatchOrder,
    runAhead,
    takeTurns,
    {"gradients of weights lag behind by the stage's index",
     [](TaskName t, const Shape &) {
       return t.kind == Kind::Backward ? W(t.stage, t.microbatch - t.stage)
                                       : nothing;
     }},
    {"as many microbatches are live as there are stages",
     [](TaskName t, const Shape &n) {
       return t.kind == Kind::BackwardWeight
                  ? F(t.stage, t.microbatch + n.stages)
                  : nothing;
     }},
};

//===----------------------------------------------------------------------===//
// Where a schedule applies
//===----------------------------------------------------------------------===//

/// By stage its group; empty, with a fault, where a stage is in two.
std::vector<int64_t> groupsOfStages(const Problem &problem,
                                    std::string &fault) {
  std::vector<int64_t> groups(problem.numStages, -1);
  for (const Task &task : problem.tasks) {
    if (!isInPipeline(task.kind))
      continue;
    int64_t &group = groups[task.stage];
    if (group >= 0 && group != task.group) {
      fault = "expected all of stage " + std::to_string(task.stage) +
              " in one group but got '" + problem.groups[group] + "' and '" +
              problem.groups[task.group] + "'";
      return {};
    }
    group = task.group;
  }
  return groups;
}

/// The number of groups in the circle of stages.
int64_t findCircle(const Problem &problem, const std::vector<int64_t> &groups,
                   std::string &fault) {
  std::vector<int64_t> distinct = groups;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  int64_t size = distinct.size();
  for (int64_t stage = 0; stage < problem.numStages; ++stage)
    if (problem.numStages % size || groups[stage] != groups[stage % size] ||
        groups[stage] < 0)
      fault = "expected interleaved_1f1b to have the same number of stages in "
              "each of " +
              std::to_string(size) +
              " groups, dealt out in turn (0, 1, ..., 0, 1, ...), but got " +
              std::to_string(problem.numStages) +
              " stages; make the stages a multiple of the groups, or use 1f1b";
  return size;
}

std::string findUnsplit(const Problem &problem) {
  for (uint32_t task = 0; task < problem.tasks.size(); ++task)
    if (problem.tasks[task].kind == Kind::Backward)
      return "expected zero_bubble_h1 to have backward in two parts, by input "
             "and by weight, but got " +
             describe(problem, task) + "; split it, or use 1f1b";
  return "";
}

std::vector<Constraint> applyRules(const Problem &problem, const Rules &rules,
                                   const Shape &shape) {
  TaskTable table(problem);
  std::vector<Constraint> result;
  result.reserve(rules.size() * problem.tasks.size() + problem.wishes.size());
  for (const Wish &wish : problem.wishes)
    result.push_back({wish.before, wish.after, wish.rule.c_str()});
  for (const Rule &rule : rules)
    for (uint32_t number = 0; number < problem.tasks.size(); ++number) {
      const Task &task = problem.tasks[number];
      if (!isInPipeline(task.kind))
        continue;
      Kind kind = task.kind == Kind::BackwardInput ? Kind::Backward : task.kind;
      TaskName next = rule.after({kind, task.stage, task.microbatch}, shape);
      int64_t after = table.find(next.kind, next.stage, next.microbatch);
      if (after >= 0)
        result.push_back({number, static_cast<uint32_t>(after), rule.says});
    }
  return result;
}

} // namespace

std::vector<Constraint> microbatchesInOrder(const Problem &problem) {
  return applyRules(problem, {microbatchOrder}, Shape{});
}

std::vector<Constraint> constraintsOf(const Problem &problem, Name name,
                                      std::string &fault) {
  std::vector<int64_t> groups = groupsOfStages(problem, fault);
  if (!fault.empty() || groups.empty())
    return {};
  Shape shape{problem.numStages, problem.numStages, problem.numMicrobatches};
  switch (name) {
  case Name::GPipe:
    return applyRules(problem, gpipe, shape);
  case Name::OneFOneB:
    return applyRules(problem, oneFOneB, shape);
  case Name::Interleaved1F1B:
    shape.groups = findCircle(problem, groups, fault);
    return fault.empty() ? applyRules(problem, interleaved, shape)
                         : std::vector<Constraint>();
  case Name::ZeroBubbleH1:
    fault = findUnsplit(problem);
    return fault.empty() ? applyRules(problem, zeroBubbleH1, shape)
                         : std::vector<Constraint>();
  case Name::Auto:
    return microbatchesInOrder(problem);
  }
  return {};
}

static constexpr std::array<std::string_view, 5> names = {
    "gpipe", "1f1b", "interleaved_1f1b", "zero_bubble_h1", "auto"};

std::string_view nameOf(Name name) { return names[static_cast<size_t>(name)]; }

std::optional<Name> findName(std::string_view text) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == text)
      return static_cast<Name>(i);
  return std::nullopt;
}

} // namespace mlir::hyperparallel::scheduler
