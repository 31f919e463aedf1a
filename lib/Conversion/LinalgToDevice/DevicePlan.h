//===- DevicePlan.h - How a group of ops runs on a device -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_DEVICEPLAN_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_DEVICEPLAN_H

#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"

namespace mlir::hyperparallel {

/// See FormDeviceKernels.cpp.
enum class Manner { Elements, Tiles, Columns, Rows, Serial };

/// A square of two outer loops, which a block does. Results are contiguous
/// along the one, `inputs` along the other: these are fetched to shared memory,
/// in vectors along their own loop.
struct DeviceTile {
  size_t row = 0, column = 0; ///< outer loops: the inputs', the results'
  int64_t edge = 32;
  int64_t neighbours =
      1; ///< elements of an input that a thread fetches at once
  SmallVector<std::pair<Value, SmallVector<std::optional<size_t>>>> inputs;
  int64_t rows = 1, columns = 1; ///< extents of the two loops
};

struct DevicePlan {
  Manner manner = Manner::Serial;
  DeviceTile tile;        ///< of Manner::Tiles
  int64_t iterations = 1; ///< of the outer loops
  int64_t vector = 1; ///< elements of the last outer loop that a thread does
  int64_t neighbours = 1; ///< elements of a row that a thread does at once
  int64_t blocks = 1, threads = 1;
};

/// The loops of all members must be known, and small enough to count in 32
/// bits. Reports errors at the op.
LogicalResult checkDeviceLoops(const KernelGroup &group);

/// Takes the last member off the group, if it would run rows one after the
/// other inside of a thread or a block: one of its parallel loops is neither an
/// outer one nor the one that a row's threads share. It is larger than what it
/// reads of the others by that loop, so little is moved for its sake. Also if
/// it writes across the others' results: then only a square can do it.
std::optional<KernelGroup> takeMisfit(KernelGroup &group);

/// How the group runs; may give a lone op more outer loops.
DevicePlan decideDevicePlan(KernelGroup &group);

/// The outer loop that gives the index at each position of `input`, the same
/// for all members that read it; nothing if they differ, if it is not read
/// `leastReads` times, or if it is written or read at computed places.
std::optional<SmallVector<std::optional<size_t>>>
getRowPlaces(Value input, const KernelGroup &group, int64_t leastReads = 2);

/// The same of a result that the group writes, all of it, and then reads;
/// nothing if it is not read, or if what was there before is.
std::optional<SmallVector<std::optional<size_t>>>
getKeptPlaces(Value result, const KernelGroup &group);

/// Elements in a row of shared memory of a tile: a word more than an edge, so
/// that what is written along rows is read along columns from different banks.
int64_t getTilePitch(int64_t edge, Type element);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_DEVICEPLAN_H
