//===- Passes.td - passes of the HyperMPMD dialect ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TRANSFORMS_HYPERMPMD_PASSES
#define HYPERPARALLEL_TRANSFORMS_HYPERMPMD_PASSES

include "mlir/Pass/PassBase.td"

def FormFragmentsPass : Pass<"hypermpmd-form-fragments", "ModuleOp"> {
  let summary = "Make fragments of an imported program, as the plan says";
  let description = [{
    The plan is JSON, or `@` and the name of a file of it:

    ```json
    {"groups": [{"name": "g0", "axes": [["tp", 2]], "device_ids": []}, ...],
     "stages": [{"group": "g0", "blocks": ["h.0", "h.1"]}, ...]}
    ```

    A call whose `hp.path` a stage names belongs to it; where no stage names
    blocks, calls are cut in order into stages whose dearest costs least.
    `hp.phase` (forward, backward, backward_input, backward_weight, update) and
    `hypermpmd.microbatch` say the rest. All ops of one stage, phase and microbatch
    are one fragment, unless something of another comes between.

    Ops that the plan does not speak of go where they are used or made: what
    depends on arguments alone is made anew in every fragment that reads it;
    what makes more bytes than it reads is made where it is used; everything else
    where the last of its operands is made.
  }];
  let options = [
    Option<"plan", "plan", "std::string", "\"\"",
           "The plan as JSON, or @ and the name of a file">,
  ];
  let statistics = [
    Statistic<"numFragments", "fragments", "Fragments that were made">,
    Statistic<"numCloned", "cloned", "Ops that were made anew for another fragment">,
    Statistic<"numPlaced", "placed", "Ops that the plan does not speak of">,
  ];
  let dependentDialects = ["::mlir::hyperparallel::hypermpmd::HyperMPMDDialect"];
}

def InferTransfersPass : Pass<"hypermpmd-infer-transfers", "ModuleOp"> {
  let summary = "Move what a fragment reads from the group that made it";
  let description = [{
    A value that is read on another group than it was made on is moved once to
    each such group, straight from where it was made, right after it is made. An
    argument is handed to every group that reads it; if a result updates it
    (`hp.updates`), it lives on the group that makes the update, and the others
    get it from there, once a step. Arguments and results say then where they are
    (`hypermpmd.groups`, `hypermpmd.group`).
  }];
  let statistics = [
    Statistic<"numTransfers", "transfers", "Transfers that were inserted">,
    Statistic<"numShared", "shared", "Reads that share the transfer of another">,
  ];
  let dependentDialects = ["::mlir::hyperparallel::hypermpmd::HyperMPMDDialect"];
}

def SplitProgramsPass : Pass<"hypermpmd-split-programs", "ModuleOp"> {
  let summary = "Make a program of each device group";
  let description = [{
    Each group gets a nested module of its name, with the bodies of its fragments
    in order as `@main`, and the functions that they call. A transfer becomes a
    send, right after what it sends is made, and a receive, right before what it
    receives is read; tags number the transfers of two groups.
  }];
  let statistics = [
    Statistic<"numMessages", "messages", "Transfers that became send and receive">,
  ];
  let dependentDialects = ["::mlir::hyperparallel::hypermpmd::HyperMPMDDialect"];
}

def ResolveTransfersPass : Pass<"hypermpmd-resolve-transfers", "ModuleOp"> {
  let summary = "Say which block of each transfer goes from which device to which";
  let description = [{
    After the program of every group was resharded. Every element that a device of
    the receiving group holds is sent to it once, from a device that has it; where
    several have, from the one that has least to send. Padding is never sent.
    Sends and receives that do not meet, or disagree about the type, are refused.
  }];
  let statistics = [
    Statistic<"numBlocks", "blocks", "Blocks that are sent">,
    Statistic<"numBytes", "bytes", "Bytes that are sent">,
  ];
  let dependentDialects = ["::mlir::hyperparallel::hypermpmd::HyperMPMDDialect"];
}

#endif // HYPERPARALLEL_TRANSFORMS_HYPERMPMD_PASSES
