//===- OffloadableOpInterface.cpp - what may be elsewhere -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/OffloadableOpInterface.h"

#include "dialects/Interfaces/OffloadableOpInterface.cpp.inc"
