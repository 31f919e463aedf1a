//===- Storages.cpp - which values are one piece of memory ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// One walk over a block, in order:
//   1. an op that starts no kernel and no task (CostOpInterface: it is free)
//      and takes a tensor is a view: its results are in the storage of its
//      first tensor operand; a task of no seconds is none;
//   2. an op that has nothing but scalars and declarations (an empty tensor, a
//      fill) is a declaration: it takes no memory, each of its uses has its
//      own;
//   3. an op in destination style writes over its destination, if nothing after
//      it reads that and it is neither a declaration nor an argument that the
//      caller wants back as it was; what is an argument's next value
//      (StateUpdates.h) is made in its memory, if nothing reads the old one
//      afterwards;
//   4. what is fetched from an argument in a tier is a storage that is there
//      whenever it is fetched: the positions of its prefetch and its wait do
//      not count, only those of its uses;
//   5. every other tensor result is a new storage, and so is a declaration that
//      is read.
// Constants are part of the program, not of the device's memory.
//
// The workspace of a call is the peak of its callee: what was measured of it
// (`hp.peak_bytes`), or else found in the same way, once for each function;
// that of an op with regions is the largest peak of a block.
//
// Cost: linear in ops and uses, times the depth of regions.
// Limits: what code generation fuses away is counted, so that figures that were
//   not measured are upper bounds as a rule; the exact peak is measured on
//   buffers afterwards (hp-measure-buffers).
//===----------------------------------------------------------------------===//
#include "lib/Analysis/Storages.h"

#include "dialects/HyperShard/HyperShard.h"
#include "dialects/Offload/Offload.h"
#include "lib/Analysis/StateUpdates.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::hyperparallel;

namespace mlir::hyperparallel {

/// Finds the storages of blocks; peaks of functions are kept.
class StorageBuilder {
public:
  StorageBuilder(CostModel &model, int64_t alignment)
      : model(model), alignment(alignment) {}

  /// `ownsResults`: what the terminator hands on is not the caller's memory.
  void build(Block &block, Storages &result, bool ownsResults);
  void buildEntry(FunctionOpInterface function, Storages &result);

private:
  void findUpdates(FunctionOpInterface function);
  void visit(Operation *op, uint32_t position, Storages &result);
  void declare(Operation *op);
  uint32_t newStorage(Value value, Storages &result);
  uint32_t storageForResult(OpResult value, uint32_t position,
                            Storages &result);
  void addValue(Value value, uint32_t storage, Storages &result);
  void addUse(Value value, uint32_t position, bool reads, bool writes,
              Storages &result);
  uint32_t lastUseOf(Value value, Block *block, const Storages &result);
  int64_t workspaceOf(Operation *op);
  int64_t peakOf(Block &block, bool ownsResults);

  CostModel &model;
  int64_t alignment;
  SymbolTableCollection symbols;
  DenseMap<Operation *, int64_t> functions;
  DenseMap<Operation *, uint32_t> positions;
  llvm::DenseSet<Value> declarations;
  /// The argument whose next value this is.
  DenseMap<Value, Value> nextValues;
  llvm::DenseSet<Value> updatedArguments;
};

} // namespace mlir::hyperparallel

/// What takes memory on the device: a tensor there, or one under way to it.
static RankedTensorType getDeviceType(Type type) {
  if (auto future = dyn_cast<offload::FutureType>(type))
    type = future.getValueType();
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !offload::getTier(tensor) ? tensor : RankedTensorType();
}

static bool isOnDevice(Value value) {
  return bool(getDeviceType(value.getType()));
}

/// The prefetch that the value comes from, if what it fetches is an argument or
/// a view of one: it can be anywhere before.
static offload::PrefetchOp getStreamed(Operation *op) {
  auto wait = dyn_cast<offload::WaitOp>(op);
  if (!wait)
    return {};
  auto prefetch = wait.getFuture().getDefiningOp<offload::PrefetchOp>();
  if (!prefetch || !prefetch->hasOneUse())
    return {};
  Value source = prefetch.getSource();
  while (Operation *view = source.getDefiningOp()) {
    if (view->getNumOperands() != 1 || !isMemoryEffectFree(view))
      return {};
    source = view->getOperand(0);
  }
  return isa<BlockArgument>(source) ? prefetch : offload::PrefetchOp();
}

/// Position of the last op in the block that uses the value, itself or in a
/// region.
uint32_t StorageBuilder::lastUseOf(Value value, Block *block,
                                   const Storages &result) {
  uint32_t last = 0;
  for (Operation *user : value.getUsers()) {
    Operation *here = block->findAncestorOpInBlock(*user);
    if (!here)
      continue;
    auto position = positions.find(here);
    last = std::max<uint32_t>(last, position == positions.end()
                                        ? result.ops.size()
                                        : position->second);
  }
  return last;
}

void StorageBuilder::addValue(Value value, uint32_t storage, Storages &result) {
  Storage &entry = result.storages[storage];
  entry.values.push_back(value);
  entry.lastUse =
      std::max(entry.lastUse, lastUseOf(value, value.getParentBlock(), result));
  result.storageOf[value] = storage;
}

uint32_t StorageBuilder::newStorage(Value value, Storages &result) {
  int64_t bytes = byteSize(getDeviceType(value.getType()));
  uint32_t storage = result.storages.size();
  result.storages.emplace_back();
  result.storages.back().bytes = llvm::alignTo(bytes, alignment);
  addValue(value, storage, result);
  return storage;
}

void StorageBuilder::addUse(Value value, uint32_t position, bool reads,
                            bool writes, Storages &result) {
  auto storage = result.storageOf.find(value);
  if (storage == result.storageOf.end())
    return;
  Storage &entry = result.storages[storage->second];
  if (entry.uses.empty() || entry.uses.back().op != position)
    entry.uses.push_back({position, false, false});
  entry.uses.back().reads |= reads;
  entry.uses.back().writes |= writes;
  entry.lastUse = std::max(entry.lastUse, position);
}

uint32_t StorageBuilder::storageForResult(OpResult value, uint32_t position,
                                          Storages &result) {
  // Over what it may be written, if nothing needs that afterwards.
  SmallVector<Value, 2> places;
  if (Value argument = nextValues.lookup(value))
    places.push_back(argument);
  if (auto op = dyn_cast<DestinationStyleOpInterface>(value.getOwner()))
    places.push_back(op.getTiedOpOperand(value)->get());
  for (Value place : places) {
    auto known = result.storageOf.find(place);
    if (known == result.storageOf.end())
      continue;
    const Storage &storage = result.storages[known->second];
    bool isOurs =
        !storage.argument || updatedArguments.contains(storage.values.front());
    if (isOurs && storage.lastUse <= position)
      return known->second;
  }
  return newStorage(value, result);
}

void StorageBuilder::visit(Operation *op, uint32_t position, Storages &result) {
  if (isa<offload::PrefetchOp>(op) && op->hasOneUse() &&
      getStreamed(*op->user_begin()))
    return; // its wait stands for both
  if (offload::PrefetchOp prefetch = getStreamed(op)) {
    uint32_t storage = newStorage(op->getResult(0), result);
    result.storages[storage].streamedBy = prefetch;
    return;
  }
  llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
  if (op->getNumRegions())
    getUsedValuesDefinedAbove(op->getRegions(), operands);
  llvm::SmallSetVector<Value, 4> read;
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  for (Value operand : operands)
    if (isOnDevice(operand))
      read.insert(operand);
  if (destination)
    for (Value init : destination.getDpsInits())
      if (declarations.contains(init))
        read.remove(init);

  // A task that takes no time is one; what starts nothing is a view.
  bool isFree =
      !isa<MovementOpInterface>(op) && model.getCost(op).launches <= 0;
  if (isFree && !read.empty() && op->getNumRegions() == 0 &&
      !declarations.contains(read.front()) && op->getNumResults() > 0) {
    result.views.insert(op);
    for (OpResult value : op->getResults())
      if (auto source = result.storageOf.find(read.front());
          isOnDevice(value) && source != result.storageOf.end()) {
        result.viewed[value] = read.front();
        addValue(value, source->second, result);
      }
    return;
  }
  if (read.empty() && op->getNumRegions() <= 1 && isMemoryEffectFree(op)) {
    // Declarations, and constants, which have no storage at all.
    for (OpResult value : op->getResults())
      if (!op->hasTrait<OpTrait::ConstantLike>())
        declarations.insert(value);
    return;
  }
  for (Value value : read) {
    if (declarations.contains(value) && !result.storageOf.contains(value))
      newStorage(value, result);
    addUse(value, position, /*reads=*/true, /*writes=*/false, result);
  }
  for (OpResult value : op->getResults()) {
    if (!isOnDevice(value))
      continue;
    uint32_t storage = storageForResult(value, position, result);
    if (!result.storageOf.contains(value))
      addValue(value, storage, result);
    addUse(value, position, /*reads=*/false, /*writes=*/true, result);
  }
}

int64_t StorageBuilder::peakOf(Block &block, bool ownsResults) {
  DenseMap<Operation *, uint32_t> outer;
  llvm::DenseSet<Value> outerDeclarations;
  outer.swap(positions);
  outerDeclarations.swap(declarations);
  Storages inner;
  build(block, inner, ownsResults);
  positions.swap(outer);
  declarations.swap(outerDeclarations);
  return inner.getPeak();
}

int64_t StorageBuilder::workspaceOf(Operation *op) {
  if (auto call = dyn_cast<CallOpInterface>(op)) {
    auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
    auto callee = symbol ? dyn_cast_or_null<FunctionOpInterface>(
                               symbols.lookupNearestSymbolFrom(op, symbol))
                         : FunctionOpInterface();
    if (!callee || callee.isExternal())
      return 0;
    if (auto measured =
            callee->getAttrOfType<DenseI64ArrayAttr>(Storages::kPeakAttrName);
        measured && !measured.empty())
      return measured[0];
    auto [known, isNew] = functions.try_emplace(callee, 0);
    if (isNew) {
      int64_t peak = 0;
      for (Block &block : callee.getFunctionBody())
        peak = std::max(peak, peakOf(block, /*ownsResults=*/false));
      functions[callee] = peak; // the map may have grown
      return peak;
    }
    return known->second;
  }
  int64_t workspace = 0;
  if (isa<DestinationStyleOpInterface>(op))
    return 0; // its region is on scalars
  for (Region &region : op->getRegions())
    for (Block &block : region)
      workspace = std::max(workspace, peakOf(block, /*ownsResults=*/true));
  return workspace;
}

void StorageBuilder::build(Block &block, Storages &result, bool ownsResults) {
  for (Operation &op : block.without_terminator()) {
    positions[&op] = result.ops.size();
    result.ops.push_back(&op);
  }
  uint32_t end = result.ops.size();
  for (BlockArgument argument : block.getArguments())
    if (isOnDevice(argument)) {
      uint32_t storage = newStorage(argument, result);
      result.storages[storage].argument = argument.getArgNumber();
    }
  for (auto [position, op] : llvm::enumerate(result.ops)) {
    visit(op, position, result);
    result.workspaces.push_back(workspaceOf(op));
  }
  if (!block.mightHaveTerminator())
    return;
  for (Value value : block.getTerminator()->getOperands()) {
    auto storage = result.storageOf.find(value);
    if (storage == result.storageOf.end())
      continue;
    Storage &entry = result.storages[storage->second];
    entry.lastUse = end;
    entry.isReturned |= !ownsResults;
  }
}

/// Arguments of the entry that the step leaves with another value.
void StorageBuilder::findUpdates(FunctionOpInterface function) {
  Operation *terminator = function.getFunctionBody().front().getTerminator();
  for (auto [result, argument] :
       llvm::enumerate(getUpdatedArguments(function))) {
    if (!argument)
      continue;
    Value next = terminator->getOperand(result);
    Value place = function.getArgument(*argument);
    if (isOnDevice(place) && next.getType() == place.getType()) {
      nextValues.try_emplace(next, place);
      updatedArguments.insert(place);
    }
  }
}

void StorageBuilder::buildEntry(FunctionOpInterface function,
                                Storages &result) {
  findUpdates(function);
  Block &block = function.getFunctionBody().front();
  build(block, result, /*ownsResults=*/true);
  // What is returned is the caller's memory, but for what is in its place.
  for (auto [number, value] :
       llvm::enumerate(block.getTerminator()->getOperands())) {
    std::optional<uint32_t> storage = result.lookup(value);
    if (!storage)
      continue;
    Storage &entry = result.storages[*storage];
    Value place = nextValues.lookup(value);
    if (place && result.lookup(place) == storage)
      entry.isUpdated = true;
    else
      entry.isReturned = true;
  }
}

Storages::Storages(FunctionOpInterface function, CostModel &model,
                   int64_t alignment) {
  StorageBuilder(model, alignment).buildEntry(function, *this);
}

std::optional<uint32_t> Storages::lookup(Value value) const {
  auto storage = storageOf.find(value);
  if (storage == storageOf.end())
    return std::nullopt;
  return storage->second;
}

Value Storages::getRoot(Value value) const {
  for (auto source = viewed.find(value); source != viewed.end();
       source = viewed.find(value))
    value = source->second;
  return value;
}

int64_t Storages::getPeak() const {
  SmallVector<int64_t> change(ops.size() + 2, 0);
  for (const Storage &storage : storages) {
    if (storage.argument || storage.isReturned || storage.uses.empty())
      continue;
    change[storage.uses.front().op] += storage.bytes;
    change[storage.lastUse + 1] -= storage.bytes;
  }
  int64_t resident = 0, peak = 0;
  for (size_t op = 0; op < ops.size(); ++op) {
    resident += change[op];
    peak = std::max(peak, resident + workspaces[op]);
  }
  return peak;
}
