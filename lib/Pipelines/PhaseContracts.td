//===- PhaseContracts.td - what holds after each phase -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_PIPELINES_PHASECONTRACTS
#define HYPERPARALLEL_PIPELINES_PHASECONTRACTS

include "mlir/Pass/PassBase.td"

def VerifyImportedPass : Pass<"hp-verify-imported", "ModuleOp"> {
  let summary = "Check what import hands over";
  let description = [{
    After phase 0: only the dialects that the compiler reads, tensors of static
    shape, an entry function, and `hp.role`s that mean something, each on a named
    argument (`hp.name`), no name twice. A result with `hp.updates` is the next
    value of the argument of that name, and has its type. An argument with
    `hp.staleness = k` is a value of k steps ago: its next value is an argument of
    staleness k - 1, or, for k = 1, made in this step.
  }];
  let options = [
    Option<"entry", "entry", "std::string", "\"main\"", "The entry function">,
  ];
}

def VerifyPropagatedPass : Pass<"hypershard-verify-propagated", "ModuleOp"> {
  let summary = "Check that every tensor has a closed sharding";
  let description = [{
    After phase 2: every tensor that an op makes, every argument and result of a
    function has a sharding without open dimensions and priorities.
  }];
}

def VerifyReshardedPass : Pass<"hypershard-verify-resharded", "ModuleOp"> {
  let summary = "Check that every op can be partitioned as it stands";
  let description = [{
    After phase 3: for every op there are factor axes under which its operands and
    results have their layouts, the sources of every data-flow edge have the
    edge's sharding, and no constraint, barrier or reshard is left.
  }];
}

def VerifyPartitionedPass : Pass<"hypershard-verify-partitioned", "ModuleOp"> {
  let summary = "Check that the program is one device's own";
  let description = [{
    After phase 5: no sharding, constraint, reshard, barrier or manual region is
    left; collectives are in their local form.
  }];
}

#endif // HYPERPARALLEL_PIPELINES_PHASECONTRACTS
