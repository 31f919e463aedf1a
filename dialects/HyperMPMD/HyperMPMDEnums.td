//===- HyperMPMDEnums.td - the closed choices --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_HYPERMPMD_ENUMS
#define HYPERPARALLEL_HYPERMPMD_ENUMS

include "dialects/HyperMPMD/HyperMPMDDialect.td"
include "mlir/IR/EnumAttr.td"

def HyperMPMD_FragmentKind : I32Enum<"FragmentKind",
    "what a fragment does for the training step", [
      I32EnumCase<"Forward", 0, "forward">,
      I32EnumCase<"Backward", 1, "backward">,
      I32EnumCase<"BackwardInput", 2, "backward_input">,
      I32EnumCase<"BackwardWeight", 3, "backward_weight">,
      I32EnumCase<"Update", 4, "update">,
    ]> {
  let cppNamespace = "::mlir::hyperparallel::hypermpmd";
}

def HyperMPMD_FragmentKindAttr
    : EnumAttr<HyperMPMD_Dialect, HyperMPMD_FragmentKind, "fragment_kind">;

#endif // HYPERPARALLEL_HYPERMPMD_ENUMS
