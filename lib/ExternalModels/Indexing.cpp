//===- Indexing.cpp - how ops of Indexing answer our interfaces -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Factors of scatter_add: n updates, v rows of the table, and one for each
// further dimension. The local op is the op on local tensors:
//
//   v split     indices count from the first row of this device; what is
//               before or behind its rows is dropped, as the op says
//   n split     the result is a partial sum; the table is added on the first
//               device only. Padding of uneven updates has the index -1.
//===----------------------------------------------------------------------===//
#include "dialects/Indexing/Indexing.h"

#include "dialects/Interfaces/CostOpInterface.h"
#include "dialects/Interfaces/ShardableOpInterface.h"
#include "lib/ExternalModels/Costs.h"
#include "lib/ExternalModels/Models.h"
#include "lib/ExternalModels/TensorEdits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::indexing;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

static constexpr unsigned kUpdates = 0, kRows = 1;

static ShardingRule ruleOf(ScatterAddOp op) {
  ShardingRule rule;
  rule.addFactor(typeOf(op.getUpdates()).getDimSize(0), FactorKind::Reduction,
                 Reduction::Sum);
  rule.addFactor(typeOf(op.getInit()).getDimSize(0));
  rule.factors[kRows].isLoop = false;
  RuleTensor updates{op.getUpdates(), {&op.getUpdatesMutable()}, {{kUpdates}}};
  RuleTensor indices{op.getIndices(), {&op.getIndicesMutable()}, {{kUpdates}}};
  RuleTensor table{op.getInit(), {&op.getInitMutable()}, {{kRows}}};
  for (int64_t size : typeOf(op.getInit()).getShape().drop_front()) {
    unsigned factor = rule.addFactor(size);
    updates.dims.push_back({factor});
    table.dims.push_back({factor});
  }
  rule.results.push_back({op.getResult(), {}, table.dims});
  rule.operands = {std::move(updates), std::move(indices), std::move(table)};
  return rule;
}

/// Indices into the rows of this device; -1 for what is padding.
static Value localIndices(ScatterAddOp op, PartitionContext &context) {
  OpBuilder &b = context.builder();
  Value indices = context.local(op.getIndices());
  bool hasPadding =
      context.shardCount(kUpdates) > 1 && context.isUneven(kUpdates);
  if (!hasPadding && context.shardCount(kRows) == 1)
    return indices;
  Location loc = op.getLoc();
  Value firstRow, firstUpdate;
  if (context.shardCount(kRows) > 1)
    firstRow = context.offset(kRows);
  if (hasPadding)
    firstUpdate = context.offset(kUpdates);
  int64_t numUpdates = typeOf(op.getUpdates()).getDimSize(0);
  auto element = [&](OpBuilder &body, Location at, ValueRange position,
                     ValueRange elements) {
    Value index = elements[0];
    Type type = index.getType();
    auto cast = [&](Value value) -> Value {
      if (type.isIndex())
        return value;
      return arith::IndexCastOp::create(body, at, type, value);
    };
    if (firstRow)
      index = arith::SubIOp::create(body, at, index, cast(firstRow));
    if (!firstUpdate)
      return index;
    Value number = arith::AddIOp::create(body, at, position[0], firstUpdate);
    Value none =
        arith::ConstantOp::create(body, at, body.getIntegerAttr(type, -1));
    return arith::SelectOp::create(
               body, at, isBelow(body, at, number, numUpdates), index, none)
        .getResult();
  };
  return mapElements(b, loc, typeOf(indices), indices, element);
}

/// The table on the first device along the updates, zeros on the others.
static Value tableAddedOnce(ScatterAddOp op, PartitionContext &context) {
  Value table = context.local(op.getInit());
  if (context.shardCount(kUpdates) == 1)
    return table;
  OpBuilder &b = context.builder();
  Location loc = op.getLoc();
  Value isFirst = isBelow(b, loc, context.shardIndex(kUpdates), 1);
  auto element = [&](OpBuilder &body, Location at, ValueRange,
                     ValueRange elements) {
    Value zero = zeroScalar(body, at, elements[0].getType());
    return arith::SelectOp::create(body, at, isFirst, elements[0], zero)
        .getResult();
  };
  return mapElements(b, loc, typeOf(table), table, element);
}

/// A table of zeros is the same on every device.
static bool isZeros(Value table) {
  if (auto fill = table.getDefiningOp<linalg::FillOp>())
    table = fill.getInputs()[0];
  auto constant = table.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return false;
  Attribute value = constant.getValue();
  if (auto splat = dyn_cast<SplatElementsAttr>(value))
    value = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValue().isPosZero();
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getValue().isZero();
}

static LogicalResult partitionOf(ScatterAddOp op, PartitionContext &context) {
  Value indices = localIndices(op, context);
  Value table = isZeros(op.getInit()) ? context.local(op.getInit())
                                      : tableAddedOnce(op, context);
  Value local =
      ScatterAddOp::create(context.builder(), op.getLoc(),
                           context.local(op.getUpdates()), indices, table);
  context.setResult(op.getResult(), local);
  return success();
}

namespace {
struct ScatterAddSharding
    : ShardableOpInterface::ExternalModel<ScatterAddSharding, ScatterAddOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return ruleOf(cast<ScatterAddOp>(op));
  }
  LogicalResult partition(Operation *op, PartitionContext &context) const {
    return partitionOf(cast<ScatterAddOp>(op), context);
  }
};

/// Reads updates and indices, and reads and writes as many rows; the rest of
/// the table stays where it is.
struct ScatterAddCost
    : CostOpInterface::ExternalModel<ScatterAddCost, ScatterAddOp> {
  OpCost getCost(Operation *op) const {
    auto scatter = cast<ScatterAddOp>(op);
    double updates = byteSize(typeOf(scatter.getUpdates()));
    OpCost cost;
    cost.bytesRead = 2 * updates + byteSize(typeOf(scatter.getIndices()));
    cost.bytesWritten = updates;
    cost.flops = typeOf(scatter.getUpdates()).getNumElements();
    return cost;
  }
};
} // namespace

void mlir::hyperparallel::registerIndexingModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, IndexingDialect *) {
    ScatterAddOp::attachInterface<ScatterAddSharding>(*context);
  });
}

void mlir::hyperparallel::registerIndexingCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, IndexingDialect *) {
    ScatterAddOp::attachInterface<ScatterAddCost>(*context);
  });
}
