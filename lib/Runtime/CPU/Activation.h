// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Activation.h - Bias and activation of a finished row --------------===//
//
// Loops without calls or branches, so that they vectorise. f64 goes through
// the C library. f32 is within 3 ulp of it for exp, and within 2e-7 absolute
// of the exact activation relative to |x|.
//
// Sources: exp by reduction to 2^k * e^r and Taylor's series to degree 6 on
// |r| <= ln(2)/2; erf by Abramowitz and Stegun 7.1.26's better successor,
// Numerical Recipes' Chebyshev fit of erfc (erfcc, 1.2e-7 relative).
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_ACTIVATION_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_ACTIVATION_H

#include <cstdint>

namespace hyperparallel::runtime {

/// row[j] = activation(row[j] + bias[j]); bias may be null.
template <typename T>
void finishRow(T *row, int64_t n, const T *bias, int64_t activation);

template <>
void finishRow<float>(float *row, int64_t n, const float *bias,
                      int64_t activation);
template <>
void finishRow<double>(double *row, int64_t n, const double *bias,
                       int64_t activation);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_ACTIVATION_H
