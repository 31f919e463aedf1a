//===- IndexingOps.td - ops of the Indexing dialect --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_INDEXING_OPS
#define HYPERPARALLEL_INDEXING_OPS

include "dialects/Indexing/IndexingDialect.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Indexing_ScatterAddOp : Op<Indexing_Dialect, "scatter_add", [
    Pure, DestinationStyleOpInterface,
    AllTypesMatch<["init", "result"]>]> {
  let summary = "Add rows to the rows of a table that indices name";
  let description = [{
    ```mlir
    func.func @gradient(%tokens: tensor<32xi64>, %rows: tensor<32x768xf32>,
                        %zeros: tensor<50257x768xf32>) -> tensor<50257x768xf32> {
      %0 = indexing.scatter_add %rows at %tokens into %zeros
             : tensor<32x768xf32>, tensor<32xi64> into tensor<50257x768xf32>
      return %0 : tensor<50257x768xf32>
    }
    ```

    The result is `into`, where update n was added to row `indices[n]`, in the
    order of n. Two updates of one row are both added. An update whose index is
    negative, or not below the number of rows, is dropped.

    Made by import, for the backward of embeddings and of reads at computed
    places; becomes loops in `convert-indexing-to-loops`, which add in place.

    Split along updates, devices hold partial sums of the whole table. Split along
    rows of the table, each device adds to the rows that it has. The other
    dimensions pass through.

    - C1: all tensors have static shapes, the indices one dimension;
    - C2: updates and table have the same element type, a float or an integer;
    - C3: there are as many updates as indices;
    - C4: behind the first dimension, updates have the sizes of the table.
  }];
  let arguments = (ins
    AnyRankedTensor:$updates,
    AnyRankedTensor:$indices,
    AnyRankedTensor:$init);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $updates `at` $indices `into` $init attr-dict
    `:` type($updates) `,` type($indices) `into` type($init)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$updates,
                                 "::mlir::Value":$indices,
                                 "::mlir::Value":$init), [{
    build($_builder, $_state, init.getType(), updates, indices, init);
  }]>];
}

#endif // HYPERPARALLEL_INDEXING_OPS
