//===- SupernodeOps.td - ops of the Supernode dialect ------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_SUPERNODE_OPS
#define HYPERPARALLEL_SUPERNODE_OPS

include "dialects/Interfaces/CostOpInterface.td"
include "dialects/Supernode/SupernodeDialect.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// What a task does besides its tensors: it is neither dropped nor merged.
def Supernode_TaskResource
    : Resource<"::mlir::hyperparallel::supernode::TaskResource">;

def Supernode_TaskOp : Op<Supernode_Dialect, "task", [
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

#endif // HYPERPARALLEL_SUPERNODE_OPS
