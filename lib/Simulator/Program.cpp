//===- Program.cpp - simulate a compiled program --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// All devices of a mesh run one program, so one device stands for all: what its
// collectives wait for is itself.
//
// 1. The function is walked in program order, calls expanded (loops and
// branches
//    stay one task). Views take no time: their results are their operand's.
// 2. A kernel goes to the compute stream and waits for what made its operands;
// a
//    collective goes to the communication stream. One that blocks (not
//    `_start`) waits for the kernel before it, and the kernel after it waits
//    for it.
// 3. A tensor takes memory from the start of the task that makes it to the end
//    of the last, in program order, that uses it; arguments and what is
//    returned stay. A result takes the place of the tensor it is written over
//    where nothing reads that afterwards (as bufferization does); of arguments,
//    those with a role other than "input" are the program's own and written
//    over.
//
// Limits: no padding or alignment of buffers; constants take no memory.
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Program.h"

#include "lib/Analysis/CollectiveOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using mlir::hyperparallel::simulator::Level;
using mlir::hyperparallel::simulator::Result;
using mlir::hyperparallel::simulator::Span;
using mlir::hyperparallel::simulator::Task;
using mlir::hyperparallel::simulator::TaskId;

namespace {

constexpr uint32_t kNone = ~0u;

struct Buffer {
  double bytes;
  bool isArgument = false;
  /// All but inputs of the program, which are their owner's.
  bool isWritable = true;
  bool isReturned = false;
  /// The first task that writes it and the last that uses it.
  TaskId firstTask = kNone;
  TaskId lastTask = kNone;
};

/// Where a value is, and which task makes it.
struct ValueInfo {
  uint32_t buffer = kNone;
  TaskId task = kNone;
};

using Environment = DenseMap<Value, ValueInfo>;

class TaskBuilder {
public:
  TaskBuilder(CostModel &model, ProgramTasks &result)
      : model(model), result(result) {}

  void run(FunctionOpInterface function);

private:
  SmallVector<ValueInfo> walk(Block &block, Environment &values,
                              const std::string &path);
  void visit(Operation *op, Environment &values, const std::string &path);
  bool expandCall(Operation *op, Environment &values, const std::string &path);
  void addTask(Operation *op, const TaskCost &cost, Environment &values,
               const std::string &path);
  void passThrough(Operation *op, Environment &values);
  uint32_t newBuffer(Type type);
  uint32_t bufferOfResult(OpResult value, const Environment &values);
  void use(uint32_t buffer, TaskId task);
  /// Something was written there: an empty tensor takes no memory before.
  bool isThere(const ValueInfo &info) const {
    return info.task != kNone ||
           (info.buffer != kNone && buffers[info.buffer].isArgument);
  }

  CostModel &model;
  ProgramTasks &result;
  SymbolTableCollection symbols;
  std::vector<Buffer> buffers;
  SmallVector<Operation *> callStack;
  TaskId lastKernel = kNone;
  /// A collective that blocks, until a kernel has waited for it.
  TaskId blocking = kNone;
};

} // namespace

uint32_t TaskBuilder::newBuffer(Type type) {
  buffers.push_back({static_cast<double>(byteSize(type))});
  return buffers.size() - 1;
}

void TaskBuilder::use(uint32_t buffer, TaskId task) {
  if (buffer == kNone)
    return;
  if (buffers[buffer].firstTask == kNone)
    buffers[buffer].firstTask = task;
  buffers[buffer].lastTask = task;
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
uint32_t TaskBuilder::bufferOfResult(OpResult value,
                                     const Environment &values) {
  if (auto op = dyn_cast<DestinationStyleOpInterface>(value.getOwner())) {
    OpOperand *init = op.getTiedOpOperand(value);
    auto info = values.find(init->get());
    if (isLastUse(init) && info != values.end() &&
        info->second.buffer != kNone && buffers[info->second.buffer].isWritable)
      return info->second.buffer;
  }
  return newBuffer(value.getType());
}

/// A view, a declaration, a constant, or the wait for a collective.
void TaskBuilder::passThrough(Operation *op, Environment &values) {
  ValueInfo source;
  for (Value operand : op->getOperands())
    if (auto info = values.find(operand); info != values.end()) {
      source = info->second;
      break;
    }
  for (OpResult value : op->getResults()) {
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    bool isDeclaration =
        op->getNumOperands() == 0 && !op->hasTrait<OpTrait::ConstantLike>();
    values[value] =
        isDeclaration ? ValueInfo{newBuffer(value.getType()), kNone} : source;
  }
}

void TaskBuilder::addTask(Operation *op, const TaskCost &cost,
                          Environment &values, const std::string &path) {
  TaskId id = result.tasks.size();
  Task task;
  auto collective = describeCollective(op);
  bool communicates =
      collective && collective->kind != CollectiveKind::SliceLocal;
  bool isAsynchronous =
      communicates && isa<hypershard::FutureType>(op->getResult(0).getType());
  task.stream = communicates ? kCommunicationStream : kComputeStream;
  task.seconds = cost.seconds;

  llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
  if (op->getNumRegions())
    getUsedValuesDefinedAbove(op->getRegions(), operands);
  llvm::SmallSetVector<TaskId, 4> before;
  for (Value operand : operands)
    if (auto info = values.find(operand); info != values.end()) {
      if (info->second.task != kNone)
        before.insert(info->second.task);
      if (isThere(info->second))
        use(info->second.buffer, id);
    }
  if (communicates) {
    if (!isAsynchronous) {
      if (lastKernel != kNone)
        before.insert(lastKernel);
      blocking = id;
    }
  } else {
    if (blocking != kNone)
      before.insert(blocking);
    blocking = kNone;
    lastKernel = id;
  }
  task.dependencies.assign(before.begin(), before.end());

  for (OpResult value : op->getResults()) {
    uint32_t buffer = kNone;
    if (isa<RankedTensorType>(value.getType()))
      buffer = bufferOfResult(value, values);
    else if (auto future = dyn_cast<hypershard::FutureType>(value.getType()))
      buffer = newBuffer(future.getValueType());
    else
      continue;
    use(buffer, id);
    values[value] = {buffer, id};
  }
  result.problem.tasks.push_back(std::move(task));
  result.tasks.push_back({op, path, cost});
}

/// A call of a function with a body that is not being expanded already.
bool TaskBuilder::expandCall(Operation *op, Environment &values,
                             const std::string &path) {
  auto call = dyn_cast<CallOpInterface>(op);
  if (!call)
    return false;
  auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  if (!symbol)
    return false;
  auto callee = dyn_cast_or_null<FunctionOpInterface>(
      symbols.lookupNearestSymbolFrom(op, symbol));
  if (!callee || callee.isExternal() ||
      !callee.getFunctionBody().hasOneBlock() ||
      llvm::is_contained(callStack, callee.getOperation()))
    return false;
  Environment inner;
  for (auto [argument, operand] :
       llvm::zip_equal(callee.getArguments(), call.getArgOperands()))
    if (auto info = values.find(operand); info != values.end())
      inner[argument] = info->second;
  std::string innerPath = path;
  if (auto name = op->getAttrOfType<StringAttr>("hp.path"))
    innerPath = path.empty() ? name.str() : path + "." + name.str();
  callStack.push_back(callee);
  SmallVector<ValueInfo> returned =
      walk(callee.getFunctionBody().front(), inner, innerPath);
  callStack.pop_back();
  for (auto [value, info] : llvm::zip_equal(op->getResults(), returned))
    values[value] = info;
  return true;
}

void TaskBuilder::visit(Operation *op, Environment &values,
                        const std::string &path) {
  if (expandCall(op, values, path))
    return;
  TaskCost cost = model.getCost(op);
  if (cost.launches > 0)
    addTask(op, cost, values, path);
  else
    passThrough(op, values);
}

/// Where the operands of the terminator are.
SmallVector<ValueInfo> TaskBuilder::walk(Block &block, Environment &values,
                                         const std::string &path) {
  for (Operation &op : block.without_terminator())
    visit(&op, values, path);
  SmallVector<ValueInfo> returned;
  for (Value value : block.getTerminator()->getOperands())
    returned.push_back(values.lookup(value));
  return returned;
}

void TaskBuilder::run(FunctionOpInterface function) {
  Environment values;
  double arguments = 0;
  for (BlockArgument argument : function.getArguments()) {
    uint32_t buffer = newBuffer(argument.getType());
    buffers[buffer].isArgument = true;
    auto role = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      "hp.role");
    buffers[buffer].isWritable = role && role.getValue() != "input";
    arguments += buffers[buffer].bytes;
    values[argument] = {buffer, kNone};
  }
  callStack.push_back(function);
  for (ValueInfo info : walk(function.getFunctionBody().front(), values, ""))
    if (info.buffer != kNone)
      buffers[info.buffer].isReturned = true;
  result.problem.numStreams = 2;
  result.problem.tiers = {arguments};
  for (const Buffer &buffer : buffers) {
    if (buffer.isArgument || buffer.firstTask == kNone || buffer.bytes == 0)
      continue;
    std::vector<Task> &tasks = result.problem.tasks;
    tasks[buffer.firstTask].residency.push_back({0, buffer.bytes, 0});
    if (!buffer.isReturned)
      tasks[buffer.lastTask].residency.push_back({0, 0, -buffer.bytes});
  }
}

ProgramTasks hyperparallel::makeProgramTasks(FunctionOpInterface function,
                                             CostModel &model) {
  ProgramTasks result;
  TaskBuilder(model, result).run(function);
  return result;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

namespace {
struct CollectiveTotal {
  int64_t count = 0;
  double bytes = 0;
  double seconds = 0;
};
} // namespace

/// Seconds in which a collective runs and no kernel does. Streams are in order,
/// so the spans of each are sorted and one sweep is enough.
static double exposedSeconds(const ProgramTasks &program,
                             const Result &simulated) {
  SmallVector<Span> kernels, collectives;
  for (auto [task, span] :
       llvm::zip_equal(program.problem.tasks, simulated.spans))
    (task.stream == kComputeStream ? kernels : collectives).push_back(span);
  double exposed = 0;
  size_t next = 0;
  for (Span span : collectives) {
    double hidden = 0;
    while (next < kernels.size() && kernels[next].end <= span.start)
      ++next;
    for (size_t i = next; i < kernels.size() && kernels[i].start < span.end;
         ++i)
      hidden += std::min(span.end, kernels[i].end) -
                std::max(span.start, kernels[i].start);
    exposed += span.end - span.start - hidden;
  }
  return exposed;
}

static void writeTasks(const ProgramTasks &program, const Result &simulated,
                       llvm::json::OStream &json) {
  for (auto [task, planned, span] :
       llvm::zip_equal(program.tasks, program.problem.tasks, simulated.spans))
    json.object([&, &task = task, &planned = planned, &span = span] {
      json.attribute("op", task.op->getName().getStringRef());
      json.attribute("path", task.path);
      json.attribute("stream", planned.stream == kComputeStream
                                   ? "compute"
                                   : "communication");
      json.attribute("start", span.start);
      json.attribute("end", span.end);
      json.attribute("flops", task.cost.work.flops);
      json.attribute("bytes",
                     task.cost.work.bytesRead + task.cost.work.bytesWritten);
      json.attribute("bytes_received", task.cost.work.bytesReceived);
      json.attribute("bound", stringifyBound(task.cost.bound));
    });
}

LogicalResult hyperparallel::simulateProgram(ModuleOp module, StringRef name,
                                             raw_ostream &os) {
  auto function = dyn_cast_or_null<FunctionOpInterface>(
      SymbolTable::lookupSymbolIn(module, name));
  if (!function || function.isExternal() ||
      !function.getFunctionBody().hasOneBlock())
    return module.emitError()
           << "expected a function @" << name << " with one block to simulate";
  CostModel model(module);
  ProgramTasks program = makeProgramTasks(function, model);
  Result simulated = simulator::simulate(program.problem);
  if (!simulated.error.empty())
    return function.emitError() << simulated.error;

  double flops = 0, ideal = 0;
  llvm::MapVector<StringRef, CollectiveTotal> collectives;
  for (const ProgramTask &task : program.tasks) {
    flops += task.cost.work.flops;
    ideal += task.cost.peakSeconds;
    if (task.cost.bound == Bound::None || !describeCollective(task.op) ||
        task.cost.communicationSeconds == 0)
      continue;
    CollectiveTotal &total = collectives[task.op->getName().getStringRef()];
    ++total.count;
    total.bytes += task.cost.work.bytesReceived;
    total.seconds += task.cost.seconds;
  }

  supernode::TierAttr memory =
      model.getMachine().getTier(model.getGroup().getMemory());
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("machine", model.getMachine().getName());
    json.attribute("function", name);
    json.attribute("seconds", simulated.seconds);
    json.attribute("compute_seconds", simulated.busy[kComputeStream]);
    json.attribute("communication_seconds",
                   simulated.busy[kCommunicationStream]);
    json.attribute("exposed_communication_seconds",
                   exposedSeconds(program, simulated));
    json.attribute("flops", flops);
    json.attribute("mfu",
                   simulated.seconds > 0 ? ideal / simulated.seconds : 0.0);
    json.attributeArray("tiers", [&] {
      json.object([&] {
        json.attribute("name", memory.getName());
        json.attribute("capacity", double(memory.getCapacity()));
        json.attribute("peak", simulated.peak[0]);
        json.attributeArray("timeline", [&] {
          for (Level level : simulated.residency[0])
            json.array([&] {
              json.value(level.time);
              json.value(level.bytes);
            });
        });
      });
    });
    json.attributeArray("collectives", [&] {
      for (auto &[op, total] : collectives)
        json.object([&, op = op, &total = total] {
          json.attribute("op", op);
          json.attribute("count", total.count);
          json.attribute("bytes_received", total.bytes);
          json.attribute("seconds", total.seconds);
        });
    });
    json.attributeArray("tasks", [&] { writeTasks(program, simulated, json); });
  });
  return success();
}
