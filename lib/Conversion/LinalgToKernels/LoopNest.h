//===- LoopNest.h - Scalar loops for one linalg op --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes the loops of one linalg op on buffers, given the induction variables
// of the loops that already surround it. The loops are made so that LLVM's loop
// vectoriser takes them: contiguous loop innermost, accumulators in registers,
// everything that does not change in a loop computed before it.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_LOOPNEST_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_LOOPNEST_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/Alignment.h"

namespace mlir::hyperparallel {

/// A buffer of a kernel as the loops address it: positions of the original
/// index list that `dropped` names are left out (they are fixed within one
/// outer iteration of the kernel).
struct BufferAccess {
  mlir::Value buffer;
  llvm::SmallVector<bool> dropped;
};

/// How the threads of a block share the innermost loop of an op: thread t runs
/// the iterations t, t + numThreads, … or, of vectors, as many at a time.
struct LoopDistribution {
  mlir::Value thread; ///< of type index
  int64_t numThreads;
  int64_t vector = 1; ///< divides the loop's extent
  /// Combines the threads' partial results by (a clone of) `combiner`; every
  /// thread gets the result. All threads of the block get there together.
  llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Operation *combiner,
                                 mlir::Value partial)>
      reduce;
};

/// A result that is stored when all lanes of a vector have loaded.
struct PendingStore {
  mlir::Value value, buffer;
  llvm::SmallVector<mlir::Value> indices;
  llvm::MaybeAlign alignment;
};

/// Iterations of one loop that a thread does side by side, as a vector: lane 0
/// is a multiple of the length, and loads come before stores.
struct VectorLane {
  unsigned loop; ///< of the op
  int64_t length;
  int64_t lane;
  /// Where stores of a buffer (a value of the original program) wait; null if
  /// they do not.
  llvm::function_ref<llvm::SmallVectorImpl<PendingStore> *(mlir::Value)>
      getPending;
};

/// Whether an access of a buffer is at a multiple of `length` elements where
/// the loop is at one. `exprs` are the indices, by the loops of the op.
bool isAlignedVector(mlir::MemRefType type,
                     llvm::ArrayRef<mlir::AffineExpr> exprs, unsigned loop,
                     int64_t length);
/// The bytes to which lane `lane` of such an access is aligned.
llvm::Align getLaneAlignment(mlir::MemRefType type, int64_t length,
                             int64_t lane);
/// Stores what waited, in its order.
void writePending(mlir::OpBuilder &builder, mlir::Location loc,
                  llvm::ArrayRef<PendingStore> pending);

struct LoopNestContext {
  /// Induction variable of each loop of the op that runs outside, or null.
  llvm::SmallVector<mlir::Value> outerVariables;
  /// Where values from outside of the op are found in the kernel.
  mlir::IRMapping *mapping;
  /// How a buffer operand (a value of the original program) is addressed.
  llvm::function_ref<BufferAccess(mlir::Value)> getBuffer;
  /// Null where one thread runs everything.
  const LoopDistribution *distribution = nullptr;
  /// If a loop that runs outside is one of lanes.
  std::optional<VectorLane> lane;
  /// If the innermost loop of a parallel op is to run some iterations as lanes:
  /// the loop, which has no outer variable, and the first of them.
  struct Lanes {
    unsigned loop;
    mlir::Value first;
    int64_t length;
  };
  std::optional<Lanes> lanes;
};

/// The op that combines two values of a result along the op's reduction loops,
/// or null if no single commutative op with a neutral element does.
mlir::Operation *getCombiner(mlir::linalg::LinalgOp op, unsigned result);

/// A clone of `combiner` on two values.
mlir::Value combineValues(mlir::OpBuilder &builder, mlir::Operation *combiner,
                          mlir::Value left, mlir::Value right);

/// Writes the loops at the insertion point of `builder`.
void buildLoopNest(mlir::OpBuilder &builder, mlir::linalg::LinalgOp op,
                   const LoopNestContext &context);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOKERNELS_LOOPNEST_H
