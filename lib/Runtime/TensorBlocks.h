// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- TensorBlocks.h - Parts of a tensor that are messages --------------===//
//
// A value that goes from one group of devices to another is split differently
// on both sides. A table that all devices of a group share says which device
// sends which block to whom (hp_rt_send_blocks); here is where a block lies in
// the tensor that a device holds.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_TENSORBLOCKS_H
#define HYPERPARALLEL_LIB_RUNTIME_TENSORBLOCKS_H

#include "lib/Runtime/Status.h"

namespace hyperparallel::runtime {

/// The tensor that a device holds, and the table of all devices of its group.
struct TensorBlocks {
  char *buffer;
  int64_t rank;
  const int64_t *shape;
  int64_t elementBytes;
  const int64_t *table;
  int64_t count;
  int64_t tag;

  int64_t stride() const { return 2 + 2 * rank; }

  /// Whether the table names parts of the tensor.
  hp_status check(const char *what) const {
    if (rank < 0 || elementBytes < 1 || count < 0)
      return fail(HP_INVALID_ARGUMENT,
                  "%s: expected dimensions, bytes and blocks but got %lld, "
                  "%lld and %lld",
                  what, static_cast<long long>(rank),
                  static_cast<long long>(elementBytes),
                  static_cast<long long>(count));
    const int64_t *entry = table;
    for (int64_t number = 0; number < count; ++number, entry += stride())
      for (int64_t dim = 0; dim < rank; ++dim) {
        int64_t offset = entry[2 + dim], size = entry[2 + rank + dim];
        if (offset < 0 || size < 1 || offset + size > shape[dim])
          return fail(HP_INVALID_ARGUMENT,
                      "%s: block %lld: expected a part of the %lld elements "
                      "of dimension %lld but got %lld from %lld on",
                      what, static_cast<long long>(number),
                      static_cast<long long>(shape[dim]),
                      static_cast<long long>(dim), static_cast<long long>(size),
                      static_cast<long long>(offset));
      }
    return HP_OK;
  }

  /// Calls `move(block, peer)` for each block of the device with this id, until
  /// one fails.
  template <typename Move>
  hp_status forOwn(const char *what, int64_t own, Move move) const;
};

/// One block in a tensor: equal runs of bytes.
class TensorBlock {
public:
  TensorBlock(const TensorBlocks &blocks, const int64_t *offsets,
              const int64_t *sizes)
      : blocks(blocks), sizes(sizes) {
    // Dimensions from `inner` on are whole, so that runs reach over them.
    inner = blocks.rank;
    run = blocks.elementBytes;
    int64_t bytes = blocks.elementBytes;
    for (int64_t dim = blocks.rank - 1; dim >= 0; --dim) {
      begin += offsets[dim] * bytes;
      if (inner == dim + 1 &&
          (dim + 1 == blocks.rank || sizes[dim + 1] == blocks.shape[dim + 1])) {
        run *= sizes[dim];
        inner = dim;
        pitch = bytes * blocks.shape[dim];
      }
      count *= sizes[dim];
      bytes *= blocks.shape[dim];
    }
  }

  int64_t bytes() const { return count * blocks.elementBytes; }
  bool isContiguous() const { return run == bytes(); }
  char *first() const { return blocks.buffer + begin; }
  /// Bytes of a run, how many follow each other at a distance of `pitchBytes`,
  /// and that distance: what a copy of rows does at once.
  int64_t runBytes() const { return run; }
  int64_t numRows() const { return inner > 0 ? sizes[inner - 1] : 1; }
  int64_t pitchBytes() const { return pitch; }

  /// Calls `move` with the place in the tensor, and that in the message, of
  /// every `numRows` runs that follow each other.
  template <typename Move>
  void forEachRows(Move move) const {
    int64_t rows = numRows(), turns = run > 0 ? bytes() / run / rows : 0;
    for (int64_t index = 0; index < turns; ++index) {
      int64_t rest = index, stride = blocks.elementBytes, at = begin;
      for (int64_t dim = blocks.rank - 1; dim >= 0; --dim) {
        if (dim < inner - 1) {
          at += rest % sizes[dim] * stride;
          rest /= sizes[dim];
        }
        stride *= blocks.shape[dim];
      }
      move(blocks.buffer + at, index * rows * run);
    }
  }

  /// The same for every run.
  template <typename Move>
  void forEachRun(Move move) const {
    forEachRows([&](char *there, int64_t here) {
      for (int64_t row = 0; row < numRows(); ++row)
        move(there + row * pitch, here + row * run, run);
    });
  }

private:
  const TensorBlocks &blocks;
  const int64_t *sizes;
  int64_t inner, run, pitch = 0, begin = 0, count = 1;
};

template <typename Move>
hp_status TensorBlocks::forOwn(const char *what, int64_t own, Move move) const {
  hp_status status = check(what);
  const int64_t *entry = table;
  for (int64_t number = 0; status == HP_OK && number < count;
       ++number, entry += stride())
    if (entry[0] == own)
      status = move(TensorBlock(*this, entry + 2, entry + 2 + rank), entry[1]);
  return status;
}

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_TENSORBLOCKS_H
