//===- HyperShardAttrs.td - meshes and shardings -----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_HYPERSHARD_ATTRS
#define HYPERPARALLEL_HYPERSHARD_ATTRS

include "dialects/HyperShard/HyperShardDialect.td"
include "dialects/Interfaces/Reduction.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"

class HyperShard_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<HyperShard_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def HyperShard_MeshAxisAttr : HyperShard_Attr<"MeshAxis", "mesh_axis"> {
  let summary = "A named axis of a mesh and the number of devices along it";
  let parameters = (ins StringRefParameter<"axis name">:$name,
                        "int64_t":$size);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def HyperShard_MeshAttr : HyperShard_Attr<"Mesh", "mesh"> {
  let summary = "Devices arranged along named axes";
  let description = [{
    `<["dp"=2, "tp"=4]>`: eight devices; the id of a device is the row-major
    number of its coordinates, the last axis fastest. `device_ids=[...]` names
    another order: entry i is the physical device at logical position i.

    - C1: axis names are not empty and pairwise different;
    - C2: sizes are at least 1;
    - C3: `device_ids` is a permutation of 0..n-1, and not 0, 1, ..., n-1.
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"MeshAxisAttr">:$axes,
    OptionalArrayRefParameter<"int64_t">:$deviceIds);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Index of the named axis, or -1.
    int64_t getAxisIndex(::llvm::StringRef name) const;
    /// Product of the axis sizes.
    int64_t getNumDevices() const;
  }];
}

def HyperShard_AxisRefAttr : HyperShard_Attr<"AxisRef", "axis"> {
  let summary = "An axis of a mesh, or a part of one";
  let description = [{
    `"tp"` is the whole axis. `"tp":(2)4` is a *sub-axis* of size 4: the axis is
    seen as (2, 4, rest), and the part of size 4 is meant; 2 is the product of
    the parts before it. C1: pre-size >= 1 and size >= 2.
  }];
  let parameters = (ins
    StringRefParameter<"axis name">:$name,
    "int64_t":$preSize,
    "int64_t":$size);
  let builders = [
    AttrBuilder<(ins "::llvm::StringRef":$name),
                [{ return $_get($_ctxt, name, 0, 0); }]>,
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isSubAxis() const { return getSize() != 0; }
  }];
}

def HyperShard_DimShardingAttr : HyperShard_Attr<"DimSharding", "dim"> {
  let summary = "The axes that split one dimension, major to minor";
  let description = [{
    `{"dp", "tp"}` splits by dp, and each piece by tp. `{"dp", ?}` is *open*:
    propagation may add axes on the minor side. `{...}p1` has user priority 1
    (0, the default, acts first).
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"AxisRefAttr">:$axes,
    DefaultValuedParameter<"bool", "false">:$isOpen,
    DefaultValuedParameter<"int64_t", "0">:$priority);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def HyperShard_PartialAttr : HyperShard_Attr<"Partial", "partial"> {
  let summary = "Axes over which a value is still to be reduced, and how";
  let description = [{
    `<sum {"tp"}>`: along tp every device holds a term, and the value is their
    sum. `avg` is the sum divided by the number of devices.
  }];
  let parameters = (ins
    EnumParameter<HP_Reduction>:$kind,
    ArrayRefParameter<"AxisRefAttr">:$axes);
  let hasCustomAssemblyFormat = 1;
}

def HyperShard_ShardingAttr : HyperShard_Attr<"Sharding", "sharding"> {
  let summary = "How a tensor is split over a mesh";
  let description = [{
    `#hypershard.sharding<@m, [{"dp"}, {"tp", ?}p1], replicated={"pp"},
    partial=<sum {"cp"}>>`: dimension 0 is split over dp; dimension 1 over tp and
    open; propagation must not use pp; the value is the sum over cp of what the
    devices hold. Axes that are not mentioned hold copies.

    Without the mesh (checked when the attribute is made):
    - C1: no axis is used twice, and no two sub-axes of one axis overlap;
    - C2: consecutive sub-axes that could be written as one are refused;
    - C3: priorities are not negative; a closed dimension without axes has none.

    With the mesh (checked where the attribute is used):
    - C4: every axis exists; a sub-axis divides its axis and is smaller;
    - C5: `replicated` and `partial` list their axes in mesh order;
    - C6: one dimension sharding per dimension of a tensor of static shape.
  }];
  let parameters = (ins
    "::mlir::FlatSymbolRefAttr":$mesh,
    OptionalArrayRefParameter<"DimShardingAttr">:$dims,
    OptionalArrayRefParameter<"AxisRefAttr">:$replicated,
    OptionalParameter<"PartialAttr">:$partial);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Closed, not split, on `rank` dimensions.
    static ShardingAttr getReplicated(::mlir::FlatSymbolRefAttr mesh,
                                      int64_t rank);
    /// C4 and C5 against a mesh, C6 against a type.
    ::llvm::LogicalResult verifyAgainst(
        MeshAttr mesh, ::mlir::Type type,
        ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
  }];
}

def HyperShard_ReductionAttr
    : EnumAttr<HyperShard_Dialect, HP_Reduction, "reduction"> {
  let assemblyFormat = "`<` $value `>`";
}

def HyperShard_AxisRefArrayAttr
    : TypedArrayAttrBase<HyperShard_AxisRefAttr, "axes, major to minor">;

#endif // HYPERPARALLEL_HYPERSHARD_ATTRS
