//===- Passes.td - passes of the Stream dialect ------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_TRANSFORMS_STREAM_PASSES
#define HYPERPARALLEL_TRANSFORMS_STREAM_PASSES

include "mlir/Pass/PassBase.td"

def AssignStreamsPass : Pass<"stream-assign-streams", "ModuleOp"> {
  let summary = "Put collectives and messages on streams, and write who waits for whom";
  let description = [{
    On buffers, with every allocation and deallocation written. A call of a
    function with `stream.of` goes on that stream (`stream.on`) if something is
    computed between it and the first op that needs what it does. Waits are
    written where data, or memory that is used again, needs them, and none that
    follows from others. What is under way at the end of a block is waited for
    there. Deallocations move behind the wait for the last stream that uses the
    buffer.

    On a module with `hp.synchronous` nothing is done.
  }];
  let statistics = [
    Statistic<"numQueued", "num-queued", "Calls put on a stream">,
    Statistic<"numInPlace", "num-in-place",
              "Calls left where they are: nothing is computed meanwhile">,
    Statistic<"numWaits", "num-waits", "Waits written">,
    Statistic<"numImplied", "num-implied",
              "Orderings that follow from other waits">,
    Statistic<"numMovedDeallocs", "num-moved-deallocs",
              "Deallocations that now wait for a stream">
  ];
  let dependentDialects = ["::mlir::hyperparallel::stream::StreamDialect"];
}

def VerifyStreamsPass : Pass<"stream-verify-streams", "ModuleOp"> {
  let summary = "Check that every access of memory is ordered with those of other streams";
  let description = [{
    Executes each block with vector clocks: of two accesses of a byte on two
    streams, one of which writes, the earlier one has to happen before the later.
    Bytes of an arena are what is accessed, not the buffers in it. At the end of a
    block nothing is under way.
  }];
}

#endif // HYPERPARALLEL_TRANSFORMS_STREAM_PASSES
