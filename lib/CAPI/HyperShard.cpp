//===- HyperShard.cpp - C API: attributes of the HyperShard dialect -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/HyperShard.h"

#include "dialects/HyperShard/HyperShard.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(HyperShard, hypershard, HyperShardDialect)

static auto emitAt(MlirLocation loc) {
  return [loc] { return emitError(unwrap(loc)); };
}

template <typename AttrTy>
static SmallVector<AttrTy> unwrapAll(intptr_t size,
                                     const MlirAttribute *attrs) {
  SmallVector<AttrTy> result;
  for (intptr_t i = 0; i < size; ++i)
    result.push_back(cast<AttrTy>(unwrap(attrs[i])));
  return result;
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

static MeshAttr mesh(MlirAttribute attr) {
  return cast<MeshAttr>(unwrap(attr));
}

bool hpAttributeIsAMesh(MlirAttribute attr) {
  return isa<MeshAttr>(unwrap(attr));
}

MlirTypeID hpMeshAttrGetTypeID(void) { return wrap(MeshAttr::getTypeID()); }

MlirAttribute hpMeshAttrGet(MlirLocation loc, intptr_t numAxes,
                            const MlirStringRef *names, const int64_t *sizes,
                            intptr_t numDeviceIds, const int64_t *deviceIds) {
  MLIRContext *context = unwrap(loc).getContext();
  SmallVector<MeshAxisAttr> axes;
  for (intptr_t i = 0; i < numAxes; ++i) {
    auto axis = getVerified<MeshAxisAttr>(emitAt(loc), context,
                                          unwrap(names[i]), sizes[i]);
    if (!axis)
      return {nullptr};
    axes.push_back(axis);
  }
  return wrap(getVerified<MeshAttr>(
      emitAt(loc), context, axes,
      ArrayRef(deviceIds, static_cast<size_t>(numDeviceIds))));
}

intptr_t hpMeshAttrGetNumAxes(MlirAttribute attr) {
  return mesh(attr).getAxes().size();
}
MlirStringRef hpMeshAttrGetAxisName(MlirAttribute attr, intptr_t index) {
  return wrap(mesh(attr).getAxes()[index].getName());
}
int64_t hpMeshAttrGetAxisSize(MlirAttribute attr, intptr_t index) {
  return mesh(attr).getAxes()[index].getSize();
}
int64_t hpMeshAttrGetNumDevices(MlirAttribute attr) {
  return mesh(attr).getNumDevices();
}
intptr_t hpMeshAttrGetNumDeviceIds(MlirAttribute attr) {
  return mesh(attr).getDeviceIds().size();
}
int64_t hpMeshAttrGetDeviceId(MlirAttribute attr, intptr_t index) {
  return mesh(attr).getDeviceIds()[index];
}

//===----------------------------------------------------------------------===//
// Axes and dimensions
//===----------------------------------------------------------------------===//

static AxisRefAttr axis(MlirAttribute attr) {
  return cast<AxisRefAttr>(unwrap(attr));
}
static DimShardingAttr dim(MlirAttribute attr) {
  return cast<DimShardingAttr>(unwrap(attr));
}

bool hpAttributeIsAAxisRef(MlirAttribute attr) {
  return isa<AxisRefAttr>(unwrap(attr));
}

MlirTypeID hpAxisRefAttrGetTypeID(void) {
  return wrap(AxisRefAttr::getTypeID());
}
MlirAttribute hpAxisRefAttrGet(MlirLocation loc, MlirStringRef name,
                               int64_t preSize, int64_t size) {
  return wrap(getVerified<AxisRefAttr>(emitAt(loc), unwrap(loc).getContext(),
                                       unwrap(name), preSize, size));
}
MlirStringRef hpAxisRefAttrGetName(MlirAttribute attr) {
  return wrap(axis(attr).getName());
}
int64_t hpAxisRefAttrGetPreSize(MlirAttribute attr) {
  return axis(attr).getPreSize();
}
int64_t hpAxisRefAttrGetSize(MlirAttribute attr) {
  return axis(attr).getSize();
}

bool hpAttributeIsADimSharding(MlirAttribute attr) {
  return isa<DimShardingAttr>(unwrap(attr));
}

MlirTypeID hpDimShardingAttrGetTypeID(void) {
  return wrap(DimShardingAttr::getTypeID());
}
MlirAttribute hpDimShardingAttrGet(MlirLocation loc, intptr_t numAxes,
                                   const MlirAttribute *axes, bool isOpen,
                                   int64_t priority) {
  return wrap(getVerified<DimShardingAttr>(
      emitAt(loc), unwrap(loc).getContext(),
      unwrapAll<AxisRefAttr>(numAxes, axes), isOpen, priority));
}
intptr_t hpDimShardingAttrGetNumAxes(MlirAttribute attr) {
  return dim(attr).getAxes().size();
}
MlirAttribute hpDimShardingAttrGetAxis(MlirAttribute attr, intptr_t index) {
  return wrap(dim(attr).getAxes()[index]);
}
bool hpDimShardingAttrIsOpen(MlirAttribute attr) {
  return dim(attr).getIsOpen();
}
int64_t hpDimShardingAttrGetPriority(MlirAttribute attr) {
  return dim(attr).getPriority();
}

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

static ShardingAttr sharding(MlirAttribute attr) {
  return cast<ShardingAttr>(unwrap(attr));
}

bool hpAttributeIsASharding(MlirAttribute attr) {
  return isa<ShardingAttr>(unwrap(attr));
}

MlirTypeID hpShardingAttrGetTypeID(void) {
  return wrap(ShardingAttr::getTypeID());
}

MlirAttribute hpShardingAttrGet(MlirLocation loc, MlirStringRef mesh,
                                intptr_t numDims, const MlirAttribute *dims,
                                intptr_t numReplicated,
                                const MlirAttribute *replicated,
                                MlirStringRef partialKind, intptr_t numPartial,
                                const MlirAttribute *partial) {
  MLIRContext *context = unwrap(loc).getContext();
  PartialAttr partialAttr;
  if (partialKind.length != 0) {
    std::optional<Reduction> kind = symbolizeReduction(unwrap(partialKind));
    if (!kind) {
      emitError(unwrap(loc))
          << "expected one of sum, max, min, prod, and, or, avg but got `"
          << unwrap(partialKind) << '`';
      return {nullptr};
    }
    partialAttr = PartialAttr::get(context, *kind,
                                   unwrapAll<AxisRefAttr>(numPartial, partial));
  }
  return wrap(getVerified<ShardingAttr>(
      emitAt(loc), context, FlatSymbolRefAttr::get(context, unwrap(mesh)),
      unwrapAll<DimShardingAttr>(numDims, dims),
      unwrapAll<AxisRefAttr>(numReplicated, replicated), partialAttr));
}

MlirStringRef hpShardingAttrGetMesh(MlirAttribute attr) {
  return wrap(sharding(attr).getMesh().getValue());
}
intptr_t hpShardingAttrGetNumDims(MlirAttribute attr) {
  return sharding(attr).getDims().size();
}
MlirAttribute hpShardingAttrGetDim(MlirAttribute attr, intptr_t index) {
  return wrap(sharding(attr).getDims()[index]);
}
intptr_t hpShardingAttrGetNumReplicated(MlirAttribute attr) {
  return sharding(attr).getReplicated().size();
}
MlirAttribute hpShardingAttrGetReplicated(MlirAttribute attr, intptr_t index) {
  return wrap(sharding(attr).getReplicated()[index]);
}
MlirStringRef hpShardingAttrGetPartialKind(MlirAttribute attr) {
  PartialAttr partial = sharding(attr).getPartial();
  return wrap(partial ? stringifyReduction(partial.getKind()) : StringRef());
}
intptr_t hpShardingAttrGetNumPartial(MlirAttribute attr) {
  PartialAttr partial = sharding(attr).getPartial();
  return partial ? partial.getAxes().size() : 0;
}
MlirAttribute hpShardingAttrGetPartial(MlirAttribute attr, intptr_t index) {
  return wrap(sharding(attr).getPartial().getAxes()[index]);
}
