// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CPU/Activation.h"
#include "lib/Runtime/CPU/HalfFloat.h"
#include "lib/Runtime/hp_runtime.h"

#include <cmath>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HP_CLONES                                                              \
  __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define HP_CLONES
#endif

namespace hyperparallel::runtime {

namespace {

/// e^x; 0 below -87, saturated above 88.
inline __attribute__((always_inline)) float expFast(float x) {
  x = x > 88.0f ? 88.0f : x;
  float clamped = x < -87.0f ? -87.0f : x;
  // Adding 1.5 * 2^23 rounds to an integer in the low bits.
  float shifted = clamped * 1.44269504f + 12582912.0f;
  float k = shifted - 12582912.0f;
  float r = clamped - k * 0.693359375f;
  r = r + k * 2.12194440e-4f;
  float p = 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  float scale = floatOf((bitsOf(shifted) + 127u) << 23);
  float result = p * scale;
  return x < -87.0f ? 0.0f : result;
}

/// erfc(z) for z >= 0.
inline __attribute__((always_inline)) float erfcPositive(float z) {
  float t = 1.0f / (1.0f + 0.5f * z);
  float p = 0.17087277f;
  p = p * t - 0.82215223f;
  p = p * t + 1.48851587f;
  p = p * t - 1.13520398f;
  p = p * t + 0.27886807f;
  p = p * t - 0.18628806f;
  p = p * t + 0.09678418f;
  p = p * t + 0.37409196f;
  p = p * t + 1.00002368f;
  p = p * t - 1.26551223f;
  return t * expFast(p - z * z);
}

inline __attribute__((always_inline)) float gelu(float x) {
  float z = x * 0.70710678f;
  float tail = 0.5f * erfcPositive(z < 0 ? -z : z);
  return x * (x < 0 ? tail : 1.0f - tail);
}

inline __attribute__((always_inline)) float sigmoid(float x) {
  return 1.0f / (1.0f + expFast(-x));
}

} // namespace

template <>
HP_CLONES void finishRow<float>(float *row, int64_t n, const float *bias,
                                int64_t activation) {
  if (bias)
    for (int64_t j = 0; j < n; ++j)
      row[j] += bias[j];
  switch (activation) {
  case HP_ACT_RELU:
    for (int64_t j = 0; j < n; ++j)
      row[j] = row[j] < 0 ? 0.0f : row[j];
    break;
  case HP_ACT_GELU:
    for (int64_t j = 0; j < n; ++j)
      row[j] = gelu(row[j]);
    break;
  case HP_ACT_GELU_TANH:
    // 1/2 (1 + tanh u) is the sigmoid of 2u.
    for (int64_t j = 0; j < n; ++j) {
      float x = row[j];
      row[j] = x * sigmoid(x * (1.59576912f + 0.0713548163f * x * x));
    }
    break;
  case HP_ACT_SILU:
    for (int64_t j = 0; j < n; ++j)
      row[j] = row[j] * sigmoid(row[j]);
    break;
  default:
    break;
  }
}

template <>
void finishRow<double>(double *row, int64_t n, const double *bias,
                       int64_t activation) {
  for (int64_t j = 0; j < n; ++j) {
    double x = row[j] + (bias ? bias[j] : 0.0);
    switch (activation) {
    case HP_ACT_RELU:
      x = x < 0 ? 0.0 : x;
      break;
    case HP_ACT_GELU:
      x = 0.5 * x * std::erfc(-x * 0.70710678118654752);
      break;
    case HP_ACT_GELU_TANH:
      x = 0.5 * x *
          (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
      break;
    case HP_ACT_SILU:
      x = x / (1 + std::exp(-x));
      break;
    default:
      break;
    }
    row[j] = x;
  }
}

} // namespace hyperparallel::runtime
