//===- FusedOps.td - ops of the Fused dialect --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_FUSED_OPS
#define HYPERPARALLEL_FUSED_OPS

include "dialects/Fused/FusedDialect.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Fused_AttentionOp : Op<Fused_Dialect, "attention", [
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "softmax(scale * Q K^T + mask) V";
  let description = [{
    ```mlir
    #q = affine_map<(b, h, m, n, k, e) -> (b, h, m, k)>
    #k = affine_map<(b, h, m, n, k, e) -> (b, h, n, k)>
    #v = affine_map<(b, h, m, n, k, e) -> (b, h, n, e)>
    #mask = affine_map<(b, h, m, n, k, e) -> (m, n)>
    #o = affine_map<(b, h, m, n, k, e) -> (b, h, m, e)>
    func.func @attention(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>,
                         %v: tensor<2x4x8x16xf32>, %mask: tensor<8x8xf32>,
                         %init: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
      %0 = fused.attention {indexing_maps = [#q, #k, #v, #mask, #o],
                            scale = 2.500000e-01 : f64}
             ins(%q, %k, %v, %mask : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>,
                 tensor<2x4x8x16xf32>, tensor<8x8xf32>)
             outs(%init : tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
      return %0 : tensor<2x4x8x16xf32>
    }
    ```

    For each batch and each row m: the scores of all n are scale times the sum
    over k of Q times K, plus the mask; their softmax along n weighs the rows of V.
    The mask is added as it is: what is masked is minus infinity there. The
    softmax is computed in f32, or in f64 for operands in f64. The init is
    written, not added to.

    The maps are those of a structured op with the loops of the batch, in any
    number, and then m, n, k and e: which loop moves along which dimension of an
    operand. So operands may lie in memory in any order of dimensions, and K, V
    and mask may be the same for several batches.

    Made by `hp-form-attention` where the back end has a call for it; on tensors,
    then on buffers. Both device back ends use it: what `libhp_ascend.so` makes of
    it is the operator `attention` of `hp_rt_library`, and what
    `HP_CAN_ATTEND` of `hp_device_can` tells is what the pass is given.

    - C1: three inputs or four (with a mask), one map each and one for the init,
      all of the same loops, at least four;
    - C2: Q moves with all of the batch, m and k; K with n, k and some of the
      batch; V with n, e and some of the batch; the mask with some of the batch, m
      and n; the init with all of the batch, m and e; each loop once. A dimension
      of size 1 may be the constant 0;
    - C3: static shapes; a loop has one extent;
    - C4: Q, K, V and init have the same element type, a float; the mask is of
      floats;
    - C5: all operands are tensors, and there is a result of the init's type, or
      all are buffers, and there is none.
  }];
  let arguments = (ins
    Variadic<AnyShaped>:$inputs,
    AnyShaped:$init,
    AffineMapArrayAttr:$indexing_maps,
    F64Attr:$scale);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    attr-dict `ins` `(` $inputs `:` type($inputs) `)`
    `outs` `(` $init `:` type($init) `)` (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }

    ::mlir::Value getQuery() { return getInputs()[0]; }
    ::mlir::Value getKey() { return getInputs()[1]; }
    ::mlir::Value getValues() { return getInputs()[2]; }
    /// Null if there is none.
    ::mlir::Value getMask() {
      return getInputs().size() == 4 ? getInputs()[3] : ::mlir::Value();
    }
    /// The map of an operand, the init's being the last.
    ::mlir::AffineMap getMap(unsigned operand) {
      return ::llvm::cast<::mlir::AffineMapAttr>(getIndexingMaps()[operand])
          .getValue();
    }
    unsigned getNumLoops() { return getMap(0).getNumDims(); }
    unsigned getNumBatch() { return getNumLoops() - 4; }
    unsigned getLoopM() { return getNumLoops() - 4; }
    unsigned getLoopN() { return getNumLoops() - 3; }
    unsigned getLoopK() { return getNumLoops() - 2; }
    unsigned getLoopE() { return getNumLoops() - 1; }
    /// How often each loop runs: the batch, m, n, k, e.
    ::llvm::SmallVector<int64_t> getExtents();
  }];
}

#endif // HYPERPARALLEL_FUSED_OPS
