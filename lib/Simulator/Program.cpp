//===- Program.cpp - programs as tasks of the simulator -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// 1. Each group's program becomes tasks by itself (TaskBuilder).
// 2. A send meets the receive of the same two programs and tag (several: in
//    program order) and is a transfer over the innermost level that joins the
//    first devices of the two groups, from one memory to the other.
// 3. Where steps can overlap (something moves beside the kernels), the tasks
//    are there several times: a step's reads of an argument wait for the task
//    that made it in the step before, and its first kernel for what the step
//    before left open. Otherwise every step is as the first.
//
// Limits: programs that never meet drift apart from step to step.
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Program.h"

#include "dialects/HyperShard/HyperShard.h"
#include "lib/Analysis/Packets.h"
#include "lib/Simulator/TaskBuilder.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;
using namespace mlir::hyperparallel::simulator;

//===----------------------------------------------------------------------===//
// Which programs there are
//===----------------------------------------------------------------------===//

static LogicalResult checkDevices(Location where, MachineAttr machine,
                                  int64_t devices, StringRef who) {
  if (devices <= machine.getNumDevices())
    return success();
  InFlightDiagnostic error =
      emitError(where) << "expected at most the " << machine.getNumDevices()
                       << " devices that the machine " << machine.getName()
                       << " has but " << who << " uses " << devices;
  error.attachNote() << "simulate it on a larger one, such as "
                     << machine.getName().split('@').first << '@' << devices;
  return failure();
}

FailureOr<SmallVector<GroupProgram>>
hyperparallel::findPrograms(ModuleOp module, StringRef entry) {
  MachineAttr machine = getMachineOrDefault(module);
  SmallVector<GroupProgram> programs;
  llvm::StringMap<FunctionOpInterface> names;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    auto name =
        function->getAttrOfType<StringAttr>(SupernodeDialect::kProgramAttrName);
    if (!name)
      continue;
    auto range =
        function->getAttrOfType<ArrayAttr>(SupernodeDialect::kDevicesAttrName);
    GroupProgram program = {name.str(),
                            function,
                            {cast<IntegerAttr>(range[0]).getInt(),
                             cast<IntegerAttr>(range[1]).getInt()}};
    auto [other, isNew] = names.try_emplace(name.getValue(), function);
    if (!isNew)
      return emitError(function.getLoc())
             << "expected the name of one program but " << name
             << " is that of another, too";
    if (function.isExternal() || !function.getFunctionBody().hasOneBlock())
      return emitError(function.getLoc())
             << "expected the program " << name << " to have one block";
    if (failed(checkDevices(function.getLoc(), machine,
                            program.devices.first + program.devices.count,
                            program.name)))
      return failure();
    programs.push_back(std::move(program));
  }
  if (!programs.empty())
    return programs;

  auto function = dyn_cast_or_null<FunctionOpInterface>(
      SymbolTable::lookupSymbolIn(module, entry));
  if (!function || function.isExternal() ||
      !function.getFunctionBody().hasOneBlock())
    return emitError(module.getLoc())
           << "expected a function @" << entry << " with one block to simulate";
  int64_t devices = 1;
  for (auto mesh : module.getOps<hypershard::MeshOp>())
    devices = std::max(devices, mesh.getMesh().getNumDevices());
  if (failed(checkDevices(module.getLoc(), machine, devices,
                          "the program's mesh")))
    return failure();
  programs.push_back({"main", function, {0, devices}});
  return programs;
}

/// Number of the machine's group in which the device is.
static unsigned machineGroupOf(MachineAttr machine, int64_t device) {
  unsigned index = 0;
  for (DeviceGroupAttr group : machine.getGroups()) {
    if (device < group.getCount())
      return index;
    device -= group.getCount();
    ++index;
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// Sends and receives
//===----------------------------------------------------------------------===//

namespace {
class MessageMatcher {
public:
  MessageMatcher(MachineResources &resources, ArrayRef<TierAttr> memories,
                 ProgramTasks &program)
      : resources(resources), memories(memories), program(program) {
    for (auto [index, group] : llvm::enumerate(program.groups))
      groups.try_emplace(group.name, index);
  }

  LogicalResult match(const Messages &messages);

private:
  LogicalResult match(const MessageKey &key, const Message &message);
  LogicalResult connect(TaskId send, TaskId receive, unsigned from,
                        unsigned to);

  MachineResources &resources;
  ArrayRef<TierAttr> memories;
  ProgramTasks &program;
  llvm::StringMap<unsigned> groups;
};
} // namespace

LogicalResult MessageMatcher::connect(TaskId send, TaskId receive,
                                      unsigned from, unsigned to) {
  Operation *op = program.tasks[send].op;
  double bytes = program.tasks[send].movement->bytes;
  double received = program.tasks[receive].movement->bytes;
  if (bytes != received) {
    InFlightDiagnostic error =
        op->emitError() << "expected the receive to be of the "
                        << int64_t(bytes) << " bytes that are sent but got "
                        << int64_t(received);
    error.attachNote(program.tasks[receive].op->getLoc()) << "received here";
    return failure();
  }
  DeviceRange sender = program.groups[from].devices;
  DeviceRange receiver = program.groups[to].devices;
  LevelAttr level = resources.getLevelBetween(sender.first, receiver.first);
  if (!level)
    return op->emitError() << "expected a level of the machine "
                           << resources.getMachine().getName()
                           << " that joins devices " << sender.first << " and "
                           << receiver.first << " but it has none";
  Task &task = program.problem.tasks[send];
  // What travels with another in a packet has its latency with it.
  std::optional<PacketPlace> packet = getPacketPlace(op);
  if (!packet || packet->place == 0)
    task.seconds = level.getLatency();
  task.bytes = bytes;
  task.rate = level.getBandwidth();
  resources.useLevel(task.uses, level, sender);
  resources.useSegmentsOf(task.uses, level, receiver);
  resources.useTier(task.uses, memories[from], sender);
  resources.useTier(task.uses, memories[to], receiver);
  task.partner = receive;
  program.problem.tasks[receive].partner = send;
  return success();
}

LogicalResult MessageMatcher::match(const MessageKey &key,
                                    const Message &message) {
  const auto &[from, to, tag] = key;
  bool isSend = message.sends.size() > message.receives.size();
  size_t count = std::min(message.sends.size(), message.receives.size());
  if (message.sends.size() != message.receives.size()) {
    TaskId alone = isSend ? message.sends[count] : message.receives[count];
    return program.tasks[alone].op->emitError()
           << "expected a " << (isSend ? "receive" : "send") << " with tag "
           << tag << " in the program \"" << (isSend ? to : from)
           << "\" to meet this " << (isSend ? "send" : "receive");
  }
  unsigned sender = groups.lookup(from), receiver = groups.lookup(to);
  for (auto [send, receive] : llvm::zip_equal(message.sends, message.receives))
    if (failed(connect(send, receive, sender, receiver)))
      return failure();
  return success();
}

LogicalResult MessageMatcher::match(const Messages &messages) {
  for (const auto &[key, message] : messages)
    if (failed(match(key, message)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Appends a step like the first.
static void addStep(Problem &problem, TaskId count, TaskId base) {
  for (TaskId i = 0; i < count; ++i) {
    Task task = problem.tasks[i];
    for (TaskId &before : task.dependencies)
      before += base;
    if (task.partner != kNoTask)
      task.partner += base;
    problem.tasks.push_back(std::move(task));
  }
}

static void addReleases(Problem &problem, size_t count, TaskId base) {
  for (size_t i = 0; i < count; ++i) {
    Release release = problem.releases[i];
    for (TaskId &after : release.after)
      after += base;
    problem.releases.push_back(std::move(release));
  }
}

/// What the step at `base` waits for in the step before, `count` tasks ago.
static void joinSteps(Problem &problem, const StepLinks &links, TaskId count,
                      TaskId base) {
  auto wait = [&](TaskId task, TaskId before) {
    if (task != kNoTask && before != kNoTask)
      problem.tasks[base + task].dependencies.push_back(base - count + before);
  };
  for (auto [task, argument] : links.argumentUses)
    if (auto maker = links.makers.find(argument); maker != links.makers.end())
      wait(task, maker->second);
  for (auto [writer, argument] : links.argumentWrites)
    for (TaskId reader : links.argumentReaders.lookup(argument))
      wait(writer, reader);
  for (TaskId task : links.pending)
    wait(links.firstKernel, task);
  for (TaskId task : links.beforeFirstKernel)
    wait(task, links.lastKernel);
  for (auto [task, part] : links.outputs)
    problem.tasks[base + task].residency[part].atStart = 0;
}

static void repeatStep(ProgramTasks &program, ArrayRef<StepLinks> links,
                       unsigned steps) {
  bool overlaps = llvm::any_of(program.tasks, [](const ProgramTask &task) {
    return task.movement.has_value();
  });
  if (!overlaps)
    return;
  program.steps = steps;
  Problem &problem = program.problem;
  TaskId count = program.tasks.size();
  size_t releases = problem.releases.size();
  problem.tasks.reserve(count * program.steps);
  for (unsigned step = 1; step < program.steps; ++step) {
    addStep(problem, count, step * count);
    addReleases(problem, releases, step * count);
    for (const StepLinks &one : links)
      joinSteps(problem, one, count, step * count);
  }
}

FailureOr<ProgramTasks> hyperparallel::makeProgramTasks(
    ModuleOp module, ArrayRef<GroupProgram> programs, unsigned steps) {
  MachineAttr machine = getMachineOrDefault(module);
  ProgramTasks result;
  result.groups.assign(programs.begin(), programs.end());
  MachineResources resources(machine);
  Messages messages;
  std::vector<StepLinks> links;
  SmallVector<TierAttr> memories;
  // Functions are costed once for each kind of device.
  DenseMap<unsigned, std::unique_ptr<CostModel>> models;
  bool isWhole = !result.groups.front().function->hasAttr(
      SupernodeDialect::kProgramAttrName);
  int64_t atWork = 0;
  for (const GroupProgram &group : result.groups)
    atWork += group.devices.count;
  for (unsigned group = 0; group < result.groups.size(); ++group) {
    unsigned kind = machineGroupOf(machine, result.groups[group].devices.first);
    std::unique_ptr<CostModel> &model = models[kind];
    if (!model)
      model = isWhole ? std::make_unique<CostModel>(module)
                      : std::make_unique<CostModel>(machine, kind, atWork);
    memories.push_back(machine.getTier(model->getGroup().getMemory()));
    TaskBuilder builder(group, *model, resources, messages, result);
    if (failed(builder.run()))
      return failure();
    links.push_back(std::move(builder.links));
  }
  if (failed(MessageMatcher(resources, memories, result).match(messages)))
    return failure();
  repeatStep(result, links, steps);
  result.problem.numStreams = result.streams.size();
  llvm::append_range(result.links, resources.getLinks());
  for (const LinkInfo &link : result.links)
    result.problem.segments.push_back(link.bandwidth);
  return result;
}
