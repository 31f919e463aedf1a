// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules that cannot all be kept are named, in their cycle; so are rules of tasks that are not there, and a limit that no
// order keeps.
// RUN: not hp-opt %s --hypermpmd-schedule="schedule=auto before=B0.0<F0.1,F0.1<F0.0" 2>&1 | FileCheck %s --check-prefix=CYCLE
// RUN: not hp-opt %s --hypermpmd-schedule="schedule=1f1b before=F0.1<F0.0" 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not hp-opt %s --hypermpmd-schedule="schedule=auto before=F0.7<B0.0" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not hp-opt %s --hypermpmd-schedule="schedule=auto before=first" 2>&1 | FileCheck %s --check-prefix=WORDS
// RUN: not hp-opt %s --hypermpmd-schedule="schedule=auto memory=1000" 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: not hp-opt %s --hypermpmd-schedule="schedule=auto limits=1000,-1" 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: not hp-opt %s --hypermpmd-schedule="schedule=auto limits=1000" 2>&1 | FileCheck %s --check-prefix=LIMITS
// RUN: not hp-opt %s --hypermpmd-schedule="schedule=auto report=/nowhere/report.json" 2>&1 | FileCheck %s --check-prefix=REPORT

// CYCLE: error: schedule auto: expected an order in which everything can happen, but
// CYCLE-SAME: (your rule F0.1<F0.0)
// SCHEDULE: error: schedule 1f1b: expected an order in which everything can happen, but
// SCHEDULE-SAME: (your rule F0.1<F0.0)
// ABSENT: error: schedule auto: the rule 'F0.7<B0.0' names a task that is not there: expected stages below 1, microbatches below 2
// WORDS: error: schedule auto: expected two tasks, such as F0.3 < B1.0
// WORDS-SAME: but got 'first'
// MEMORY: error: schedule auto:
// MEMORY-SAME: 1000
// LIMITS: error: expected a limit for each of 2 groups but got 1
// REPORT: error: cannot write the report to /nowhere/report.json
#t = #hypermpmd.topology<"a" = <["tp"=1]>, "b" = <["tp"=1]>>
module attributes {hypermpmd.topology = #t} {

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
