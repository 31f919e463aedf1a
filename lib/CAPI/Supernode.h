/*===- Supernode.h - C API: attributes of the Supernode dialect ---*- C -*-==*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===--------------------------------------------------------------------===*/
#ifndef HYPERPARALLEL_LIB_CAPI_SUPERNODE_H
#define HYPERPARALLEL_LIB_CAPI_SUPERNODE_H

#include "mlir-c/IR.h"
#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Supernode, supernode);

/* Constructors return a null attribute, with a diagnostic at `loc`, when the
 * parts do not make one. All numbers are in SI units without prefix. */

MLIR_CAPI_EXPORTED bool hpAttributeIsARate(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpRateAttrGet(MlirLocation loc,
                                               MlirType elementType,
                                               double rate);
MLIR_CAPI_EXPORTED MlirType hpRateAttrGetElementType(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpRateAttrGetRate(MlirAttribute attr);

MLIR_CAPI_EXPORTED bool hpAttributeIsACores(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpCoresAttrGet(MlirLocation loc, int64_t count,
                                                double gain, double cut,
                                                double wake);
MLIR_CAPI_EXPORTED int64_t hpCoresAttrGetCount(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpCoresAttrGetGain(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpCoresAttrGetCut(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpCoresAttrGetWake(MlirAttribute attr);

MLIR_CAPI_EXPORTED bool hpAttributeIsADeviceGroup(MlirAttribute attr);
/** `packing` may be 0, `cache` empty and `cores` null. */
MLIR_CAPI_EXPORTED MlirAttribute hpDeviceGroupAttrGet(
    MlirLocation loc, MlirStringRef name, int64_t count, MlirStringRef memory,
    double launch, double vector, double efficiency, double packing,
    MlirStringRef cache, MlirAttribute cores, intptr_t numRates,
    const MlirAttribute *rates);
MLIR_CAPI_EXPORTED MlirStringRef hpDeviceGroupAttrGetName(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t hpDeviceGroupAttrGetCount(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirStringRef hpDeviceGroupAttrGetMemory(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpDeviceGroupAttrGetLaunch(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpDeviceGroupAttrGetVector(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpDeviceGroupAttrGetEfficiency(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpDeviceGroupAttrGetPacking(MlirAttribute attr);
/** Empty if there is none. */
MLIR_CAPI_EXPORTED MlirStringRef hpDeviceGroupAttrGetCache(MlirAttribute attr);
/** Null if there are none. */
MLIR_CAPI_EXPORTED MlirAttribute hpDeviceGroupAttrGetCores(MlirAttribute attr);
MLIR_CAPI_EXPORTED intptr_t hpDeviceGroupAttrGetNumRates(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpDeviceGroupAttrGetRate(MlirAttribute attr,
                                                          intptr_t index);

MLIR_CAPI_EXPORTED bool hpAttributeIsALevel(MlirAttribute attr);
/** An algorithm is named as in the dialect's text. */
MLIR_CAPI_EXPORTED MlirAttribute hpLevelAttrGet(
    MlirLocation loc, MlirStringRef name, int64_t size, double latency,
    double bandwidth, intptr_t numAlgorithms, const MlirStringRef *algorithms,
    intptr_t numShared, const MlirStringRef *shared);
MLIR_CAPI_EXPORTED MlirStringRef hpLevelAttrGetName(MlirAttribute attr);
MLIR_CAPI_EXPORTED int64_t hpLevelAttrGetSize(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpLevelAttrGetLatency(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpLevelAttrGetBandwidth(MlirAttribute attr);
MLIR_CAPI_EXPORTED intptr_t hpLevelAttrGetNumAlgorithms(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirStringRef hpLevelAttrGetAlgorithm(MlirAttribute attr,
                                                         intptr_t index);
MLIR_CAPI_EXPORTED intptr_t hpLevelAttrGetNumShared(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirStringRef hpLevelAttrGetShared(MlirAttribute attr,
                                                      intptr_t index);

MLIR_CAPI_EXPORTED bool hpAttributeIsATier(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpTierAttrGet(
    MlirLocation loc, MlirStringRef name, MlirStringRef scope, double capacity,
    double bandwidth, intptr_t numShared, const MlirStringRef *shared);
MLIR_CAPI_EXPORTED MlirStringRef hpTierAttrGetName(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirStringRef hpTierAttrGetScope(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpTierAttrGetCapacity(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpTierAttrGetBandwidth(MlirAttribute attr);
MLIR_CAPI_EXPORTED intptr_t hpTierAttrGetNumShared(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirStringRef hpTierAttrGetShared(MlirAttribute attr,
                                                     intptr_t index);

MLIR_CAPI_EXPORTED bool hpAttributeIsASegment(MlirAttribute attr);
/** `within` may be empty. */
MLIR_CAPI_EXPORTED MlirAttribute hpSegmentAttrGet(MlirLocation loc,
                                                  MlirStringRef name,
                                                  MlirStringRef scope,
                                                  double bandwidth,
                                                  MlirStringRef within);
MLIR_CAPI_EXPORTED MlirStringRef hpSegmentAttrGetName(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirStringRef hpSegmentAttrGetScope(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpSegmentAttrGetBandwidth(MlirAttribute attr);
/** Empty if there is none. */
MLIR_CAPI_EXPORTED MlirStringRef hpSegmentAttrGetWithin(MlirAttribute attr);

MLIR_CAPI_EXPORTED bool hpAttributeIsALink(MlirAttribute attr);
/** `staging` is 0 if there is no buffer. */
MLIR_CAPI_EXPORTED MlirAttribute hpLinkAttrGet(MlirLocation loc,
                                               MlirStringRef from,
                                               MlirStringRef to, double latency,
                                               double bandwidth, double staging,
                                               intptr_t numShared,
                                               const MlirStringRef *shared);
MLIR_CAPI_EXPORTED MlirStringRef hpLinkAttrGetFrom(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirStringRef hpLinkAttrGetTo(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpLinkAttrGetLatency(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpLinkAttrGetBandwidth(MlirAttribute attr);
MLIR_CAPI_EXPORTED double hpLinkAttrGetStaging(MlirAttribute attr);
MLIR_CAPI_EXPORTED intptr_t hpLinkAttrGetNumShared(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirStringRef hpLinkAttrGetShared(MlirAttribute attr,
                                                     intptr_t index);

MLIR_CAPI_EXPORTED bool hpAttributeIsAMachine(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpMachineAttrGet(
    MlirLocation loc, MlirStringRef name, intptr_t numGroups,
    const MlirAttribute *groups, intptr_t numLevels,
    const MlirAttribute *levels, intptr_t numTiers, const MlirAttribute *tiers,
    intptr_t numSegments, const MlirAttribute *segments, intptr_t numLinks,
    const MlirAttribute *links);
MLIR_CAPI_EXPORTED MlirStringRef hpMachineAttrGetName(MlirAttribute attr);
MLIR_CAPI_EXPORTED intptr_t hpMachineAttrGetNumGroups(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpMachineAttrGetGroup(MlirAttribute attr,
                                                       intptr_t index);
MLIR_CAPI_EXPORTED intptr_t hpMachineAttrGetNumLevels(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpMachineAttrGetLevel(MlirAttribute attr,
                                                       intptr_t index);
MLIR_CAPI_EXPORTED intptr_t hpMachineAttrGetNumTiers(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpMachineAttrGetTier(MlirAttribute attr,
                                                      intptr_t index);
MLIR_CAPI_EXPORTED intptr_t hpMachineAttrGetNumSegments(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpMachineAttrGetSegment(MlirAttribute attr,
                                                         intptr_t index);
MLIR_CAPI_EXPORTED intptr_t hpMachineAttrGetNumLinks(MlirAttribute attr);
MLIR_CAPI_EXPORTED MlirAttribute hpMachineAttrGetLink(MlirAttribute attr,
                                                      intptr_t index);

/** The preset of that name, or null. */
MLIR_CAPI_EXPORTED MlirAttribute hpMachineAttrGetPreset(MlirContext context,
                                                        MlirStringRef name);
MLIR_CAPI_EXPORTED intptr_t hpMachineGetNumPresets(void);
MLIR_CAPI_EXPORTED MlirStringRef hpMachineGetPresetName(intptr_t index);

#ifdef __cplusplus
}
#endif

#endif /* HYPERPARALLEL_LIB_CAPI_SUPERNODE_H */
