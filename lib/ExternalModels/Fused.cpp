//===- Fused.cpp - how ops of Fused become ops on buffers -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Fused/Fused.h"

#include "lib/ExternalModels/Models.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::fused;

namespace {
/// Reads its inputs, and writes its init without reading it.
struct AttentionBuffers
    : bufferization::DstBufferizableOpInterfaceExternalModel<AttentionBuffers,
                                                             AttentionOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    return cast<AttentionOp>(op).isDpsInput(&operand);
  }

  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const bufferization::AnalysisState &) const {
    return cast<AttentionOp>(op).isDpsInit(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    auto attention = cast<AttentionOp>(op);
    SmallVector<Value> buffers;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> buffer =
          bufferization::getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    Value init = buffers.pop_back_val();
    AttentionOp::create(rewriter, op->getLoc(), TypeRange(), buffers, init,
                        attention.getIndexingMapsAttr(),
                        attention.getScaleAttr());
    bufferization::replaceOpWithBufferizedValues(rewriter, op, init);
    return success();
  }
};
} // namespace

void mlir::hyperparallel::registerFusedModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, FusedDialect *) {
    AttentionOp::attachInterface<AttentionBuffers>(*context);
  });
}
