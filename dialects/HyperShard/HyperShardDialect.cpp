//===- HyperShardDialect.cpp - registration, discardable attributes -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/HyperShard/HyperShard.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

#include "dialects/HyperShard/HyperShardDialect.cpp.inc"

void HyperShardDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/HyperShard/HyperShardOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// The sharding of a value
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kSharding = HyperShardDialect::kShardingAttrName;

MeshOp hypershard::lookupMesh(Operation *from, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<MeshOp>(from, name);
}

MeshOp hypershard::lookupMesh(Operation *from, FlatSymbolRefAttr name,
                              SymbolTableCollection &tables) {
  return tables.lookupNearestSymbolFrom<MeshOp>(from, name);
}

ShardingAttr hypershard::getSharding(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function =
        dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
    if (!function || !argument.getOwner()->isEntryBlock())
      return {};
    return function.getArgAttrOfType<ShardingAttr>(argument.getArgNumber(),
                                                   kSharding);
  }
  Operation *op = value.getDefiningOp();
  Attribute attr = op->getDiscardableAttr(kSharding);
  if (auto sharding = dyn_cast_or_null<ShardingAttr>(attr))
    return sharding;
  if (auto array = dyn_cast_or_null<ArrayAttr>(attr))
    return dyn_cast<ShardingAttr>(
        array[cast<OpResult>(value).getResultNumber()]);
  return {};
}

void hypershard::setSharding(Value value, ShardingAttr sharding) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function =
        cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
    if (sharding)
      function.setArgAttr(argument.getArgNumber(), kSharding, sharding);
    else
      function.removeArgAttr(argument.getArgNumber(),
                             StringAttr::get(value.getContext(), kSharding));
    return;
  }
  Operation *op = value.getDefiningOp();
  assert(op->getNumResults() == 1 && "set all shardings of the op at once");
  setResultShardings(op,
                     sharding ? ArrayRef(sharding) : ArrayRef<ShardingAttr>());
}

void hypershard::setResultShardings(Operation *op,
                                    ArrayRef<ShardingAttr> shardings) {
  if (shardings.empty()) {
    op->removeDiscardableAttr(kSharding);
    return;
  }
  assert(shardings.size() == op->getNumResults());
  if (shardings.size() == 1) {
    op->setDiscardableAttr(kSharding, shardings.front());
    return;
  }
  SmallVector<Attribute> attrs;
  for (ShardingAttr sharding : shardings)
    attrs.push_back(sharding ? Attribute(sharding)
                             : UnitAttr::get(op->getContext()));
  op->setDiscardableAttr(kSharding, ArrayAttr::get(op->getContext(), attrs));
}

DictionaryAttr hypershard::withSharding(DictionaryAttr attrs,
                                        ShardingAttr sharding) {
  NamedAttrList list(attrs ? attrs.getValue() : ArrayRef<NamedAttribute>());
  list.set(kSharding, sharding);
  return list.getDictionary(sharding.getContext());
}

//===----------------------------------------------------------------------===//
// Verification of discardable attributes
//===----------------------------------------------------------------------===//

static LogicalResult verifySharding(Operation *op, Attribute attr, Type type,
                                    const Twine &where) {
  auto sharding = dyn_cast<ShardingAttr>(attr);
  auto emitError = [&] { return op->emitError() << where << ": "; };
  if (!sharding)
    return emitError() << "expected a #hypershard.sharding but got " << attr;
  MeshOp mesh = lookupMesh(op, sharding.getMesh());
  if (!mesh)
    return emitError() << "expected a mesh of the module but got "
                       << sharding.getMesh();
  return sharding.verifyAgainst(mesh.getMesh(), type, emitError);
}

LogicalResult HyperShardDialect::verifyOperationAttribute(Operation *op,
                                                          NamedAttribute attr) {
  if (attr.getName() != kSharding)
    return op->emitError() << "unknown attribute `" << attr.getName().getValue()
                           << "` of the hypershard dialect";
  auto array = dyn_cast<ArrayAttr>(attr.getValue());
  if (!array) {
    if (op->getNumResults() != 1)
      return op->emitError() << "expected an array of " << op->getNumResults()
                             << " shardings, one per result";
    return verifySharding(op, attr.getValue(), op->getResult(0).getType(),
                          "result 0");
  }
  if (array.size() != op->getNumResults())
    return op->emitError() << "expected " << op->getNumResults()
                           << " shardings, one per result, but got "
                           << array.size();
  for (auto [index, sharding] : llvm::enumerate(array)) {
    // A result that is not a tensor is marked by a unit.
    if (isa<UnitAttr>(sharding) &&
        !isa<RankedTensorType>(op->getResult(index).getType()))
      continue;
    if (failed(verifySharding(op, sharding, op->getResult(index).getType(),
                              "result " + Twine(index))))
      return failure();
  }
  return success();
}

LogicalResult HyperShardDialect::verifyRegionArgAttribute(Operation *op,
                                                          unsigned,
                                                          unsigned argument,
                                                          NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (attr.getName() != kSharding || !function)
    return op->emitError() << "unknown attribute `" << attr.getName().getValue()
                           << "` of the hypershard dialect";
  return verifySharding(op, attr.getValue(),
                        function.getArgumentTypes()[argument],
                        "argument " + Twine(argument));
}

LogicalResult HyperShardDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (attr.getName() != kSharding || !function)
    return op->emitError() << "unknown attribute `" << attr.getName().getValue()
                           << "` of the hypershard dialect";
  return verifySharding(op, attr.getValue(), function.getResultTypes()[result],
                        "result " + Twine(result));
}
