//===- OffloadableOps.cpp - what of upstream's ops may be elsewhere -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Structured ops and ops on tensors may be executed again where they have no
// effect: the same operands give the same bits. (One whose body checks an index
// has one.) Their results may leave the device.
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/OffloadableOpInterface.h"
#include "lib/ExternalModels/AttachModels.h"
#include "lib/ExternalModels/Costs.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::hyperparallel;

namespace {
template <typename OpTy>
struct PureOp : OffloadableOpInterface::ExternalModel<PureOp<OpTy>, OpTy> {
  bool mayLeaveDevice(Operation *, unsigned) const { return true; }
  bool mayBeRecomputed(Operation *op) const { return isMemoryEffectFree(op); }
};
} // namespace

void mlir::hyperparallel::registerOffloadableModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    attachModels<PureOp,
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
                 >(context);
  });
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    attachModels<PureOp,
#define GET_OP_LIST
#include "mlir/Dialect/Tensor/IR/TensorOps.cpp.inc"
                 >(context);
  });
}
