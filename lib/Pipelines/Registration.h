//===- Registration.h - everything of ours, in one call ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PIPELINES_REGISTRATION_H
#define HYPERPARALLEL_LIB_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
namespace hyperparallel {

/// Our dialects and the external models of ops that we do not own.
void registerDialects(DialectRegistry &registry);
/// Our passes and pipelines.
void registerPasses();

} // namespace hyperparallel
} // namespace mlir

#endif // HYPERPARALLEL_LIB_PIPELINES_REGISTRATION_H
