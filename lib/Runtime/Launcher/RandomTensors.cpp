// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SplitMix64 (Steele, Lea, Flood 2014) of the element's number.

#include "lib/Runtime/Launcher/RandomTensors.h"
#include "lib/Runtime/CPU/HalfFloat.h"

#include <cmath>
#include <cstring>

namespace hyperparallel::launcher {

static uint64_t mix(uint64_t bits) {
  bits += 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return bits ^ bits >> 31;
}

static uint64_t seedOf(const Tensor &tensor, int64_t seed) {
  uint64_t bits = mix(static_cast<uint64_t>(seed));
  for (unsigned char letter : tensor.name)
    bits = mix(bits ^ letter);
  return bits;
}

template <typename T>
static void store(char *out, T value) {
  std::memcpy(out, &value, sizeof(value));
}

static void storeFloat(const std::string &dtype, char *out, double value) {
  using runtime::BFloat16;
  using runtime::Float16;
  if (dtype == "f64")
    store(out, value);
  else if (dtype == "f32")
    store(out, static_cast<float>(value));
  else if (dtype == "f16")
    store(out, Float16::fromFloat(static_cast<float>(value)));
  else
    store(out, BFloat16::fromFloat(static_cast<float>(value)));
}

void drawBlock(const Tensor &tensor, const Block &block, int64_t seed,
               char *out) {
  uint64_t base = seedOf(tensor, seed);
  bool isFloat = tensor.dtype[0] == 'f' || tensor.dtype[0] == 'b';
  bool isVector = tensor.shape.size() < 2;
  double scale =
      isVector ? 0.5 : 1 / std::sqrt(static_cast<double>(tensor.shape.back()));
  int64_t bytes = tensor.elementBytes();
  if (tensor.role == "optimizer" || tensor.role == "cache") {
    std::memset(out, 0, static_cast<size_t>(block.elements() * bytes));
    return;
  }
  for (int64_t i = 0; i < block.elements(); ++i, out += bytes) {
    int64_t place = 0, rest = i, stride = 1;
    for (size_t dim = block.size.size(); dim-- > 0;) {
      place += (block.begin[dim] + rest % block.size[dim]) * stride;
      rest /= block.size[dim];
      stride *= tensor.shape[dim];
    }
    uint64_t bits = mix(base + static_cast<uint64_t>(place));
    if (isFloat) {
      double unit = static_cast<double>(bits >> 11) * 0x1p-52 - 1; // [-1, 1)
      storeFloat(tensor.dtype, out, unit * scale + (isVector ? 1 : 0));
    } else {
      auto number = static_cast<int64_t>(bits % (bytes == 1 ? 2 : 32));
      std::memcpy(out, &number, static_cast<size_t>(bytes));
    }
  }
}

} // namespace hyperparallel::launcher
