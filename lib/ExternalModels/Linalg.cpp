//===- Linalg.cpp - how structured ops answer our interfaces --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/ExternalModels/AttachModels.h"
#include "lib/ExternalModels/ExternalModels.h"
#include "lib/ExternalModels/Models.h"
#include "lib/ExternalModels/Partitions.h"
#include "lib/ExternalModels/Rules.h"

#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::hyperparallel;

namespace {
template <typename OpTy>
struct LinalgModel
    : ShardableOpInterface::ExternalModel<LinalgModel<OpTy>, OpTy> {
  ShardingRule getShardingRule(Operation *op) const {
    return linalgRule(cast<linalg::LinalgOp>(op));
  }
  LogicalResult partition(Operation *op, PartitionContext &context) const {
    return partitionLinalg(cast<linalg::LinalgOp>(op), context);
  }
};
} // namespace

void mlir::hyperparallel::registerLinalgModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    attachModels<LinalgModel,
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
                 >(context);
  });
}
