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

def PropagateShardingsPass
    : Pass<"hypershard-propagate-shardings", "ModuleOp"> {
  let summary = "Give every tensor a sharding, from those that are annotated";
  let description = [{
    Shardings travel along the factors of each op's sharding rule, forward and
    backward, through calls, branches and loops, to a fixed point: by user
    priority first, within it by op priority (values that are mapped one to one,
    then everything), within it where all agree, then where they conflict. A
    conflict (one axis is wanted by two factors of an op) is won by the factor
    whose loss would move more bytes; a remark says so. Functions whose callers
    annotate them differently are specialised.

    Afterwards every tensor has a closed sharding.
  }];
  let dependentDialects = ["::mlir::hyperparallel::hypershard::HyperShardDialect"];
  let statistics = [
    Statistic<"numVisits", "num-visits", "Visits of ops and edges">,
    Statistic<"numConflicts", "num-conflicts", "Conflicts decided by cost">,
    Statistic<"numSpecialised", "num-functions-specialised",
              "Functions cloned because their callers differ">,
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
  let dependentDialects = ["::mlir::hyperparallel::hypershard::HyperShardDialect"];
}

def PartitionProgramPass : Pass<"hypershard-partition-program", "ModuleOp"> {
  let summary = "Leave the one program on local shapes that every device runs";
  let dependentDialects = [
    "::mlir::hyperparallel::hypershard::HyperShardDialect",
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect"];
}

def OptimizeCollectivesPass
    : Pass<"hypershard-optimize-collectives", "ModuleOp"> {
  let summary = "Merge, shrink and drop collectives";
  let dependentDialects = ["::mlir::hyperparallel::hypershard::HyperShardDialect"];
}

#endif // HYPERPARALLEL_TRANSFORMS_HYPERSHARD_PASSES
