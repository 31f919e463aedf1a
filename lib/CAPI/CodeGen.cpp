//===- CodeGen.cpp - C API: compile a program to a shared object ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/CodeGen.h"

#include "lib/CodeGen/CompileProgram.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;
using namespace mlir::hyperparallel;

static MlirLogicalResult compile(MlirModule module,
                                 const CompileProgramOptions &options,
                                 HpCompileStatistics *statistics) {
  EmissionStatistics emission;
  LogicalResult result = compileProgram(unwrap(module), options, emission);
  if (statistics)
    *statistics = {emission.numObjects, emission.numCached};
  return wrap(result);
}

MlirLogicalResult hpCompileProgram(MlirModule module, MlirStringRef path,
                                   MlirStringRef cacheDirectory,
                                   int64_t numThreads,
                                   HpCompileStatistics *statistics) {
  CompileProgramOptions options;
  options.path = unwrap(path).str();
  options.cacheDirectory = unwrap(cacheDirectory).str();
  options.numThreads = numThreads;
  return compile(module, options, statistics);
}

MlirLogicalResult hpCompileDeviceProgram(MlirModule module, MlirStringRef path,
                                         MlirStringRef kernels,
                                         MlirStringRef architecture,
                                         MlirStringRef cacheDirectory,
                                         int64_t numThreads,
                                         HpCompileStatistics *statistics) {
  CompileProgramOptions options;
  options.path = unwrap(path).str();
  options.kernelsPath = unwrap(kernels).str();
  options.architecture = unwrap(architecture).str();
  options.cacheDirectory = unwrap(cacheDirectory).str();
  options.numThreads = numThreads;
  return compile(module, options, statistics);
}

void hpGetCacheDirectory(MlirStringCallback callback, void *userData) {
  std::string directory = ObjectCache::getDefaultDirectory();
  callback(wrap(StringRef(directory)), userData);
}
