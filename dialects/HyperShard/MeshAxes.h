//===- MeshAxes.h - arithmetic of axes and sub-axes -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A mesh axis of size S may be seen as several: `(pre, size, post)` with
// pre * size * post = S. An Axis is such a part, and a whole axis is (1, S, 1).
// Devices are numbered row-major, so a part is a stride in device ids: this is
// all that a group of devices is, however large the mesh.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_HYPERSHARD_MESHAXES_H
#define HYPERPARALLEL_DIALECTS_HYPERSHARD_MESHAXES_H

#include "dialects/HyperShard/HyperShard.h"

namespace mlir::hyperparallel::hypershard {

/// A part of a mesh axis, by number.
struct Axis {
  uint32_t axis;
  int64_t pre;
  int64_t size;

  bool operator==(const Axis &o) const {
    return axis == o.axis && pre == o.pre && size == o.size;
  }
  bool operator!=(const Axis &o) const { return !(*this == o); }
  bool operator<(const Axis &o) const {
    return std::tie(axis, pre, size) < std::tie(o.axis, o.pre, o.size);
  }
  /// Do the two share devices' coordinates? Parts of one axis are disjoint iff
  /// one ends before the other begins.
  bool overlaps(const Axis &o) const {
    return axis == o.axis && pre < o.pre * o.size && o.pre < pre * size;
  }
};

using AxisList = SmallVector<Axis, 2>;

/// A mesh with its arithmetic; cheap to copy.
class MeshAxes {
public:
  explicit MeshAxes(MeshAttr mesh) : mesh(mesh) {}

  MeshAttr attr() const { return mesh; }
  unsigned numAxes() const { return mesh.getAxes().size(); }
  int64_t axisSize(unsigned axis) const {
    return mesh.getAxes()[axis].getSize();
  }
  int64_t numDevices() const { return mesh.getNumDevices(); }
  Axis whole(unsigned axis) const { return {axis, 1, axisSize(axis)}; }
  /// Every axis of more than one device, in mesh order.
  AxisList allAxes() const;

  Axis fromAttr(AxisRefAttr attr) const;
  AxisRefAttr toAttr(Axis axis) const;
  AxisList fromAttrs(ArrayRef<AxisRefAttr> attrs) const;
  AxisList fromAttrs(ArrayAttr attrs) const;
  SmallVector<AxisRefAttr> toAttrs(ArrayRef<Axis> axes) const;
  ArrayAttr toArrayAttr(ArrayRef<Axis> axes) const;

  /// Distance in device ids between neighbours along the part.
  int64_t stride(Axis axis) const;
  /// The coordinate of a device along the part.
  int64_t coordinate(int64_t device, Axis axis) const {
    return device / stride(axis) % axis.size;
  }
  /// The coordinates along the axes as one number, first most significant.
  int64_t linearIndex(int64_t device, ArrayRef<Axis> axes) const;

private:
  MeshAttr mesh;
};

/// Product of the sizes.
int64_t numShards(ArrayRef<Axis> axes);
/// Joins neighbours that are consecutive parts of one axis, drops size 1.
AxisList mergeAxes(ArrayRef<Axis> axes);
/// Cuts `axes` (merged) into a head of `size` devices and the rest, splitting
/// an axis where needed; nullopt if an axis cannot be cut there.
std::optional<std::pair<AxisList, AxisList>> splitAxes(ArrayRef<Axis> axes,
                                                       int64_t size);
/// The longest common head of two lists, down to common parts of an axis.
AxisList commonPrefix(ArrayRef<Axis> a, ArrayRef<Axis> b);
/// `axes` is `prefix` and then more; returns the more. nullopt otherwise.
std::optional<AxisList> removePrefix(ArrayRef<Axis> axes,
                                     ArrayRef<Axis> prefix);
bool overlaps(ArrayRef<Axis> a, ArrayRef<Axis> b);
bool overlaps(ArrayRef<Axis> a, Axis b);
/// The head of `axes` up to the first that overlaps one of `others` (the part
/// of that axis which is still free, where it is a head, is kept).
AxisList prefixWithoutOverlap(ArrayRef<Axis> axes, ArrayRef<Axis> others);

} // namespace mlir::hyperparallel::hypershard

#endif // HYPERPARALLEL_DIALECTS_HYPERSHARD_MESHAXES_H
