//===- HyperMPMDAttrs.td - groups of devices ---------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_HYPERMPMD_ATTRS
#define HYPERPARALLEL_HYPERMPMD_ATTRS

include "dialects/HyperMPMD/HyperMPMDDialect.td"
include "dialects/HyperShard/HyperShardAttrs.td"
include "mlir/IR/AttrTypeBase.td"

def HyperMPMD_GroupAttr : AttrDef<HyperMPMD_Dialect, "Group"> {
  let mnemonic = "group";
  let summary = "A named group of devices with a mesh of its own";
  let parameters = (ins StringRefParameter<"name">:$name,
                        "::mlir::hyperparallel::hypershard::MeshAttr":$mesh);
  let hasCustomAssemblyFormat = 1;
}

def HyperMPMD_TopologyAttr : AttrDef<HyperMPMD_Dialect, "Topology"> {
  let mnemonic = "topology";
  let summary = "The device groups of a program, in the order of their devices";
  let description = [{
    `<"enc" = <["tp"=1]>, "dec" = <["dp"=1, "tp"=3]>>`: device 0 is the group
    `enc`, devices 1 to 3 are `dec`. Device ids of a mesh count from the group's
    first device.

    - C1: there is at least one group;
    - C2: names are not empty and pairwise different.
  }];
  let parameters = (ins ArrayRefParameter<"GroupAttr">:$groups);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The group of that name, or null.
    GroupAttr getGroup(::llvm::StringRef name) const;
    /// Number of the group of that name, or -1.
    int64_t getGroupIndex(::llvm::StringRef name) const;
    /// The first of the group's devices.
    int64_t getFirstDevice(::llvm::StringRef name) const;
    int64_t getNumDevices() const;
  }];
}

#endif // HYPERPARALLEL_HYPERMPMD_ATTRS
