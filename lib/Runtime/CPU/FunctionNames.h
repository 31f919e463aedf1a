// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FunctionNames.h - What a compiled function is called, for traces --===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_FUNCTIONNAMES_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_FUNCTIONNAMES_H

#include <string>

namespace hyperparallel::runtime {

/// The name of the function that begins at `address`, also of one that its
/// shared object does not export; empty if it cannot be told. Reads the file
/// of the shared object when it is met for the first time.
std::string functionName(const void *address);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_FUNCTIONNAMES_H
