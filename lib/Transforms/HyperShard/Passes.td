//===- Passes.td - passes of the HyperShard dialect --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In the order in which a program meets them.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TRANSFORMS_HYPERSHARD_PASSES
#define HYPERPARALLEL_TRANSFORMS_HYPERSHARD_PASSES

include "mlir/Pass/PassBase.td"

def ApplyPlanPass : Pass<"hypershard-apply-plan", "ModuleOp"> {
  let summary = "Put a plan's mesh, shardings and constraints on a program";
  let dependentDialects = ["::mlir::hyperparallel::hypershard::HyperShardDialect"];
  let options = [
    Option<"plan", "plan", "std::string", "",
           "The plan as JSON text, or @FILE to read it from a file">,
  ];
  let description = [{
    The plan is JSON with exact names (`hp plan --resolved` writes it; globs are
    matched there):

    ```json
    {"mesh": {"name": "mesh", "axes": [["dp", 2], ["tp", 2]]},
     "arguments": {"fc1.bias": {"store": "[{\"dp\"} ]", "use": "[{} ]"}},
     "results": {"logits": "[{\"dp\"}, {} ]"},
     "blocks": {"model.layers.0": {"0": "[{\"dp\"}, {} ]"}}}
    ```

    Arguments and results are named by `hp.name`, blocks by the `hp.path` of their
    call. An argument with a `use` layout is kept as `store` says, and a
    `hypershard.constraint` to `use` stands before its first use in the innermost
    function that it is handed to: parameters of a block are gathered when the
    block runs. The update of a training step (`hp.phase`) works on what is stored.
    Functions that calls hand differently stored arguments are cloned.
  }];
  let statistics = [
    Statistic<"numConstraints", "num-constraints", "Constraints inserted">,
    Statistic<"numSpecialised", "num-functions-specialised",
              "Functions cloned because the plan treats their calls differently">,
  ];
}

def InlineSegmentsPass : Pass<"hypershard-inline-segments", "ModuleOp"> {
  let summary = "Put functions that are no blocks back where they are called";
  let description = [{
    Import makes a function of everything in a training step. Those that are
    called once and are marked `hp.segment` are written in place of their calls;
    blocks stay functions.
  }];
  let statistics = [
    Statistic<"numInlined", "num-inlined", "Segments put back">,
  ];
}

def ExpandBatchDimsPass : Pass<"hypershard-expand-batch-dims", "ModuleOp"> {
  let summary = "Give contractions back the batch dimensions that were collapsed";
  let description = [{
    A `linalg.batch_matmul` whose operands collapse several dimensions into its
    batch (batch and heads of attention) becomes a contraction with several batch
    dimensions, each of which can be split. Other contractions stay.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numExpanded", "num-contractions-expanded",
              "Contractions given back their batch dimensions">,
  ];
}

def SplitConstantsPass : Pass<"hypershard-split-constants", "ModuleOp"> {
  let summary = "Give each use of a constant-like value its own copy";
  let description = [{
    Constants, empty tensors, fills, and values made of nothing but indices
    (iota, masks) cost nothing to make again, so uses that are split differently
    need no reshard: each use gets a copy that propagation may split as the use
    wants. CSE after partition merges what turned out equal.
  }];
  let statistics = [
    Statistic<"numSplit", "num-copies-made", "Copies of constant-like values made">,
  ];
}

def SpecializeFunctionsPass
    : Pass<"hypershard-specialize-functions", "ModuleOp"> {
  let summary = "Clone functions whose callers annotate them differently";
  let description = [{
    Calls of a function whose operands or results carry different shardings get
    clones of it; the annotations become those of the function's arguments. A
    repeated block that the plan treats alike everywhere stays one function.
    Recursion is refused.
  }];
  let statistics = [
    Statistic<"numSpecialized", "num-functions-cloned", "Functions cloned">,
  ];
}

def PropagateShardingsPass
    : Pass<"hypershard-propagate-shardings", "ModuleOp"> {
  let summary = "Give every tensor a sharding, from those that are annotated";
  let description = [{
    Shardings travel along the factors of each op's sharding rule, forward and
    backward, through calls, branches and loops, to a fixed point: by user
    priority first, within it by op priority (values that are mapped one to one,
    then everything), within it where all agree, then where they conflict. A
    conflict (one axis is wanted by two factors of an op) is won by the factor
    whose loss would move more bytes; a remark says so.

    Afterwards every tensor has a closed sharding.
  }];
  let dependentDialects = ["::mlir::hyperparallel::hypershard::HyperShardDialect"];
  let statistics = [
    Statistic<"numVisits", "num-visits", "Visits of ops and edges">,
    Statistic<"numConflicts", "num-conflicts", "Conflicts decided by cost">,
  ];
}

def InsertReshardsPass : Pass<"hypershard-insert-reshards", "ModuleOp"> {
  let summary = "Make the operands of every op agree with what it needs";
  let description = [{
    For each op the ways of splitting its factors that its operands and results
    suggest are compared by the time of the reshards they need and of the op
    itself; the cheapest is taken. Partial results stay visible: a contraction
    over a split dimension makes a partial value, and a reshard makes it whole
    where it is first needed whole.
  }];
  let dependentDialects = ["::mlir::hyperparallel::hypershard::HyperShardDialect"];
  let statistics = [
    Statistic<"numReshards", "num-reshards", "Reshards inserted">,
    Statistic<"numDelayed", "num-reductions-delayed",
              "Partial values that went through an op before being reduced">,
    Statistic<"numChoices", "num-choices",
              "Ops with more than one way to be split">,
  ];
}

def LowerReshardsPass : Pass<"hypershard-lower-reshards", "ModuleOp"> {
  let summary = "Turn each reshard into collectives of least cost";
  let description = [{
    A reshard becomes the sequence of `all_gather`, `all_reduce`,
    `reduce_scatter`, `all_to_all`, `permute` and `slice_local` in which a device
    receives the fewest bytes, or, when the module describes its machine, which
    takes the least time. Dimensions that do not divide are padded to blocks of
    ceil(n/k); no step cuts across such blocks. Reshards of one value share their
    common steps. A reshard to the sharding that its operand has goes away.

    The collectives are in global form: operand and result have the tensor's
    type, and `hypershard.sharding` says how the result is split.
  }];
  let dependentDialects = ["::mlir::hyperparallel::hypershard::HyperShardDialect"];
  let statistics = [
    Statistic<"numLowered", "num-lowered", "Reshards turned into collectives">,
    Statistic<"numIdentities", "num-identities", "Reshards that changed nothing">,
    Statistic<"numCollectives", "num-collectives", "Collectives made">,
    Statistic<"numShared", "num-shared",
              "Collectives not made because an equal one was there">,
    Statistic<"numBytes", "num-bytes", "Bytes that a device receives in them">,
    Statistic<"numNotSearched", "num-not-searched",
              "Reshards with too many layouts to search: gathered and sliced">,
  ];
}

def PartitionProgramPass : Pass<"hypershard-partition-program", "ModuleOp"> {
  let summary = "Leave the one program on local shapes that every device runs";
  let description = [{
    Every function becomes its local program: each op builds its own through
    `ShardableOpInterface::partition`, control flow and calls keep their form,
    collectives take their local form, and `hypershard.manual` is inlined.
    Where a dimension does not divide, the last devices hold padding: a
    reduction masks it, and nothing that could trap reads it. What an op adds to
    (`outs`) is added once, on the first device of the reduction.

    Afterwards no sharding is left. Arguments and results of `@main` keep theirs
    as text, `hp.sharding`, with the type before, `hp.global_type`, for whoever
    cuts the inputs and puts the results together.
  }];
  let dependentDialects = [
    "::mlir::hyperparallel::hypershard::HyperShardDialect",
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect"];
}

def OptimizeCollectivesPass
    : Pass<"hypershard-optimize-collectives", "ModuleOp"> {
  let summary = "Merge, shrink and drop collectives";
  let description = [{
    On local programs. Equal collectives of one value become one; two of a kind
    in a row become one; over a group of one they go away; an `all_reduce` of
    which only a slice is kept becomes a `reduce_scatter`, or reduces the slice;
    what is gathered and sliced again is not gathered; exchanges of windows are
    composed where that is exact. No rule adds bytes or collectives.
  }];
  let dependentDialects = [
    "::mlir::hyperparallel::hypershard::HyperShardDialect",
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numMerged", "num-merged", "Collectives equal to an earlier one">,
    Statistic<"numDropped", "num-dropped", "Collectives that changed nothing">,
    Statistic<"numJoined", "num-joined", "Pairs of collectives made one">,
    Statistic<"numScattered", "num-scattered",
              "Reductions of which each device now gets its slice only">,
    Statistic<"numSliced", "num-sliced",
              "Collectives that now act on what a slice keeps">,
    Statistic<"numHalosComposed", "num-halos-composed",
              "Pairs of window exchanges made one">,
    Statistic<"numDeclinedShared", "num-declined-shared",
              "Pairs left alone: the first has other users">,
    Statistic<"numDeclinedHalos", "num-declined-halos",
              "Pairs of window exchanges left alone: one cannot do both">,
  ];
}

def CombineCollectivesPass
    : Pass<"hypershard-combine-collectives", "ModuleOp"> {
  let summary = "Make one collective of several small ones";
  let description = [{
    On local programs, when collectives have their places. Those of one kind,
    group, reduction and element type between which nothing takes time, and of
    which none is read before the last, are done in one, on their operands put in a
    row, where the launches and latencies that this saves are more than those of the
    copies. So are the small parameters of a layer gathered, and their gradients reduced, in
    one message. The bits of the results do not change.
  }];
  let statistics = [
    Statistic<"numCombined", "num-combined", "Collectives put together">,
    Statistic<"numBuckets", "num-buckets", "Collectives made of several">,
    Statistic<"numDeclinedDear", "num-declined-dear",
              "Collectives left alone: copying takes longer than it saves">,
    Statistic<"numDeclinedInner", "num-declined-inner",
              "Collectives left alone: their dimension is not the outermost">,
  ];
}

def LiftCollectivesPass : Pass<"hypershard-lift-collectives", "ModuleOp"> {
  let summary = "Do collectives at the borders of functions in their callers";
  let description = [{
    On local programs. A collective of an argument that nothing else reads is done
    before the call, one whose result is only returned after it: the gathers of
    a block's weights and the reductions of its gradients then stand beside the
    other blocks' calls. Each call gets its own, with the call's `hp.path` and
    `hp.phase`.

    On a module with `hp.synchronous` nothing is done.
  }];
  let dependentDialects = ["::mlir::hyperparallel::hypershard::HyperShardDialect"];
  let statistics = [
    Statistic<"numBefore", "num-before", "Collectives of arguments lifted">,
    Statistic<"numAfter", "num-after", "Collectives of results lifted">,
  ];
}

def ReorderCollectivesPass : Pass<"hypershard-reorder-collectives", "ModuleOp"> {
  let summary = "Choose when collectives and messages are issued";
  let description = [{
    On local programs. What takes as much as it gives (reductions, exchanges, sends)
    is issued as soon as its operand is there; what gives more (gathers, receives)
    as late as it is still done before its first reader by the cost model, and
    not before the reader before the last one. Sends and receives keep their
    order. What computes keeps its order.

    On a module with `hp.synchronous` nothing is done.
  }];
  let statistics = [
    Statistic<"numEarly", "num-early", "Issued as soon as the operand is there">,
    Statistic<"numLate", "num-late", "Issued as late as is hidden">,
    Statistic<"numHeldBack", "num-held-back",
              "Of these, issued later than would hide them: memory">,
    Statistic<"numReordered", "num-reordered", "Blocks with another order">,
  ];
}

#endif // HYPERPARALLEL_TRANSFORMS_HYPERSHARD_PASSES
