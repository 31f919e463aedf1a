/*===- HyperShard.h - C API: attributes of the HyperShard dialect -*- C -*-==*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===--------------------------------------------------------------------===*/
#ifndef HYPERPARALLEL_LIB_CAPI_HYPERSHARD_H
#define HYPERPARALLEL_LIB_CAPI_HYPERSHARD_H

#include "mlir-c/IR.h"
#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(HyperShard, hypershard);

/* Constructors return a null attribute, with a diagnostic at `loc`, when the
 * parts do not make one. */

MLIR_CAPI_EXPORTED bool hpAttributeIsAMesh(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID hpMeshAttrGetTypeID(void);
/** `deviceIds` may be empty: the order 0, 1, ... */
MLIR_CAPI_EXPORTED MlirAttribute hpMeshAttrGet(
    MlirLocation loc, intptr_t numAxes, const MlirStringRef *names,
    const int64_t *sizes, intptr_t numDeviceIds, const int64_t *deviceIds);
MLIR_CAPI_EXPORTED intptr_t hpMeshAttrGetNumAxes(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirStringRef hpMeshAttrGetAxisName(MlirAttribute attr,
                                                       intptr_t index);
MLIR_CAPI_EXPORTED int64_t hpMeshAttrGetAxisSize(MlirAttribute attr,
                                                 intptr_t index);
MLIR_CAPI_EXPORTED int64_t hpMeshAttrGetNumDevices(MlirAttribute attr);
MLIR_CAPI_EXPORTED intptr_t hpMeshAttrGetNumDeviceIds(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t hpMeshAttrGetDeviceId(MlirAttribute attr,
                                                 intptr_t index);

MLIR_CAPI_EXPORTED bool hpAttributeIsAAxisRef(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID hpAxisRefAttrGetTypeID(void);
/** `size` 0 means the whole axis. */
MLIR_CAPI_EXPORTED MlirAttribute hpAxisRefAttrGet(MlirLocation loc,
                                                  MlirStringRef name,
                                                  int64_t preSize,
                                                  int64_t size);
MLIR_CAPI_EXPORTED MlirStringRef hpAxisRefAttrGetName(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t hpAxisRefAttrGetPreSize(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t hpAxisRefAttrGetSize(MlirAttribute attr);

MLIR_CAPI_EXPORTED bool hpAttributeIsADimSharding(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID hpDimShardingAttrGetTypeID(void);
MLIR_CAPI_EXPORTED MlirAttribute hpDimShardingAttrGet(MlirLocation loc,
                                                      intptr_t numAxes,
                                                      const MlirAttribute *axes,
                                                      bool isOpen,
                                                      int64_t priority);
MLIR_CAPI_EXPORTED intptr_t hpDimShardingAttrGetNumAxes(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpDimShardingAttrGetAxis(MlirAttribute attr,
                                                          intptr_t index);
MLIR_CAPI_EXPORTED bool hpDimShardingAttrIsOpen(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t hpDimShardingAttrGetPriority(MlirAttribute attr);

MLIR_CAPI_EXPORTED bool hpAttributeIsASharding(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirTypeID hpShardingAttrGetTypeID(void);
/** `partialKind` is empty for a value that is whole. */
MLIR_CAPI_EXPORTED MlirAttribute
hpShardingAttrGet(MlirLocation loc, MlirStringRef mesh, intptr_t numDims,
                  const MlirAttribute *dims, intptr_t numReplicated,
                  const MlirAttribute *replicated, MlirStringRef partialKind,
                  intptr_t numPartial, const MlirAttribute *partial);
MLIR_CAPI_EXPORTED MlirStringRef hpShardingAttrGetMesh(MlirAttribute attr);
MLIR_CAPI_EXPORTED intptr_t hpShardingAttrGetNumDims(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpShardingAttrGetDim(MlirAttribute attr,
                                                      intptr_t index);
MLIR_CAPI_EXPORTED intptr_t hpShardingAttrGetNumReplicated(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpShardingAttrGetReplicated(MlirAttribute attr,
                                                             intptr_t index);
/** Empty when the value is whole. */
MLIR_CAPI_EXPORTED MlirStringRef
hpShardingAttrGetPartialKind(MlirAttribute attr);
MLIR_CAPI_EXPORTED intptr_t hpShardingAttrGetNumPartial(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpShardingAttrGetPartial(MlirAttribute attr,
                                                          intptr_t index);

#ifdef __cplusplus
}
#endif

#endif /* HYPERPARALLEL_LIB_CAPI_HYPERSHARD_H */
