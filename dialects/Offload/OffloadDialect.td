//===- OffloadDialect.td - where a tensor lives ------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_OFFLOAD_DIALECT
#define HYPERPARALLEL_OFFLOAD_DIALECT

include "mlir/IR/OpBase.td"

def Offload_Dialect : Dialect {
  let name = "offload";
  let cppNamespace = "::mlir::hyperparallel::offload";
  let summary = "In which memory tier a tensor lives, and when it moves";
  let description = [{
    A tensor lives in the memory of its device, unless its type says otherwise:
    `tensor<8x4xf32, #offload.tier<pool>>` is in the tier `pool` of the machine.
    Since the tier is in the type, values in different tiers are never merged,
    and an op that computes cannot be handed one by mistake
    (`offload-verify-tiers`).

    ```mlir
    func.func @main(%w: tensor<8x4xf32, #offload.tier<pool>>, %x: tensor<2x8xf32>,
                    %init: tensor<2x4xf32>) -> tensor<2x4xf32> {
      %f = offload.prefetch %w : tensor<8x4xf32, #offload.tier<pool>>
             -> <tensor<8x4xf32>>
      %d = offload.wait %f : <tensor<8x4xf32>>
      %y = linalg.matmul ins(%x, %d : tensor<2x8xf32>, tensor<8x4xf32>)
                         outs(%init : tensor<2x4xf32>) -> tensor<2x4xf32>
      offload.detach %d : tensor<8x4xf32>
      return %y : tensor<2x4xf32>
    }
    ```

    **Order is data flow.** A copy gives a future, and only `wait` gives the
    value: what has not arrived cannot be used, what was stored can be read only
    through the value that the store gives. The source of a copy lives until its
    `wait`.

    **The life of a program.** `offload-plan` decides which values leave the
    device between two uses and hangs the decisions on the function
    (`offload.moves`); `offload-insert-transfers` writes them as ops;
    `hp-convert-offload-to-runtime` turns these into copies on the transfer
    threads of the runtime.

    On arguments, `offload.place = #offload.tier<pool>` says where a person wants
    the tensor to live between steps, `offload.keep` that it must stay on the
    device.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Decisions of `offload-plan`, on a function.
    static constexpr ::llvm::StringLiteral kMovesAttrName = "offload.moves";
    /// What a person asks for, on arguments.
    static constexpr ::llvm::StringLiteral kPlaceAttrName = "offload.place";
    static constexpr ::llvm::StringLiteral kKeepAttrName = "offload.keep";
  }];
}

#endif // HYPERPARALLEL_OFFLOAD_DIALECT
