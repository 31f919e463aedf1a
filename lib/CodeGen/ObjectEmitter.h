//===- ObjectEmitter.h - From the LLVM dialect to objects -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CODEGEN_OBJECTEMITTER_H
#define HYPERPARALLEL_LIB_CODEGEN_OBJECTEMITTER_H

#include "lib/CodeGen/ObjectCache.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::hyperparallel {

struct EmissionStatistics {
  int64_t numObjects = 0;
  int64_t numCached = 0;
};

/// Compiles a module of the LLVM dialect for this machine's processor. The
/// module is cut into parts that are optimised and emitted on `numThreads`
/// threads; parts found in the cache are not compiled again. Reports errors at
/// the module.
FailureOr<SmallVector<std::string>> emitObjects(ModuleOp module,
                                                const ObjectCache &cache,
                                                unsigned numThreads,
                                                EmissionStatistics &statistics);

/// Links objects to a shared object with the system's C compiler ($CC or cc).
/// Writes to a temporary file and renames.
LogicalResult linkSharedObject(ModuleOp module, ArrayRef<std::string> objects,
                               StringRef path);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CODEGEN_OBJECTEMITTER_H
