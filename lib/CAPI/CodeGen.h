/*===- CodeGen.h - C API: compile a program to a shared object -*- C -*-====*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===--------------------------------------------------------------------===*/
#ifndef HYPERPARALLEL_LIB_CAPI_CODEGEN_H
#define HYPERPARALLEL_LIB_CAPI_CODEGEN_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HpCompileStatistics {
  int64_t numObjects; /**< Parts that the program was cut into. */
  int64_t numCached;  /**< Of them, found in the cache. */
} HpCompileStatistics;

/** Lowers the program of one device to a shared object at `path`, and writes
 * its description beside it (.json). The module is consumed. `cacheDirectory`
 * may be empty (no cache). `numThreads` 0 means all processors. Errors are
 * diagnostics. */
MLIR_CAPI_EXPORTED MlirLogicalResult hpCompileProgram(
    MlirModule module, MlirStringRef path, MlirStringRef cacheDirectory,
    int64_t numThreads, HpCompileStatistics *statistics);

/** The same for a device with kernels: the shared object is the host's program,
 * and `kernels` gets the kernels as PTX for `architecture` (such as sm_80). */
MLIR_CAPI_EXPORTED MlirLogicalResult hpCompileDeviceProgram(
    MlirModule module, MlirStringRef path, MlirStringRef kernels,
    MlirStringRef architecture, MlirStringRef cacheDirectory,
    int64_t numThreads, HpCompileStatistics *statistics);

/** Calls `callback` with the default directory of the object cache. */
MLIR_CAPI_EXPORTED void hpGetCacheDirectory(MlirStringCallback callback,
                                            void *userData);

#ifdef __cplusplus
}
#endif

#endif /* HYPERPARALLEL_LIB_CAPI_CODEGEN_H */
