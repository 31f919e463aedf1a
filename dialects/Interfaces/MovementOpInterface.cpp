//===- MovementOpInterface.cpp - what an op moves -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/MovementOpInterface.h"

#include "dialects/Interfaces/MovementOpInterface.cpp.inc"
