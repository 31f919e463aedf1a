//===- ContractionsToRuntime.cpp - Contractions to hp_rt_matmul -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs when buffers have been allocated and freed, since pointers escape the
// analyses of memref. Fills in a `hp_matmul_desc` on the stack and calls
// `hp_rt_matmul`; beta is 0 where the op is marked `hp.overwrite`, else 1. Bias
// and activation are those of the epilogue (FoldEpilogues.cpp).
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CONVERTCONTRACTIONSTORUNTIME
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// Words of a hp_matmul_desc, in order.
namespace {
namespace desc {
enum Word {
  StructSize,
  Dtype,
  OutDtype,
  TransA,
  TransB,
  M,
  N,
  K,
  A,
  B,
  C,
  LdA,
  LdB,
  LdC,
  BatchRank,
  Batch,
  StrideA = Batch + 4,
  StrideB = StrideA + 4,
  StrideC = StrideB + 4,
  Alpha = StrideC + 4,
  Beta,
  Bias,
  Activation,
  NumWords
};
} // namespace desc
} // namespace

static void callMatmul(LinalgOp op, const MatmulLayout &layout) {
  OpBuilder builder(op);
  RuntimeCallBuilder runtime(builder, op.getLoc());
  Value words = runtime.stackWords(desc::NumWords);
  auto set = [&](int64_t word, int64_t value) {
    runtime.storeWord(runtime.i64(value), words, word);
  };
  Type in = getElementTypeOrSelf(op->getOperand(0).getType());
  Value result = getContractionOperand(op, 2).get();
  Type out = getElementTypeOrSelf(result.getType());
  set(desc::StructSize, desc::NumWords * 8);
  set(desc::Dtype, *getRuntimeDtype(in));
  set(desc::OutDtype, *getRuntimeDtype(out));
  set(desc::TransA, layout.transA);
  set(desc::TransB, layout.transB);
  set(desc::M, layout.m);
  set(desc::N, layout.n);
  set(desc::K, layout.k);
  runtime.storeWord(runtime.pointerTo(op->getOperand(layout.swapped ? 1 : 0)),
                    words, desc::A);
  runtime.storeWord(runtime.pointerTo(op->getOperand(layout.swapped ? 0 : 1)),
                    words, desc::B);
  runtime.storeWord(runtime.pointerTo(result), words, desc::C);
  set(desc::LdA, layout.ldA);
  set(desc::LdB, layout.ldB);
  set(desc::LdC, layout.ldC);
  set(desc::BatchRank, layout.batch.size());
  for (size_t dim = 0; dim < 4; ++dim) {
    bool used = dim < layout.batch.size();
    set(desc::Batch + dim, used ? layout.batch[dim] : 1);
    set(desc::StrideA + dim, used ? layout.strideA[dim] : 0);
    set(desc::StrideB + dim, used ? layout.strideB[dim] : 0);
    set(desc::StrideC + dim, used ? layout.strideC[dim] : 0);
  }
  runtime.storeWord(runtime.f64(1.0), words, desc::Alpha);
  runtime.storeWord(runtime.f64(op->hasAttr("hp.overwrite") ? 0.0 : 1.0), words,
                    desc::Beta);
  Value bias = getContractionBias(op);
  runtime.storeWord(bias ? runtime.pointerTo(bias) : runtime.nullPointer(),
                    words, desc::Bias);
  auto activation = op->getAttrOfType<IntegerAttr>(kEpilogueAttrName);
  set(desc::Activation, activation ? activation.getInt() : 0);
  runtime.call("hp_rt_matmul", {words});
  op->erase();
}

namespace {
struct ConvertContractionsToRuntimePass
    : impl::ConvertContractionsToRuntimeBase<ConvertContractionsToRuntimePass> {
  void runOnOperation() override {
    SmallVector<LinalgOp> contractions;
    getOperation().walk([&](LinalgOp op) {
      if (op.hasPureBufferSemantics() && isRuntimeContraction(op))
        contractions.push_back(op);
    });
    for (LinalgOp op : contractions) {
      MatmulLayoutOrMismatch result = getMatmulLayout(op);
      if (!result.layout) {
        op->emitError("expected operands with strides that fit a matmul but "
                      "operand #")
            << result.mismatch.operand << " is "
            << getContractionOperand(op, result.mismatch.operand)
                   .get()
                   .getType();
        return signalPassFailure();
      }
      callMatmul(op, *result.layout);
      ++numMatmuls;
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
