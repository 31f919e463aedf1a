//===- Schedule.cpp - in which order groups do their fragments ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: @main of fragments and transfers. Out: the same, in the order in which
// they begin if each group does its fragments by the schedule.
//
//   1. A task for each fragment: seconds of its body on the machine, shared by
//      the group's devices; a forward holds what its backward reads of it. A
//      second fragment of the same stage, microbatch and kind is placed by its
//      data alone, as updates are.
//   2. An edge for each value that another fragment reads, with the seconds of
//      its transfer.
//   3. lib/Scheduler orders them; ops are moved. A transfer stands before the
//      first fragment that begins after its value was made.
//
// Cost: that of the scheduler, O(n log n) for a named schedule.
//===----------------------------------------------------------------------===//
#include "lib/Scheduler/Schedule.h"
#include "lib/Analysis/CostModel.h"
#include "lib/Transforms/HyperMPMD/EntryProgram.h"
#include "lib/Transforms/HyperMPMD/Passes.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <queue>
#include <set>

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

namespace {
/// @main as the scheduler sees it.
struct FragmentProblem {
  scheduler::Problem problem;
  SmallVector<FragmentOp> fragments;
};
} // namespace

static scheduler::Kind kindOf(FragmentOp fragment) {
  switch (fragment.getKind()) {
  case FragmentKind::Forward:
    return scheduler::Kind::Forward;
  case FragmentKind::Backward:
    return scheduler::Kind::Backward;
  case FragmentKind::BackwardInput:
    return scheduler::Kind::BackwardInput;
  case FragmentKind::BackwardWeight:
    return scheduler::Kind::BackwardWeight;
  case FragmentKind::Update:
    return scheduler::Kind::Update;
  }
  llvm_unreachable("unknown kind of fragment");
}

/// The fragment that makes the value, on this group or another; null for
/// arguments.
static FragmentOp makerOf(Value value) {
  while (auto transfer = value.getDefiningOp<TransferOp>())
    value = transfer.getInput();
  return value.getDefiningOp<FragmentOp>();
}

/// Bytes that a forward makes and its own backward reads.
static int64_t savedBytes(FragmentOp forward, ArrayRef<FragmentOp> readers) {
  int64_t bytes = 0;
  llvm::SmallPtrSet<Operation *, 4> these(readers.begin(), readers.end());
  for (OpResult result : forward->getResults())
    if (llvm::any_of(result.getUsers(),
                     [&](Operation *user) { return these.contains(user); }))
      bytes += byteSize(result.getType());
  return bytes;
}

/// What the group's devices may hold of saved activations each; `limits` has
/// one entry for each group, or none.
static int64_t limitOf(size_t group, int64_t memory, ArrayRef<int64_t> limits) {
  int64_t own = limits.empty() ? -1 : limits[group];
  if (own < 0 || memory < 0)
    return std::max(own, memory);
  return std::min(own, memory);
}

static FragmentProblem describe(func::FuncOp main, int64_t memory,
                                ArrayRef<int64_t> limits) {
  FragmentProblem found;
  TopologyAttr topology = getTopology(main);
  auto module = main->getParentOfType<ModuleOp>();
  CostModel model(module);
  auto level = model.getCommunicationParameters().levels.back();
  for (GroupAttr group : topology.getGroups()) {
    found.problem.limits.push_back(
        limitOf(found.problem.groups.size(), memory, limits));
    found.problem.groups.push_back(group.getName().str());
  }
  auto devicesOf = [&](StringRef group) {
    return topology.getGroup(group).getMesh().getNumDevices();
  };
  DenseMap<Operation *, uint32_t> numbers;
  std::set<std::tuple<scheduler::Kind, int64_t, int64_t>> seen;
  using Key = std::pair<int64_t, int64_t>;
  std::map<Key, uint32_t> forwards;
  std::map<Key, SmallVector<FragmentOp>> backwards;
  for (auto fragment : main.getBody().front().getOps<FragmentOp>()) {
    scheduler::Task task;
    task.group = topology.getGroupIndex(fragment.getGroup());
    task.kind = kindOf(fragment);
    for (Operation &op : fragment.getBody().front().without_terminator())
      task.seconds += model.getCost(&op).seconds;
    task.seconds /= devicesOf(fragment.getGroup());
    Key key = {fragment.getStage().value_or(0),
               fragment.getMicrobatch().value_or(0)};
    if (!scheduler::isInPipeline(task.kind) || !fragment.getStage()) {
      task.kind = scheduler::Kind::Update;
    } else if (!seen.insert({task.kind, key.first, key.second}).second) {
      task.kind = scheduler::Kind::Other;
    } else {
      task.stage = key.first;
      task.microbatch = key.second;
      found.problem.numStages =
          std::max<uint32_t>(found.problem.numStages, key.first + 1);
      found.problem.numMicrobatches =
          std::max<uint32_t>(found.problem.numMicrobatches, key.second + 1);
      if (task.kind == scheduler::Kind::Forward)
        forwards[key] = found.problem.tasks.size();
      else
        backwards[key].push_back(fragment);
    }
    numbers[fragment] = found.problem.tasks.size();
    found.problem.tasks.push_back(task);
    found.fragments.push_back(fragment);
  }
  for (auto &[key, readers] : backwards) {
    auto forward = forwards.find(key);
    if (forward == forwards.end())
      continue;
    FragmentOp maker = found.fragments[forward->second];
    int64_t bytes = savedBytes(maker, readers) / devicesOf(maker.getGroup());
    found.problem.tasks[forward->second].startBytes = bytes;
    found.problem.tasks[numbers.lookup(readers.back())].endBytes = -bytes;
  }
  std::set<std::pair<uint32_t, uint32_t>> known;
  for (auto [to, fragment] : llvm::enumerate(found.fragments))
    for (Value input : fragment.getInputs()) {
      FragmentOp maker = makerOf(input);
      if (!maker || !known.insert({numbers.lookup(maker), to}).second)
        continue;
      scheduler::Edge edge = {numbers.lookup(maker), uint32_t(to), 0};
      if (maker.getGroup() != fragment.getGroup())
        edge.seconds =
            level.latency + byteSize(input.getType()) / level.bandwidth /
                                std::min(devicesOf(maker.getGroup()),
                                         devicesOf(fragment.getGroup()));
      found.problem.edges.push_back(edge);
    }
  return found;
}

/// The ops of @main in the order in which they begin.
static SmallVector<Operation *> orderOps(func::FuncOp main,
                                         const FragmentProblem &program,
                                         const scheduler::Schedule &schedule) {
  SmallVector<Operation *> order;
  DenseMap<Operation *, SmallVector<Operation *>> leaving;
  for (auto transfer : main.getBody().front().getOps<TransferOp>()) {
    if (FragmentOp maker = makerOf(transfer.getInput()))
      leaving[maker].push_back(transfer);
    else
      order.push_back(transfer);
  }
  using Ending = std::pair<double, uint32_t>; // time, place in the order
  std::priority_queue<Ending, std::vector<Ending>, std::greater<Ending>> ending;
  auto moveWhatEnded = [&](auto hasEnded) {
    while (!ending.empty() && hasEnded(ending.top().first)) {
      uint32_t task = schedule.global[ending.top().second];
      llvm::append_range(order, leaving[program.fragments[task]]);
      ending.pop();
    }
  };
  for (auto [place, task] : llvm::enumerate(schedule.global)) {
    double start = schedule.start[task];
    moveWhatEnded([&](double end) { return end <= start; });
    order.push_back(program.fragments[task]);
    ending.push({schedule.end[task], place});
  }
  moveWhatEnded([](double) { return true; });
  return order;
}

namespace {
struct SchedulePass : hypermpmd::impl::SchedulePassBase<SchedulePass> {
  using SchedulePassBase::SchedulePassBase;

  void remark(func::FuncOp main, const FragmentProblem &program,
              const scheduler::Schedule &found);
  LogicalResult writeReport(func::FuncOp main,
                            const scheduler::Problem &problem,
                            const scheduler::Schedule &found);

  void runOnOperation() override {
    std::optional<scheduler::Name> name = scheduler::findName(schedule);
    FailureOr<func::FuncOp> main = getFragmentedEntry(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!name) {
      main->emitError("expected the name of a schedule (gpipe, 1f1b, "
                      "interleaved_1f1b, zero_bubble_h1 or auto) but got \"")
          << schedule << '"';
      return signalPassFailure();
    }
    if (!getTopology(*main)) {
      main->emitError("expected the module to have a `")
          << HyperMPMDDialect::kTopologyAttrName
          << "`; run hypermpmd-form-fragments first";
      return signalPassFailure();
    }
    size_t numGroups = getTopology(*main).getGroups().size();
    if (!limits.empty() && limits.size() != numGroups) {
      main->emitError("expected a limit for each of ")
          << numGroups << " groups but got " << limits.size();
      return signalPassFailure();
    }
    FragmentProblem program = describe(*main, memory, limits);
    std::string fault = scheduler::findFault(program.problem);
    for (const std::string &rule : before)
      if (fault.empty())
        fault = scheduler::addWish(program.problem, rule);
    scheduler::Schedule found;
    if (fault.empty()) {
      found = scheduler::makeSchedule(program.problem, *name);
      fault = found.fault;
    }
    if (!fault.empty()) {
      main->emitError("schedule ") << schedule << ": " << fault;
      return signalPassFailure();
    }
    SmallVector<Operation *> order = orderOps(*main, program, found);
    Block &body = main->getBody().front();
    auto next = body.begin();
    for (Operation *op : order) {
      numMoved += &*next != op && isa<FragmentOp>(op);
      if (&*next == op)
        ++next;
      else
        op->moveBefore(&body, next);
    }
    remark(*main, program, found);
    if (failed(writeReport(*main, program.problem, found)))
      signalPassFailure();
  }
};
} // namespace

LogicalResult SchedulePass::writeReport(func::FuncOp main,
                                        const scheduler::Problem &problem,
                                        const scheduler::Schedule &found) {
  if (report.empty())
    return success();
  std::error_code error;
  llvm::raw_fd_ostream stream(report, error);
  if (error)
    return main.emitError("cannot write the report to ")
           << report << ": " << error.message();
  scheduler::Report judged = scheduler::evaluate(problem, found);
  llvm::json::OStream json(stream, 1);
  json.object([&] {
    json.attribute("method", found.method);
    json.attribute("seconds", found.seconds);
    json.attribute("bubble", judged.bubble);
    json.attributeArray("peak_live", [&] {
      for (uint32_t live : judged.peakLive)
        json.value(live);
    });
    json.attributeArray("groups", [&] {
      for (auto [group, name] : llvm::enumerate(problem.groups))
        json.object([&, group = group] {
          json.attribute("name", problem.groups[group]);
          json.attribute("bubble", judged.groups[group].bubble);
          json.attribute("saved_bytes", judged.groups[group].peakBytes);
          if (problem.limits[group] >= 0)
            json.attribute("saved_limit", problem.limits[group]);
        });
    });
    json.attributeArray("declined", [&] {
      for (const std::string &declined : found.declined)
        json.value(declined);
    });
  });
  stream << '\n';
  return success();
}

void SchedulePass::remark(func::FuncOp main, const FragmentProblem &program,
                          const scheduler::Schedule &found) {
  scheduler::Report report = scheduler::evaluate(program.problem, found);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "schedule " << found.method << ": " << program.problem.numStages
     << " stages, " << program.problem.numMicrobatches << " microbatches, "
     << llvm::format("%.4g s, bubble %.4g", found.seconds, report.bubble)
     << ", live microbatches by stage";
  for (uint32_t live : report.peakLive)
    os << ' ' << live;
  InFlightDiagnostic remark = main.emitRemark() << text;
  for (const std::string &declined : found.declined)
    remark.attachNote() << "declined: " << declined;
}
