// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- ElementTypes.h - Elements, and what reduces them ------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_ELEMENTTYPES_H
#define HYPERPARALLEL_LIB_RUNTIME_ELEMENTTYPES_H

#include "lib/Runtime/hp_runtime.h"

namespace hyperparallel::runtime {

/// Bytes of one element; 0 for what is no hp_dtype.
inline int64_t dtypeBytes(int64_t dtype) {
  constexpr int64_t bytes[] = {1, 1, 2, 4, 8, 2, 2, 4, 8};
  return dtype >= 0 && dtype <= HP_F64 ? bytes[dtype] : 0;
}

/// "f32"; "unknown".
inline const char *dtypeName(int64_t dtype) {
  static const char *const names[] = {"i1",  "i8",   "i16", "i32", "i64",
                                      "f16", "bf16", "f32", "f64"};
  return dtype >= 0 && dtype <= HP_F64 ? names[dtype] : "unknown";
}

/// "sum"; "unknown".
inline const char *reductionName(int64_t op) {
  static const char *const names[] = {"sum", "max", "min", "prod",
                                      "and", "or",  "avg"};
  return op >= 0 && op <= HP_AVG ? names[op] : "unknown";
}

/// True if `op` is defined for elements of `dtype`.
inline bool canReduce(int64_t dtype, int64_t op) {
  if (dtype < 0 || dtype > HP_F64 || op < 0 || op > HP_AVG)
    return false;
  if (dtype == HP_I1)
    return op == HP_AND || op == HP_OR || op == HP_PROD;
  bool isFloat = dtype >= HP_F16;
  if (op == HP_AND || op == HP_OR)
    return !isFloat;
  return op != HP_AVG || isFloat;
}

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_ELEMENTTYPES_H
