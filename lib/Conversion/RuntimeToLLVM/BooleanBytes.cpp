//===- BooleanBytes.cpp - Booleans in memory ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/RuntimeToLLVM/BooleanBytes.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace mlir::hyperparallel {

namespace {
struct LoadBool : ConvertOpToLLVMPattern<memref::LoadOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(memref::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getMemRefType().getElementType().isInteger(1))
      return failure();
    Location loc = op.getLoc();
    Value pointer =
        getStridedElementPtr(rewriter, loc, op.getMemRefType(),
                             adaptor.getMemref(), adaptor.getIndices());
    Value byte = LLVM::LoadOp::create(rewriter, loc, rewriter.getI8Type(),
                                      pointer, op.getAlignment().value_or(0));
    Value zero = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI8Type(),
                                          rewriter.getI8IntegerAttr(0));
    rewriter.replaceOpWithNewOp<LLVM::ICmpOp>(op, LLVM::ICmpPredicate::ne, byte,
                                              zero);
    return success();
  }
};

struct StoreBool : ConvertOpToLLVMPattern<memref::StoreOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(memref::StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getMemRefType().getElementType().isInteger(1))
      return failure();
    Value pointer =
        getStridedElementPtr(rewriter, op.getLoc(), op.getMemRefType(),
                             adaptor.getMemref(), adaptor.getIndices());
    Value byte = LLVM::ZExtOp::create(rewriter, op.getLoc(),
                                      rewriter.getI8Type(), adaptor.getValue());
    rewriter.replaceOpWithNewOp<LLVM::StoreOp>(op, byte, pointer,
                                               op.getAlignment().value_or(0));
    return success();
  }
};
} // namespace

void populateBooleanBytePatterns(const LLVMTypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<LoadBool, StoreBool>(converter, /*benefit=*/2);
}

} // namespace mlir::hyperparallel
