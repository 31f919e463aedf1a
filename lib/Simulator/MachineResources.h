//===- MachineResources.h - what transfers of programs share ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Turns the links, levels, segments and tiers of a machine into segments of the
// simulator. What exists once in each unit of a level exists once here for each
// unit in which a simulated device lies: one device stands for all of its
// group, so a flow has as weight the devices of the group in that unit. Devices
// of several groups in one unit share its segment.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_SIMULATOR_MACHINERESOURCES_H
#define HYPERPARALLEL_LIB_SIMULATOR_MACHINERESOURCES_H

#include "dialects/Supernode/Supernode.h"
#include "lib/Simulator/Engine.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::hyperparallel {

/// Devices [first, first + count), which do the same.
struct DeviceRange {
  int64_t first = 0;
  int64_t count = 1;
};

enum class LinkKind { Level, Link, Segment };

/// A segment of the simulator as reports name it.
struct LinkInfo {
  std::string name;
  LinkKind kind;
  double bandwidth;
};

class MachineResources {
public:
  using Uses = std::vector<simulator::Use>;

  explicit MachineResources(supernode::MachineAttr machine)
      : machine(machine) {}

  supernode::MachineAttr getMachine() const { return machine; }

  /// Of the devices, those that share one unit of the scope with the first.
  int64_t devicesInUnit(DeviceRange devices, StringRef scope) const;

  /// A tier's bandwidth, as one of the devices takes it.
  void useTier(Uses &uses, supernode::TierAttr tier, DeviceRange devices);
  /// A link with all the segments that it names.
  void useLink(Uses &uses, supernode::LinkAttr link, DeviceRange devices);
  /// A level of the network with all the segments that it names.
  void useLevel(Uses &uses, supernode::LevelAttr level, DeviceRange devices);
  /// The segments of a level only: those of the receiver's end.
  void useSegmentsOf(Uses &uses, supernode::LevelAttr level,
                     DeviceRange devices);

  /// The innermost level that joins the two devices; null if none does.
  supernode::LevelAttr getLevelBetween(int64_t a, int64_t b) const;

  /// Lowers weights so that a flow of this rate is not held back when it is
  /// alone: its time is the cost model's then.
  void fitAlone(Uses &uses, double rate) const;

  ArrayRef<LinkInfo> getLinks() const { return links; }

private:
  void use(Uses &uses, LinkKind kind, StringRef what, const Twine &name,
           double bandwidth, StringRef scope, DeviceRange devices);
  void useShared(Uses &uses, ArrayRef<StringAttr> names, DeviceRange devices);

  supernode::MachineAttr machine;
  SmallVector<LinkInfo> links;
  /// By what it is, name and unit.
  llvm::StringMap<simulator::SegmentId> ids;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_SIMULATOR_MACHINERESOURCES_H
