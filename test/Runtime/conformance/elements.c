/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Elements of every type, in the host's memory.
 */
#include "test/Runtime/conformance/conformance.h"

static uint16_t to_half(float value, int64_t dtype) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (dtype == HP_BF16)
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  /* Values here are small multiples of 1/8: exact in f16. */
  uint32_t exponent = (bits >> 23) & 255;
  if (exponent == 0)
    return (uint16_t)(bits >> 16 & 0x8000);
  return (uint16_t)((bits >> 16 & 0x8000) | (exponent - 112) << 10 |
                    (bits >> 13 & 0x3ff));
}
static float from_half(uint16_t half, int64_t dtype) {
  uint32_t bits = (uint32_t)half << 16;
  float value;
  if (dtype == HP_F16) {
    uint32_t exponent = half >> 10 & 31;
    if (exponent == 0)
      return ldexpf((float)(half & 0x3ff), -24) * (half & 0x8000 ? -1 : 1);
    bits = ((uint32_t)half & 0x8000) << 16 | (exponent + 112) << 23 |
           ((uint32_t)half & 0x3ff) << 13;
  }
  memcpy(&value, &bits, 4);
  return value;
}

int64_t size_of(int64_t dtype) {
  static const int64_t sizes[] = {1, 1, 2, 4, 8, 2, 2, 4, 8};
  return sizes[dtype];
}
void put(void *base, int64_t at, int64_t dtype, double value) {
  switch (dtype) {
  case HP_I1:
  case HP_I8:
    ((int8_t *)base)[at] = (int8_t)value;
    break;
  case HP_I16:
    ((int16_t *)base)[at] = (int16_t)value;
    break;
  case HP_I32:
    ((int32_t *)base)[at] = (int32_t)value;
    break;
  case HP_I64:
    ((int64_t *)base)[at] = (int64_t)value;
    break;
  case HP_F32:
    ((float *)base)[at] = (float)value;
    break;
  case HP_F64:
    ((double *)base)[at] = value;
    break;
  default:
    ((uint16_t *)base)[at] = to_half((float)value, dtype);
  }
}
double get(const void *base, int64_t at, int64_t dtype) {
  switch (dtype) {
  case HP_I1:
  case HP_I8:
    return ((const int8_t *)base)[at];
  case HP_I16:
    return ((const int16_t *)base)[at];
  case HP_I32:
    return ((const int32_t *)base)[at];
  case HP_I64:
    return (double)((const int64_t *)base)[at];
  case HP_F32:
    return ((const float *)base)[at];
  case HP_F64:
    return ((const double *)base)[at];
  default:
    return from_half(((const uint16_t *)base)[at], dtype);
  }
}
