//===- Storages.h - which values are one piece of memory --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The tensors of a function as pieces of memory, at the grain of tasks: the ops
// of its entry block, where a call or a loop is one op that needs workspace.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_ANALYSIS_STORAGES_H
#define HYPERPARALLEL_LIB_ANALYSIS_STORAGES_H

#include "lib/Analysis/CostModel.h"

namespace mlir::hyperparallel {

/// An op, by its position in the block, that touches a storage.
struct StorageUse {
  uint32_t op;
  bool reads;
  bool writes;
};

/// Values that are one piece of memory: views of it, and what it holds after
/// each op that writes over it.
struct Storage {
  int64_t bytes = 0;
  /// In the order in which they are made.
  SmallVector<Value, 2> values;
  /// In order, one for each op.
  SmallVector<StorageUse, 2> uses;
  /// The position of the last op that uses it (the number of ops, if it is
  /// returned).
  uint32_t lastUse = 0;
  std::optional<uint32_t> argument;
  /// A copy of (a part of) an argument that lives in a tier, fetched by this op
  /// and waited for once.
  Operation *streamedBy = nullptr;
  /// It is returned: the caller owns the memory.
  bool isReturned = false;
  /// An argument in whose memory its next value is made: the last of the
  /// values.
  bool isUpdated = false;
};

class Storages {
public:
  /// On functions: the most bytes that they allocate in each of the runtime's
  /// tiers (device first), as hp-measure-buffers found.
  static constexpr llvm::StringLiteral kPeakAttrName = "hp.peak_bytes";

  /// Of a function with one block. `alignment` is what the runtime rounds sizes
  /// up to.
  Storages(FunctionOpInterface function, CostModel &model,
           int64_t alignment = 64);

  /// The ops of the block without its terminator.
  ArrayRef<Operation *> getOps() const { return ops; }
  ArrayRef<Storage> getStorages() const { return storages; }
  /// The value's storage, if it takes memory.
  std::optional<uint32_t> lookup(Value value) const;
  /// The value that the op's result or operand is a view of.
  Value getRoot(Value value) const;
  bool isView(Operation *op) const { return views.contains(op); }
  /// Bytes that only this op needs, while it runs.
  int64_t getWorkspace(uint32_t op) const { return workspaces[op]; }
  /// The most that is resident at once, without arguments and results.
  int64_t getPeak() const;

private:
  friend class StorageBuilder;
  Storages() = default;
  SmallVector<Operation *> ops;
  SmallVector<Storage> storages;
  SmallVector<int64_t> workspaces;
  DenseMap<Value, uint32_t> storageOf;
  DenseMap<Value, Value> viewed;
  llvm::SmallPtrSet<Operation *, 16> views;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_ANALYSIS_STORAGES_H
