//===- TensorLayout.h - where the elements of a tensor are ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A sharding without what only propagation needs (open dimensions, priorities,
// explicit replication): which axes split each dimension, and over which axes
// the value is partial. Axes of one device are left out and sub-axes merged, so
// that equal layouts compare equal.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_TENSORLAYOUT_H
#define HYPERPARALLEL_LIB_ANALYSIS_TENSORLAYOUT_H

#include "dialects/HyperShard/MeshAxes.h"

namespace mlir::hyperparallel {

struct TensorLayout {
  SmallVector<hypershard::AxisList, 4> dims;
  /// Sorted in mesh order; `kind` means nothing when this is empty.
  hypershard::AxisList partial;
  Reduction kind = Reduction::Sum;

  static TensorLayout replicated(int64_t rank) {
    TensorLayout layout;
    layout.dims.resize(rank);
    return layout;
  }
  static TensorLayout fromAttr(hypershard::ShardingAttr sharding,
                               const hypershard::MeshAxes &mesh);
  /// A closed sharding without priorities.
  hypershard::ShardingAttr toAttr(FlatSymbolRefAttr meshName,
                                  const hypershard::MeshAxes &mesh) const;

  /// The axes of the partial sum, in canonical order.
  void setPartial(Reduction newKind, ArrayRef<hypershard::Axis> axes);
  bool isReplicated() const;
  bool operator==(const TensorLayout &other) const;
  bool operator!=(const TensorLayout &other) const { return !(*this == other); }
  /// Every axis that splits a dimension.
  hypershard::AxisList splitAxes() const;

  /// ceil(size / shards) per dimension.
  SmallVector<int64_t> localShape(ArrayRef<int64_t> shape) const;
  RankedTensorType localType(RankedTensorType type) const {
    return type.clone(localShape(type.getShape()));
  }
  /// Some device holds padding in this dimension.
  bool isUneven(ArrayRef<int64_t> shape, unsigned dim) const;
  /// Bytes that one device holds.
  int64_t localBytes(RankedTensorType type) const;
};

/// ceil(size / shards): the local size of a dimension.
inline int64_t blockSize(int64_t size, int64_t shards) {
  return size / shards + (size % shards != 0);
}

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_TENSORLAYOUT_H
