//===- StreamAttrs.td - names of streams, and marks --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_STREAM_ATTRS
#define HYPERPARALLEL_STREAM_ATTRS

include "dialects/Stream/StreamDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

// As hp_stream_role in lib/Runtime/hp_runtime.h.
def Stream_Role : I32EnumAttr<"Role", "What a stream is for", [
    I32EnumAttrCase<"Compute", 0, "compute">,
    I32EnumAttrCase<"H2D", 1, "h2d">,
    I32EnumAttrCase<"D2H", 2, "d2h">,
    I32EnumAttrCase<"Comm", 3, "comm">,
    I32EnumAttrCase<"Send", 4, "send">,
    I32EnumAttrCase<"Recv", 5, "recv">]> {
  let cppNamespace = "::mlir::hyperparallel::stream";
  let genSpecializedAttr = 0;
}

def Stream_IdAttr : AttrDef<Stream_Dialect, "Id"> {
  let mnemonic = "id";
  let summary = "A stream of a device: what it is for, and which of these";
  let description = [{
    `<comm, 1>` is the second stream for collectives. Collectives that cross
    different levels of the network have streams of their own.

    - C1: the number is at least 0, and 0 for `compute`.
  }];
  let parameters = (ins EnumParameter<Stream_Role>:$role,
                        DefaultValuedParameter<"int64_t", "0">:$number);
  let assemblyFormat = "`<` $role (`,` $number^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isCompute() const { return getRole() == Role::Compute; }
  }];
}

def Stream_MarkType : TypeDef<Stream_Dialect, "Mark"> {
  let mnemonic = "mark";
  let summary = "A moment of a stream: all that was queued there before it";
}

#endif // HYPERPARALLEL_STREAM_ATTRS
