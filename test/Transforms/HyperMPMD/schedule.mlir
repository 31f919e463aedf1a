// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 1F1B on two stages: the first does two forwards, then one backward and one forward in turn; a remark says what it costs.
// RUN: hp-opt %s --hypermpmd-schedule=schedule=1f1b --verify-diagnostics | FileCheck %s

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  // CHECK-LABEL: func.func @main(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 0 forward(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 1 forward(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 0 backward(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 2 forward(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 1 backward(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 3 forward(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 2 backward(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 3 backward(
  // expected-remark @below {{schedule 1f1b: 2 stages, 4 microbatches}}
  func.func @main(%x0: tensor<64x64xf32>, %x1: tensor<64x64xf32>, %x2: tensor<64x64xf32>, %x3: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %f0 = hypermpmd.fragment on "a" stage 0 microbatch 0 forward (%x0) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %t0 = hypermpmd.transfer %f0 from "a" to "b" : tensor<64x64xf32>
    %f1 = hypermpmd.fragment on "a" stage 0 microbatch 1 forward (%x1) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %t1 = hypermpmd.transfer %f1 from "a" to "b" : tensor<64x64xf32>
    %f2 = hypermpmd.fragment on "a" stage 0 microbatch 2 forward (%x2) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %t2 = hypermpmd.transfer %f2 from "a" to "b" : tensor<64x64xf32>
    %f3 = hypermpmd.fragment on "a" stage 0 microbatch 3 forward (%x3) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %t3 = hypermpmd.transfer %f3 from "a" to "b" : tensor<64x64xf32>
    %g0 = hypermpmd.fragment on "b" stage 1 microbatch 0 forward (%t0) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %g1 = hypermpmd.fragment on "b" stage 1 microbatch 1 forward (%t1) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %g2 = hypermpmd.fragment on "b" stage 1 microbatch 2 forward (%t2) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %g3 = hypermpmd.fragment on "b" stage 1 microbatch 3 forward (%t3) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %h0 = hypermpmd.fragment on "b" stage 1 microbatch 0 backward (%g0) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %u0 = hypermpmd.transfer %h0 from "b" to "a" : tensor<64x64xf32>
    %h1 = hypermpmd.fragment on "b" stage 1 microbatch 1 backward (%g1) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %u1 = hypermpmd.transfer %h1 from "b" to "a" : tensor<64x64xf32>
    %h2 = hypermpmd.fragment on "b" stage 1 microbatch 2 backward (%g2) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %u2 = hypermpmd.transfer %h2 from "b" to "a" : tensor<64x64xf32>
    %h3 = hypermpmd.fragment on "b" stage 1 microbatch 3 backward (%g3) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %u3 = hypermpmd.transfer %h3 from "b" to "a" : tensor<64x64xf32>
    %i0 = hypermpmd.fragment on "a" stage 0 microbatch 0 backward (%u0, %f0) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>, %p1: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p1 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %i1 = hypermpmd.fragment on "a" stage 0 microbatch 1 backward (%u1, %f1) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>, %p1: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p1 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %i2 = hypermpmd.fragment on "a" stage 0 microbatch 2 backward (%u2, %f2) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>, %p1: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p1 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %i3 = hypermpmd.fragment on "a" stage 0 microbatch 3 backward (%u3, %f3) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>, %p1: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p0, %p1 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %w = hypermpmd.fragment on "a" stage 0 update (%i0, %i1, %i2, %i3) : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p0: tensor<64x64xf32>, %p1: tensor<64x64xf32>, %p2: tensor<64x64xf32>, %p3: tensor<64x64xf32>):
      %s = arith.addf %p0, %p3 : tensor<64x64xf32>
      hypermpmd.yield %s : tensor<64x64xf32>
    }
  // CHECK: hypermpmd.fragment on "a" stage 0 update(
    return %w : tensor<64x64xf32>
  }
}
