//===- SupernodeAttrs.td - the parts of a machine ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_SUPERNODE_ATTRS
#define HYPERPARALLEL_SUPERNODE_ATTRS

include "dialects/Supernode/SupernodeDialect.td"
include "dialects/Supernode/SupernodeEnums.td"
include "mlir/IR/AttrTypeBase.td"

class Supernode_Attr<string name, string attrMnemonic>
    : AttrDef<Supernode_Dialect, name> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

// A real number in SI units without prefix; reads as a double.
class Supernode_Quantity<string unit>
    : AttrParameter<"::mlir::hyperparallel::supernode::Quantity", unit>;

def Supernode_RateAttr : Supernode_Attr<"Rate", "rate"> {
  let summary = "Peak operations per second on one element type";
  let description = [{
    `<bf16 = 3.5e14>`. C1: the type is a float or an integer; C2: the rate is
    positive.
  }];
  let parameters = (ins "::mlir::Type":$elementType,
                        Supernode_Quantity<"operations per second">:$rate);
}

def Supernode_CoresAttr : Supernode_Attr<"Cores", "cores"> {
  let summary = "Cores of one host that virtual devices share";
  let description = [{
    `<8, gain = 0.9, cut = 4.0e-6, wake = 1.0e-5>`: rates, bandwidths and launch
    of the group are those of one core, and d devices at work share c cores.

    - d <= c: a device has k = floor(c / d) cores. A kernel of t seconds takes
      t / (1 + (k - 1) gain) + cut when it is cut over them, or t where that is
      less.
    - d > c: a kernel takes d / c times as long, and a device that has waited for
      others takes `wake` to get a core again.

    C1: at least one core; C2: `gain` is in (0, 1], the times are not negative.
  }];
  let parameters = (ins
    "int64_t":$count, Supernode_Quantity<"fraction">:$gain,
    Supernode_Quantity<"s">:$cut, Supernode_Quantity<"s">:$wake);
}

def Supernode_DeviceGroupAttr : Supernode_Attr<"DeviceGroup", "group"> {
  let summary = "Equal devices: how many, and how fast";
  let description = [{
    `<"npu" = 16, memory = "hbm", launch = 5.0e-6, vector = 2.2e13,
    efficiency = 0.45, rates = [bf16 = 3.5e14]>`

    `rates` are the peaks of contractions by element type; `efficiency` is the
    part of them that large contractions reach (1 if not given); `vector` is the
    rate of everything else; `launch` is the least time of a kernel; `memory`
    names the tier that kernels work on. Devices are numbered through the groups
    in their order.

    `packing = 3.0e10`: contractions first bring their operands into the form
    that the unit wants, at so many bytes a second; without it that hides behind
    the products. `cache = "llc"` names a tier: a kernel whose operands and
    results fit into it together runs at its bandwidth instead of the memory's.
    `cores = <8, ...>`: the devices are threads that share cores (see `cores`).

    C1: at least one device, one rate, no element type twice; C2: `launch` and
    `packing` are not negative, `vector` positive, `efficiency` in (0, 1].
  }];
  let parameters = (ins
    StringRefParameter<"name">:$name, "int64_t":$count,
    StringRefParameter<"tier">:$memory, Supernode_Quantity<"s">:$launch,
    Supernode_Quantity<"operations per second">:$vector,
    Supernode_Quantity<"fraction">:$efficiency,
    Supernode_Quantity<"bytes/s">:$packing,
    OptionalParameter<"::mlir::StringAttr">:$cache,
    OptionalParameter<"CoresAttr">:$cores,
    OptionalArrayRefParameter<"RateAttr">:$rates);
}

def Supernode_LevelAttr : Supernode_Attr<"Level", "level"> {
  let summary = "A level of the network";
  let description = [{
    `<"node" = 8, latency = 8.0e-7, bandwidth = 1.8e11, algorithms = [ring,
    direct], shared = ["port"]>`: a node is 8 units of the level before (devices
    for the first level). `latency` and `bandwidth` are those of one device that
    sends to another unit of the same node, one way. `algorithms` are those that
    collectives may use within the level (`[ring, tree]` if not given); over
    several levels they are also composed hierarchically.

    C1: size at least 1; latency not negative, bandwidth positive; C2: no
    algorithm twice.
  }];
  let parameters = (ins
    StringRefParameter<"name">:$name, "int64_t":$size,
    Supernode_Quantity<"s">:$latency, Supernode_Quantity<"bytes/s">:$bandwidth,
    OptionalArrayRefParameter<"Algorithm">:$algorithms,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$shared);
}

def Supernode_TierAttr : Supernode_Attr<"Tier", "tier"> {
  let summary = "Memory of one kind";
  let description = [{
    `<"dram" in "node", capacity = 2.0e12, bandwidth = 6.4e11>`: one of it in
    each unit of the level "node" (or in each "device"). Kernels that work on it
    take from the segments `shared = ["bus"]` too. C1: capacity and bandwidth are
    positive; C2: no segment twice.
  }];
  let parameters = (ins
    StringRefParameter<"name">:$name, StringRefParameter<"scope">:$scope,
    Supernode_Quantity<"bytes">:$capacity,
    Supernode_Quantity<"bytes/s">:$bandwidth,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$shared);
}

def Supernode_SegmentAttr : Supernode_Attr<"Segment", "segment"> {
  let summary = "A piece of wire that transfers share";
  let description = [{
    `<"host" in "node", bandwidth = 5.9e11, within = "fabric">`. C1: the
    bandwidth is positive.
  }];
  let parameters = (ins
    StringRefParameter<"name">:$name, StringRefParameter<"scope">:$scope,
    Supernode_Quantity<"bytes/s">:$bandwidth,
    OptionalParameter<"::mlir::StringAttr">:$within);
}

def Supernode_LinkAttr : Supernode_Attr<"Link", "link"> {
  let summary = "A one-way link between memory tiers";
  let description = [{
    `<"dram" -> "hbm", latency = 1.5e-6, bandwidth = 9.8e10, shared =
    ["port"]>`: a copy of n bytes takes latency + n / bandwidth when it is alone
    on its segments. `"hbm" -> "hbm"` is a copy between devices.

    With `staging = 4.0e6`, copies of a device go through a buffer of that many
    bytes, which lies in the tier below: in chunks, each with the latency.
    Planners take the buffer off what a device has of that tier. (A runtime that
    keeps what it moves in page-locked memory needs none.)

    C1: latency is not negative, bandwidth is positive, staging is not negative
    (0 if not given); C2: no segment twice.
  }];
  let parameters = (ins
    StringRefParameter<"source tier">:$from,
    StringRefParameter<"target tier">:$to,
    Supernode_Quantity<"s">:$latency, Supernode_Quantity<"bytes/s">:$bandwidth,
    Supernode_Quantity<"bytes">:$staging,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$shared);
  let extraClassDeclaration = [{
    /// Chunks in which that many bytes are copied; at least one.
    int64_t getNumChunks(double bytes) const;
  }];
}

def Supernode_MachineAttr : Supernode_Attr<"Machine", "machine"> {
  let summary = "A machine";
  let description = [{
    Spelled in full, or `<preset = "a3-node">`. A preset is expanded when it is
    read, and a machine that equals the preset of its name is printed by name.

    - C1: the machine has a name and at least one group; names of groups,
      levels, tiers and segments are not empty and differ within their list; no
      level is called "device"; no link is there twice;
    - C2: the sizes of the levels multiply to the number of devices;
    - C3: a scope is "device" or a level;
    - C4: a group's memory is a tier in "device", and its cache is a tier;
    - C5: both ends of a link are tiers;
    - C6: `shared` and `within` name segments, and no segment lies within itself,
      directly or through others.
  }];
  let parameters = (ins
    StringRefParameter<"name">:$name,
    OptionalArrayRefParameter<"DeviceGroupAttr">:$groups,
    OptionalArrayRefParameter<"LevelAttr">:$levels,
    OptionalArrayRefParameter<"TierAttr">:$tiers,
    OptionalArrayRefParameter<"SegmentAttr">:$segments,
    OptionalArrayRefParameter<"LinkAttr">:$links);
  let extraClassDeclaration = [{
    /// Devices of all groups.
    int64_t getNumDevices() const;
    /// The part of that name, or null.
    TierAttr getTier(::llvm::StringRef name) const;
    SegmentAttr getSegment(::llvm::StringRef name) const;
    LevelAttr getLevel(::llvm::StringRef name) const;
    LinkAttr getLink(::llvm::StringRef from, ::llvm::StringRef to) const;
    /// Devices that share one instance of what has this scope.
    int64_t getDevicesPerUnit(::llvm::StringRef scope) const;
  }];
}

#endif // HYPERPARALLEL_SUPERNODE_ATTRS
