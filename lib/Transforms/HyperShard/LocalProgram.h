//===- LocalProgram.h - the program of one device, being built --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Shared by the files of hypershard-partition-program: the layouts of a
// module's values, the local values that stand for them, and the collectives
// between.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_HYPERSHARD_LOCALPROGRAM_H
#define HYPERPARALLEL_LIB_TRANSFORMS_HYPERSHARD_LOCALPROGRAM_H

#include "lib/Analysis/FactorSharding.h"
#include "lib/Analysis/ProgramLayouts.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <map>
#include <vector>

namespace mlir::hyperparallel::hypershard {

/// The layout of every tensor of a module. A value without a sharding is whole.
class LocalLayouts {
public:
  /// Fails with an error if there are several meshes, or if values that are
  /// joined by control flow or calls are split differently.
  static FailureOr<LocalLayouts> read(ModuleOp module);

  const TensorLayout &of(Value value);
  const TensorLayout &of(ShardingAttr sharding);
  RankedTensorType localType(Value value) {
    return of(value).localType(cast<RankedTensorType>(value.getType()));
  }
  /// Local type of a tensor; other types as they are.
  Type localTypeOf(Value value) {
    return isa<RankedTensorType>(value.getType()) ? Type(localType(value))
                                                  : value.getType();
  }
  /// As a person would write it.
  ShardingAttr print(const TensorLayout &layout) const {
    return layout.toAttr(meshName, mesh());
  }
  const MeshAxes &mesh() const { return program.mesh(); }

  FlatSymbolRefAttr meshName;

private:
  explicit LocalLayouts(ProgramLayouts program) : program(std::move(program)) {}
  LogicalResult checkEdges();

  ProgramLayouts program;
  DenseMap<ShardingAttr, TensorLayout> parsed;
  DenseMap<int64_t, TensorLayout> whole;
};

/// One function's local program while it is built.
class LocalProgram {
public:
  LocalProgram(LocalLayouts &layouts, OpBuilder &builder)
      : layouts(layouts), builder(builder) {}

  Value local(Value global) { return mapping.lookupOrDefault(global); }
  /// This device's position along axes; made once, at the function's entry.
  Value axisIndex(ArrayRef<Axis> axes);
  ArrayAttr axesAttr(ArrayRef<Axis> axes) const {
    return layouts.mesh().toArrayAttr(axes);
  }

  LocalLayouts &layouts;
  OpBuilder &builder;
  IRMapping mapping;
  /// Where the function begins; set before its ops are built.
  Block *entry = nullptr;

private:
  std::map<std::vector<std::tuple<uint32_t, int64_t, int64_t>>, Value> indices;
};

/// Is this one of the collectives that hypershard-lower-reshards makes?
bool isGlobalCollective(Operation *op);
/// Builds the local form of a collective in global form, with padding and
/// trimming where a dimension does not divide.
LogicalResult localizeCollective(Operation *op, LocalProgram &program);
/// Builds the local program of an op that answers ShardableOpInterface, or is
/// elementwise.
LogicalResult partitionOp(Operation *op, LocalProgram &program);

} // namespace mlir::hyperparallel::hypershard

#endif // HYPERPARALLEL_LIB_TRANSFORMS_HYPERSHARD_LOCALPROGRAM_H
