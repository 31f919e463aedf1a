//===- OffloadableOpInterface.h - what may be elsewhere ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_INTERFACES_OFFLOADABLEOPINTERFACE_H
#define HYPERPARALLEL_DIALECTS_INTERFACES_OFFLOADABLEOPINTERFACE_H

#include "mlir/IR/OpDefinition.h"

#include "dialects/Interfaces/OffloadableOpInterface.h.inc"

#endif // HYPERPARALLEL_DIALECTS_INTERFACES_OFFLOADABLEOPINTERFACE_H
