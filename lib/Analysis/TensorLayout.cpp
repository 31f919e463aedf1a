//===- TensorLayout.cpp - where the elements of a tensor are --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Analysis/TensorLayout.h"

#include "dialects/Interfaces/CostOpInterface.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

TensorLayout TensorLayout::fromAttr(ShardingAttr sharding,
                                    const MeshAxes &mesh) {
  TensorLayout layout;
  for (DimShardingAttr dim : sharding.getDims())
    layout.dims.push_back(mergeAxes(mesh.fromAttrs(dim.getAxes())));
  if (PartialAttr partial = sharding.getPartial())
    layout.setPartial(partial.getKind(), mesh.fromAttrs(partial.getAxes()));
  return layout;
}

ShardingAttr TensorLayout::toAttr(FlatSymbolRefAttr meshName,
                                  const MeshAxes &mesh) const {
  MLIRContext *context = meshName.getContext();
  SmallVector<DimShardingAttr> dimAttrs;
  for (const AxisList &axes : dims)
    dimAttrs.push_back(
        DimShardingAttr::get(context, mesh.toAttrs(mergeAxes(axes)), false, 0));
  PartialAttr partialAttr;
  if (!partial.empty())
    partialAttr = PartialAttr::get(context, kind, mesh.toAttrs(partial));
  return ShardingAttr::get(context, meshName, dimAttrs, {}, partialAttr);
}

void TensorLayout::setPartial(Reduction newKind, ArrayRef<Axis> axes) {
  AxisList sorted(axes);
  llvm::sort(sorted);
  partial = mergeAxes(sorted);
  kind = partial.empty() ? Reduction::Sum : newKind;
}

bool TensorLayout::isReplicated() const {
  return partial.empty() &&
         llvm::all_of(dims, [](const AxisList &axes) { return axes.empty(); });
}

bool TensorLayout::operator==(const TensorLayout &other) const {
  return dims == other.dims && partial == other.partial &&
         (partial.empty() || kind == other.kind);
}

AxisList TensorLayout::splitAxes() const {
  AxisList all;
  for (const AxisList &axes : dims)
    all.append(axes);
  return all;
}

SmallVector<int64_t> TensorLayout::localShape(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> local;
  for (auto [size, axes] : llvm::zip_equal(shape, dims))
    local.push_back(blockSize(size, numShards(axes)));
  return local;
}

bool TensorLayout::isUneven(ArrayRef<int64_t> shape, unsigned dim) const {
  return shape[dim] % numShards(dims[dim]) != 0;
}

int64_t TensorLayout::localBytes(RankedTensorType type) const {
  return byteSize(localType(type));
}
