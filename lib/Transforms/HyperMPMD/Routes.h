//===- Routes.h - which block goes from which device to which ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_ROUTES_H
#define HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_ROUTES_H

#include "lib/Analysis/TensorLayout.h"

namespace mlir::hyperparallel::hypermpmd {

/// One block on its way: ranks in the two groups, and where it lies in the
/// whole tensor.
struct RoutedBlock {
  int64_t sender, receiver;
  SmallVector<int64_t, 4> begin, sizes;
};

/// How a tensor is split over the devices of a group.
struct GroupLayout {
  hypershard::MeshAxes mesh;
  TensorLayout layout;

  /// The first element of each dimension that a device holds, and how many it
  /// holds, without padding (0 where it holds only padding).
  std::pair<SmallVector<int64_t, 4>, SmallVector<int64_t, 4>>
  box(int64_t device, ArrayRef<int64_t> shape) const;
};

/// The blocks that give every device of `to` what it holds of the tensor, each
/// element once, from a device of `from` that has it. Of several that have a
/// block, the one with the least to send so far sends it. Sorted by sender,
/// then receiver. Cost: O(devices + blocks), each with a search among the
/// copies of a block.
SmallVector<RoutedBlock> findRoute(const GroupLayout &from,
                                   const GroupLayout &to,
                                   ArrayRef<int64_t> shape);

} // namespace mlir::hyperparallel::hypermpmd

#endif // HYPERPARALLEL_LIB_TRANSFORMS_HYPERMPMD_ROUTES_H
