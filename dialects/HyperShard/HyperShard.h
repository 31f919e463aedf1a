//===- HyperShard.h - the HyperShard dialect --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_HYPERSHARD_HYPERSHARD_H
#define HYPERPARALLEL_DIALECTS_HYPERSHARD_HYPERSHARD_H

#include "dialects/Interfaces/ShardingRule.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/HyperShard/HyperShardDialect.h.inc"
#include "dialects/HyperShard/HyperShardEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/HyperShard/HyperShardAttrs.h.inc"

namespace mlir::hyperparallel {
// ODS looks for an enum's attribute in the enum's own namespace.
using hypershard::ReductionAttr;
} // namespace mlir::hyperparallel

#define GET_OP_CLASSES
#include "dialects/HyperShard/HyperShardOps.h.inc"

namespace mlir::hyperparallel::hypershard {

/// An attribute of these parts, or null with an error if they do not make one.
template <typename AttrTy, typename... Parts>
AttrTy getVerified(function_ref<InFlightDiagnostic()> emitError,
                   MLIRContext *context, Parts &&...parts) {
  if (failed(AttrTy::verify(emitError, parts...)))
    return {};
  return AttrTy::get(context, parts...);
}

/// The mesh of that name, or null.
MeshOp lookupMesh(Operation *from, FlatSymbolRefAttr name);
MeshOp lookupMesh(Operation *from, FlatSymbolRefAttr name,
                  SymbolTableCollection &tables);

/// The sharding that hangs on the value (argument or op result), or null.
ShardingAttr getSharding(Value value);
/// Hangs a sharding on the value; null removes it. On an op with several
/// results the others keep theirs (or a null entry is refused: set them all).
void setSharding(Value value, ShardingAttr sharding);
/// Hangs shardings on all results of an op; null for one that is no tensor.
void setResultShardings(Operation *op, ArrayRef<ShardingAttr> shardings);
/// What a function says of an argument or result (null: nothing), with this
/// sharding. Set all of a function at once: each list that there was for a
/// while stays in memory.
DictionaryAttr withSharding(DictionaryAttr attrs, ShardingAttr sharding);

} // namespace mlir::hyperparallel::hypershard

#endif // HYPERPARALLEL_DIALECTS_HYPERSHARD_HYPERSHARD_H
