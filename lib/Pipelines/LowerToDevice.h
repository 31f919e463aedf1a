//===- LowerToDevice.h - Phase 7 for a device with kernels ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PIPELINES_LOWERTODEVICE_H
#define HYPERPARALLEL_LIB_PIPELINES_LOWERTODEVICE_H

#include "mlir/Pass/PassManager.h"

namespace mlir::hyperparallel {

/// From local functions on tensors to a program of the host, and kernels in a
/// nested module @hp_device; both in the LLVM dialect.
void buildLowerToDevicePipeline(OpPassManager &manager);
/// The same for devices whose vendor has a compiler for tensors: of kernels,
/// @hp_device lists name and text in `hp.fragments`.
void buildLowerToFragmentsPipeline(OpPassManager &manager);
/// Registers them as `hp-lower-to-device` and `hp-lower-to-fragments`.
void registerLowerToDevicePipelines();

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_PIPELINES_LOWERTODEVICE_H
