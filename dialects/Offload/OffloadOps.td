//===- OffloadOps.td - ops of the Offload dialect ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_OFFLOAD_OPS
#define HYPERPARALLEL_OFFLOAD_OPS

include "dialects/Interfaces/CostOpInterface.td"
include "dialects/Interfaces/MovementOpInterface.td"
include "dialects/Offload/OffloadAttrs.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Offload_FutureType : TypeDef<Offload_Dialect, "Future"> {
  let mnemonic = "future";
  let summary = "A tensor that is under way to where its type says";
  let description = [{
    Made by `prefetch` and `store`, consumed by one `wait`.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$valueType);
  let assemblyFormat = "`<` $valueType `>`";
}

// No op takes time on the device: copies run beside the kernels.
class Offload_Op<string mnemonic, list<Trait> traits = []>
    : Op<Offload_Dialect, mnemonic,
         traits # [DeclareOpInterfaceMethods<CostOpInterface>]>;

/// A copy takes memory at its target when it starts: two of one value are not
/// one (they would keep the memory between them).
class Offload_CopyOp<string mnemonic> : Offload_Op<mnemonic, [
    DeclareOpInterfaceMethods<MovementOpInterface>]> {
  let arguments = (ins
    Arg<AnyRankedTensor, "what is copied", [MemRead]>:$source);
  let results = (outs Res<Offload_FutureType, "the copy", [MemAlloc]>:$future);
  let assemblyFormat =
      "$source attr-dict `:` type($source) `->` type($future)";
  let hasVerifier = 1;
}

def Offload_PrefetchOp : Offload_CopyOp<"prefetch"> {
  let summary = "Start a copy from a tier to the device";
  let description = [{
    The device memory is taken when the copy starts. Made by
    `offload-insert-transfers` or a person; becomes a call of the runtime in
    `hp-convert-offload-to-runtime`.

    - C1: the source is in a tier, the future on the device, shape and element
      type are the same;
    - C2: at most one `wait` consumes the future.
  }];
}

def Offload_PrefetchRowsOp : Offload_Op<"prefetch_rows", [
    DeclareOpInterfaceMethods<MovementOpInterface>]> {
  let summary = "Start a copy of some rows of a table to the device";
  let description = [{
    ```mlir
    func.func @rows(%table: tensor<50000x64xf32, #offload.tier<pool>>,
                    %rows: tensor<2x8xi64>) -> tensor<2x8x64xf32> {
      %f = offload.prefetch_rows %table at %rows
        : tensor<50000x64xf32, #offload.tier<pool>>, tensor<2x8xi64>
          -> <tensor<2x8x64xf32>>
      %r = offload.wait %f : <tensor<2x8x64xf32>>
      return %r : tensor<2x8x64xf32>
    }
    ```
    Row i of the table is its slice at i of dimension 0. The result has a row for
    each index, in the shape of the indices. A table of which a step needs few
    rows (an embedding) need not be on the device. An index outside the table
    ends the run with an error.

    Made by `offload-split-large-ops` or a person.

    - C1: the table is in a tier, indices and future are on the device;
    - C2: the table has at least one dimension, indices are i64, and the future
      has the shape of the indices followed by that of a row;
    - C3: at most one `wait` consumes the future.
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the table", [MemRead]>:$table,
    Arg<AnyRankedTensor, "which rows", [MemRead]>:$rows);
  let results = (outs Res<Offload_FutureType, "the copy", [MemAlloc]>:$future);
  let assemblyFormat = [{
    $table `at` $rows attr-dict `:` type($table) `,` type($rows) `->` type($future)
  }];
  let hasVerifier = 1;
}

def Offload_StoreOp : Offload_CopyOp<"store"> {
  let summary = "Start a copy from the device to a tier";
  let description = [{
    The source lives until the `wait`. Storing what was fetched from the same
    tier and never changed is no copy (canonicalization).

    - C1: the source is on the device, the future in a tier, shape and element
      type are the same;
    - C2: at most one `wait` consumes the future.
  }];
  let hasCanonicalizer = 1;
}

def Offload_WaitOp : Offload_Op<"wait", [Pure,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "The value of a copy, once it has arrived";
  let description = [{
    Blocks the ops after it (in program order) until the copy has ended.
  }];
  let arguments = (ins Offload_FutureType:$future);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$future attr-dict `:` type($future)";
}

def Offload_DetachOp : Offload_Op<"detach"> {
  let summary = "The value is not on the device from here on";
  let description = [{
    Its memory may be reused by the next op. Another copy (in a tier) may live on.

    - C1: the operand is on the device;
    - C2: no op after it in its block uses the operand.
  }];
  let arguments = (ins Arg<AnyRankedTensor, "what ends", [MemFree]>:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

#endif // HYPERPARALLEL_OFFLOAD_OPS
