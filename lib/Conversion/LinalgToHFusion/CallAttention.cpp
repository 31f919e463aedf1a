//===- CallAttention.cpp - Attention by one operator ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operator `attention` knows one loop of the batch and one of heads. K and
// V may have fewer heads, each for as many neighbours of Q's.
//
//   1. The last loops of the batch are heads, all but the first one (as long as
//      the operator has enough of them); those along which neither K nor V move
//      must be the last. If they are not, K and V are copied, once for each.
//   2. An operand's loops are one if their strides allow it. Otherwise it is
//      copied, in the order of the loops; the result is copied from a buffer.
//   3. The mask is repeated by strides of 0, and of the operands' type.
//
// Cost: linear in ops.
//
//===----------------------------------------------------------------------===//

#include "dialects/Fused/Fused.h"
#include "lib/Conversion/LinalgToHFusion/WholeBuffers.h"

#include "llvm/ADT/bit.h"

using namespace mlir;

namespace mlir::hyperparallel {

/// The most heads that the operator has.
static constexpr int64_t kMostHeads = 256;

namespace {
/// An operand by the loops of the op: how far each moves it.
struct Strided {
  Value buffer;
  SmallVector<int64_t> strides;
};

class AttentionCall {
public:
  AttentionCall(fused::AttentionOp op, LibraryCalls &library)
      : op(op), library(library), builder(op), extents(op.getExtents()) {}
  LogicalResult write();

private:
  FailureOr<Strided> read(unsigned operand);
  void splitBatch(const Strided &key, const Strided &values);
  std::optional<int64_t> strideOf(const Strided &operand,
                                  ArrayRef<unsigned> loops);
  LibraryView viewOf(Strided operand, ArrayRef<unsigned> heads, unsigned rows,
                     unsigned columns);
  int64_t count(ArrayRef<unsigned> loops);

  fused::AttentionOp op;
  LibraryCalls &library;
  OpBuilder builder;
  SmallVector<int64_t> extents;
  SmallVector<unsigned> batch, heads, ownHeads; ///< ownHeads: K's and V's
};
} // namespace

int64_t AttentionCall::count(ArrayRef<unsigned> loops) {
  int64_t product = 1;
  for (unsigned loop : loops)
    product *= extents[loop];
  return product;
}

FailureOr<Strided> AttentionCall::read(unsigned operand) {
  Strided result{op->getOperand(operand),
                 SmallVector<int64_t>(op.getNumLoops(), 0)};
  auto type = cast<MemRefType>(result.buffer.getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return op.emitError("expected buffers of static strides for a vendor's "
                        "operator but got ")
           << type;
  for (auto [expr, stride] :
       llvm::zip_equal(op.getMap(operand).getResults(), strides))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      result.strides[dim.getPosition()] = stride;
  return result;
}

/// Which loops are the batch, which are heads, and which of these K and V have.
void AttentionCall::splitBatch(const Strided &key, const Strided &values) {
  SmallVector<unsigned> loops;
  for (unsigned loop = 0; loop < op.getNumBatch(); ++loop)
    if (extents[loop] > 1)
      loops.push_back(loop);
  auto isShared = [&](unsigned loop) {
    return key.strides[loop] == 0 && values.strides[loop] == 0;
  };
  size_t firstShared = loops.size();
  while (firstShared > 0 && isShared(loops[firstShared - 1]))
    --firstShared;
  size_t split = loops.size() > 1 ? 1 : 0;
  while (split < loops.size() &&
         count(ArrayRef(loops).drop_front(split)) > kMostHeads)
    ++split;
  batch.assign(loops.begin(), loops.begin() + split);
  heads.assign(loops.begin() + split, loops.end());
  bool isInOrder = split <= firstShared &&
                   llvm::none_of(ArrayRef(loops).take_front(firstShared),
                                 [&](unsigned loop) {
                                   return key.strides[loop] == 0 ||
                                          values.strides[loop] == 0;
                                 });
  ownHeads = heads;
  if (isInOrder)
    ownHeads.resize(firstShared - split);
}

/// How far one loop moves an operand that does what these loops do.
std::optional<int64_t> AttentionCall::strideOf(const Strided &operand,
                                               ArrayRef<unsigned> loops) {
  std::optional<int64_t> inner;
  int64_t inside = 1;
  for (unsigned loop : llvm::reverse(loops)) {
    int64_t stride = operand.strides[loop];
    if (!inner)
      inner = stride;
    else if (stride != inside * *inner)
      return std::nullopt;
    inside *= extents[loop];
  }
  return inner.value_or(0);
}

/// The operand with the batch, heads, rows and columns as dimensions; a copy of
/// it, if need be.
LibraryView AttentionCall::viewOf(Strided operand, ArrayRef<unsigned> ofHeads,
                                  unsigned rows, unsigned columns) {
  SmallVector<int64_t> sizes = {count(batch), count(ofHeads), extents[rows],
                                extents[columns]};
  std::optional<int64_t> ofBatch = strideOf(operand, batch),
                         ofHead = strideOf(operand, ofHeads);
  auto type = cast<MemRefType>(operand.buffer.getType());
  Type element = getElementTypeOrSelf(op.getInit().getType());
  if (ofBatch && ofHead && type.getElementType() == element)
    return {
        operand.buffer,
        sizes,
        {*ofBatch, *ofHead, operand.strides[rows], operand.strides[columns]}};
  LibraryView view{operand.buffer, {}, {}};
  SmallVector<unsigned> loops = llvm::to_vector(batch);
  llvm::append_range(loops, ofHeads);
  loops.append({rows, columns});
  for (unsigned loop : loops) {
    view.sizes.push_back(extents[loop]);
    view.strides.push_back(operand.strides[loop]);
  }
  Value copy = allocateBuffer(builder, op.getLoc(), view.sizes, element);
  library.call(builder, op.getLoc(),
               type.getElementType() == element ? "copy" : "cast",
               {view, packedView(copy, view.sizes)});
  return packedView(copy, sizes);
}

LogicalResult AttentionCall::write() {
  unsigned numInputs = op.getInputs().size();
  SmallVector<Strided> operands;
  for (unsigned number = 0; number <= numInputs; ++number) {
    FailureOr<Strided> operand = read(number);
    if (failed(operand))
      return failure();
    operands.push_back(*operand);
  }
  unsigned m = op.getLoopM(), n = op.getLoopN(), k = op.getLoopK(),
           e = op.getLoopE();
  if (extents[k] != extents[e])
    return op.emitError("expected keys and values of one width for the "
                        "operator `attention` but got ")
           << extents[k] << " and " << extents[e]
           << "; run hp-form-attention with equal-widths";
  splitBatch(operands[1], operands[2]);
  SmallVector<LibraryView> views = {viewOf(operands[0], heads, m, k),
                                    viewOf(operands[1], ownHeads, n, k),
                                    viewOf(operands[2], ownHeads, n, e)};
  if (op.getMask()) {
    views.push_back(viewOf(operands[3], heads, m, n));
    if (views.back().strides[0] == 0)
      views.back().sizes[0] = 1;
  }
  SmallVector<int64_t> rows = {count(batch), count(heads), extents[m], 8};
  for (int number = 0; number < 2; ++number) // the rows' maxima, and sums
    views.push_back(packedView(
        allocateBuffer(builder, op.getLoc(), rows, builder.getF32Type()),
        rows));
  Strided &init = operands.back();
  auto ofBatch = strideOf(init, batch), ofHeads = strideOf(init, heads);
  SmallVector<int64_t> sizes = {rows[0], rows[1], extents[m], extents[e]};
  LibraryView target{init.buffer,
                     sizes,
                     {ofBatch.value_or(0), ofHeads.value_or(0), init.strides[m],
                      init.strides[e]}};
  bool isCopied = !ofBatch || !ofHeads;
  if (isCopied)
    target =
        packedView(allocateBuffer(builder, op.getLoc(), sizes,
                                  getElementTypeOrSelf(init.buffer.getType())),
                   sizes);
  views.push_back(target);
  library.call(builder, op.getLoc(), "attention", views, {},
               {llvm::bit_cast<int64_t>(op.getScale().convertToDouble())});
  if (isCopied) {
    LibraryView to{init.buffer, {}, {}};
    SmallVector<unsigned> loops = llvm::to_vector(batch);
    llvm::append_range(loops, heads);
    loops.append({m, e});
    for (unsigned loop : loops) {
      to.sizes.push_back(extents[loop]);
      to.strides.push_back(init.strides[loop]);
    }
    library.call(builder, op.getLoc(), "copy",
                 {packedView(target.buffer, to.sizes), to});
  }
  op->erase();
  return success();
}

LogicalResult callAttention(func::FuncOp function, LibraryCalls &library) {
  SmallVector<fused::AttentionOp> ops;
  function.walk([&](fused::AttentionOp op) { ops.push_back(op); });
  for (fused::AttentionOp op : ops)
    if (failed(AttentionCall(op, library).write()))
      return failure();
  return success();
}

} // namespace mlir::hyperparallel
