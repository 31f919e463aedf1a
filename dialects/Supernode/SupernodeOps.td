//===- SupernodeOps.td - ops of the Supernode dialect ------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_SUPERNODE_OPS
#define HYPERPARALLEL_SUPERNODE_OPS

include "dialects/Interfaces/CostOpInterface.td"
include "dialects/Interfaces/MovementOpInterface.td"
include "dialects/Supernode/SupernodeDialect.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Supernode_Op<string mnemonic, list<Trait> traits>
    : Op<Supernode_Dialect, mnemonic, traits>;

// What a task does besides its tensors: it is neither dropped nor merged.
def Supernode_TaskResource
    : Resource<"::mlir::hyperparallel::supernode::TaskResource">;

def Supernode_TaskOp : Supernode_Op<"task", [
    AttrSizedOperandSegments, DestinationStyleOpInterface,
    MemoryEffects<[MemWrite<Supernode_TaskResource>]>,
    DeclareOpInterfaceMethods<InferTypeOpInterface>,
    DeclareOpInterfaceMethods<CostOpInterface>]> {
  let summary = "Something that is known by its time and its tensors only";
  let description = [{
    ```mlir
    func.func @main(%x: tensor<64xi8>, %w: tensor<512xi8>) -> tensor<64xi8> {
      %e = tensor.empty() : tensor<64xi8>
      %r = supernode.task "conv1" ins(%x, %w : tensor<64xi8>, tensor<512xi8>)
          outs(%e : tensor<64xi8>) {seconds = 1.2e-3, flops = 1.0e9}
      return %r : tensor<64xi8>
    }
    ```
    It reads `ins`, and result i is `outs` i, written over. An `outs` that is no
    `tensor.empty` is read, too. The cost model takes `seconds` as they are;
    `flops` are operations, and `bytes` go to and from the memory of the device
    while it runs. No effect on memory is seen through tensors, but a task is
    kept and stays in order, whether its results are used or not.

    Made by `hp import-trace`, by people and by tests; planned and simulated as
    kernels are; no back end executes it.

    C1: `seconds`, and `flops` and `bytes` where given, are not negative, and
    finite; C2: a result has the type of its `outs`.
  }];
  let arguments = (ins StrAttr:$label, Variadic<AnyRankedTensor>:$inputs,
                       Variadic<AnyRankedTensor>:$outputs, F64Attr:$seconds,
                       OptionalAttr<F64Attr>:$flops,
                       OptionalAttr<F64Attr>:$bytes);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $label (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    (`outs` `(` $outputs^ `:` type($outputs) `)`)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getOutputsMutable();
    }
  }];
}

//===----------------------------------------------------------------------===//
// Movements beside tasks
//===----------------------------------------------------------------------===//

class Supernode_MovementOp<string mnemonic, list<Trait> traits = []>
    : Supernode_Op<mnemonic, traits # [
          MemoryEffects<[MemWrite<Supernode_TaskResource>]>,
          DeclareOpInterfaceMethods<CostOpInterface>,
          DeclareOpInterfaceMethods<MovementOpInterface>]>;

def Supernode_CopyOp : Supernode_MovementOp<"copy",
    [SameOperandsAndResultType]> {
  let summary = "Copy a tensor to another tier of memory";
  let description = [{
    ```mlir
    func.func @main(%w: tensor<512xi8> {supernode.tier = "pool"}) {
      %0 = supernode.copy %w from "pool" to "hbm" : tensor<512xi8>
      supernode.task "use" ins(%0 : tensor<512xi8>) {seconds = 1.0e-3}
      return
    }
    ```
    It starts when the kernel before it has ended and the copies before it on the
    same link are done, and runs beside the kernels after it; who uses the result
    waits. What is copied stays where it was until its last use.

    Made by people and by tests, for programs of tasks. C1: the tiers have names,
    and differ; that the machine has them and a link between them is checked
    where the program meets the machine.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$from, StrAttr:$to);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `from` $from `to` $to attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Supernode_SendOp : Supernode_MovementOp<"send"> {
  let summary = "Hand a tensor to the program of another device group";
  let description = [{
    ```mlir
    func.func @first(%x: tensor<64xi8>)
        attributes {supernode.program = "first", supernode.devices = [0, 4]} {
      supernode.send %x to "second" tag 7 : tensor<64xi8>
      return
    }
    func.func @second()
        attributes {supernode.program = "second", supernode.devices = [4, 4]} {
      %0 = supernode.recv from "first" tag 7 : tensor<64xi8>
      return
    }
    ```
    Each device sends its part to the device at its place in the other group.
    The transfer begins when both are there: sends, and receives, of a program
    are served in its order.

    Made by people and by tests, for programs of tasks. C1: the tag is not
    negative.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrAttr:$peer, I64Attr:$tag);
  let assemblyFormat = [{
    $input `to` $peer `tag` $tag attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def Supernode_RecvOp : Supernode_MovementOp<"recv"> {
  let summary = "Take a tensor from the program of another device group";
  let description = [{
    The other end of `supernode.send`; see there. C1: the tag is not negative.
  }];
  let arguments = (ins StrAttr:$peer, I64Attr:$tag);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `from` $peer `tag` $tag attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

#endif // HYPERPARALLEL_SUPERNODE_OPS
