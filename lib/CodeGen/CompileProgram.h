//===- CompileProgram.h - One device's program to a .so ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CODEGEN_COMPILEPROGRAM_H
#define HYPERPARALLEL_LIB_CODEGEN_COMPILEPROGRAM_H

#include "lib/CodeGen/ObjectEmitter.h"

namespace mlir::hyperparallel {

struct CompileProgramOptions {
  /// Of the shared object. Its description goes to the same path with .json.
  std::string path;
  /// Of compiled objects; empty turns it off.
  std::string cacheDirectory = ObjectCache::getDefaultDirectory();
  /// 0 means all processors.
  unsigned numThreads = 0;
  /// Where the kernels go, as PTX or HFusion; empty where the CPU does
  /// everything.
  std::string kernelsPath;
  /// The oldest architecture that shall run them, such as sm_80; or Ascend's
  /// name of a chip, such as Ascend910B1.
  std::string architecture;
};

/// Lowers the program of one device (which is consumed) and writes the shared
/// object and its description: for each public function its symbol, the most
/// bytes that it allocates in each tier of the runtime, and of each argument
/// and result the name, role, shape, element type and tier (none: the device's
/// memory); with kernels also their names and geometries, and how often the
/// program calls what of the runtime. Reports errors as diagnostics.
LogicalResult compileProgram(ModuleOp module,
                             const CompileProgramOptions &options,
                             EmissionStatistics &statistics);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CODEGEN_COMPILEPROGRAM_H
