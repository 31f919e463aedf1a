//===- HyperMPMDOps.td - ops of the HyperMPMD dialect ------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_HYPERMPMD_OPS
#define HYPERPARALLEL_HYPERMPMD_OPS

include "dialects/HyperMPMD/HyperMPMDAttrs.td"
include "dialects/HyperMPMD/HyperMPMDEnums.td"
include "dialects/Interfaces/CostOpInterface.td"
include "dialects/Interfaces/MovementOpInterface.td"
include "dialects/Interfaces/ShardableOpInterface.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class HyperMPMD_Op<string mnemonic, list<Trait> traits = []>
    : Op<HyperMPMD_Dialect, mnemonic, traits>;

def HyperMPMD_FragmentOp : HyperMPMD_Op<"fragment", [
    IsolatedFromAbove, RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A part of the program that one device group runs";
  let description = [{
    The body is on global tensors and sees nothing but its arguments. Fragments of
    one group run one after the other, in the order of the program. Made by
    `hypermpmd-form-fragments` or a person; gone after
    `hypermpmd-split-programs`, which puts the body into the group's program.

    - C1: the group is in the topology of the module;
    - C2: the body's arguments have the types of the operands, and it yields the
      types of the results;
    - C3: stage and microbatch are at least 0.

    Canonicalization: what a fragment yields as it got it is not its result;
    operands that the body does not read and results that nobody uses are dropped.
  }];
  let arguments = (ins StrAttr:$group, OptionalAttr<I64Attr>:$stage,
                       OptionalAttr<I64Attr>:$microbatch,
                       HyperMPMD_FragmentKindAttr:$kind,
                       Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `on` $group (`stage` $stage^)? (`microbatch` $microbatch^)? $kind
    `(` $inputs `)` attr-dict-with-keyword `:`
    functional-type($inputs, $outputs) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    YieldOp getYield();
  }];
}

def HyperMPMD_YieldOp : HyperMPMD_Op<"yield", [
    Pure, Terminator, HasParent<"FragmentOp">]> {
  let summary = "The results of a fragment";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ }]>];
}

def HyperMPMD_TransferOp : HyperMPMD_Op<"transfer", [
    Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "Move a value from one device group to another";
  let description = [{
    The value is the same; how it is split is each group's own affair. Made by
    `hypermpmd-infer-transfers` or a person; becomes a send and a receive in
    `hypermpmd-split-programs`. A transfer of what was transferred is one from
    where the value was made, and none if that is where it goes.

    - C1: both groups are in the topology of the module, and differ.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$source, StrAttr:$target);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `from` $source `to` $target attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

class HyperMPMD_MessageOp<string mnemonic> : HyperMPMD_Op<mnemonic, [
    MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<CostOpInterface>,
    DeclareOpInterfaceMethods<MovementOpInterface>,
    DeclareOpInterfaceMethods<ShardableOpInterface>]> {
  let hasVerifier = 1;
}

def HyperMPMD_SendOp : HyperMPMD_MessageOp<"send"> {
  let summary = "Send a value to another group's program";
  let description = [{
    It meets the `recv` of the same two groups and tag. Before
    `hypermpmd-resolve-transfers` the value is global; after it, `route` lists the
    blocks that this group's devices send: for each the sender's rank in its
    group, the receiver's in the other, where the block begins in the sender's
    part of the value, and the block's sizes. After partition the value is the
    part of one device.

    - C1: the module is a group's program, the peer another group of the topology;
    - C2: a route has 2 + 2 * rank numbers for each block: ranks of devices that
      exist, sizes of at least 1, places that are not negative; senders ascend.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$peer, I64Attr:$tag,
                       OptionalAttr<DenseI64ArrayAttr>:$route);
  let assemblyFormat = [{
    $input `to` $peer `tag` $tag (`route` $route^)? attr-dict `:` type($input)
  }];
}

def HyperMPMD_RecvOp : HyperMPMD_MessageOp<"recv"> {
  let summary = "Receive a value from another group's program";
  let description = [{
    It meets the `send` of the same two groups and tag. `route` lists the blocks
    that this group's devices receive: for each the receiver's rank in its group,
    the sender's in the other, where the block begins in the receiver's part of
    the value, and the block's sizes.

    - C1, C2: as of `send`; receivers ascend.
  }];
  let arguments = (ins StrAttr:$peer, I64Attr:$tag,
                       OptionalAttr<DenseI64ArrayAttr>:$route);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `from` $peer `tag` $tag (`route` $route^)? attr-dict `:` type($result)
  }];
}

#endif // HYPERPARALLEL_HYPERMPMD_OPS
