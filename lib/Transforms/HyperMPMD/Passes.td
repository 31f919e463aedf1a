//===- Passes.td - passes of the HyperMPMD dialect ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TRANSFORMS_HYPERMPMD_PASSES
#define HYPERPARALLEL_TRANSFORMS_HYPERMPMD_PASSES

include "mlir/Pass/PassBase.td"

def UnrollMicrobatchesPass : Pass<"hypermpmd-unroll-microbatches", "ModuleOp"> {
  let summary = "Write the loop over microbatches out";
  let description = [{
    An `scf.for` of `@main` with `hp.microbatches` and constant bounds becomes its
    body as often as it runs; calls with a path say which microbatch they are of
    (`hypermpmd.microbatch`).
  }];
  let statistics = [
    Statistic<"numMicrobatches", "microbatches", "Copies of loop bodies">,
  ];
  let dependentDialects = ["::mlir::hyperparallel::hypermpmd::HyperMPMDDialect",
                           "::mlir::arith::ArithDialect"];
}

def SplitBackwardPass : Pass<"hypermpmd-split-backward", "ModuleOp"> {
  let summary = "Cut backward calls into gradients of inputs and of weights";
  let description = [{
    The stage before waits only for gradients of inputs, those of weights can be
    done later. A function that is called with `hp.phase = "backward"` becomes
    two, and each of its calls two, of the phases `backward_input` and
    `backward_weight`. What both need is made by the first and handed over.
  }];
  let statistics = [
    Statistic<"numSplit", "split", "Functions that were cut">,
    Statistic<"numCrossing", "crossing", "Values that the second part takes of the first">,
  ];
}

def SchedulePass : Pass<"hypermpmd-schedule", "ModuleOp"> {
  let summary = "Put the fragments of each group into order";
  let description = [{
    Fragments, with their seconds on the machine, are ordered by a named schedule
    (`gpipe`, `1f1b`, `interleaved_1f1b`, `zero_bubble_h1`), or by the fastest that
    fits (`auto`). A transfer stands where what it moves is made, in the simulated
    time of all groups. A remark says what the schedule costs.

    With `memory`, or `limits` for each group by itself, `auto` finds an order in
    which no device holds more than that of what forward fragments save for backward
    ones; a named schedule that holds more is refused. `report` names a file that
    gets the schedule's time, bubbles, live microbatches and saved bytes as JSON. Rules of `before` hold beside those of the schedule: `F0.3<B1.0`
    is the forward of microbatch 3 on stage 0 before the backward of microbatch 0 on
    stage 1, `W` the gradients of weights. Rules that cannot all be kept are refused
    by name.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"auto\"", "Its name">,
    Option<"memory", "memory", "int64_t", "-1",
           "Bytes of saved activations that a device may hold; -1 for any">,
    ListOption<"limits", "limits", "int64_t",
               "The same for each group, in the order of the topology">,
    Option<"report", "report", "std::string", "\"\"",
           "A file that gets what the schedule costs, as JSON">,
    ListOption<"before", "before", "std::string",
               "Rules of one's own, such as F0.3<B1.0">,
  ];
  let statistics = [
    Statistic<"numMoved", "moved", "Fragments that changed their place">,
  ];
  let dependentDialects = ["::mlir::hyperparallel::supernode::SupernodeDialect"];
}

def FlattenProgramsPass : Pass<"hypermpmd-flatten-programs", "ModuleOp"> {
  let summary = "Put the programs of all groups into one module, to be simulated";
  let description = [{
    The `@main` of a group's module becomes a function of the group's name that
    says which devices run it (`supernode.program`, `supernode.devices`); names of
    other functions and of meshes get the group's in front.
  }];
  let dependentDialects = ["::mlir::hyperparallel::supernode::SupernodeDialect"];
}

def VerifyProgramsPass : Pass<"hypermpmd-verify-programs", "ModuleOp"> {
  let summary = "Prove that no group waits forever";
  let description = [{
    The sends and receives of all groups are executed in their order, as if a send
    waited for its receive: what comes to an end so does so wherever sends return
    earlier. What travels together (`hp.packet`) is one message. Refused are messages
    that nobody receives or sends, or that are packed otherwise on the other side, and
    groups that wait for each other. It runs on the programs as they are split, and
    again on those of which code is made, after messages were moved and packed.
  }];
}

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
    where the last of its operands is made. A sum whose terms several groups make
    (gradients of a tied weight, over microbatches) is taken on each group first. What a
    called function makes of constants and inputs alone (a causal mask), and other
    groups read, becomes a function of its own, which is called wherever it is read.
  }];
  let options = [
    Option<"plan", "plan", "std::string", "\"\"",
           "The plan as JSON, or @ and the name of a file">,
  ];
  let statistics = [
    Statistic<"numFragments", "fragments", "Fragments that were made">,
    Statistic<"numCloned", "cloned", "Ops that were made anew for another fragment">,
    Statistic<"numPlaced", "placed", "Ops that the plan does not speak of">,
    Statistic<"numFree", "free", "Results of functions that are made wherever they are read">,
    Statistic<"numSums", "sums", "Sums over several groups that were regrouped">,
  ];
  let dependentDialects = ["::mlir::hyperparallel::hypermpmd::HyperMPMDDialect",
                           "::mlir::hyperparallel::supernode::SupernodeDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
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
    send and a receive where it stands; tags number the transfers of two groups.
  }];
  let statistics = [
    Statistic<"numMessages", "messages", "Transfers that became send and receive">,
  ];
  let dependentDialects = ["::mlir::hyperparallel::hypermpmd::HyperMPMDDialect"];
}

def MergeTransfersPass : Pass<"hypermpmd-merge-transfers", "ModuleOp"> {
  let summary = "Make one message of small transfers of the same moment";
  let description = [{
    After the programs of all groups were partitioned. Sends to one group that
    follow each other, whose receives do so, too, get `hp.packet = [number, place]`:
    their blocks travel together, one message for each pair of devices. That is done
    where packing costs less than the latencies that it saves.
  }];
  let statistics = [
    Statistic<"numPackets", "packets", "Messages that are made of several">,
    Statistic<"numMerged", "merged", "Transfers that are in them">,
    Statistic<"numDeclinedLarge", "declined-large",
              "Transfers that are not worth packing">,
    Statistic<"numDeclinedApart", "declined-apart",
              "Transfers that are received at another moment than the one before">,
  ];
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
