// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- MeshAxes.h - Devices of a mesh by their coordinates ---------------===//
//
// A device's id is a mixed-radix number; an hp_axis names some of its digits.
// Axes, major to minor, make a number of these digits: the rank in a group.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_MESHAXES_H
#define HYPERPARALLEL_LIB_RUNTIME_MESHAXES_H

#include "lib/Runtime/Status.h"

#include <algorithm>
#include <string>
#include <vector>

namespace hyperparallel::runtime {

inline int64_t coordinate(int64_t id, const hp_axis &axis) {
  return id / axis.stride % axis.size;
}

/// The number that the digits along `axes` make.
inline int64_t indexAlong(int64_t id, const hp_axis *axes, int64_t count) {
  int64_t index = 0;
  for (int64_t i = 0; i < count; ++i)
    index = index * axes[i].size + coordinate(id, axes[i]);
  return index;
}

/// Replaces the coordinates along `axes` by the digits of `index`.
inline int64_t withIndexAlong(int64_t id, const hp_axis *axes, int64_t count,
                              int64_t index) {
  for (int64_t i = count; i-- > 0; index /= axes[i].size)
    id += (index % axes[i].size - coordinate(id, axes[i])) * axes[i].stride;
  return id;
}

inline std::string describeAxes(const hp_axis *axes, int64_t count) {
  std::string text = "[";
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::to_string(axes[i].size) + " at stride " +
            std::to_string(axes[i].stride);
  return text + "]";
}

/// Axes must cut the device ids into whole, disjoint digits.
inline hp_status checkAxes(const hp_axis *axes, int64_t count,
                           int64_t meshSize) {
  std::vector<hp_axis> sorted(axes, axes + count);
  std::sort(
      sorted.begin(), sorted.end(),
      [](const hp_axis &a, const hp_axis &b) { return a.stride < b.stride; });
  int64_t below = 1;
  for (const hp_axis &axis : sorted) {
    if (axis.stride < 1 || axis.size < 1 || axis.stride % below != 0 ||
        axis.size > meshSize / axis.stride ||
        meshSize % (axis.stride * axis.size) != 0)
      return fail(HP_INVALID_ARGUMENT,
                  "axes %s are no disjoint axes of a mesh of %lld devices",
                  describeAxes(axes, count).c_str(),
                  static_cast<long long>(meshSize));
    below = axis.stride * axis.size;
  }
  return HP_OK;
}

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_MESHAXES_H
