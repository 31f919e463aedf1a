//===- DeviceThreads.h - Threads and blocks of a device kernel --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a kernel for a device asks about its threads: a thread is one of a block
// of at most 1,024, which share memory and can wait for each other; a block is
// one of a grid. Kernels ask by calls of functions, which ConvertDeviceToLLVM
// answers: buffer deallocation knows calls, but no intrinsics.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_DEVICETHREADS_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_DEVICETHREADS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::hyperparallel {

/// Threads that run in lockstep and can exchange registers.
constexpr int64_t kWarp = 32;
/// The memory space of buffers that a block's threads share.
constexpr int64_t kSharedSpace = 3;
/// Shared memory that a kernel has without asking for more.
constexpr int64_t kSharedBytes = 48 * 1024;

/// () -> i32: the thread's number in its block, and the block's in the grid.
inline constexpr llvm::StringLiteral kDeviceThread = "hp_device_thread";
inline constexpr llvm::StringLiteral kDeviceBlock = "hp_device_block";
/// () -> (): waits for the threads of the block.
inline constexpr llvm::StringLiteral kDeviceBarrier = "hp_device_barrier";
/// (i32 word, i32 distance) -> i32: the word of the thread of the warp whose
/// number is this one's xor the distance.
inline constexpr llvm::StringLiteral kDeviceExchange = "hp_device_exchange";

class DeviceThreads {
public:
  DeviceThreads(ModuleOp module, Location loc, int64_t blockSize)
      : module(module), loc(loc), blockSize(blockSize) {}

  /// This thread's number in its block, and the block's in the grid: i32.
  Value threadNumber(OpBuilder &builder);
  Value blockNumber(OpBuilder &builder);
  /// Waits for all threads of the block; what they wrote is seen afterwards.
  void barrier(OpBuilder &builder);
  /// Combines a value of each thread by clones of a commutative op; all get the
  /// result. In log2(32) exchanges of registers a warp, then once more over
  /// the warps' results by way of shared memory.
  Value reduce(OpBuilder &builder, Operation *combiner, Value partial);
  /// A buffer that the block shares. Buffers of a name are the same memory.
  Value sharedBuffer(OpBuilder &builder, StringRef name, MemRefType type);

private:
  Value exchange(OpBuilder &builder, Value value, int64_t distance);
  Value exchangeWord(OpBuilder &builder, Value word, int64_t distance);
  Value reduceWarp(OpBuilder &builder, Operation *combiner, Value value);

  ModuleOp module;
  Location loc;
  int64_t blockSize;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_DEVICETHREADS_H
