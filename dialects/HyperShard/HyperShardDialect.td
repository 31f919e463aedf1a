//===- HyperShardDialect.td - how a tensor is split --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_HYPERSHARD_DIALECT
#define HYPERPARALLEL_HYPERSHARD_DIALECT

include "mlir/IR/OpBase.td"

def HyperShard_Dialect : Dialect {
  let name = "hypershard";
  let cppNamespace = "::mlir::hyperparallel::hypershard";
  let summary = "How every tensor is split over a mesh of devices";
  let description = [{
    A *mesh* (`hypershard.mesh`) arranges devices along named axes. A *sharding*
    says, per dimension of a tensor, over which axes it is split, in which order
    (major to minor), and over which axes the tensor is still *partial*: each
    device holds a term, and the whole is their sum (max, min, ...).

    ```mlir
    hypershard.mesh @m = <["dp"=2, "tp"=2]>
    func.func @main(%x: tensor<8x64xf32>
        {hypershard.sharding = #hypershard.sharding<@m, [{"dp"}, {?} ]>}) {
      return
    }
    ```

    Shardings hang as `hypershard.sharding` on function arguments and results
    and on ops (one attribute for one result, an array for several).

    **The life of a program.** A plan or a person annotates some values; a
    dimension may be *open* (`?`: propagation may split it further) or closed.
    `hypershard-propagate-shardings` gives every tensor a sharding;
    `hypershard-insert-reshards` makes operands agree with what the ops need;
    `hypershard-lower-reshards` turns each `reshard` into collectives of least
    cost; `hypershard-partition-program` leaves one program on local shapes that
    every device runs (SPMD), without any sharding attribute.

    **Uneven dimensions.** A dimension of size n that is split k ways has local
    size c = ceil(n/k); device i holds [i*c, min(n, (i+1)*c)) and what lies past
    the end is padding, never part of a result.
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();

    /// The attribute that carries a sharding: on ops, arguments and results.
    static constexpr ::llvm::StringLiteral kShardingAttrName =
        "hypershard.sharding";
  }];
}

#endif // HYPERPARALLEL_HYPERSHARD_DIALECT
