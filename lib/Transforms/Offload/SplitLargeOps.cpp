//===- SplitLargeOps.cpp - ops that need more than there is ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In:  a fused local program, before it is planned.
// Out: the same values. A parameter that is too large to be on the device with
//   what else an op needs is in a tier, and comes in parts or in rows.
//
//   1. An op is too large if its operands and results, its workspace and what
//      never moves are more than the capacity. Its largest parameter is to be
//      split, if every use of that is of one of two kinds:
//   2. A contraction over it with a parallel loop along its first dimension
//      becomes one for each part, whose results are put together. A part is
//      fetched right before, for offload-plan-transfers to do it in time.
//   3. An op that reads elements of it at computed rows (an embedding) reads
//      them from a tensor of these rows: an op that computes their numbers (and
//      keeps the assertions), offload.prefetch_rows, and the rest of the op.
//
// Cost: linear in ops and in the parts that are made.
// Limits: parts along the first dimension, which are contiguous; the entry
//   function's own ops. A part's sums must be those of the whole, bit for bit:
//   the runtime does wide products in cells of columns (Matmul.cpp), so parts
//   begin at cells and are wide themselves. A product that is not wide, or
//   whose parts would be along its rows, stays whole.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Offload/Passes.h"

#include "lib/Transforms/Offload/TransferProblem.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::hyperparallel::offload {
#define GEN_PASS_DEF_SPLITLARGEOPSPASS
#include "lib/Transforms/Offload/Passes.h.inc"
} // namespace mlir::hyperparallel::offload

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;
using linalg::GenericOp;
using linalg::LinalgOp;

/// Columns of a cell of the runtime's wide products, and of the narrowest wide
/// product (CellColumns and WideColumns in lib/Runtime/CPU/Matmul.cpp). Parts
/// begin at multiples of the first and have at least the second.
static constexpr int64_t kCellRows = 512;
static constexpr int64_t kFewestRows = 2560;

//===----------------------------------------------------------------------===//
// Contractions in parts
//===----------------------------------------------------------------------===//

/// The position of the loop in the operand's indexing map; nothing if the
/// operand does not have it. Maps are projected permutations.
static std::optional<unsigned> findLoop(LinalgOp op, OpOperand &operand,
                                        unsigned loop) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  return map.getResultPosition(getAffineDimExpr(loop, op.getContext()));
}

/// The loop along the first dimension of the operand, if the op can be split
/// along it: it is that of the result's last dimension, the columns of a wide
/// product.
static std::optional<unsigned> getSplitLoop(LinalgOp op, OpOperand &operand) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInits() != 1 ||
      op.hasIndexSemantics() || op.hasDynamicShape())
    return std::nullopt;
  for (OpOperand &other : op->getOpOperands())
    if (!op.isScalar(&other) &&
        !op.getMatchingIndexingMap(&other).isProjectedPermutation())
      return std::nullopt;
  if (!op.isDpsInput(&operand))
    return std::nullopt;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (map.getNumResults() == 0)
    return std::nullopt;
  unsigned loop = cast<AffineDimExpr>(map.getResult(0)).getPosition();
  bool isParallel =
      op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel;
  OpOperand *init = op.getDpsInitOperand(0);
  std::optional<unsigned> resultDim = findLoop(op, *init, loop);
  bool isWide = op.getShape(&operand).front() >= 2 * kFewestRows;
  if (!isParallel || !isWide || !resultDim ||
      *resultDim + 1 != op.getRank(init))
    return std::nullopt;
  return loop;
}

/// [first, first + count) of a dimension.
static Value takeSlice(OpBuilder &builder, Location loc, Value source,
                       unsigned dim, int64_t first, int64_t count) {
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(builder.getContext(), type.getShape());
  SmallVector<int64_t> shape(type.getShape());
  offsets[dim] = builder.getIndexAttr(first);
  sizes[dim] = builder.getIndexAttr(count);
  shape[dim] = count;
  return tensor::ExtractSliceOp::create(
      builder, loc,
      RankedTensorType::get(shape, type.getElementType(), type.getEncoding()),
      source, offsets, sizes, strides);
}

static Value putSlice(OpBuilder &builder, Location loc, Value part, Value whole,
                      unsigned dim, int64_t first) {
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  offsets[dim] = builder.getIndexAttr(first);
  return tensor::InsertSliceOp::create(
      builder, loc, part, whole, offsets,
      getAsIndexOpFoldResult(builder.getContext(), type.getShape()), strides);
}

static Value fetch(OpBuilder &builder, Location loc, Value source) {
  auto type = cast<RankedTensorType>(source.getType());
  Value future = PrefetchOp::create(
      builder, loc,
      FutureType::get(builder.getContext(), inTier(type, TierAttr())), source);
  return WaitOp::create(builder, loc, future);
}

/// In how many parts a dimension is done if they should have `rows` each.
static int64_t countParts(int64_t size, int64_t rows) {
  int64_t cells = size / kCellRows;
  int64_t each = std::max(rows, kFewestRows) / kCellRows;
  int64_t most = std::max<int64_t>(cells / (kFewestRows / kCellRows), 1);
  return std::min(llvm::divideCeil(cells, each), uint64_t(most));
}

/// Does the op in parts along `loop`; the operand is in a tier now.
static void splitContraction(LinalgOp op, unsigned operandNumber, unsigned loop,
                             int64_t parts) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  OpOperand *init = op.getDpsInitOperand(0);
  unsigned resultDim = *findLoop(op, *init, loop);
  int64_t size =
      cast<RankedTensorType>(init->get().getType()).getDimSize(resultDim);
  Value whole = init->get();
  auto fill = whole.getDefiningOp<linalg::FillOp>();
  if (fill)
    whole = fill.getOutputs()[0];
  // What is no whole cell belongs to the last part.
  int64_t cells = size / kCellRows;
  for (int64_t part = 0; part < parts; ++part) {
    int64_t first = part * cells / parts * kCellRows;
    int64_t end =
        part + 1 == parts ? size : (part + 1) * cells / parts * kCellRows;
    int64_t count = end - first;
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = &operand == init ? whole : operand.get();
      std::optional<unsigned> dim;
      if (!op.isScalar(&operand))
        dim = findLoop(op, operand, loop);
      if (dim)
        value = takeSlice(builder, loc, value, *dim, first, count);
      if (operand.getOperandNumber() == operandNumber)
        value = fetch(builder, loc, value);
      if (&operand == init && fill)
        value = linalg::FillOp::create(builder, loc, fill.getInputs(), value)
                    .getResult(0);
      operands.push_back(value);
    }
    Operation *done =
        clone(builder, op, TypeRange(operands.back().getType()), operands);
    whole = putSlice(builder, loc, done->getResult(0), whole, resultDim, first);
  }
  op->getResult(0).replaceAllUsesWith(whole);
  op->erase();
}

//===----------------------------------------------------------------------===//
// Embeddings by rows
//===----------------------------------------------------------------------===//

namespace {
/// How an op reads a table.
struct RowRead {
  tensor::ExtractOp extract;
  /// Of the row, as an index.
  Value number;
  /// The loops over the elements of a row, by dimension of the table from 1 on.
  SmallVector<unsigned> elementLoops;
  /// The ops of the body that the row's number (and the assertions) need.
  llvm::SetVector<Operation *> numberOps;
};
} // namespace

/// Whether the value is the same for all elements of a row; collects the ops
/// that make it.
static bool collectNumber(GenericOp op, Value value,
                          ArrayRef<unsigned> elementLoops,
                          llvm::SetVector<Operation *> &ops) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != op.getBody())
      return true;
    if (argument.getArgNumber() >= op.getNumDpsInputs())
      return false;
    AffineMap map = op.getIndexingMapsArray()[argument.getArgNumber()];
    return llvm::none_of(
        elementLoops, [&](unsigned loop) { return map.isFunctionOfDim(loop); });
  }
  Operation *maker = value.getDefiningOp();
  if (maker->getBlock() != op.getBody())
    return true;
  if (isa<tensor::ExtractOp>(maker) || maker->getNumRegions() > 0)
    return false;
  if (auto index = dyn_cast<linalg::IndexOp>(maker);
      index && llvm::is_contained(elementLoops, index.getDim()))
    return false;
  for (Value operand : maker->getOperands())
    if (!collectNumber(op, operand, elementLoops, ops))
      return false;
  ops.insert(maker);
  return true;
}

static std::optional<RowRead> matchRowRead(GenericOp op, Value table) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInits() != 1 ||
      op.hasDynamicShape())
    return std::nullopt;
  RowRead read;
  for (Operation *user : table.getUsers())
    if (op->isProperAncestor(user)) {
      if (read.extract || !isa<tensor::ExtractOp>(user) ||
          user->getBlock() != op.getBody())
        return std::nullopt;
      read.extract = cast<tensor::ExtractOp>(user);
    }
  if (!read.extract)
    return std::nullopt;
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [number, value] : llvm::enumerate(read.extract.getIndices())) {
    if (number == 0)
      continue;
    auto index = value.getDefiningOp<linalg::IndexOp>();
    if (!index || ranges[index.getDim()] != type.getDimSize(number) ||
        llvm::is_contained(read.elementLoops, index.getDim()))
      return std::nullopt;
    read.elementLoops.push_back(index.getDim());
  }
  read.number = read.extract.getIndices().front();
  if (!collectNumber(op, read.number, read.elementLoops, read.numberOps))
    return std::nullopt;
  for (auto assertion : op.getBody()->getOps<cf::AssertOp>()) {
    if (!collectNumber(op, assertion.getArg(), read.elementLoops,
                       read.numberOps))
      return std::nullopt;
    read.numberOps.insert(assertion);
  }
  return read;
}

/// The numbers of the rows, as a tensor over the loops that are left.
static Value computeNumbers(OpBuilder &builder, GenericOp op,
                            const RowRead &read, ArrayRef<unsigned> rowLoops) {
  Location loc = op.getLoc();
  MLIRContext *context = builder.getContext();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges(), shape;
  DenseMap<unsigned, unsigned> newLoop;
  SmallVector<AffineExpr> replacement(op.getNumLoops(),
                                      builder.getAffineConstantExpr(0));
  for (auto [position, loop] : llvm::enumerate(rowLoops)) {
    newLoop[loop] = position;
    replacement[loop] = builder.getAffineDimExpr(position);
    shape.push_back(ranges[loop]);
  }
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<unsigned> taken;
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(input);
    bool isUsed = llvm::any_of(argument.getUsers(), [&](Operation *user) {
      return read.numberOps.contains(user);
    });
    if (!isUsed && argument != read.number)
      continue;
    taken.push_back(input->getOperandNumber());
    inputs.push_back(input->get());
    maps.push_back(op.getMatchingIndexingMap(input).replaceDimsAndSymbols(
        replacement, {}, rowLoops.size(), 0));
  }
  maps.push_back(AffineMap::getMultiDimIdentityMap(rowLoops.size(), context));
  Type i64 = builder.getI64Type();
  Value empty = tensor::EmptyOp::create(builder, loc, shape, i64);
  SmallVector<utils::IteratorType> iterators(rowLoops.size(),
                                             utils::IteratorType::parallel);
  auto numbers = GenericOp::create(
      builder, loc, TypeRange(empty.getType()), inputs, ValueRange(empty), maps,
      iterators, [&](OpBuilder &body, Location loc, ValueRange arguments) {
        IRMapping mapping;
        for (auto [position, number] : llvm::enumerate(taken))
          mapping.map(op.getBody()->getArgument(number), arguments[position]);
        for (Operation &inner : op.getBody()->without_terminator()) {
          if (!read.numberOps.contains(&inner))
            continue;
          if (auto index = dyn_cast<linalg::IndexOp>(inner))
            mapping.map(
                index.getResult(),
                linalg::IndexOp::create(body, loc, newLoop[index.getDim()])
                    .getResult());
          else
            body.clone(inner, mapping);
        }
        Value number = mapping.lookupOrDefault(read.number);
        linalg::YieldOp::create(
            body, loc,
            ValueRange(arith::IndexCastOp::create(body, loc, i64, number)));
      });
  return numbers.getResult(0);
}

/// Reads the rows from a tensor of them; the table is in a tier now.
static void readRows(GenericOp op, const RowRead &read) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<unsigned> rowLoops;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!llvm::is_contained(read.elementLoops, loop))
      rowLoops.push_back(loop);
  Value numbers = computeNumbers(builder, op, read, rowLoops);
  tensor::ExtractOp extract = read.extract;
  Value table = extract.getTensor();
  auto tableType = cast<RankedTensorType>(table.getType());
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(numbers.getType()).getShape());
  llvm::append_range(shape, tableType.getShape().drop_front());
  Value future = PrefetchRowsOp::create(
      builder, loc,
      FutureType::get(builder.getContext(),
                      RankedTensorType::get(shape, tableType.getElementType())),
      table, numbers);
  Value rows = WaitOp::create(builder, loc, future);

  SmallVector<AffineExpr> place;
  for (unsigned loop : rowLoops)
    place.push_back(builder.getAffineDimExpr(loop));
  for (unsigned loop : read.elementLoops)
    place.push_back(builder.getAffineDimExpr(loop));
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  unsigned numInputs = op.getNumDpsInputs();
  maps.insert(maps.begin() + numInputs,
              AffineMap::get(op.getNumLoops(), 0, place, builder.getContext()));
  SmallVector<Value> inputs = op.getDpsInputs();
  inputs.push_back(rows);
  auto rest =
      GenericOp::create(builder, loc, op->getResultTypes(), inputs,
                        op.getOutputs(), maps, op.getIteratorTypesArray());
  rest->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rest.getRegion().takeBody(op.getRegion());
  Block &body = rest.getRegion().front();
  BlockArgument element =
      body.insertArgument(numInputs, tableType.getElementType(), loc);
  extract.getResult().replaceAllUsesWith(element);
  extract->erase();
  for (auto assertion : llvm::make_early_inc_range(body.getOps<cf::AssertOp>()))
    assertion->erase();
  op->getResult(0).replaceAllUsesWith(rest.getResult(0));
  op->erase();
}

//===----------------------------------------------------------------------===//
// What is too large
//===----------------------------------------------------------------------===//

namespace {
class Splitter {
public:
  Splitter(TransferProblem &problem, int64_t capacity)
      : problem(problem), capacity(capacity) {}

  /// Marks the parameters that are to be split, with the bytes that a part may
  /// have.
  void findTables();
  void split(int64_t &numParts, int64_t &numRowReads);

private:
  void consider(uint32_t op, int64_t pinned);
  bool canSplit(uint32_t storage);

  TransferProblem &problem;
  int64_t capacity;
  llvm::MapVector<uint32_t, int64_t> tables;
  /// By op: the storages that it touches.
  SmallVector<SmallVector<uint32_t, 4>> usedBy;
};
} // namespace

bool Splitter::canSplit(uint32_t storage) {
  const Storage &entry = problem.storages.getStorages()[storage];
  Value table = entry.values.front();
  if (entry.values.size() != 1 || entry.isUpdated ||
      cast<RankedTensorType>(table.getType()).getRank() == 0)
    return false;
  for (StorageUse use : entry.uses) {
    Operation *op = problem.storages.getOps()[use.op];
    auto generic = dyn_cast<GenericOp>(op);
    if (generic && matchRowRead(generic, table) &&
        !llvm::is_contained(op->getOperands(), table))
      continue;
    auto contraction = dyn_cast<LinalgOp>(op);
    if (!contraction || llvm::count(op->getOperands(), table) != 1)
      return false;
    OpOperand &operand = *llvm::find_if(
        op->getOpOperands(), [&](OpOperand &o) { return o.get() == table; });
    if (!getSplitLoop(contraction, operand))
      return false;
  }
  return true;
}

void Splitter::consider(uint32_t position, int64_t pinned) {
  ArrayRef<Storage> storages = problem.storages.getStorages();
  int64_t needed = pinned + problem.problem.operations[position].workspace;
  std::optional<uint32_t> largest;
  for (uint32_t number : usedBy[position]) {
    if (problem.problem.storages[number].pinned)
      continue;
    needed += storages[number].bytes;
    if (storages[number].argument &&
        (!largest || storages[number].bytes > storages[*largest].bytes))
      largest = number;
  }
  if (needed <= capacity || !largest || !canSplit(*largest))
    return;
  // Two parts at a time: one is used while the next is fetched. The result of a
  // part is there beside the whole.
  int64_t room =
      capacity - (needed - problem.storages.getStorages()[*largest].bytes);
  int64_t part = std::max<int64_t>(room / 3, 64);
  auto [known, isNew] = tables.try_emplace(*largest, part);
  if (!isNew)
    known->second = std::min(known->second, part);
}

void Splitter::findTables() {
  int64_t pinned = 0;
  for (auto [number, entry] : llvm::enumerate(problem.problem.storages))
    if (entry.pinned)
      pinned += problem.problem.alignedBytes(number);
  usedBy.resize(problem.storages.getOps().size());
  for (auto [number, storage] : llvm::enumerate(problem.storages.getStorages()))
    for (StorageUse use : storage.uses)
      usedBy[use.op].push_back(number);
  // Only ops that use a large parameter can be too large because of it.
  llvm::SetVector<uint32_t> ops;
  for (auto [number, storage] : llvm::enumerate(problem.storages.getStorages()))
    if (storage.argument && !problem.problem.storages[number].pinned &&
        storage.bytes > capacity / 16)
      for (StorageUse use : storage.uses)
        ops.insert(use.op);
  for (uint32_t op : ops)
    consider(op, pinned);
}

void Splitter::split(int64_t &numParts, int64_t &numRowReads) {
  FunctionOpInterface function = problem.function;
  for (auto [storage, partBytes] : tables) {
    const Storage &entry = problem.storages.getStorages()[storage];
    Value table = entry.values.front();
    auto type = cast<RankedTensorType>(table.getType());
    int64_t rowBytes =
        std::max<int64_t>(byteSize(type) / type.getDimSize(0), 1);
    int64_t parts = countParts(type.getDimSize(0), partBytes / rowBytes);
    // What reads it is found before its type says that it is elsewhere.
    SmallVector<std::pair<GenericOp, RowRead>> rowReads;
    SmallVector<std::tuple<LinalgOp, unsigned, unsigned>> contractions;
    for (StorageUse use : entry.uses) {
      Operation *op = problem.storages.getOps()[use.op];
      auto operand = llvm::find_if(
          op->getOpOperands(), [&](OpOperand &o) { return o.get() == table; });
      if (operand == op->getOpOperands().end())
        rowReads.push_back(
            {cast<GenericOp>(op), *matchRowRead(cast<GenericOp>(op), table)});
      else
        contractions.push_back({cast<LinalgOp>(op), operand->getOperandNumber(),
                                *getSplitLoop(cast<LinalgOp>(op), *operand)});
    }
    uint32_t tier = problem.places[storage].value_or(0);
    Type placed = inTier(type, problem.tiers[tier]);
    table.setType(placed);
    SmallVector<Type> inputs(function.getArgumentTypes());
    inputs[*entry.argument] = placed;
    function.setType(FunctionType::get(function.getContext(), inputs,
                                       function.getResultTypes()));
    InFlightDiagnostic remark = emitRemark(function.getLoc(), "offload: ");
    remark << problem.getName(storage) << " is used in ";
    if (contractions.empty())
      remark << "rows";
    else
      remark << parts << " parts of its " << type.getDimSize(0) << " rows";
    remark << ": the ops that use it need more than the capacity otherwise";
    remark.report();
    for (auto &[op, read] : rowReads)
      readRows(op, read);
    for (auto [op, operand, loop] : contractions)
      splitContraction(op, operand, loop, parts);
    numRowReads += rowReads.size();
    numParts += contractions.size() * parts;
  }
}

namespace {
struct SplitLargeOpsPass final
    : offload::impl::SplitLargeOpsPassBase<SplitLargeOpsPass> {
  using SplitLargeOpsPassBase::SplitLargeOpsPassBase;

  void runOnOperation() override {
    auto function = dyn_cast_or_null<FunctionOpInterface>(
        SymbolTable::lookupSymbolIn(getOperation(), entry));
    if (!function || function.isExternal() ||
        !function.getFunctionBody().hasOneBlock()) {
      getOperation().emitError("expected a function @")
          << entry << " with one block to split the ops of";
      return signalPassFailure();
    }
    CostModel model(getOperation());
    int64_t room = capacity;
    if (room <= 0)
      room = model.getMachine()
                 .getTier(model.getGroup().getMemory())
                 .getCapacity();
    TransferProblem problem(function, model, room);
    if (failed(problem.build()))
      return signalPassFailure();
    if (problem.tiers.empty())
      return;
    Splitter splitter(problem, room);
    splitter.findTables();
    int64_t parts = 0, rowReads = 0;
    splitter.split(parts, rowReads);
    numParts += parts;
    numRowReads += rowReads;
  }
};
} // namespace
