//===- OffloadAttrs.td - tiers and moves -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_OFFLOAD_ATTRS
#define HYPERPARALLEL_OFFLOAD_ATTRS

include "dialects/Offload/OffloadDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Offload_TierAttr : AttrDef<Offload_Dialect, "Tier"> {
  let mnemonic = "tier";
  let summary = "A memory tier of the machine, by name";
  let description = [{
    As the encoding of a tensor's type: where the tensor lives. No encoding means
    the device's own memory. One-shot bufferization makes it the memory space of
    the buffer.

    - C1: the name is not empty.
  }];
  let parameters = (ins "::mlir::StringAttr":$name);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Offload_MoveAttr : AttrDef<Offload_Dialect, "Move"> {
  let mnemonic = "move";
  let summary = "A value leaves the device between two uses";
  let description = [{
    Positions number the ops of the function's block from 0; values are its
    arguments, then the results of its ops, in order. The value is gone from
    before op `free_before` until before op `prefetch_before`. Its store starts
    right after op `evict_after`; a `clean` value has a copy below already and is
    just freed.
    Where `free_before` is `prefetch_before`, the value is stored only: it never
    leaves, nothing is copied in, and its store is waited for before that op. A
    later move of the value finds the copy below, and is `clean`.
    Where `prefetch_before` is not after `evict_after`, the move goes around the
    end of the step: the value (an argument, or what is its next value) lives in
    the tier between steps.
    A value that is `recomputed` is not copied at all: what made it is executed
    again right before op `prefetch_before`, which is the next use.
    Safety depends on these numbers alone: how long copies take changes when ops
    run, never what is resident while they do.

    - C1: positions are at least -1 (-1: before every op), the value's number at
      least 0;
    - C2: evict_after < free_before;
    - C3: prefetch_before >= free_before or prefetch_before <= evict_after;
    - C4: what goes around the end of the step is not recomputed.
  }];
  let parameters = (ins "int64_t":$value, "TierAttr":$tier,
                        "int64_t":$evict_after, "int64_t":$free_before,
                        "int64_t":$prefetch_before, "bool":$clean,
                        DefaultValuedParameter<"bool", "false">:$recomputed);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The value lives in the tier between steps.
    bool goesAround() const { return getPrefetchBefore() <= getEvictAfter(); }
  }];
}

#endif // HYPERPARALLEL_OFFLOAD_ATTRS
