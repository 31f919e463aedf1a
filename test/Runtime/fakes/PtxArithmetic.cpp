// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- PtxArithmetic.cpp - What single instructions of PTX compute -------===//

#include "lib/Runtime/CPU/HalfFloat.h"
#include "test/Runtime/fakes/Ptx.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fake {

using hyperparallel::runtime::BFloat16;
using hyperparallel::runtime::Float16;

template <typename T>
static T as(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <typename T>
static uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

static double toDouble(uint64_t bits, Type type) {
  switch (type) {
  case Type::F64:
    return as<double>(bits);
  case Type::F32:
    return as<float>(bits);
  case Type::F16:
    return Float16::toFloat(as<Float16>(bits));
  default:
    return BFloat16::toFloat(as<BFloat16>(bits));
  }
}

static uint64_t fromDouble(double value, Type type) {
  switch (type) {
  case Type::F64:
    return bitsOf(value);
  case Type::F32:
    return bitsOf(static_cast<float>(value));
  case Type::F16:
    return bitsOf(Float16::fromFloat(static_cast<float>(value)));
  default:
    return bitsOf(BFloat16::fromFloat(static_cast<float>(value)));
  }
}

uint64_t masked(uint64_t bits, Type type) {
  int size = sizeOf(type);
  if (type == Type::Pred)
    return bits & 1;
  return size == 8 ? bits : bits & ((uint64_t(1) << (8 * size)) - 1);
}

/// The integer that the low bits are.
int64_t integerOf(uint64_t bits, Type type) {
  int shift = 64 - 8 * sizeOf(type);
  if (isSigned(type))
    return static_cast<int64_t>(bits << shift) >> shift;
  return static_cast<int64_t>(masked(bits, type));
}

static double pickMinMax(const Instruction &one, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) {
    if (one.nan)
      return std::numeric_limits<double>::quiet_NaN();
    return std::isnan(a) ? b : a;
  }
  bool first = one.op == Op::Min ? a < b || (a == b && std::signbit(a))
                                 : a > b || (a == b && !std::signbit(a));
  return first ? a : b;
}

static uint64_t floating(const Instruction &one, uint64_t a, uint64_t b,
                         uint64_t c, const char *&fault) {
  if (one.type == Type::F32) {
    float x = as<float>(a), y = as<float>(b);
    switch (one.op) {
    case Op::Add:
      return bitsOf(x + y);
    case Op::Sub:
      return bitsOf(x - y);
    case Op::Mul:
      return bitsOf(x * y);
    case Op::Div:
      return bitsOf(x / y);
    case Op::Fma:
    case Op::Mad:
      return bitsOf(std::fma(x, y, as<float>(c)));
    case Op::Sqrt:
      return bitsOf(std::sqrt(x));
    default:
      break;
    }
  }
  double x = toDouble(a, one.type), y = toDouble(b, one.type), result = 0;
  switch (one.op) {
  case Op::Add:
    result = x + y;
    break;
  case Op::Sub:
    result = x - y;
    break;
  case Op::Mul:
    result = x * y;
    break;
  case Op::Div:
    result = x / y;
    break;
  case Op::Fma:
  case Op::Mad:
    result = std::fma(x, y, toDouble(c, one.type));
    break;
  case Op::Min:
  case Op::Max:
    result = pickMinMax(one, x, y);
    break;
  case Op::Abs:
    return a & ~(uint64_t(1) << (8 * sizeOf(one.type) - 1));
  case Op::Neg:
    return a ^ (uint64_t(1) << (8 * sizeOf(one.type) - 1));
  case Op::Copysign:
    result = std::copysign(y, x); // the sign is the first operand's
    break;
  case Op::Sqrt:
    result = std::sqrt(x);
    break;
  case Op::Rsqrt:
    result = 1 / std::sqrt(x);
    break;
  case Op::Rcp:
    result = 1 / x;
    break;
  case Op::Ex2:
    result = std::exp2(x);
    break;
  case Op::Lg2:
    result = std::log2(x);
    break;
  default:
    fault = "this operation is not one of floats";
  }
  return fromDouble(result, one.type);
}

uint64_t calculate(const Instruction &one, uint64_t a, uint64_t b, uint64_t c,
                   uint64_t fourth, const char *&fault) {
  if (isFloat(one.type))
    return floating(one, a, b, c, fault);
  Type type = one.type;
  int width = 8 * sizeOf(type);
  bool isNegative = isSigned(type);
  int64_t x = integerOf(a, type), y = integerOf(b, type);
  uint64_t ux = masked(a, type), uy = masked(b, type);
  switch (one.op) {
  case Op::Add:
    return ux + uy;
  case Op::Sub:
    return ux - uy;
  case Op::Mul:
    return ux * uy;
  case Op::Mad:
    return ux * uy + c;
  case Op::MulWide:
    return static_cast<uint64_t>(x) * static_cast<uint64_t>(y);
  case Op::MadWide:
    return static_cast<uint64_t>(x) * static_cast<uint64_t>(y) + c;
  case Op::MulHi:
    if (isNegative)
      return static_cast<uint64_t>((static_cast<__int128>(x) * y) >> width);
    return static_cast<uint64_t>((static_cast<unsigned __int128>(ux) * uy) >>
                                 width);
  case Op::Div:
    if (uy == 0)
      return ~uint64_t(0);
    return isNegative
               ? (y == -1 ? uint64_t(0) - ux : static_cast<uint64_t>(x / y))
               : ux / uy;
  case Op::Rem:
    if (uy == 0)
      return ux;
    return isNegative ? (y == -1 ? 0 : static_cast<uint64_t>(x % y)) : ux % uy;
  case Op::Min:
    return isNegative ? static_cast<uint64_t>(std::min(x, y))
                      : std::min(ux, uy);
  case Op::Max:
    return isNegative ? static_cast<uint64_t>(std::max(x, y))
                      : std::max(ux, uy);
  case Op::Abs:
    return static_cast<uint64_t>(x < 0 ? -x : x);
  case Op::Neg:
    return uint64_t(0) - ux;
  case Op::And:
    return ux & uy;
  case Op::Or:
    return ux | uy;
  case Op::Xor:
    return ux ^ uy;
  case Op::Not:
    return ~ux;
  case Op::Shl:
    return uint32_t(b) >= uint32_t(width) ? 0 : ux << b;
  case Op::Shr:
    if (uint32_t(b) >= uint32_t(width))
      return isNegative && x < 0 ? ~uint64_t(0) : 0;
    return isNegative ? static_cast<uint64_t>(x >> b) : ux >> b;
  case Op::Popc:
    return static_cast<uint64_t>(__builtin_popcountll(ux));
  case Op::Clz:
    return ux == 0 ? uint64_t(width)
                   : uint64_t(__builtin_clzll(ux) - (64 - width));
  case Op::Brev: {
    uint64_t reversed = 0;
    for (int i = 0; i < width; ++i)
      reversed |= ((ux >> i) & 1) << (width - 1 - i);
    return reversed;
  }
  case Op::Prmt: {
    uint64_t bytes = masked(a, Type::B32) | masked(b, Type::B32) << 32;
    uint64_t made = 0;
    for (int i = 0; i < 4; ++i) {
      uint64_t select = (c >> (4 * i)) & 15;
      uint64_t byte = (bytes >> (8 * (select & 7))) & 255;
      if (select & 8)
        byte = byte & 128 ? 255 : 0;
      made |= byte << (8 * i);
    }
    return made;
  }
  case Op::Bfe: {
    // Bits b to b + c; the sign is the last bit that there is.
    uint64_t at = b & 255, length = c & 255;
    if (length == 0)
      return 0;
    uint64_t mask = length >= 64 ? ~uint64_t(0) : (uint64_t(1) << length) - 1;
    uint64_t bits = at >= uint64_t(width) ? 0 : (ux >> at) & mask;
    uint64_t top = std::min(at + length - 1, uint64_t(width - 1));
    if (isNegative && (ux >> top & 1))
      bits |=
          ~(at + length > uint64_t(width) ? (uint64_t(1) << (width - at)) - 1
                                          : mask);
    return bits;
  }
  case Op::Bfi: {
    uint64_t at = c & 255, length = fourth & 255;
    if (at >= uint64_t(width) || length == 0)
      return uy;
    uint64_t mask = length >= 64 ? ~uint64_t(0) : (uint64_t(1) << length) - 1;
    return (uy & ~(mask << at)) | ((ux & mask) << at);
  }
  case Op::Shf: {
    uint64_t both = masked(a, Type::B32) | masked(b, Type::B32) << 32;
    uint64_t by = c & 31;
    return one.left ? (both << by) >> 32 : both >> by;
  }
  default:
    fault = "this operation is not one of integers";
    return 0;
  }
}

uint64_t convert(const Instruction &one, uint64_t bits) {
  if (isFloat(one.from)) {
    double value = toDouble(bits, one.from);
    value = one.compare == 1   ? std::nearbyint(value)
            : one.compare == 2 ? std::trunc(value)
            : one.compare == 3 ? std::floor(value)
            : one.compare == 4 ? std::ceil(value)
                               : value;
    if (isFloat(one.type))
      return fromDouble(value, one.type);
    if (std::isnan(value))
      return 0;
    int width = 8 * sizeOf(one.type);
    if (isSigned(one.type)) {
      double most = std::ldexp(1.0, width - 1);
      return value >= most ? uint64_t(INT64_MAX) >> (64 - width)
             : value < -most
                 ? uint64_t(1) << (width - 1)
                 : static_cast<uint64_t>(static_cast<int64_t>(value));
    }
    double most = std::ldexp(1.0, width);
    return value >= most ? ~uint64_t(0)
           : value < 0   ? 0
                         : static_cast<uint64_t>(value);
  }
  int64_t value = integerOf(bits, one.from);
  if (!isFloat(one.type))
    return static_cast<uint64_t>(value);
  if (one.type == Type::F32)
    return isSigned(one.from)
               ? bitsOf(static_cast<float>(value))
               : bitsOf(static_cast<float>(static_cast<uint64_t>(value)));
  return fromDouble(isSigned(one.from)
                        ? static_cast<double>(value)
                        : static_cast<double>(static_cast<uint64_t>(value)),
                    one.type);
}

template <typename T>
static bool compareValues(uint8_t how, T a, T b) {
  switch (how) {
  case 0:
    return a == b;
  case 1:
    return a != b;
  case 2:
    return a < b;
  case 3:
    return a <= b;
  case 4:
    return a > b;
  default:
    return a >= b;
  }
}

bool compare(const Instruction &one, uint64_t a, uint64_t b) {
  if (!isFloat(one.type))
    return isSigned(one.type)
               ? compareValues(one.compare, integerOf(a, one.type),
                               integerOf(b, one.type))
               : compareValues(one.compare, masked(a, one.type),
                               masked(b, one.type));
  double x = toDouble(a, one.type), y = toDouble(b, one.type);
  bool isNan = std::isnan(x) || std::isnan(y);
  if (one.compare >= 6)
    return one.compare == 6 ? !isNan : isNan;
  if (isNan)
    return one.unordered;
  return compareValues(one.compare, x, y);
}

} // namespace fake
