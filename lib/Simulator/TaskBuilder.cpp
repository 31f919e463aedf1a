//===- TaskBuilder.cpp - the program of one group as tasks ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Devices of a group run one program, so one device stands for all: what its
// collectives wait for is itself.
//
// 1. Each program is walked in its order (TaskWalk.cpp), calls and loops that
//    move something expanded. Views take no time: their results are their
//    operand's.
// 2. A kernel goes to the compute stream and waits for what made its operands.
//    A collective goes to the stream of the outermost axis that it crosses and
//    waits for the kernel before it, which is when it is issued; what reads its
//    result waits for it, and so does what comes after the function that it is
//    in. In a program that is synchronous (`hp.synchronous`) all that comes
//    after it does. A movement (MovementOpInterface) goes to the stream of its
//    link or peer and waits for the kernel before it, whose memory it may need.
// 3. Bytes are flows: a kernel's through the memory, a collective's through the
//    outermost level that it crosses, a movement's through its link. Alone,
//    kernels and collectives take what the cost model says.
// 4. A tensor takes memory from the start of the task that makes it until all
//    tasks that use it have ended; arguments and what is returned stay. A
//    result takes the place of the tensor it is written over where nothing
//    reads that afterwards (as bufferization does); of arguments, those with a
//    role other than "input" are the program's own and written over. Who writes
//    over a tensor waits for the transfers that read it.
// 5. A result that updates an argument (`hp.updates`, or its `hp.name`) is that
//    argument in the next step, and the old one goes after its last use.
//
// Limits: no padding or alignment of buffers; constants take no memory.
//===----------------------------------------------------------------------===//
#include "lib/Simulator/TaskBuilder.h"

#include "dialects/Offload/Offload.h"
#include "dialects/Stream/Stream.h"
#include "lib/Analysis/StateUpdates.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;
using namespace mlir::hyperparallel::simulator;

//===----------------------------------------------------------------------===//
// Streams, tiers, buffers
//===----------------------------------------------------------------------===//

StreamId TaskBuilder::getStream(StreamKind kind, const Twine &name) {
  std::string wanted = name.str();
  for (StreamId id = firstStream; id < result.streams.size(); ++id)
    if (result.streams[id].name == wanted)
      return id;
  result.streams.push_back({std::move(wanted), kind, group});
  return result.streams.size() - 1;
}

/// As stream-assign-streams numbers them: by the outermost axis.
StreamId TaskBuilder::getStream(const CollectiveDescription &collective) {
  int64_t outermost = -1;
  for (hypershard::Axis axis : collective.axes)
    if (axis.size > 1 && (outermost < 0 || axis.axis < outermost))
      outermost = axis.axis;
  if (outermost <= 0)
    return communication;
  return getStream(StreamKind::Communication,
                   "communication " + Twine(outermost));
}

FailureOr<TierId> TaskBuilder::getTier(Location where, StringRef name) {
  for (TierId id = firstTier; id < result.tiers.size(); ++id)
    if (result.tiers[id].tier.getName() == name)
      return id;
  TierAttr tier = machine().getTier(name);
  if (!tier) {
    InFlightDiagnostic error =
        emitError(where) << "expected a tier of the machine "
                         << machine().getName() << " but got \"" << name << '"';
    Diagnostic &note = error.attachNote() << "it has ";
    llvm::interleaveComma(machine().getTiers(), note,
                          [&](TierAttr one) { note << one.getName(); });
    return failure();
  }
  double sharing = resources.devicesInUnit(program.devices, tier.getScope());
  result.tiers.push_back({tier, group, tier.getCapacity() / sharing});
  result.problem.tiers.push_back(0);
  return static_cast<TierId>(result.tiers.size() - 1);
}

uint32_t TaskBuilder::newBuffer(double bytes, TierId tier) {
  buffers.push_back({bytes, tier});
  return buffers.size() - 1;
}

void TaskBuilder::use(uint32_t buffer, TaskId task) {
  if (buffer == kNone)
    return;
  Buffer &used = buffers[buffer];
  if (used.firstTask == kNoTask)
    used.firstTask = task;
  // Tasks of a stream end in order.
  StreamId stream = result.problem.tasks[task].stream;
  for (TaskId &last : used.lastTasks)
    if (result.problem.tasks[last].stream == stream) {
      last = task;
      return;
    }
  used.lastTasks.push_back(task);
}

/// No op after `op` reads the value, nor does `op` in another operand.
static bool isLastUse(OpOperand *use) {
  Operation *op = use->getOwner();
  return llvm::all_of(use->get().getUses(), [&](OpOperand &other) {
    Operation *user = other.getOwner();
    return &other == use || (user != op && user->getBlock() == op->getBlock() &&
                             user->isBeforeInBlock(op));
  });
}

/// The destination's place, if nothing reads the destination afterwards.
uint32_t TaskBuilder::bufferOfResult(OpResult value, const Environment &values,
                                     Task &task) {
  if (auto op = dyn_cast<DestinationStyleOpInterface>(value.getOwner())) {
    OpOperand *init = op.getTiedOpOperand(value);
    auto info = values.find(init->get());
    if (isLastUse(init) && info != values.end() &&
        info->second.buffer != kNone &&
        buffers[info->second.buffer].isWritable) {
      auto &readers = buffers[info->second.buffer].readers;
      task.dependencies.insert(task.dependencies.end(), readers.begin(),
                               readers.end());
      readers.clear();
      // Buffers of arguments come first, in order.
      if (buffers[info->second.buffer].isArgument)
        links.argumentWrites.push_back(
            {static_cast<TaskId>(result.problem.tasks.size()),
             info->second.buffer});
      return info->second.buffer;
    }
  }
  return newBuffer(byteSize(value.getType()), memory);
}

/// A view, a declaration, a constant, or the wait for a future.
void TaskBuilder::passThrough(Operation *op, Environment &values) {
  ValueInfo source;
  for (Value operand : op->getOperands())
    if (auto info = values.find(operand); info != values.end()) {
      source = info->second;
      if (!isa<ShapedType>(operand.getType()) && source.task != kNoTask)
        links.pending.push_back(source.task);
      break;
    }
  for (OpResult value : op->getResults()) {
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    bool isDeclaration =
        op->getNumOperands() == 0 && !op->hasTrait<OpTrait::ConstantLike>();
    values[value] =
        isDeclaration ? ValueInfo{newBuffer(byteSize(value.getType()), memory)}
                      : source;
  }
}

//===----------------------------------------------------------------------===//
// Kernels and collectives
//===----------------------------------------------------------------------===//

/// A kernel's bytes, over all of its time but the launch. Time that is known
/// without bytes stays as it is.
void TaskBuilder::flowThroughMemory(Task &task, const TaskCost &cost) {
  double bytes = cost.work.bytesRead + cost.work.bytesWritten;
  double launch = 0;
  if (!cost.work.seconds)
    launch = model.getGroup().getLaunch();
  double rest = cost.seconds - launch;
  if (bytes <= 0 || rest <= 0)
    return;
  task.seconds = launch;
  task.bytes = bytes;
  task.rate = bytes / rest;
  resources.useTier(task.uses, result.tiers[memory].tier, program.devices);
  resources.fitAlone(task.uses, task.rate);
}

void TaskBuilder::flowThroughNetwork(Task &task, const TaskCost &cost,
                                     CollectiveDescription &collective) {
  LevelAttr level = model.getOutermostLevel(
      hypershard::MeshAxes(collective.mesh.getMesh()), collective.axes);
  double launch = model.getGroup().getLaunch();
  double rest = cost.seconds - launch;
  if (!level || collective.bytesReceived <= 0 || rest <= 0)
    return;
  task.seconds = launch;
  task.bytes = collective.bytesReceived;
  task.rate = task.bytes / rest;
  resources.useLevel(task.uses, level, program.devices);
  // What arrives is written, and what is sent was read.
  resources.useTier(task.uses, result.tiers[memory].tier, program.devices);
  task.uses.back().weight *= 2;
  resources.fitAlone(task.uses, task.rate);
}

void TaskBuilder::waitFor(Value operand, const Environment &values, Task &task,
                          TaskId id) {
  auto info = values.find(operand);
  if (info == values.end())
    return;
  if (info->second.task != kNoTask)
    task.dependencies.push_back(info->second.task);
  else if (info->second.argument != kNone)
    links.argumentUses.push_back({id, info->second.argument});
}

/// What is issued after a kernel or a wait may need what that leaves.
void TaskBuilder::waitForKernel(Task &task, TaskId id) {
  llvm::append_range(task.dependencies, links.pending);
  if (links.lastKernel == kNoTask)
    links.beforeFirstKernel.push_back(id);
  else
    task.dependencies.push_back(links.lastKernel);
}

static std::string reasonOf(const TaskCost &cost) {
  if (cost.work.seconds)
    return "the time that it is known by";
  switch (cost.bound) {
  case Bound::None:
    return "";
  case Bound::Launch:
    return "the least time of a kernel";
  case Bound::Compute:
    return "its operations";
  case Bound::Memory:
    return "its bytes to and from memory";
  case Bound::Communication:
    return "collectives in it";
  }
  llvm_unreachable("all bounds are listed");
}

static std::string reasonOf(const Movement &movement) {
  if (movement.kind == Movement::Kind::Copy)
    return (movement.from + " -> " + movement.to).str();
  StringRef way = movement.kind == Movement::Kind::Send ? "to " : "from ";
  return (way + movement.peer + ", tag " + Twine(movement.tag)).str();
}

/// How a collective is done: "ring over tp, 4 devices".
std::string TaskBuilder::howDone(CollectiveDescription &collective) {
  hypershard::MeshAxes mesh(collective.mesh.getMesh());
  bool isPermute = collective.kind == CollectiveKind::Permute;
  std::string reason = toString(model.getCollective(
      collective.kind, mesh, collective.axes,
      isPermute ? collective.bytesReceived : collective.localBytes));
  reason += " over ";
  llvm::raw_string_ostream os(reason);
  llvm::interleaveComma(collective.axes, os, [&](hypershard::Axis axis) {
    os << mesh.attr().getAxes()[axis.axis].getName();
  });
  os << ", " << hypershard::numShards(collective.axes) << " devices";
  return reason;
}

LogicalResult TaskBuilder::addTask(Operation *op, const TaskCost &cost,
                                   Environment &values,
                                   const std::string &path) {
  TaskId id = result.problem.tasks.size();
  Task task;
  auto collective = describeCollective(op);
  bool communicates =
      collective && collective->kind != CollectiveKind::SliceLocal;
  bool isAsynchronous = communicates && !isSynchronous;
  task.stream = communicates ? getStream(*collective) : compute;
  task.seconds = cost.seconds;
  if (communicates)
    flowThroughNetwork(task, cost, *collective);
  else
    flowThroughMemory(task, cost);

  llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
  if (op->getNumRegions())
    getUsedValuesDefinedAbove(op->getRegions(), operands);
  SmallVector<uint32_t> used;
  for (Value operand : operands) {
    waitFor(operand, values, task, id);
    auto info = values.find(operand);
    if (info == values.end() || !isThere(info->second))
      continue;
    const Buffer &buffer = buffers[info->second.buffer];
    if (buffer.tier != memory)
      return op->emitError()
             << "expected its operands to be in \""
             << result.tiers[memory].tier.getName() << "\" but one is in \""
             << result.tiers[buffer.tier].tier.getName() << "\"; copy it first";
    used.push_back(info->second.buffer);
  }
  if (!communicates) {
    llvm::append_range(task.dependencies, links.pending);
    links.pending.clear();
    if (links.firstKernel == kNoTask)
      links.firstKernel = id;
    links.lastKernel = id;
  } else {
    waitForKernel(task, id);
    if (isSynchronous)
      links.pending.push_back(id);
    else
      underWay.push_back(id);
  }

  SmallVector<std::pair<Value, uint32_t>> made;
  for (OpResult value : op->getResults())
    if (isa<RankedTensorType>(value.getType()))
      made.push_back({value, bufferOfResult(value, values, task)});
  llvm::sort(task.dependencies);
  task.dependencies.erase(llvm::unique(task.dependencies),
                          task.dependencies.end());
  result.problem.tasks.push_back(std::move(task));
  result.tasks.push_back(
      {op, path, cost, std::nullopt,
       communicates ? howDone(*collective) : reasonOf(cost)});
  for (uint32_t buffer : used) {
    use(buffer, id);
    if (isAsynchronous)
      buffers[buffer].readers.push_back(id);
  }
  for (auto [value, buffer] : made) {
    use(buffer, id);
    values[value] = {buffer, id};
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Movements
//===----------------------------------------------------------------------===//

LogicalResult TaskBuilder::describeCopy(Operation *op, const Movement &movement,
                                        Task &task) {
  FailureOr<TierId> from = getTier(op->getLoc(), movement.from);
  FailureOr<TierId> to = getTier(op->getLoc(), movement.to);
  if (failed(from) || failed(to))
    return failure();
  TierAttr source = result.tiers[*from].tier, target = result.tiers[*to].tier;
  LinkAttr link = machine().getLink(source.getName(), target.getName());
  if (!link)
    return op->emitError() << "expected a link that the machine "
                           << machine().getName() << " has but got \""
                           << source.getName() << "\" -> \"" << target.getName()
                           << '"';
  // Tiers are listed from the device outwards.
  auto place = [&](TierAttr tier) {
    return llvm::find(machine().getTiers(), tier) -
           machine().getTiers().begin();
  };
  bool inwards =
      *to == memory || (*from != memory && place(target) < place(source));
  task.stream = getStream(inwards ? StreamKind::H2D : StreamKind::D2H,
                          source.getName() + Twine(" -> ") + target.getName());
  // What follows another copy without an op between is submitted with it.
  bool isJoined = !submitted.insert(task.stream).second;
  task.seconds = link.getLatency() *
                 double(link.getNumChunks(movement.bytes) - (isJoined ? 1 : 0));
  task.rate = link.getBandwidth();
  resources.useLink(task.uses, link, program.devices);
  resources.useTier(task.uses, source, program.devices);
  resources.useTier(task.uses, target, program.devices);
  return success();
}

/// A send is the transfer; the receive only meets it.
void TaskBuilder::describeMessage(Operation *op, const Movement &movement,
                                  Task &task, TaskId id) {
  bool isSend = movement.kind == Movement::Kind::Send;
  task.stream = getStream(StreamKind::Network, isSend ? "send" : "receive");
  std::string peer = movement.peer.str();
  Message &message =
      messages[isSend ? MessageKey(program.name, peer, movement.tag)
                      : MessageKey(peer, program.name, movement.tag)];
  (isSend ? message.sends : message.receives).push_back(id);
}

LogicalResult TaskBuilder::addMovement(MovementOpInterface op,
                                       Environment &values,
                                       const std::string &path) {
  TaskId id = result.problem.tasks.size();
  Movement movement = op.getMovement();
  StringRef device = result.tiers[memory].tier.getName();
  for (StringRef *tier : {&movement.from, &movement.to})
    if (tier->empty())
      *tier = device;
  Task task;
  if (movement.kind == Movement::Kind::Copy) {
    if (failed(describeCopy(op, movement, task)))
      return failure();
    task.bytes = movement.bytes;
  } else {
    describeMessage(op, movement, task, id);
  }
  waitForKernel(task, id);

  SmallVector<uint32_t> read;
  for (Value operand : op->getOperands()) {
    waitFor(operand, values, task, id);
    auto info = values.find(operand);
    if (info == values.end() || info->second.buffer == kNone)
      continue;
    StringRef tier =
        result.tiers[buffers[info->second.buffer].tier].tier.getName();
    // What is moved comes first; what says which part of it is on the device.
    StringRef wanted = operand == op->getOperand(0)
                           ? movement.from
                           : result.tiers[memory].tier.getName();
    if (tier != wanted)
      return op->emitError() << "expected its operand to be in \"" << wanted
                             << "\" but it is in \"" << tier << '"';
    read.push_back(info->second.buffer);
  }
  result.problem.tasks.push_back(std::move(task));
  result.tasks.push_back({op, path, TaskCost(), movement, reasonOf(movement)});
  for (uint32_t buffer : read) {
    use(buffer, id);
    buffers[buffer].readers.push_back(id);
  }
  TierId target = *getTier(op->getLoc(), movement.to);
  for (OpResult value : op->getResults()) {
    uint32_t buffer = newBuffer(movement.bytes, target);
    use(buffer, id);
    values[value] = {buffer, id};
  }
  return success();
}

//===----------------------------------------------------------------------===//
// A program
//===----------------------------------------------------------------------===//

LogicalResult TaskBuilder::addArguments(Environment &values) {
  FunctionOpInterface function = program.function;
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    FailureOr<TierId> tier = memory;
    auto name = function.getArgAttrOfType<StringAttr>(
        number, SupernodeDialect::kTierAttrName);
    if (offload::TierAttr encoding = offload::getTier(argument.getType()))
      name = encoding.getName();
    if (name && failed(tier = getTier(function.getLoc(), name)))
      return failure();
    uint32_t buffer = newBuffer(byteSize(argument.getType()), *tier);
    auto role = function.getArgAttrOfType<StringAttr>(number, "hp.role");
    buffers[buffer].isArgument = true;
    buffers[buffer].isWritable = role && role.getValue() != "input";
    result.problem.tiers[*tier] += buffers[buffer].bytes;
    values[argument] = {buffer, kNoTask, number};
  }
  return success();
}

/// What is returned stays; what has an argument's name takes its place.
LogicalResult TaskBuilder::addResults(ArrayRef<ValueInfo> returned) {
  FunctionOpInterface function = program.function;
  llvm::StringMap<uint32_t> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto name = function.getArgAttrOfType<StringAttr>(i, "hp.name"))
      arguments.try_emplace(name.getValue(), i);
  for (auto [index, info] : llvm::enumerate(returned)) {
    if (info.task == kNoTask || info.buffer == kNone)
      continue;
    Buffer &made = buffers[info.buffer];
    auto name =
        function.getResultAttrOfType<StringAttr>(index, kUpdatesAttrName);
    if (!name)
      name = function.getResultAttrOfType<StringAttr>(index, "hp.name");
    auto entry = name ? arguments.find(name.getValue()) : arguments.end();
    made.isReturned = true;
    made.isOutput = entry == arguments.end() && !made.isArgument;
    if (entry == arguments.end())
      continue;
    // Buffers of arguments come first, in order.
    Buffer &argument = buffers[entry->second];
    if (argument.tier != made.tier) {
      InFlightDiagnostic error =
          emitError(function.getLoc())
          << "expected result " << name << " to end in \""
          << result.tiers[argument.tier].tier.getName()
          << "\", where the argument of that name begins, but got \""
          << result.tiers[made.tier].tier.getName() << '"';
      error.attachNote() << "a step has to leave its state where the next one "
                            "looks for it: copy it there at the end";
      return failure();
    }
    links.makers[entry->second] = info.task;
    if (!made.readers.empty())
      links.argumentReaders[entry->second] = made.readers;
    argument.isReplaced = !made.isArgument;
    if (argument.isReplaced && argument.lastTasks.empty())
      use(entry->second, info.task);
  }
  return success();
}

void TaskBuilder::addResidency() {
  for (const Buffer &buffer : buffers) {
    if (buffer.firstTask == kNoTask || buffer.bytes == 0)
      continue;
    if (!buffer.isArgument) {
      auto &residency = result.problem.tasks[buffer.firstTask].residency;
      if (buffer.isOutput)
        links.outputs.push_back({buffer.firstTask, residency.size()});
      residency.push_back({buffer.tier, buffer.bytes, 0});
    }
    if (buffer.isArgument ? buffer.isReplaced : !buffer.isReturned)
      result.problem.releases.push_back(
          {buffer.tier,
           buffer.bytes,
           {buffer.lastTasks.begin(), buffer.lastTasks.end()}});
  }
}

LogicalResult TaskBuilder::run() {
  compute = getStream(StreamKind::Compute, "compute");
  communication = getStream(StreamKind::Communication, "communication");
  isSynchronous = program.function->getParentOfType<ModuleOp>()->hasAttr(
      stream::StreamDialect::kSynchronousAttrName);
  memory = *getTier(program.function.getLoc(), model.getGroup().getMemory());
  Environment values;
  if (failed(addArguments(values)))
    return failure();
  callStack.push_back(program.function);
  FailureOr<SmallVector<ValueInfo>> returned =
      walk(program.function.getFunctionBody().front(), values, "");
  if (failed(returned))
    return failure();
  if (failed(addResults(*returned)))
    return failure();
  llvm::append_range(links.pending, underWay);
  addResidency();
  return success();
}
