// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules of one's own hold beside those of the schedule, and a limit of memory lets auto do one microbatch after the other.
// RUN: hp-opt %s --hypermpmd-schedule="schedule=auto before=B0.0<F0.1" | FileCheck %s
// RUN: hp-opt %s --hypermpmd-schedule="schedule=auto before=F0.1<B0.0" | FileCheck %s --check-prefix=FIRST
// RUN: hp-opt %s --hypermpmd-schedule="schedule=auto memory=20000" | FileCheck %s
// RUN: hp-opt %s --hypermpmd-schedule="schedule=auto limits=20000,-1 report=%t.json" | FileCheck %s
// RUN: FileCheck %s --input-file=%t.json --check-prefix=REPORT
// REPORT: "bubble":
// REPORT: "peak_live": [
// REPORT-NEXT: 1
// REPORT: "name": "a",
// REPORT: "saved_bytes": 16384,
// REPORT-NEXT: "saved_limit": 20000

#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {
  // CHECK-LABEL: func.func @main(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 0 forward(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 0 backward(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 1 forward(
  // CHECK: hypermpmd.fragment on "a" stage 0 microbatch 1 backward(
  // FIRST-LABEL: func.func @main(
  // FIRST: hypermpmd.fragment on "a" stage 0 microbatch 0 forward(
  // FIRST: hypermpmd.fragment on "a" stage 0 microbatch 1 forward(
  // FIRST: hypermpmd.fragment on "a" stage 0 microbatch 0 backward(
  // FIRST: hypermpmd.fragment on "a" stage 0 microbatch 1 backward(
  func.func @main(%x0: tensor<64x64xf32>, %x1: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
    %f0 = hypermpmd.fragment on "a" stage 0 microbatch 0 forward (%x0) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p, %p : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %f1 = hypermpmd.fragment on "a" stage 0 microbatch 1 forward (%x1) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p, %p : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %b0 = hypermpmd.fragment on "a" stage 0 microbatch 0 backward (%f0) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p, %p : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    %b1 = hypermpmd.fragment on "a" stage 0 microbatch 1 backward (%f1) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%p: tensor<64x64xf32>):
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.matmul ins(%p, %p : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      hypermpmd.yield %r : tensor<64x64xf32>
    }
    return %b0, %b1 : tensor<64x64xf32>, tensor<64x64xf32>
  }
}
