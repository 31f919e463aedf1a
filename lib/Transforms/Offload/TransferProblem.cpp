//===- TransferProblem.cpp - a function as the planner sees it ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What may move, by where the memory is:
//   - an argument with the role parameter, buffer, cache or optimizer has a
//     copy in the host's memory, and may live in a tier between steps; other
//     arguments (inputs, and what has no role) are on the device all the time;
//   - a result is the caller's memory, on the device all the time; but for one
//     that is an argument's next value (`hp.updates`): the argument's storage
//     has been written then, so that a copy below is stale from there on, and
//     around the end of the step;
//   - all else lives from its first to its last use, and may be computed again
//     where the one op that makes it may be (OffloadableOpInterface; a call, if
//     all in it may), needs no workspace, and takes nothing that is written
//     over.
//
// Cost: linear in ops and uses.
// Limits: every device of the mesh does the same at the same time, and a tier
//   that several share is divided evenly.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Offload/TransferProblem.h"

#include "dialects/HyperShard/HyperShard.h"
#include "dialects/Interfaces/OffloadableOpInterface.h"
#include "lib/Analysis/StateUpdates.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;

static constexpr int64_t kAlignment = 64;

TransferProblem::TransferProblem(FunctionOpInterface function, CostModel &model,
                                 int64_t capacity)
    : function(function), model(model), storages(function, model, kAlignment) {
  problem.capacity = capacity;
  problem.alignment = kAlignment;
}

/// Devices that run the program at the same time.
static int64_t getNumDevices(Operation *op) {
  int64_t devices = 1;
  for (auto mesh : op->getParentOfType<ModuleOp>().getOps<hypershard::MeshOp>())
    devices = std::max(devices, mesh.getMesh().getNumDevices());
  return devices;
}

/// The planner's number of the segment that leaves a link the least, which
/// copies of other links may take from at the same time; -1 if there is none.
int32_t TransferProblem::getSegment(supernode::LinkAttr link, int64_t devices) {
  supernode::MachineAttr machine = model.getMachine();
  supernode::SegmentAttr narrowest;
  double rate = 0;
  for (StringAttr name : link.getShared())
    for (supernode::SegmentAttr segment = machine.getSegment(name); segment;
         segment = segment.getWithin() ? machine.getSegment(segment.getWithin())
                                       : supernode::SegmentAttr()) {
      int64_t sharing = std::clamp<int64_t>(
          machine.getDevicesPerUnit(segment.getScope()), 1, devices);
      double share = segment.getBandwidth() / double(sharing);
      if (narrowest && share >= rate)
        continue;
      narrowest = segment;
      rate = share;
    }
  if (!narrowest)
    return -1;
  auto [known, isNew] = segments.try_emplace(narrowest.getName(),
                                             int32_t(problem.segments.size()));
  if (isNew)
    problem.segments.push_back(rate);
  return known->second;
}

void TransferProblem::addTiers() {
  supernode::MachineAttr machine = model.getMachine();
  StringRef memory = model.getGroup().getMemory();
  int64_t devices = getNumDevices(function);
  SmallVector<std::pair<TierAttr, planner::Tier>> found;
  for (supernode::TierAttr tier : machine.getTiers()) {
    StringRef name = tier.getName();
    auto link = [&](StringRef from, StringRef to) {
      planner::Link result;
      supernode::LinkAttr found = machine.getLink(from, to);
      if (!found)
        return result;
      constexpr double kBytes = 1e9;
      result.latency = found.getLatency();
      result.bandwidth =
          kBytes / (*model.getTransferSeconds(from, to, kBytes, devices) -
                    result.latency * double(found.getNumChunks(kBytes)));
      result.segment = getSegment(found, devices);
      result.stagingBytes = int64_t(found.getStaging());
      return result;
    };
    if (name == memory)
      continue;
    planner::Tier entry;
    entry.out = link(memory, name);
    entry.in = link(name, memory);
    if (entry.out.bandwidth <= 0 || entry.in.bandwidth <= 0)
      continue;
    int64_t sharing = std::clamp<int64_t>(
        machine.getDevicesPerUnit(tier.getScope()), 1, devices);
    entry.capacity =
        std::max<int64_t>(int64_t(tier.getCapacity()) / sharing -
                              entry.out.stagingBytes - entry.in.stagingBytes,
                          0);
    found.push_back(
        {TierAttr::get(function.getContext(),
                       StringAttr::get(function.getContext(), name)),
         entry});
  }
  llvm::stable_sort(found, [](const auto &a, const auto &b) {
    return a.second.in.bandwidth > b.second.in.bandwidth;
  });
  for (auto &[name, entry] : found) {
    tiers.push_back(name);
    problem.tiers.push_back(entry);
  }
  if (supernode::TierAttr own = machine.getTier(memory))
    problem.memoryBandwidth = own.getBandwidth();
}

void TransferProblem::addOperations() {
  for (auto [position, op] : llvm::enumerate(storages.getOps())) {
    TaskCost cost = model.getCost(op);
    planner::Operation operation;
    operation.seconds = cost.seconds;
    operation.workspace =
        llvm::alignTo(storages.getWorkspace(position), kAlignment);
    if (cost.bound == Bound::Memory)
      operation.memoryBytes =
          int64_t(cost.work.bytesRead + cost.work.bytesWritten);
    problem.operations.push_back(operation);
  }
}

/// An argument that outlives the step: it has a copy in the host's memory.
static bool isState(FunctionOpInterface function, unsigned argument) {
  auto role = function.getArgAttrOfType<StringAttr>(argument, "hp.role");
  return role && role.getValue() != "input";
}

LogicalResult TransferProblem::addArgument(uint32_t number, uint32_t storage) {
  planner::Storage &entry = problem.storages[storage];
  entry.persistent = true;
  auto keep = function.getArgAttr(number, OffloadDialect::kKeepAttrName);
  auto place = function.getArgAttrOfType<TierAttr>(
      number, OffloadDialect::kPlaceAttrName);
  const Storage &own = storages.getStorages()[storage];
  // Where its next value could not be made in its place, it is copied there.
  bool isCopiedTo = updated.contains(number) && !own.isUpdated;
  bool isMovable = (isState(function, number) || place) && !keep &&
                   !tiers.empty() && !own.isReturned && !isCopiedTo;
  entry.pinned = !isMovable;
  entry.mayStartBelow = isMovable;
  entry.clean = isMovable && !own.isUpdated;
  if (!place)
    return success();
  auto tier = llvm::find(tiers, place);
  if (tier == tiers.end()) {
    InFlightDiagnostic diagnostic =
        function.emitError("expected argument ")
        << getName(storage) << " to be placed in a tier that copies reach from "
        << model.getGroup().getMemory() << " but got " << place.getName();
    Diagnostic &note = diagnostic.attachNote();
    note << model.getMachine().getName() << " has";
    if (tiers.empty())
      note << " none";
    for (TierAttr known : tiers)
      note << (known == tiers.front() ? " " : ", ") << known.getName();
    return diagnostic;
  }
  if (own.isReturned)
    return function.emitError("expected argument ")
           << getName(storage) << " to be placed in " << place.getName()
           << " but the function returns it on the device; return a copy, or "
              "remove the placement";
  if (isCopiedTo)
    return function.emitError("expected argument ")
           << getName(storage) << " to be placed in " << place.getName()
           << " but its value is used after the step made its next one; "
              "update it last, or remove the placement";
  places[storage] = tier - tiers.begin();
  entry.homeTier = *places[storage];
  return success();
}

/// Whether executing the op again gives the same and does nothing else.
static bool mayBeRecomputed(Operation *op) {
  if (auto offloadable = dyn_cast<OffloadableOpInterface>(op))
    return offloadable.mayBeRecomputed();
  auto call = dyn_cast<CallOpInterface>(op);
  auto symbol = call ? dyn_cast<SymbolRefAttr>(call.getCallableForCallee())
                     : SymbolRefAttr();
  if (!symbol)
    return false;
  auto callee =
      SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(op, symbol);
  if (!callee || callee.isExternal() || !callee.getFunctionBody().hasOneBlock())
    return false;
  return llvm::all_of(callee.getFunctionBody().front().without_terminator(),
                      [](Operation &inner) {
                        auto offloadable =
                            dyn_cast<OffloadableOpInterface>(inner);
                        return offloadable ? offloadable.mayBeRecomputed()
                                           : inner.getNumRegions() == 0 &&
                                                 isMemoryEffectFree(&inner);
                      });
}

/// The storage holds one value only, from first to last.
bool TransferProblem::hasOneValue(uint32_t storage) const {
  const Storage &entry = storages.getStorages()[storage];
  return !entry.isUpdated && llvm::count_if(entry.values, [&](Value value) {
                               return storages.getRoot(value) == value;
                             }) == 1;
}

/// Says how the storage is computed again, if it can be.
void TransferProblem::addRecomputation(uint32_t storage) {
  const Storage &entry = storages.getStorages()[storage];
  if (entry.argument || entry.streamedBy || entry.isReturned ||
      entry.uses.empty() || !hasOneValue(storage))
    return;
  Operation *maker = entry.values.front().getDefiningOp();
  if (!maker || maker->getNumResults() != 1 ||
      storages.getOps()[entry.uses.front().op] != maker ||
      storages.getWorkspace(entry.uses.front().op) > 0)
    return;
  // Functions are looked at once.
  auto call = dyn_cast<CallOpInterface>(maker);
  Attribute callee;
  if (call)
    callee = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  auto known = callee ? recomputable.find(callee) : recomputable.end();
  bool may =
      known != recomputable.end() ? known->second : mayBeRecomputed(maker);
  if (callee)
    recomputable[callee] = may;
  if (!may)
    return;
  llvm::SetVector<Value> operands(maker->operand_begin(), maker->operand_end());
  getUsedValuesDefinedAbove(maker->getRegions(), operands);
  llvm::SmallSetVector<uint32_t, 4> sources;
  for (Value operand : operands) {
    std::optional<uint32_t> source = storages.lookup(operand);
    if (!source)
      continue; // a number, or a tensor that says nothing
    if (*source == storage || !hasOneValue(*source))
      return;
    sources.insert(*source);
  }
  planner::Storage &planned = problem.storages[storage];
  planned.recomputeSeconds = problem.operations[entry.uses.front().op].seconds;
  planned.recomputeFrom.assign(sources.begin(), sources.end());
}

/// A copy of what lives in a tier: there from its first to its last use at
/// most, and never between steps.
LogicalResult TransferProblem::addStreamed(uint32_t storage) {
  planner::Storage &entry = problem.storages[storage];
  auto prefetch = cast<PrefetchOp>(storages.getStorages()[storage].streamedBy);
  TierAttr name = getTier(prefetch.getSource().getType());
  auto tier = llvm::find(tiers, name);
  if (tier == tiers.end())
    return prefetch.emitError("expected a tier that copies reach ")
           << model.getGroup().getMemory() << " from but got "
           << name.getName();
  entry.persistent = entry.mayStartBelow = entry.clean = true;
  entry.pinned = false;
  entry.homeTier = tier - tiers.begin();
  places[storage] = entry.homeTier;
  return success();
}

LogicalResult TransferProblem::addStorages() {
  places.resize(storages.getStorages().size());
  for (std::optional<unsigned> argument : getUpdatedArguments(function))
    if (argument)
      updated.insert(*argument);
  for (const Storage &storage : storages.getStorages()) {
    planner::Storage entry;
    entry.bytes = storage.bytes;
    entry.persistent = entry.pinned = storage.isReturned;
    problem.storages.push_back(entry);
  }
  for (auto [number, storage] : llvm::enumerate(storages.getStorages())) {
    if (storage.argument && failed(addArgument(*storage.argument, number)))
      return failure();
    if (storage.streamedBy && failed(addStreamed(number)))
      return failure();
    for (StorageUse use : storage.uses)
      problem.uses.push_back({use.op, uint32_t(number), use.reads, use.writes});
    addRecomputation(number);
    // What is under way, and what its maker wants here.
    auto made = dyn_cast<OpResult>(storage.values.front());
    auto offloadable = made ? dyn_cast<OffloadableOpInterface>(made.getOwner())
                            : OffloadableOpInterface();
    if (!isa<RankedTensorType>(storage.values.front().getType()) ||
        (offloadable && !offloadable.mayLeaveDevice(made.getResultNumber())))
      problem.storages[number].pinned = true;
  }
  // An argument that is returned is copied to the result.
  SmallVector<std::optional<unsigned>> updates = getUpdatedArguments(function);
  for (auto [result, value] : llvm::enumerate(
           function.getFunctionBody().front().getTerminator()->getOperands()))
    if (std::optional<uint32_t> storage = storages.lookup(value);
        storage && storages.getStorages()[*storage].argument &&
        updates[result] != storages.getStorages()[*storage].argument) {
      planner::Storage copy;
      copy.bytes = llvm::alignTo(byteSize(value.getType()), kAlignment);
      copy.persistent = copy.pinned = true;
      problem.storages.push_back(copy);
    }
  return success();
}

LogicalResult TransferProblem::build() {
  addTiers();
  addOperations();
  return addStorages();
}

std::string TransferProblem::getName(uint32_t storage) const {
  if (storage >= storages.getStorages().size())
    return "a result";
  const Storage &entry = storages.getStorages()[storage];
  if (entry.argument) {
    if (auto name = FunctionOpInterface(function).getArgAttrOfType<StringAttr>(
            *entry.argument, "hp.name"))
      return name.str();
    return "argument " + std::to_string(*entry.argument);
  }
  Value first = entry.values.front();
  Operation *op = first.getDefiningOp();
  if (entry.streamedBy) {
    Value source = entry.streamedBy->getOperand(0);
    std::string part;
    for (; Operation *view = source.getDefiningOp();
         source = view->getOperand(0))
      part = " (a part of it)";
    unsigned number = cast<BlockArgument>(source).getArgNumber();
    auto name = FunctionOpInterface(function).getArgAttrOfType<StringAttr>(
        number, "hp.name");
    return (name ? name.str() : "argument " + std::to_string(number)) + part;
  }
  std::string name = op->getName().getStringRef().str();
  if (auto path = op->getAttrOfType<StringAttr>("hp.path"))
    name = path.str();
  if (op->getNumResults() > 1)
    name += "#" + std::to_string(cast<OpResult>(first).getResultNumber());
  return name;
}

std::string TransferProblem::getOpName(int64_t position) const {
  ArrayRef<Operation *> ops = storages.getOps();
  if (position < 0 || position >= int64_t(ops.size()))
    return "the end of the step";
  if (auto path = ops[position]->getAttrOfType<StringAttr>("hp.path"))
    return path.str();
  return ops[position]->getName().getStringRef().str();
}

Value TransferProblem::getValueAt(uint32_t storage, int64_t after) const {
  ArrayRef<Operation *> ops = storages.getOps();
  Value current;
  for (Value value : storages.getStorages()[storage].values) {
    if (storages.getRoot(value) != value)
      continue;
    Operation *op = value.getDefiningOp();
    bool isMade =
        !op ||
        (after >= 0 && (op == ops[after] || op->isBeforeInBlock(ops[after])));
    if (isMade)
      current = value;
  }
  return current;
}
