//===- DeviceKernelWriter.h - Writes one kernel of a device -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes a group of structured ops as its plan says (FormDeviceKernels.cpp):
// DeviceTiles.cpp the squares, DeviceKernelWriter.cpp the rest.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_DEVICEKERNELWRITER_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_DEVICEKERNELWRITER_H

#include "lib/Conversion/LinalgToDevice/DevicePlan.h"
#include "lib/Conversion/LinalgToDevice/DeviceThreads.h"
#include "lib/Conversion/LinalgToKernels/KernelCaptures.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"

namespace mlir::hyperparallel {

class DeviceKernelWriter {
public:
  DeviceKernelWriter(ModuleOp module, KernelGroup &group,
                     const DevicePlan &plan, StringRef name)
      : group(group), plan(plan), name(name), builder(module.getContext()),
        loc(group.members.back().op.getLoc()),
        callSite(group.members.back().op), threads(module, loc, plan.threads) {}

  func::FuncOp write();
  ArrayRef<Value> getCaptures() const { return captures->getValues(); }
  ArrayRef<memref::AllocOp> getLocalBuffers() const { return localBuffers; }

private:
  Value takeShared(MemRefType type);
  void placeLocalBuffers();
  using Places = SmallVector<std::optional<size_t>>;
  void chooseFetched();
  void chooseKept();
  bool holdRow(Value outside, const std::optional<Places> &places);
  void overRow(Value outside, const Places &places, ArrayRef<Value> variables,
               bool isFetched);
  void fetch(ArrayRef<Value> variables);
  void writeKept(ArrayRef<Value> variables);
  SmallVector<Value> getLane(ArrayRef<std::optional<size_t>> places,
                             size_t along, Value place,
                             ArrayRef<Value> variables);
  llvm::MaybeAlign getLaneAlignmentOf(Value outside, size_t along,
                                      int64_t length, int64_t lane);
  Value loadLane(Value input, ArrayRef<std::optional<size_t>> places,
                 size_t along, Value place, ArrayRef<Value> variables,
                 int64_t length, int64_t lane);
  void placeTiles();
  void overTile(int64_t neighbours, int64_t along, int64_t across,
                ValueRange origin, llvm::function_ref<void(Value, Value)> body);
  void writeTile();
  BufferAccess getBuffer(Value outside);
  SmallVector<Value> splitNumber(Value number);
  void writeMembers(ArrayRef<Value> variables);
  void writeLanes(ArrayRef<Value> variables, size_t outer, Value first,
                  llvm::function_ref<void(Value)> prepare);
  bool isReadLater(Value buffer, size_t member);
  LoopNestContext getNest(const KernelMember &member,
                          ArrayRef<Value> variables);
  void writeElements();
  void writeRow();
  void unmarkExchanged();
  Value toIndex(Value number) {
    return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                        number);
  }
  Value i32(int64_t value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getI32IntegerAttr(value));
  }

  /// Of indices, which do not overflow.
  Value times(Value left, int64_t right) {
    Value factor = arith::ConstantIndexOp::create(builder, loc, right);
    return arith::MulIOp::create(builder, loc, left, factor, noWrap());
  }
  Value plus(Value left, Value right) {
    return arith::AddIOp::create(builder, loc, left, right, noWrap());
  }
  arith::IntegerOverflowFlagsAttr noWrap() {
    return arith::IntegerOverflowFlagsAttr::get(
        builder.getContext(),
        arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw);
  }

  KernelGroup &group;
  const DevicePlan &plan;
  StringRef name;
  OpBuilder builder;
  Location loc;
  OpBuilder callSite;
  DeviceThreads threads;
  func::FuncOp function;
  std::optional<KernelCaptures> captures;
  SmallVector<memref::AllocOp> localBuffers;
  DenseMap<Value, BufferAccess> local;
  /// What is fetched to shared memory, with the outer loop at each position.
  SmallVector<std::pair<Value, SmallVector<std::optional<size_t>>>> fetched;
  /// What is written, and read, in shared memory, and copied at the end.
  SmallVector<std::pair<Value, SmallVector<std::optional<size_t>>>> kept;
  int64_t usedBytes = 0;
  /// Of each input of a tile: its square, and an element of a thread.
  SmallVector<std::pair<Value, Value>> squares;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTODEVICE_DEVICEKERNELWRITER_H
