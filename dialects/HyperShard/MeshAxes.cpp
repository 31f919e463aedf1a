//===- MeshAxes.cpp - arithmetic of axes and sub-axes ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/HyperShard/MeshAxes.h"

#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

//===----------------------------------------------------------------------===//
// A mesh
//===----------------------------------------------------------------------===//

AxisList MeshAxes::allAxes() const {
  AxisList axes;
  for (unsigned i = 0; i < numAxes(); ++i)
    if (axisSize(i) > 1)
      axes.push_back(whole(i));
  return axes;
}

Axis MeshAxes::fromAttr(AxisRefAttr attr) const {
  int64_t index = mesh.getAxisIndex(attr.getName());
  assert(index >= 0 && "axis was verified to exist");
  if (!attr.isSubAxis())
    return whole(index);
  return {static_cast<uint32_t>(index), attr.getPreSize(), attr.getSize()};
}

AxisRefAttr MeshAxes::toAttr(Axis axis) const {
  MLIRContext *context = mesh.getContext();
  StringRef name = mesh.getAxes()[axis.axis].getName();
  if (axis == whole(axis.axis))
    return AxisRefAttr::get(context, name);
  return AxisRefAttr::get(context, name, axis.pre, axis.size);
}

/// Axes of one device split nothing: they are dropped on the way in.
AxisList MeshAxes::fromAttrs(ArrayRef<AxisRefAttr> attrs) const {
  AxisList axes;
  for (AxisRefAttr attr : attrs)
    if (Axis axis = fromAttr(attr); axis.size > 1)
      axes.push_back(axis);
  return axes;
}

AxisList MeshAxes::fromAttrs(ArrayAttr attrs) const {
  SmallVector<AxisRefAttr> refs(attrs.getAsRange<AxisRefAttr>());
  return fromAttrs(refs);
}

SmallVector<AxisRefAttr> MeshAxes::toAttrs(ArrayRef<Axis> axes) const {
  return llvm::map_to_vector(axes, [&](Axis axis) { return toAttr(axis); });
}

ArrayAttr MeshAxes::toArrayAttr(ArrayRef<Axis> axes) const {
  SmallVector<Attribute> attrs;
  for (Axis axis : axes)
    attrs.push_back(toAttr(axis));
  return ArrayAttr::get(mesh.getContext(), attrs);
}

int64_t MeshAxes::stride(Axis axis) const {
  int64_t stride = axisSize(axis.axis) / (axis.pre * axis.size);
  for (unsigned i = axis.axis + 1; i < numAxes(); ++i)
    stride *= axisSize(i);
  return stride;
}

int64_t MeshAxes::linearIndex(int64_t device, ArrayRef<Axis> axes) const {
  int64_t index = 0;
  for (Axis axis : axes)
    index = index * axis.size + coordinate(device, axis);
  return index;
}

//===----------------------------------------------------------------------===//
// Lists of axes
//===----------------------------------------------------------------------===//

int64_t hypershard::numShards(ArrayRef<Axis> axes) {
  int64_t count = 1;
  for (Axis axis : axes)
    count *= axis.size;
  return count;
}

AxisList hypershard::mergeAxes(ArrayRef<Axis> axes) {
  AxisList merged;
  for (Axis axis : axes) {
    if (axis.size == 1)
      continue;
    if (!merged.empty() && merged.back().axis == axis.axis &&
        merged.back().pre * merged.back().size == axis.pre) {
      merged.back().size *= axis.size;
      continue;
    }
    merged.push_back(axis);
  }
  return merged;
}

std::optional<std::pair<AxisList, AxisList>>
hypershard::splitAxes(ArrayRef<Axis> axes, int64_t size) {
  AxisList head, tail;
  for (Axis axis : axes) {
    if (size == 1 || !tail.empty()) {
      tail.push_back(axis);
      continue;
    }
    if (size % axis.size == 0) {
      head.push_back(axis);
      size /= axis.size;
      continue;
    }
    if (axis.size % size != 0)
      return std::nullopt;
    head.push_back({axis.axis, axis.pre, size});
    tail.push_back({axis.axis, axis.pre * size, axis.size / size});
    size = 1;
  }
  return std::make_pair(head, tail);
}

AxisList hypershard::commonPrefix(ArrayRef<Axis> a, ArrayRef<Axis> b) {
  AxisList prefix;
  for (auto [x, y] : llvm::zip(a, b)) {
    if (x == y) {
      prefix.push_back(x);
      continue;
    }
    if (x.axis == y.axis && x.pre == y.pre)
      if (int64_t size = std::gcd(x.size, y.size);
          size > 1 && (size == x.size || size == y.size))
        prefix.push_back({x.axis, x.pre, size});
    break;
  }
  return prefix;
}

std::optional<AxisList> hypershard::removePrefix(ArrayRef<Axis> axes,
                                                 ArrayRef<Axis> prefix) {
  AxisList rest;
  if (prefix.size() > axes.size())
    return std::nullopt;
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (index >= prefix.size()) {
      rest.push_back(axis);
      continue;
    }
    Axis head = prefix[index];
    if (head == axis)
      continue;
    // Only the last of the prefix may be a part of an axis.
    if (index + 1 != prefix.size() || head.axis != axis.axis ||
        head.pre != axis.pre || axis.size % head.size != 0)
      return std::nullopt;
    rest.push_back({axis.axis, axis.pre * head.size, axis.size / head.size});
  }
  return rest;
}

bool hypershard::overlaps(ArrayRef<Axis> a, Axis b) {
  return llvm::any_of(a, [&](Axis axis) { return axis.overlaps(b); });
}

bool hypershard::overlaps(ArrayRef<Axis> a, ArrayRef<Axis> b) {
  return llvm::any_of(b, [&](Axis axis) { return overlaps(a, axis); });
}

AxisList hypershard::prefixWithoutOverlap(ArrayRef<Axis> axes,
                                          ArrayRef<Axis> others) {
  AxisList prefix;
  for (Axis axis : axes) {
    int64_t end = axis.pre * axis.size;
    for (Axis other : others)
      if (axis.overlaps(other))
        end = std::min(end, other.pre);
    if (end == axis.pre * axis.size) {
      prefix.push_back(axis);
      continue;
    }
    if (end > axis.pre && end % axis.pre == 0)
      prefix.push_back({axis.axis, axis.pre, end / axis.pre});
    break;
  }
  return prefix;
}
