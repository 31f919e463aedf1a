//===- Passes.td - passes of the Offload dialect -----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In the order in which a program meets them.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TRANSFORMS_OFFLOAD_PASSES
#define HYPERPARALLEL_TRANSFORMS_OFFLOAD_PASSES

include "mlir/Pass/PassBase.td"

def UnrollLoopsPass : Pass<"offload-unroll-loops", "ModuleOp"> {
  let summary = "Make iterations of loops over tensors ops of their own";
  let description = [{
    To the planner a loop is one op: what it carries and all that it reads stays
    on the device while it runs. Loops of the entry function (over microbatches,
    over layers) are unrolled, and slices that iterations put into a tensor for
    others are handed over as values: so what iteration i saves may leave, and
    come back for iteration n - 1 - i of a later loop. Calls in the loop stay
    calls. Runs after `hp-fuse`, before `offload-split-calls`.
  }];
  let options = [
    Option<"maxOps", "max-ops", "int64_t", "20000",
           "Ops that a loop may become at most">,
    Option<"entry", "entry", "std::string", "\"main\"", "The entry function">,
  ];
  let statistics = [
    Statistic<"numUnrolled", "num-unrolled", "Loops that were unrolled">,
    Statistic<"numKept", "num-kept", "Loops that stay one op">,
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SplitCallsPass : Pass<"offload-split-calls", "ModuleOp"> {
  let summary = "Do calls that use much memory in parts";
  let description = [{
    To the planner a call is one op: all that it touches is on the device while it
    runs. A function that touches more than `grain` bytes is cut into several
    between its kernels, and each call of it becomes a call of each, so that what
    is used inside a block can come and go while the block runs. Code is still
    compiled once for all calls. Runs after `hp-fuse`, before
    `offload-split-large-ops`.
  }];
  let options = [
    Option<"grain", "grain", "int64_t", "67108864",
           "Bytes that a part should touch at most">,
    Option<"entry", "entry", "std::string", "\"main\"", "The entry function">,
  ];
  let statistics = [
    Statistic<"numFunctions", "num-functions", "Functions that were cut">,
    Statistic<"numParts", "num-parts", "Parts that they became">,
  ];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::mlir::hyperparallel::supernode::SupernodeDialect"];
}

def SplitLargeOpsPass : Pass<"offload-split-large-ops", "ModuleOp"> {
  let summary = "Do ops that need more memory than there is in parts";
  let description = [{
    Where an op of the entry function needs more than `capacity` because of a
    parameter, the parameter lives in a tier: contractions over it are done in
    parts, each fetched by itself, and an embedding fetches the rows that it reads
    (`offload.prefetch_rows`). A program whose ops fit stays as it is. Runs after
    `hp-fuse`, before `offload-plan-transfers`.
  }];
  let options = [
    Option<"capacity", "capacity", "int64_t", "0",
           "Bytes of device memory; 0: what the machine says">,
    Option<"entry", "entry", "std::string", "\"main\"", "The entry function">,
  ];
  let statistics = [
    Statistic<"numParts", "num-parts", "Parts of contractions made">,
    Statistic<"numRowReads", "num-row-reads", "Ops that fetch rows of a table">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::hyperparallel::offload::OffloadDialect",
                           "::mlir::hyperparallel::supernode::SupernodeDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PlanTransfersPass : Pass<"offload-plan-transfers", "ModuleOp"> {
  let summary = "Decide which values leave the device between two uses";
  let description = [{
    Plans the entry function of a local program (after partition) so that what
    is resident on the device fits `capacity` at every op, in-flight copies
    included, with the least time that copies add to the step. Times are those of
    the cost model on the module's `supernode.machine`; the tiers are those that
    its links reach from the device's memory and back.

    Parameters, buffers, caches and optimizer state (`hp.role`) may live in a
    tier between steps; inputs and results stay on the device. What a person
    asked for (`offload.place`, `offload.keep` on arguments) is kept to. A value
    whose maker may be executed again (`OffloadableOpInterface`) is computed again
    where that is faster than copying it.

    The decisions hang on the function as `offload.moves`, each with a remark
    that says what it costs; a program that fits is left as it is. Where no plan
    exists, the error names the op that needs most and the smallest capacity that
    could work.
  }];
  let options = [
    Option<"capacity", "capacity", "int64_t", "0",
           "Bytes of device memory; 0: what the machine says">,
    Option<"entry", "entry", "std::string", "\"main\"", "The entry function">,
    Option<"recompute", "recompute", "bool", "true",
           "Compute a value again where that is faster than copying it">,
    Option<"report", "report", "std::string", "\"\"",
           "File to write the plan's figures to, as JSON">,
  ];
  let statistics = [
    Statistic<"numMoved", "num-moved", "Values that leave the device">,
    Statistic<"numKept", "num-kept", "Values that could leave and stay">,
    Statistic<"numRecomputed", "num-recomputed",
              "Values that are computed again instead of copied">,
  ];
  let dependentDialects = ["::mlir::hyperparallel::offload::OffloadDialect",
                           "::mlir::hyperparallel::supernode::SupernodeDialect"];
}

def InsertTransfersPass : Pass<"offload-insert-transfers", "ModuleOp"> {
  let summary = "Write the decisions of a plan as prefetches and stores";
  let description = [{
    For each move of `offload.moves`: a store right after the last use before the
    gap (none, if the value is clean), its wait and the end of the residency
    before the op that needs the memory, the prefetch before the op that the plan
    names, its wait before the next use. Views are made again of the new value.
    An argument that lives in a tier between steps gets the tier in its type. The
    attribute is gone afterwards, and so are `offload.place` and `offload.keep`.
  }];
  let statistics = [
    Statistic<"numPrefetches", "num-prefetches", "Prefetches inserted">,
    Statistic<"numStores", "num-stores", "Stores inserted">,
    Statistic<"numRecomputed", "num-recomputed", "Ops executed again">,
  ];
  let dependentDialects = ["::mlir::hyperparallel::offload::OffloadDialect",
                           "::mlir::hyperparallel::supernode::SupernodeDialect"];
}

def VerifyTiersPass : Pass<"offload-verify-tiers", "ModuleOp"> {
  let summary = "Check that only copies touch what is not on the device";
  let description = [{
    After phase 6: a tensor in a tier is an operand or result of `offload` ops,
    of slices, calls, functions, loops, branches and their terminators alone, a
    result that updates an argument (`hp.updates`) is in the argument's tier, and no
    decision of a plan is left unwritten.
  }];
}

def AssignMemoryPass : Pass<"offload-assign-memory", "ModuleOp"> {
  let summary = "Give buffers places in one piece of memory for each tier";
  let description = [{
    On buffers, when every allocation and deallocation is written: allocations of
    static size that are freed in the block where they are made become views of an
    arena, at offsets so that those that live at the same time share no byte. What
    a copy reads or writes lives until the copy has been waited for. A call takes
    its callee's arena as an argument (`hp.arena`), a part of the caller's; a
    public function allocates its own, once for each memory space. Other
    allocations stay as they are.

    Sizes and offsets are multiples of 64 bytes, as the runtime's.
  }];
  let statistics = [
    Statistic<"numPlaced", "num-placed", "Buffers that have a place in an arena">,
    Statistic<"numLeft", "num-left", "Allocations that stay as they are">,
    Statistic<"arenaBytes", "arena-bytes", "Bytes of the arenas that are allocated">,
    Statistic<"lostBytes", "lost-bytes", "Bytes of all arenas above what lives at once in them">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def VerifyMemoryPass : Pass<"offload-verify-memory", "ModuleOp"> {
  let summary = "Check that buffers in arenas share no byte while they live";
  let description = [{
    After `offload-assign-memory`, before anything merges equal views. A buffer
    lives from its view to the last op that uses it, an alias of it, or a copy that
    is under way; how it was placed plays no part.
  }];
}

#endif // HYPERPARALLEL_TRANSFORMS_OFFLOAD_PASSES
