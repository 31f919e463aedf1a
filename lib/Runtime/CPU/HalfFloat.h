// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- HalfFloat.h - f16 and bf16 to and from f32 ------------------------===//
//
// Branch-free, so that loops over them vectorise; exact one way, rounded to
// nearest even the other way; infinities, NaNs and subnormals are kept.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_HALFFLOAT_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_HALFFLOAT_H

#include <cstdint>
#include <cstring>

namespace hyperparallel::runtime {

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

struct BFloat16 {
  uint16_t bits;

  static float toFloat(BFloat16 value) {
    return floatOf(static_cast<uint32_t>(value.bits) << 16);
  }

  static BFloat16 fromFloat(float value) {
    uint32_t bits = bitsOf(value);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32_t quietNan = (bits >> 16) | 0x40;
    bool isNan = (bits & 0x7fffffff) > 0x7f800000;
    return {static_cast<uint16_t>(isNan ? quietNan : rounded)};
  }
};

struct Float16 {
  uint16_t bits;

  static float toFloat(Float16 value) {
    uint32_t magnitude = (value.bits & 0x7fffu) << 13;
    uint32_t sign = (value.bits & 0x8000u) << 16;
    // Multiplying by 2^112 rebiases the exponent and normalises subnormals.
    uint32_t finite = bitsOf(floatOf(magnitude) * floatOf(0x77800000));
    uint32_t special = magnitude | 0x7f800000;
    return floatOf(sign | (magnitude >= (0x7c00u << 13) ? special : finite));
  }

  static Float16 fromFloat(float value) {
    uint32_t bits = bitsOf(value);
    uint32_t sign = (bits >> 16) & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    // Normal results: rebias and round to nearest even in integer arithmetic;
    // a carry into the exponent is what rounding up means.
    uint32_t normal =
        (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // Subnormal results: adding 0.5 lets the float unit do the rounding at the
    // right bit.
    uint32_t subnormal = bitsOf(floatOf(magnitude) + 0.5f) - bitsOf(0.5f);
    uint32_t special = magnitude > 0x7f800000 ? 0x7e00u : 0x7c00u;
    uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
    // From 65520 on the nearest f16 is infinity.
    result = magnitude >= 0x477ff000 ? special : result;
    return {static_cast<uint16_t>(sign | result)};
  }
};

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_HALFFLOAT_H
