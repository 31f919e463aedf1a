//===- MachineResources.cpp - what transfers of programs share ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Units are numbered by their first device: device d lies in unit d / n of a
// scope that n devices share.
// Limits: a group counts as the devices that it has in the unit of its first
// device; where it fills several units, they are taken to be alike.
//===----------------------------------------------------------------------===//
#include "lib/Simulator/MachineResources.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;

int64_t MachineResources::devicesInUnit(DeviceRange devices,
                                        StringRef scope) const {
  int64_t size = machine.getDevicesPerUnit(scope);
  int64_t end = (devices.first / size + 1) * size;
  return std::min(devices.count, end - devices.first);
}

void MachineResources::use(Uses &uses, LinkKind kind, StringRef what,
                           const Twine &name, double bandwidth, StringRef scope,
                           DeviceRange devices) {
  int64_t unit = devices.first / machine.getDevicesPerUnit(scope);
  // A segment may be called as a tier is; one bandwidth is not the other then.
  SmallString<32> key;
  (what + ":" + name + ":" + Twine(unit)).toVector(key);
  auto [entry, isNew] = ids.try_emplace(key, links.size());
  if (isNew)
    links.push_back({name.str(), kind, bandwidth});
  double weight = devicesInUnit(devices, scope);
  for (simulator::Use &other : uses)
    if (other.segment == entry->second) {
      other.weight += weight;
      return;
    }
  uses.push_back({entry->second, weight});
}

void MachineResources::useShared(Uses &uses, ArrayRef<StringAttr> names,
                                 DeviceRange devices) {
  for (StringAttr name : names)
    for (SegmentAttr segment = machine.getSegment(name); segment;
         segment = segment.getWithin() ? machine.getSegment(segment.getWithin())
                                       : SegmentAttr())
      use(uses, LinkKind::Segment, "segment", segment.getName(),
          segment.getBandwidth(), segment.getScope(), devices);
}

void MachineResources::useTier(Uses &uses, TierAttr tier, DeviceRange devices) {
  use(uses, LinkKind::Segment, "tier", tier.getName(), tier.getBandwidth(),
      tier.getScope(), devices);
}

void MachineResources::useLink(Uses &uses, LinkAttr link, DeviceRange devices) {
  use(uses, LinkKind::Link, "link", link.getFrom() + " -> " + link.getTo(),
      link.getBandwidth(), "device", devices);
  useShared(uses, link.getShared(), devices);
}

void MachineResources::useLevel(Uses &uses, LevelAttr level,
                                DeviceRange devices) {
  use(uses, LinkKind::Level, "level", level.getName(), level.getBandwidth(),
      "device", devices);
  useShared(uses, level.getShared(), devices);
}

void MachineResources::useSegmentsOf(Uses &uses, LevelAttr level,
                                     DeviceRange devices) {
  useShared(uses, level.getShared(), devices);
}

LevelAttr MachineResources::getLevelBetween(int64_t a, int64_t b) const {
  for (LevelAttr level : machine.getLevels()) {
    int64_t size = machine.getDevicesPerUnit(level.getName());
    if (a / size == b / size)
      return level;
  }
  return {};
}

void MachineResources::fitAlone(Uses &uses, double rate) const {
  for (simulator::Use &use : uses)
    use.weight = std::min(use.weight, links[use.segment].bandwidth / rate);
}
