//===- ContractionLayout.cpp - Contractions as strided matmuls ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   1. Every loop has a stride in each operand. Loops of one role are merged
//      where for every operand the outer stride is the inner one times the
//      inner size; size 1 loops vanish.
//   2. One m, one n and one k loop are chosen so that each operand has a unit
//      stride in one of its two matrix dimensions. Other m and n loops become
//      batch dimensions (with stride 0 in the operand they do not index).
//   3. What does not fit names the operand at fault. Copied to the canonical
//      order (batch, m or k, k or n), an operand always fits.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// HP_MATMUL_MAX_BATCH of the runtime.
static constexpr size_t kMaxBatch = 4;

OpOperand &getContractionOperand(LinalgOp op, unsigned number) {
  return number == 2 ? *op.getDpsInitOperand(0) : op->getOpOperand(number);
}

Value getContractionBias(LinalgOp op) {
  return op.getNumDpsInputs() == 3 ? op->getOperand(2) : Value();
}

bool isRuntimeContraction(Operation *op) {
  auto linalgOp = dyn_cast<LinalgOp>(op);
  if (!linalgOp)
    return false;
  // Who put it there had a contraction.
  if (op->hasAttr(kEpilogueAttrName))
    return linalgOp.getNumDpsInits() == 1 &&
           (linalgOp.getNumDpsInputs() == 2 || linalgOp.getNumDpsInputs() == 3);
  if (!linalg::isaContractionOpInterface(linalgOp))
    return false;
  Type lhs = getElementTypeOrSelf(linalgOp->getOperand(0).getType());
  Type rhs = getElementTypeOrSelf(linalgOp->getOperand(1).getType());
  Type out = getElementTypeOrSelf(linalgOp->getOperand(2).getType());
  bool isNarrow = isa<Float16Type, BFloat16Type>(lhs);
  if (lhs != rhs || !(isNarrow || isa<Float32Type, Float64Type>(lhs)) ||
      !(lhs == out || (isNarrow && out.isF32())))
    return false;
  if (linalgOp.hasDynamicShape())
    return false;
  for (Operation &nested : linalgOp.getBlock()->without_terminator())
    if (!isa<arith::MulFOp, arith::AddFOp, arith::ExtFOp, arith::TruncFOp>(
            nested))
      return false;
  SmallVector<AffineMap> maps = linalgOp.getIndexingMapsArray();
  SmallVector<int64_t> extents = linalgOp.getStaticLoopRanges();
  for (auto [loop, iterator] :
       llvm::enumerate(linalgOp.getIteratorTypesArray())) {
    if (extents[loop] == 1)
      continue;
    bool inA = maps[0].isFunctionOfDim(loop);
    bool inB = maps[1].isFunctionOfDim(loop);
    bool inC = maps[2].isFunctionOfDim(loop);
    bool isReduction = linalg::isReductionIterator(iterator);
    if (isReduction ? !(inA && inB && !inC) : !(inC && (inA || inB)))
      return false;
  }
  return true;
}

ContractionLoops classifyLoops(LinalgOp op) {
  ContractionLoops loops;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (unsigned loop = 0, e = op.getNumLoops(); loop < e; ++loop) {
    bool inA = maps[0].isFunctionOfDim(loop);
    bool inB = maps[1].isFunctionOfDim(loop);
    bool inC = maps.back().isFunctionOfDim(loop);
    (!inC         ? loops.k
     : inA && inB ? loops.batch
     : inA        ? loops.m
                  : loops.n)
        .push_back(loop);
  }
  return loops;
}

namespace {
/// A loop, or several that advance as one.
struct Dim {
  int64_t extent = 1;
  std::array<int64_t, 3> strides = {0, 0, 0}; // in A, B, C
};
} // namespace

static std::array<int64_t, 3> getStrides(LinalgOp op, unsigned loop) {
  std::array<int64_t, 3> result = {0, 0, 0};
  for (unsigned number = 0; number < 3; ++number) {
    OpOperand &operand = getContractionOperand(op, number);
    auto type = cast<MemRefType>(operand.get().getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (expr == getAffineDimExpr(loop, map.getContext()))
        result[number] = strides[position];
  }
  return result;
}

void sortByStride(LinalgOp op, unsigned operand,
                  SmallVectorImpl<unsigned> &loops) {
  llvm::stable_sort(loops, [&](unsigned left, unsigned right) {
    return getStrides(op, left)[operand] > getStrides(op, right)[operand];
  });
}

/// Step 1 for the loops of one role. `leader` is the operand whose strides
/// order the loops.
static SmallVector<Dim> mergeLoops(LinalgOp op, ArrayRef<unsigned> loops,
                                   unsigned leader) {
  SmallVector<Dim> dims;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (unsigned loop : loops)
    if (extents[loop] != 1)
      dims.push_back({extents[loop], getStrides(op, loop)});
  llvm::stable_sort(dims, [&](const Dim &left, const Dim &right) {
    return left.strides[leader] > right.strides[leader];
  });
  SmallVector<Dim> merged;
  for (const Dim &dim : dims) {
    bool extendsLast = !merged.empty();
    if (extendsLast)
      for (unsigned number = 0; number < 3; ++number)
        extendsLast &=
            merged.back().strides[number] == dim.strides[number] * dim.extent;
    if (extendsLast) {
      merged.back().extent *= dim.extent;
      merged.back().strides = dim.strides;
    } else {
      merged.push_back(dim);
    }
  }
  return merged;
}

/// Leading dimension and transposition of a stored matrix with `rows` and
/// `cols` as the matmul names them; false if neither has unit stride.
static bool fitMatrix(const Dim &rows, const Dim &cols, unsigned operand,
                      bool &transposed, int64_t &ld) {
  int64_t rowStride = rows.strides[operand], colStride = cols.strides[operand];
  if (cols.extent == 1 || colStride == 1) {
    // One column: its elements are `ld` apart.
    if (cols.extent == 1 && rows.extent == 1) {
      transposed = false;
      ld = 1;
      return true;
    }
    if (rows.extent == 1 || rowStride >= cols.extent) {
      transposed = false;
      ld = rows.extent == 1 ? cols.extent : rowStride;
      return true;
    }
  }
  if (rows.extent == 1 || rowStride == 1) {
    if (cols.extent == 1 || colStride >= rows.extent) {
      transposed = true;
      ld = cols.extent == 1 ? rows.extent : colStride;
      return true;
    }
  }
  return false;
}

/// Step 2 for one choice of matrix dimensions; the operand at fault, or -1.
static int tryChoice(MatmulLayout &layout, const Dim &m, const Dim &n,
                     const Dim &k) {
  bool transposedC = false;
  if (!fitMatrix(m, n, 2, transposedC, layout.ldC))
    return 2;
  layout.swapped = transposedC;
  layout.m = m.extent;
  layout.n = n.extent;
  layout.k = k.extent;
  if (!fitMatrix(m, k, 0, layout.transA, layout.ldA))
    return 0;
  if (!fitMatrix(k, n, 1, layout.transB, layout.ldB))
    return 1;
  return -1;
}

/// C^T = B^T A^T.
static void swapOperands(MatmulLayout &layout) {
  std::swap(layout.m, layout.n);
  std::swap(layout.ldA, layout.ldB);
  std::swap(layout.strideA, layout.strideB);
  std::swap(layout.transA, layout.transB);
  layout.transA = !layout.transA;
  layout.transB = !layout.transB;
}

MatmulLayoutOrMismatch getMatmulLayout(LinalgOp op) {
  ContractionLoops loops = classifyLoops(op);
  for (unsigned number = 0; number < 3; ++number) {
    auto type =
        cast<MemRefType>(getContractionOperand(op, number).get().getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)) ||
        llvm::any_of(strides, ShapedType::isDynamic))
      return {std::nullopt, {number}};
  }
  SmallVector<Dim> batch = mergeLoops(op, loops.batch, 2);
  SmallVector<Dim> ms = mergeLoops(op, loops.m, 2);
  SmallVector<Dim> ns = mergeLoops(op, loops.n, 2);
  SmallVector<Dim> ks = mergeLoops(op, loops.k, 0);
  if (ks.size() > 1) {
    // The operand in which neighbours along k do not follow each other.
    bool fitsA = ks[0].strides[0] == ks[1].strides[0] * ks[1].extent;
    return {std::nullopt, {fitsA ? 1u : 0u}};
  }
  // A role without a loop has the one iteration 0.
  Dim k = ks.empty() ? Dim() : ks.front();
  if (ms.empty())
    ms.emplace_back();
  if (ns.empty())
    ns.emplace_back();

  int fault = -1;
  std::optional<MatmulLayout> best;
  int64_t bestSize = -1;
  for (auto [i, m] : llvm::enumerate(ms)) {
    for (auto [j, n] : llvm::enumerate(ns)) {
      MatmulLayout layout;
      int operand = tryChoice(layout, m, n, k);
      // A bias is one of the columns.
      if (operand < 0 && layout.swapped && getContractionBias(op))
        operand = 2;
      if (operand >= 0) {
        fault = operand;
        continue;
      }
      SmallVector<Dim> outer = batch;
      for (auto [other, dim] : llvm::enumerate(ms))
        if (other != i)
          outer.push_back(dim);
      for (auto [other, dim] : llvm::enumerate(ns))
        if (other != j)
          outer.push_back(dim);
      if (outer.size() > kMaxBatch || m.extent * n.extent <= bestSize)
        continue;
      for (const Dim &dim : outer) {
        layout.batch.push_back(dim.extent);
        layout.strideA.push_back(dim.strides[0]);
        layout.strideB.push_back(dim.strides[1]);
        layout.strideC.push_back(dim.strides[2]);
      }
      if (layout.swapped)
        swapOperands(layout);
      bestSize = m.extent * n.extent;
      best = std::move(layout);
    }
  }
  if (best)
    return {best, {0}};
  if (fault >= 0)
    return {std::nullopt, {unsigned(fault)}};
  // Too many batch dimensions: copies in canonical order merge them.
  for (unsigned number : {0u, 1u})
    if (!op->getOperand(number).getDefiningOp<memref::AllocOp>())
      return {std::nullopt, {number}};
  return {std::nullopt, {2}};
}

} // namespace mlir::hyperparallel
