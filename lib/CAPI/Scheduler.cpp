//===- Scheduler.cpp - C API: the order of work of device groups ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/Scheduler.h"

#include "lib/Scheduler/Deadlock.h"
#include "lib/Scheduler/Schedule.h"

using namespace mlir::hyperparallel::scheduler;

namespace {
struct Scheduler {
  Problem problem;
  Schedule schedule;
  Report report;
  std::vector<std::vector<HpSchedulerStep>> steps;
};
} // namespace

static Scheduler *unwrap(HpScheduler scheduler) {
  return static_cast<Scheduler *>(scheduler.ptr);
}

static std::string unwrap(MlirStringRef text) {
  return std::string(text.data, text.length);
}

static void hand(const std::string &text, MlirStringCallback callback,
                 void *userData) {
  if (!text.empty())
    callback({text.data(), text.size()}, userData);
}

HpScheduler hpSchedulerCreate(uint32_t numStages, uint32_t numMicrobatches) {
  auto *scheduler = new Scheduler;
  scheduler->problem.numStages = numStages;
  scheduler->problem.numMicrobatches = numMicrobatches;
  return {scheduler};
}

void hpSchedulerDestroy(HpScheduler scheduler) { delete unwrap(scheduler); }

void hpSchedulerAddGroup(HpScheduler scheduler, MlirStringRef name,
                         int64_t limit) {
  unwrap(scheduler)->problem.groups.push_back(unwrap(name));
  unwrap(scheduler)->problem.limits.push_back(limit);
}

void hpSchedulerAddTask(HpScheduler scheduler, HpSchedulerTask task) {
  unwrap(scheduler)->problem.tasks.push_back(
      {task.group, static_cast<Kind>(task.kind), task.stage, task.microbatch,
       task.seconds, task.startBytes, task.endBytes});
}

void hpSchedulerAddEdge(HpScheduler scheduler, uint32_t from, uint32_t to,
                        double seconds) {
  unwrap(scheduler)->problem.edges.push_back({from, to, seconds});
}

/// What is asked of a schedule, once it is there.
static void describe(Scheduler &self) {
  if (!self.schedule.fault.empty())
    return;
  self.report = evaluate(self.problem, self.schedule);
  self.steps.clear();
  for (const std::vector<Step> &steps :
       placeTransfers(self.problem, self.schedule)) {
    self.steps.emplace_back();
    for (Step step : steps)
      self.steps.back().push_back(
          {static_cast<uint32_t>(step.what), step.index});
  }
}

void hpSchedulerMake(HpScheduler scheduler, MlirStringRef name,
                     MlirStringCallback fault, void *userData) {
  Scheduler &self = *unwrap(scheduler);
  std::optional<Name> found = findName(unwrap(name));
  self.schedule = Schedule();
  self.schedule.fault =
      found ? findFault(self.problem)
            : "expected a schedule's name but got '" + unwrap(name) + "'";
  if (self.schedule.fault.empty())
    self.schedule = makeSchedule(self.problem, *found);
  describe(self);
  hand(self.schedule.fault, fault, userData);
}

void hpSchedulerTake(HpScheduler scheduler, intptr_t numGroups,
                     const intptr_t *sizes, const uint32_t *tasks,
                     MlirStringCallback fault, void *userData) {
  Scheduler &self = *unwrap(scheduler);
  std::vector<std::vector<uint32_t>> order;
  for (intptr_t group = 0; group < numGroups; tasks += sizes[group++])
    order.emplace_back(tasks, tasks + sizes[group]);
  self.schedule = Schedule();
  self.schedule.fault = findFault(self.problem);
  if (self.schedule.fault.empty())
    self.schedule = checkOrder(self.problem, std::move(order));
  describe(self);
  hand(self.schedule.fault, fault, userData);
}

double hpSchedulerGetSeconds(HpScheduler scheduler) {
  return unwrap(scheduler)->schedule.seconds;
}

double hpSchedulerGetBubble(HpScheduler scheduler) {
  return unwrap(scheduler)->report.bubble;
}

void hpSchedulerGetMethod(HpScheduler scheduler, MlirStringCallback callback,
                          void *userData) {
  hand(unwrap(scheduler)->schedule.method, callback, userData);
}

void hpSchedulerGetDeclined(HpScheduler scheduler, MlirStringCallback callback,
                            void *userData) {
  for (const std::string &text : unwrap(scheduler)->schedule.declined)
    hand(text, callback, userData);
}

HpSchedulerGroup hpSchedulerGetGroup(HpScheduler scheduler, uint32_t group) {
  const GroupReport &it = unwrap(scheduler)->report.groups[group];
  return {it.busySeconds, it.bubble, it.peakBytes};
}

const uint32_t *hpSchedulerGetPeakLive(HpScheduler scheduler,
                                       intptr_t *numStages) {
  const std::vector<uint32_t> &live = unwrap(scheduler)->report.peakLive;
  *numStages = live.size();
  return live.data();
}

const double *hpSchedulerGetTimes(HpScheduler scheduler, bool ends,
                                  intptr_t *numTasks) {
  const Schedule &schedule = unwrap(scheduler)->schedule;
  *numTasks = schedule.start.size();
  return ends ? schedule.end.data() : schedule.start.data();
}

const HpSchedulerStep *hpSchedulerGetSteps(HpScheduler scheduler,
                                           uint32_t group, intptr_t *numSteps) {
  const std::vector<HpSchedulerStep> &steps = unwrap(scheduler)->steps[group];
  *numSteps = steps.size();
  return steps.data();
}

void hpFindDeadlock(intptr_t numProcesses, const MlirStringRef *names,
                    intptr_t numActions, const HpProcessAction *actions,
                    intptr_t numCircles, const intptr_t *sizes,
                    const uint32_t *members, bool buffered,
                    MlirStringCallback fault, void *userData) {
  Processes processes;
  for (intptr_t i = 0; i < numProcesses; ++i)
    processes.names.push_back(unwrap(names[i]));
  processes.actions.resize(numProcesses);
  for (intptr_t i = 0; i < numActions; ++i)
    processes.actions[actions[i].process].push_back(
        {static_cast<Action::What>(actions[i].what), actions[i].peer,
         actions[i].tag, actions[i].bytes, unwrap(actions[i].label)});
  for (intptr_t i = 0; i < numCircles; members += sizes[i++])
    processes.circles.emplace_back(members, members + sizes[i]);
  hand(findDeadlock(processes,
                    buffered ? Semantics::Buffered : Semantics::Rendezvous),
       fault, userData);
}
