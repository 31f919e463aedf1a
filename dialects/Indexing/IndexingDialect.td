//===- IndexingDialect.td - writes at computed places ------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_INDEXING_DIALECT
#define HYPERPARALLEL_INDEXING_DIALECT

include "mlir/IR/OpBase.td"

def Indexing_Dialect : Dialect {
  let name = "indexing";
  let cppNamespace = "::mlir::hyperparallel::indexing";
  let summary = "Writes at places that are data";
  let description = [{
    A structured op reads at a place that is data by `tensor.extract` in its
    body, but it writes where its maps say. What writes at a place that is data
    (the gradient of an embedding) is an op of this dialect, with a sharding rule
    and a cost of its own.
  }];
}

#endif // HYPERPARALLEL_INDEXING_DIALECT
