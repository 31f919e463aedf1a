// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Reduce.cpp - Element-wise reduction of several buffers ------------===//
//
// Works in blocks that stay in the first-level cache: the block of the first
// source is loaded into an accumulator, every further source is folded into
// it, and only then is the destination written, which makes in-place safe.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/Reduce.h"
#include "lib/Runtime/CPU/HalfFloat.h"

#include <algorithm>
#include <type_traits>

namespace hyperparallel::runtime {

namespace {

constexpr int64_t BlockElements = 1024;

/// How elements of T are held while they are folded.
template <typename T>
struct Accumulator {
  using Type = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};
template <>
struct Accumulator<BFloat16> {
  using Type = float;
  static float load(BFloat16 value) { return BFloat16::toFloat(value); }
  static BFloat16 store(float value) { return BFloat16::fromFloat(value); }
};
template <>
struct Accumulator<Float16> {
  using Type = float;
  static float load(Float16 value) { return Float16::toFloat(value); }
  static Float16 store(float value) { return Float16::fromFloat(value); }
};

/// Wrapping arithmetic without undefined overflow.
template <typename A, bool IsFloat = std::is_floating_point<A>::value>
struct Wrapping {
  using Type = A;
};
template <typename A>
struct Wrapping<A, false> {
  // Wide enough that no promotion to int can overflow.
  using Type = std::conditional_t<sizeof(A) == 8, uint64_t, uint32_t>;
};

template <int64_t Op, typename A>
A combine(A a, A b) {
  using W = typename Wrapping<A>::Type;
  if constexpr (Op == HP_SUM || Op == HP_AVG)
    return static_cast<A>(static_cast<W>(a) + static_cast<W>(b));
  else if constexpr (Op == HP_PROD)
    return static_cast<A>(static_cast<W>(a) * static_cast<W>(b));
  else if constexpr (Op == HP_MAX)
    return a > b || a != a ? a : b; // a NaN in b fails the comparison
  else if constexpr (Op == HP_MIN)
    return a < b || a != a ? a : b;
  else if constexpr (Op == HP_AND)
    return static_cast<A>(a & b);
  else
    return static_cast<A>(a | b);
}

template <typename T, int64_t Op>
void reduceTyped(const char *const *sources, int64_t numSources, char *dst,
                 int64_t count) {
  using A = typename Accumulator<T>::Type;
  A block[BlockElements];
  for (int64_t begin = 0; begin < count; begin += BlockElements) {
    int64_t length = std::min(BlockElements, count - begin);
    const T *first = reinterpret_cast<const T *>(sources[0]) + begin;
    for (int64_t i = 0; i < length; ++i)
      block[i] = Accumulator<T>::load(first[i]);
    for (int64_t s = 1; s < numSources; ++s) {
      const T *source = reinterpret_cast<const T *>(sources[s]) + begin;
      for (int64_t i = 0; i < length; ++i)
        block[i] = combine<Op, A>(block[i], Accumulator<T>::load(source[i]));
    }
    if constexpr (Op == HP_AVG)
      for (int64_t i = 0; i < length; ++i)
        block[i] /= static_cast<A>(numSources);
    T *out = reinterpret_cast<T *>(dst) + begin;
    for (int64_t i = 0; i < length; ++i)
      out[i] = Accumulator<T>::store(block[i]);
  }
}

using ReduceFn = void (*)(const char *const *, int64_t, char *, int64_t);

template <typename T>
ReduceFn selectInteger(int64_t op) {
  switch (op) {
  case HP_SUM:
    return reduceTyped<T, HP_SUM>;
  case HP_MAX:
    return reduceTyped<T, HP_MAX>;
  case HP_MIN:
    return reduceTyped<T, HP_MIN>;
  case HP_PROD:
    return reduceTyped<T, HP_PROD>;
  case HP_AND:
    return reduceTyped<T, HP_AND>;
  default:
    return reduceTyped<T, HP_OR>;
  }
}

template <typename T>
ReduceFn selectFloat(int64_t op) {
  switch (op) {
  case HP_SUM:
    return reduceTyped<T, HP_SUM>;
  case HP_MAX:
    return reduceTyped<T, HP_MAX>;
  case HP_MIN:
    return reduceTyped<T, HP_MIN>;
  case HP_PROD:
    return reduceTyped<T, HP_PROD>;
  default:
    return reduceTyped<T, HP_AVG>;
  }
}

ReduceFn select(int64_t dtype, int64_t op) {
  switch (dtype) {
  case HP_I1:
    return selectInteger<uint8_t>(op == HP_PROD ? int64_t(HP_AND) : op);
  case HP_I8:
    return selectInteger<int8_t>(op);
  case HP_I16:
    return selectInteger<int16_t>(op);
  case HP_I32:
    return selectInteger<int32_t>(op);
  case HP_I64:
    return selectInteger<int64_t>(op);
  case HP_F16:
    return selectFloat<Float16>(op);
  case HP_BF16:
    return selectFloat<BFloat16>(op);
  case HP_F32:
    return selectFloat<float>(op);
  default:
    return selectFloat<double>(op);
  }
}

} // namespace

void reduceBuffers(int64_t dtype, int64_t op, const char *const *sources,
                   int64_t numSources, char *dst, int64_t count) {
  select(dtype, op)(sources, numSources, dst, count);
}

} // namespace hyperparallel::runtime
