//===- FusedDialect.td - what a back end does as one call --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_FUSED_DIALECT
#define HYPERPARALLEL_FUSED_DIALECT

include "mlir/IR/OpBase.td"

def Fused_Dialect : Dialect {
  let name = "fused";
  let cppNamespace = "::mlir::hyperparallel::fused";
  let summary = "What a back end does as one call";
  let description = [{
    An op of this dialect stands for several structured ops that a back end has
    one call or one kernel for. It is made late, on the program of one device,
    and only where the back end has it (`hp-form-attention`); elsewhere the
    structured ops stay as they are. So nothing but the lowering of
    that back end has to know it.
  }];
}

#endif // HYPERPARALLEL_FUSED_DIALECT
