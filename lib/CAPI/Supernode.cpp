//===- Supernode.cpp - C API: attributes of the Supernode dialect ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/Supernode.h"

#include "dialects/Supernode/Supernode.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;
using namespace mlir::hyperparallel::supernode;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(Supernode, supernode, SupernodeDialect)

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

static SmallVector<StringAttr> unwrapStrings(MLIRContext *context,
                                             intptr_t size,
                                             const MlirStringRef *strings) {
  SmallVector<StringAttr> result;
  for (intptr_t i = 0; i < size; ++i)
    result.push_back(StringAttr::get(context, unwrap(strings[i])));
  return result;
}

static StringAttr optionalString(MLIRContext *context, MlirStringRef string) {
  return string.length ? StringAttr::get(context, unwrap(string))
                       : StringAttr();
}

static std::optional<SmallVector<Algorithm>>
unwrapAlgorithms(MlirLocation loc, intptr_t size, const MlirStringRef *names) {
  SmallVector<Algorithm> result;
  for (intptr_t i = 0; i < size; ++i) {
    std::optional<Algorithm> algorithm = symbolizeAlgorithm(unwrap(names[i]));
    if (!algorithm) {
      emitError(unwrap(loc)) << "expected an algorithm (ring, tree, halving, "
                                "direct, memory) but got `"
                             << unwrap(names[i]) << '`';
      return std::nullopt;
    }
    result.push_back(*algorithm);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Rate
//===----------------------------------------------------------------------===//

bool hpAttributeIsARate(MlirAttribute attr) {
  return isa<RateAttr>(unwrap(attr));
}

MlirAttribute hpRateAttrGet(MlirLocation loc, MlirType elementType,
                            double rate) {
  MLIRContext *context = unwrap(loc).getContext();
  return wrap(RateAttr::getChecked(emitAt(loc), context, unwrap(elementType),
                                   Quantity(rate)));
}

MlirType hpRateAttrGetElementType(MlirAttribute attr) {
  return wrap(cast<RateAttr>(unwrap(attr)).getElementType());
}

double hpRateAttrGetRate(MlirAttribute attr) {
  return cast<RateAttr>(unwrap(attr)).getRate();
}

//===----------------------------------------------------------------------===//
// Cores
//===----------------------------------------------------------------------===//

bool hpAttributeIsACores(MlirAttribute attr) {
  return isa<CoresAttr>(unwrap(attr));
}

MlirAttribute hpCoresAttrGet(MlirLocation loc, int64_t count, double gain,
                             double cut, double wake) {
  return wrap(CoresAttr::getChecked(emitAt(loc), unwrap(loc).getContext(),
                                    count, Quantity(gain), Quantity(cut),
                                    Quantity(wake)));
}

int64_t hpCoresAttrGetCount(MlirAttribute attr) {
  return cast<CoresAttr>(unwrap(attr)).getCount();
}

double hpCoresAttrGetGain(MlirAttribute attr) {
  return cast<CoresAttr>(unwrap(attr)).getGain();
}

double hpCoresAttrGetCut(MlirAttribute attr) {
  return cast<CoresAttr>(unwrap(attr)).getCut();
}

double hpCoresAttrGetWake(MlirAttribute attr) {
  return cast<CoresAttr>(unwrap(attr)).getWake();
}

//===----------------------------------------------------------------------===//
// DeviceGroup
//===----------------------------------------------------------------------===//

bool hpAttributeIsADeviceGroup(MlirAttribute attr) {
  return isa<DeviceGroupAttr>(unwrap(attr));
}

MlirAttribute hpDeviceGroupAttrGet(MlirLocation loc, MlirStringRef name,
                                   int64_t count, MlirStringRef memory,
                                   double launch, double vector,
                                   double efficiency, double packing,
                                   MlirStringRef cache, MlirAttribute cores,
                                   intptr_t numRates,
                                   const MlirAttribute *rates) {
  MLIRContext *context = unwrap(loc).getContext();
  auto coresAttr = dyn_cast_or_null<CoresAttr>(unwrap(cores));
  return wrap(DeviceGroupAttr::getChecked(
      emitAt(loc), context, unwrap(name), count, unwrap(memory),
      Quantity(launch), Quantity(vector), Quantity(efficiency),
      Quantity(packing), optionalString(context, cache), coresAttr,
      ArrayRef(unwrapAll<RateAttr>(numRates, rates))));
}

MlirStringRef hpDeviceGroupAttrGetName(MlirAttribute attr) {
  return wrap(cast<DeviceGroupAttr>(unwrap(attr)).getName());
}

int64_t hpDeviceGroupAttrGetCount(MlirAttribute attr) {
  return cast<DeviceGroupAttr>(unwrap(attr)).getCount();
}

MlirStringRef hpDeviceGroupAttrGetMemory(MlirAttribute attr) {
  return wrap(cast<DeviceGroupAttr>(unwrap(attr)).getMemory());
}

double hpDeviceGroupAttrGetLaunch(MlirAttribute attr) {
  return cast<DeviceGroupAttr>(unwrap(attr)).getLaunch();
}

double hpDeviceGroupAttrGetVector(MlirAttribute attr) {
  return cast<DeviceGroupAttr>(unwrap(attr)).getVector();
}

double hpDeviceGroupAttrGetEfficiency(MlirAttribute attr) {
  return cast<DeviceGroupAttr>(unwrap(attr)).getEfficiency();
}

double hpDeviceGroupAttrGetPacking(MlirAttribute attr) {
  return cast<DeviceGroupAttr>(unwrap(attr)).getPacking();
}

MlirStringRef hpDeviceGroupAttrGetCache(MlirAttribute attr) {
  StringAttr cache = cast<DeviceGroupAttr>(unwrap(attr)).getCache();
  return wrap(cache ? cache.getValue() : StringRef());
}

MlirAttribute hpDeviceGroupAttrGetCores(MlirAttribute attr) {
  return wrap(cast<DeviceGroupAttr>(unwrap(attr)).getCores());
}

intptr_t hpDeviceGroupAttrGetNumRates(MlirAttribute attr) {
  return cast<DeviceGroupAttr>(unwrap(attr)).getRates().size();
}

MlirAttribute hpDeviceGroupAttrGetRate(MlirAttribute attr, intptr_t index) {
  return wrap(cast<DeviceGroupAttr>(unwrap(attr)).getRates()[index]);
}

//===----------------------------------------------------------------------===//
// Level
//===----------------------------------------------------------------------===//

bool hpAttributeIsALevel(MlirAttribute attr) {
  return isa<LevelAttr>(unwrap(attr));
}

MlirAttribute hpLevelAttrGet(MlirLocation loc, MlirStringRef name, int64_t size,
                             double latency, double bandwidth,
                             intptr_t numAlgorithms,
                             const MlirStringRef *algorithms,
                             intptr_t numShared, const MlirStringRef *shared) {
  MLIRContext *context = unwrap(loc).getContext();
  std::optional<SmallVector<Algorithm>> unwrapped =
      unwrapAlgorithms(loc, numAlgorithms, algorithms);
  if (!unwrapped)
    return {nullptr};
  return wrap(LevelAttr::getChecked(
      emitAt(loc), context, unwrap(name), size, Quantity(latency),
      Quantity(bandwidth), ArrayRef(*unwrapped),
      ArrayRef(unwrapStrings(context, numShared, shared))));
}

MlirStringRef hpLevelAttrGetName(MlirAttribute attr) {
  return wrap(cast<LevelAttr>(unwrap(attr)).getName());
}

int64_t hpLevelAttrGetSize(MlirAttribute attr) {
  return cast<LevelAttr>(unwrap(attr)).getSize();
}

double hpLevelAttrGetLatency(MlirAttribute attr) {
  return cast<LevelAttr>(unwrap(attr)).getLatency();
}

double hpLevelAttrGetBandwidth(MlirAttribute attr) {
  return cast<LevelAttr>(unwrap(attr)).getBandwidth();
}

intptr_t hpLevelAttrGetNumAlgorithms(MlirAttribute attr) {
  return cast<LevelAttr>(unwrap(attr)).getAlgorithms().size();
}

MlirStringRef hpLevelAttrGetAlgorithm(MlirAttribute attr, intptr_t index) {
  return wrap(
      stringifyAlgorithm(cast<LevelAttr>(unwrap(attr)).getAlgorithms()[index]));
}

intptr_t hpLevelAttrGetNumShared(MlirAttribute attr) {
  return cast<LevelAttr>(unwrap(attr)).getShared().size();
}

MlirStringRef hpLevelAttrGetShared(MlirAttribute attr, intptr_t index) {
  return wrap(cast<LevelAttr>(unwrap(attr)).getShared()[index].getValue());
}

//===----------------------------------------------------------------------===//
// Tier
//===----------------------------------------------------------------------===//

bool hpAttributeIsATier(MlirAttribute attr) {
  return isa<TierAttr>(unwrap(attr));
}

MlirAttribute hpTierAttrGet(MlirLocation loc, MlirStringRef name,
                            MlirStringRef scope, double capacity,
                            double bandwidth, intptr_t numShared,
                            const MlirStringRef *shared) {
  MLIRContext *context = unwrap(loc).getContext();
  return wrap(TierAttr::getChecked(
      emitAt(loc), context, unwrap(name), unwrap(scope), Quantity(capacity),
      Quantity(bandwidth),
      ArrayRef(unwrapStrings(context, numShared, shared))));
}

MlirStringRef hpTierAttrGetName(MlirAttribute attr) {
  return wrap(cast<TierAttr>(unwrap(attr)).getName());
}

MlirStringRef hpTierAttrGetScope(MlirAttribute attr) {
  return wrap(cast<TierAttr>(unwrap(attr)).getScope());
}

double hpTierAttrGetCapacity(MlirAttribute attr) {
  return cast<TierAttr>(unwrap(attr)).getCapacity();
}

double hpTierAttrGetBandwidth(MlirAttribute attr) {
  return cast<TierAttr>(unwrap(attr)).getBandwidth();
}

intptr_t hpTierAttrGetNumShared(MlirAttribute attr) {
  return cast<TierAttr>(unwrap(attr)).getShared().size();
}

MlirStringRef hpTierAttrGetShared(MlirAttribute attr, intptr_t index) {
  return wrap(cast<TierAttr>(unwrap(attr)).getShared()[index].getValue());
}

//===----------------------------------------------------------------------===//
// Segment
//===----------------------------------------------------------------------===//

bool hpAttributeIsASegment(MlirAttribute attr) {
  return isa<SegmentAttr>(unwrap(attr));
}

MlirAttribute hpSegmentAttrGet(MlirLocation loc, MlirStringRef name,
                               MlirStringRef scope, double bandwidth,
                               MlirStringRef within) {
  MLIRContext *context = unwrap(loc).getContext();
  return wrap(SegmentAttr::getChecked(emitAt(loc), context, unwrap(name),
                                      unwrap(scope), Quantity(bandwidth),
                                      optionalString(context, within)));
}

MlirStringRef hpSegmentAttrGetName(MlirAttribute attr) {
  return wrap(cast<SegmentAttr>(unwrap(attr)).getName());
}

MlirStringRef hpSegmentAttrGetScope(MlirAttribute attr) {
  return wrap(cast<SegmentAttr>(unwrap(attr)).getScope());
}

double hpSegmentAttrGetBandwidth(MlirAttribute attr) {
  return cast<SegmentAttr>(unwrap(attr)).getBandwidth();
}

MlirStringRef hpSegmentAttrGetWithin(MlirAttribute attr) {
  StringAttr name = cast<SegmentAttr>(unwrap(attr)).getWithin();
  return wrap(name ? name.getValue() : StringRef());
}

//===----------------------------------------------------------------------===//
// Link
//===----------------------------------------------------------------------===//

bool hpAttributeIsALink(MlirAttribute attr) {
  return isa<LinkAttr>(unwrap(attr));
}

MlirAttribute hpLinkAttrGet(MlirLocation loc, MlirStringRef from,
                            MlirStringRef to, double latency, double bandwidth,
                            double staging, intptr_t numShared,
                            const MlirStringRef *shared) {
  MLIRContext *context = unwrap(loc).getContext();
  return wrap(LinkAttr::getChecked(
      emitAt(loc), context, unwrap(from), unwrap(to), Quantity(latency),
      Quantity(bandwidth), Quantity(staging),
      ArrayRef(unwrapStrings(context, numShared, shared))));
}

MlirStringRef hpLinkAttrGetFrom(MlirAttribute attr) {
  return wrap(cast<LinkAttr>(unwrap(attr)).getFrom());
}

MlirStringRef hpLinkAttrGetTo(MlirAttribute attr) {
  return wrap(cast<LinkAttr>(unwrap(attr)).getTo());
}

double hpLinkAttrGetLatency(MlirAttribute attr) {
  return cast<LinkAttr>(unwrap(attr)).getLatency();
}

double hpLinkAttrGetBandwidth(MlirAttribute attr) {
  return cast<LinkAttr>(unwrap(attr)).getBandwidth();
}

double hpLinkAttrGetStaging(MlirAttribute attr) {
  return cast<LinkAttr>(unwrap(attr)).getStaging();
}

intptr_t hpLinkAttrGetNumShared(MlirAttribute attr) {
  return cast<LinkAttr>(unwrap(attr)).getShared().size();
}

MlirStringRef hpLinkAttrGetShared(MlirAttribute attr, intptr_t index) {
  return wrap(cast<LinkAttr>(unwrap(attr)).getShared()[index].getValue());
}

//===----------------------------------------------------------------------===//
// Machine
//===----------------------------------------------------------------------===//

bool hpAttributeIsAMachine(MlirAttribute attr) {
  return isa<MachineAttr>(unwrap(attr));
}

MlirAttribute hpMachineAttrGet(MlirLocation loc, MlirStringRef name,
                               intptr_t numGroups, const MlirAttribute *groups,
                               intptr_t numLevels, const MlirAttribute *levels,
                               intptr_t numTiers, const MlirAttribute *tiers,
                               intptr_t numSegments,
                               const MlirAttribute *segments, intptr_t numLinks,
                               const MlirAttribute *links) {
  MLIRContext *context = unwrap(loc).getContext();
  return wrap(MachineAttr::getChecked(
      emitAt(loc), context, unwrap(name),
      ArrayRef(unwrapAll<DeviceGroupAttr>(numGroups, groups)),
      ArrayRef(unwrapAll<LevelAttr>(numLevels, levels)),
      ArrayRef(unwrapAll<TierAttr>(numTiers, tiers)),
      ArrayRef(unwrapAll<SegmentAttr>(numSegments, segments)),
      ArrayRef(unwrapAll<LinkAttr>(numLinks, links))));
}

MlirStringRef hpMachineAttrGetName(MlirAttribute attr) {
  return wrap(cast<MachineAttr>(unwrap(attr)).getName());
}

intptr_t hpMachineAttrGetNumGroups(MlirAttribute attr) {
  return cast<MachineAttr>(unwrap(attr)).getGroups().size();
}

MlirAttribute hpMachineAttrGetGroup(MlirAttribute attr, intptr_t index) {
  return wrap(cast<MachineAttr>(unwrap(attr)).getGroups()[index]);
}

intptr_t hpMachineAttrGetNumLevels(MlirAttribute attr) {
  return cast<MachineAttr>(unwrap(attr)).getLevels().size();
}

MlirAttribute hpMachineAttrGetLevel(MlirAttribute attr, intptr_t index) {
  return wrap(cast<MachineAttr>(unwrap(attr)).getLevels()[index]);
}

intptr_t hpMachineAttrGetNumTiers(MlirAttribute attr) {
  return cast<MachineAttr>(unwrap(attr)).getTiers().size();
}

MlirAttribute hpMachineAttrGetTier(MlirAttribute attr, intptr_t index) {
  return wrap(cast<MachineAttr>(unwrap(attr)).getTiers()[index]);
}

intptr_t hpMachineAttrGetNumSegments(MlirAttribute attr) {
  return cast<MachineAttr>(unwrap(attr)).getSegments().size();
}

MlirAttribute hpMachineAttrGetSegment(MlirAttribute attr, intptr_t index) {
  return wrap(cast<MachineAttr>(unwrap(attr)).getSegments()[index]);
}

intptr_t hpMachineAttrGetNumLinks(MlirAttribute attr) {
  return cast<MachineAttr>(unwrap(attr)).getLinks().size();
}

MlirAttribute hpMachineAttrGetLink(MlirAttribute attr, intptr_t index) {
  return wrap(cast<MachineAttr>(unwrap(attr)).getLinks()[index]);
}

MlirAttribute hpMachineAttrGetPreset(MlirContext context, MlirStringRef name) {
  auto *dialect = unwrap(context)->getOrLoadDialect<SupernodeDialect>();
  return wrap(Attribute(dialect->getPreset(unwrap(name))));
}

intptr_t hpMachineGetNumPresets() { return getPresetNames().size(); }

MlirStringRef hpMachineGetPresetName(intptr_t index) {
  return wrap(getPresetNames()[index]);
}
