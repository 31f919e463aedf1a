//===- HyperShardOps.td - ops of the HyperShard dialect ----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_HYPERSHARD_OPS
#define HYPERPARALLEL_HYPERSHARD_OPS

include "dialects/HyperShard/HyperShardAttrs.td"
include "dialects/HyperShard/HyperShardEnums.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class HyperShard_Op<string mnemonic, list<Trait> traits = []>
    : Op<HyperShard_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Declarations: meshes and what a person asks for
//===----------------------------------------------------------------------===//

def HyperShard_MeshOp : HyperShard_Op<"mesh", [Symbol, HasParent<"ModuleOp">]> {
  let summary = "Name a mesh of devices";
  let description = [{
    ```mlir
    hypershard.mesh @m = <["dp"=2, "tp"=4]>
    hypershard.mesh @ring = <["x"=4], device_ids=[0, 1, 3, 2]>
    ```
    Made by the front end or the plan; lives until lowering to a runtime.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, HyperShard_MeshAttr:$mesh);
  let assemblyFormat = "$sym_name `=` $mesh attr-dict";
}

class HyperShard_AnnotationOp<string mnemonic>
    : HyperShard_Op<mnemonic, [Pure, SameOperandsAndResultType,
          DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let arguments = (ins AnyRankedTensor:$input, HyperShard_ShardingAttr:$sharding);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input $sharding attr-dict `:` type($result)";
}

def HyperShard_ConstraintOp : HyperShard_AnnotationOp<"constraint"> {
  let summary = "Ask for a sharding of a value";
  let description = [{
    The result has this sharding, whatever the operand's is. Made by the plan or
    a person; a source of propagation; turned into a `reshard` by
    `hypershard-insert-reshards`.
  }];
}

def HyperShard_ReshardOp : HyperShard_AnnotationOp<"reshard"> {
  let summary = "Change the sharding of a value";
  let description = [{
    The value is the same; from the operand's sharding to `sharding`. Made by
    `hypershard-insert-reshards`; turned into collectives of least cost by
    `hypershard-lower-reshards`. A reshard of a reshard is one reshard, unless
    the inner one has other users.
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def HyperShard_BarrierOp : HyperShard_Op<"barrier",
    [Pure, SameOperandsAndResultType]> {
  let summary = "Stop propagation at a value";
  let description = [{
    `direction` is the only way in which shardings may pass (`none`: neither).
    Consumed by `hypershard-insert-reshards`.
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       HyperShard_DirectionAttr:$direction);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `allow` $direction attr-dict `:` type($result)";
}

def HyperShard_ManualOp : HyperShard_Op<"manual", [
    IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Run a region on local shapes that a person wrote";
  let description = [{
    The body is the program of one device: its arguments are the local parts of
    the operands under `in_shardings`, and what it returns are the local parts of
    the results under `out_shardings`. It may use collectives. Propagation does
    not look inside; `hypershard-partition-program` inlines it.

    - C1: one in-sharding per operand, one out-sharding per result, one mesh;
    - C2: every split dimension is divisible;
    - C3: block arguments and returned values have the local types.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs,
    TypedArrayAttrBase<HyperShard_ShardingAttr, "shardings">:$in_shardings,
    TypedArrayAttrBase<HyperShard_ShardingAttr, "shardings">:$out_shardings);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `)` `in` $in_shardings `out` $out_shardings $body attr-dict
    `:` functional-type($inputs, $outputs)
  }];
  let hasRegionVerifier = 1;
}

def HyperShard_ReturnOp : HyperShard_Op<"return",
    [Pure, Terminator, ReturnLike, HasParent<"ManualOp">]> {
  let summary = "Return the local results of a manual region";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//
// Two forms of each. *Global*, after hypershard-lower-reshards: operand and
// result have the same, global type, and `hypershard.sharding` on the op says
// what the result's layout is. *Local*, after hypershard-partition-program: the
// types are those of one device. `over @m {"tp"}` names the group: the devices
// that differ only in these axes, in the order of the list, major to minor.

class HyperShard_Collective<string mnemonic, dag parameters,
                            string format, list<Trait> traits = []>
    : HyperShard_Op<mnemonic, !listconcat(traits, [Pure,
          DeclareOpInterfaceMethods<SymbolUserOpInterface>])> {
  let arguments = !con((ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh,
                            HyperShard_AxisRefArrayAttr:$axes), parameters);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `over` $mesh custom<AxisList>($axes) " # format #
                       " attr-dict `:` type($input) `->` type($result)";
}

def HyperShard_AllGatherOp : HyperShard_Collective<"all_gather",
    (ins I64Attr:$dim), "`dim` $dim"> {
  let summary = "Concatenate the parts of a group along a dimension";
  let description = [{
    Local form: the result is the operands of the group, in group order, put
    together along `dim`.
  }];
}

def HyperShard_AllReduceOp : HyperShard_Collective<"all_reduce",
    (ins HyperShard_ReductionAttr:$kind), "$kind"> {
  let summary = "Combine the values of a group elementwise";
}

def HyperShard_ReduceScatterOp : HyperShard_Collective<"reduce_scatter",
    (ins HyperShard_ReductionAttr:$kind, I64Attr:$dim), "$kind `dim` $dim"> {
  let summary = "Combine the values of a group, keep a part of a dimension";
  let description = [{
    Local form: dimension `dim` of the operand is a multiple of the group's
    size; member i keeps block i of the combination.
  }];
}

def HyperShard_AllToAllOp : HyperShard_Collective<"all_to_all",
    (ins I64Attr:$split_dim, I64Attr:$concat_dim),
    "`split` $split_dim `concat` $concat_dim"> {
  let summary = "Move a split from one dimension to another";
  let description = [{
    Local form: member i cuts `split_dim` into as many blocks as the group has
    members and sends block j to member j, which puts what it gets together
    along `concat_dim` in group order.
  }];
}

def HyperShard_PermuteOp : HyperShard_Collective<"permute",
    (ins HyperShard_AxisRefArrayAttr:$to_axes),
    "`to` custom<AxisList>($to_axes)"> {
  let summary = "Reorder the parts of a group";
  let description = [{
    `axes` and `to_axes` have the same devices. The device whose number
    under `to_axes` is b receives the operand of the device whose number under
    `axes` is b.
  }];
}

def HyperShard_SliceLocalOp : HyperShard_Collective<"slice_local",
    (ins I64Attr:$dim), "`dim` $dim"> {
  let summary = "Keep the own part of a dimension; no communication";
  let description = [{
    Local form: member i of the group keeps block i of ceil(n/size) elements;
    what lies past the end of the operand is zero.
  }];
}

def HyperShard_HaloExchangeOp : HyperShard_Collective<"halo_exchange",
    (ins I64Attr:$dim, I64Attr:$global_size, I64Attr:$stride, I64Attr:$lo,
         I64Attr:$size),
    "`dim` $dim `of` $global_size `window` $lo `step` $stride `size` $size"> {
  let summary = "Get a window of a split dimension, whoever holds it";
  let description = [{
    Local form only. Dimension `dim` of global size `global_size` is split over
    the group in blocks of ceil(global_size/members). Member i gets the window
    [i*stride + lo, i*stride + lo + size); outside [0, global_size) it is zero.
    Slices, pads, concatenations and convolutions of a split dimension are
    windows.
  }];
}

def HyperShard_AxisIndexOp : HyperShard_Op<"axis_index", [Pure,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "This device's number along axes";
  let description = [{
    The coordinates along the axes as one number, the first axis most
    significant. In a program that every device runs, this is what differs.
    Along no axes it is 0.
  }];
  let arguments = (ins FlatSymbolRefAttr:$mesh,
                       HyperShard_AxisRefArrayAttr:$axes);
  let results = (outs Index:$result);
  let assemblyFormat = "$mesh custom<AxisList>($axes) attr-dict";
}

#endif // HYPERPARALLEL_HYPERSHARD_OPS
