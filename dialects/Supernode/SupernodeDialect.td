//===- SupernodeDialect.td - what the machine is -----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_SUPERNODE_DIALECT
#define HYPERPARALLEL_SUPERNODE_DIALECT

include "mlir/IR/OpBase.td"

def Supernode_Dialect : Dialect {
  let name = "supernode";
  let cppNamespace = "::mlir::hyperparallel::supernode";
  let summary = "What the machine is";
  let description = [{
    One attribute, `#supernode.machine`, describes the machine for which a
    program is compiled: groups of devices with their compute rates, memory
    tiers, directed links between tiers, and the levels of the network. It hangs
    on the module as `supernode.machine`, spelled in full or by the name of a
    preset. The cost model and the simulator read nothing else.

    ```mlir
    module attributes {
      supernode.machine = #supernode.machine<preset = "a3-node">
    } {}

    module attributes {supernode.machine = #supernode.machine<"pair",
      groups = [<"npu" = 2, memory = "hbm", launch = 5.0e-6, vector = 2.0e13,
                 rates = [bf16 = 3.5e14, f32 = 9.0e13]>],
      levels = [<"node" = 2, latency = 1.0e-6, bandwidth = 2.0e11>],
      tiers = [<"hbm" in "device", capacity = 6.4e10, bandwidth = 1.6e12>,
               <"dram" in "node", capacity = 1.0e12, bandwidth = 4.0e11>],
      segments = [<"port" in "device", bandwidth = 1.9e11>],
      links = [<"dram" -> "hbm", latency = 1.5e-6, bandwidth = 9.8e10,
                shared = ["port"]>,
               <"hbm" -> "dram", latency = 1.4e-6, bandwidth = 5.5e10,
                shared = ["port"]>]>
    } {}
    ```

    Every number is in SI units without prefix: seconds, bytes, bytes per
    second, operations per second.

    **Scope.** A tier or a segment exists once per `"device"` or once per unit of
    a network level. **Levels** go from the inside out: with `"package" = 2` and
    `"node" = 8`, devices 0 and 1 are one package and devices 0 to 15 one node.
    **Directions differ**: a link is one way, and the way back is another link.
    **Segments** are what transfers contend for: all transfers on links (and
    levels) that name a segment share its bandwidth, and a segment `within`
    another also takes from that one.

    **Programs of tasks** say what takes how long instead of what is computed:
    `supernode.task`, and `copy`, `send` and `recv` beside it. An argument may say
    in which tier it lies (`supernode.tier = "pool"`; the memory of the device if
    it does not). Where several device groups have a program each, their functions
    carry `supernode.program` (a name) and `supernode.devices` (the first device
    and how many).
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();

    /// The attribute of the module that holds its machine.
    static constexpr ::llvm::StringLiteral kMachineAttrName =
        "supernode.machine";
    /// Of an argument: the tier in which it lies.
    static constexpr ::llvm::StringLiteral kTierAttrName = "supernode.tier";
    /// Of a function that is the program of a device group: its name, and the
    /// first device and how many.
    static constexpr ::llvm::StringLiteral kProgramAttrName =
        "supernode.program";
    static constexpr ::llvm::StringLiteral kDevicesAttrName =
        "supernode.devices";

    /// The preset of that name (parsed once per context), or null.
    MachineAttr getPreset(::llvm::StringRef name);

  private:
    ::llvm::StringMap<MachineAttr> presets;
    ::std::mutex presetsMutex;
  }];
}

#endif // HYPERPARALLEL_SUPERNODE_DIALECT
