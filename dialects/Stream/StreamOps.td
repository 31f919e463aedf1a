//===- StreamOps.td - ops of the Stream dialect ------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_STREAM_OPS
#define HYPERPARALLEL_STREAM_OPS

include "dialects/Stream/StreamAttrs.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Stream_Op<string mnemonic, list<Trait> traits = []>
    : Op<Stream_Dialect, mnemonic, traits>;

def Stream_OnOp : Stream_Op<"on", [
    SingleBlock, NoTerminator, RecursiveMemoryEffects]> {
  let summary = "Queue a call on a stream";
  let description = [{
    Made by `stream-assign-streams`, becomes calls of the runtime in
    `convert-stream-to-runtime`. The program goes on at once.

    - C1: its body is one call, which returns nothing;
    - C2: the stream is not `compute`.
  }];
  let arguments = (ins Stream_IdAttr:$stream);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$stream $body attr-dict";
  let hasVerifier = 1;
}

def Stream_RecordOp : Stream_Op<"record"> {
  let summary = "The moment when all that was queued on a stream is done";
  let description = [{
    Made by `stream-assign-streams`, waited for by `stream.wait`, gone in
    `convert-stream-to-runtime`. Takes no time.
  }];
  let arguments = (ins Stream_IdAttr:$stream);
  let results = (outs Stream_MarkType:$mark);
  let assemblyFormat = "$stream attr-dict";
}

def Stream_WaitOp : Stream_Op<"wait"> {
  let summary = "What is queued on a stream from here on waits for a mark";
  let description = [{
    Made by `stream-assign-streams`, gone in `convert-stream-to-runtime`.

    - C1: the mark is that of a `stream.record` on another stream.
  }];
  let arguments = (ins Stream_IdAttr:$stream, Stream_MarkType:$mark);
  let assemblyFormat = "$stream `for` $mark attr-dict";
  let hasVerifier = 1;
}

#endif // HYPERPARALLEL_STREAM_OPS
