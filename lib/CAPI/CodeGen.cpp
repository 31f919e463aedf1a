//===- CodeGen.cpp - C API: compile a program to a shared object ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/CodeGen.h"

#include "lib/CodeGen/CompileProgram.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;
using namespace mlir::hyperparallel;

MlirLogicalResult hpCompileProgram(MlirModule module, MlirStringRef path,
                                   MlirStringRef cacheDirectory,
                                   int64_t numThreads,
                                   HpCompileStatistics *statistics) {
  CompileProgramOptions options;
  options.path = unwrap(path).str();
  options.cacheDirectory = unwrap(cacheDirectory).str();
  options.numThreads = numThreads;
  EmissionStatistics emission;
  LogicalResult result = compileProgram(unwrap(module), options, emission);
  if (statistics)
    *statistics = {emission.numObjects, emission.numCached};
  return wrap(result);
}

void hpGetCacheDirectory(MlirStringCallback callback, void *userData) {
  std::string directory = ObjectCache::getDefaultDirectory();
  callback(wrap(StringRef(directory)), userData);
}
