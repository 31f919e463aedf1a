//===- StreamDialect.td - what runs beside what ------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_STREAM_DIALECT
#define HYPERPARALLEL_STREAM_DIALECT

include "mlir/IR/OpBase.td"

def Stream_Dialect : Dialect {
  let name = "stream";
  let cppNamespace = "::mlir::hyperparallel::stream";
  let summary = "What a device does beside its computation, and who waits for whom";
  let description = [{
    A lowered program issues its ops one after the other. An op that is in a
    `stream.on` is queued on that stream and the program goes on; all others are
    on the stream `compute`. Ops of one stream happen in order; ops of two happen
    in any order, unless a `stream.wait` of the one is for a `stream.record` of the
    other.

    ```mlir
    func.func private @all_reduce(memref<4xf32>, memref<4xf32>)

    func.func @main(%x: memref<4xf32>, %sum: memref<4xf32>, %y: memref<4xf32>) {
      %made = stream.record <compute>
      stream.wait <comm> for %made
      stream.on <comm> {
        func.call @all_reduce(%x, %sum) : (memref<4xf32>, memref<4xf32>) -> ()
      }
      %summed = stream.record <comm>
      // What stands here runs beside the all-reduce.
      stream.wait <compute> for %summed
      memref.copy %sum, %y : memref<4xf32> to memref<4xf32>
      return
    }
    ```

    **The life of a program.** Conversions of collectives, sends and receives mark
    their functions with the stream that they belong to (`stream.of`).
    `stream-assign-streams` puts calls of these on it, on buffers, and writes the
    waits that data and reused memory need, and no more. `stream-verify-streams`
    checks every access of memory anew. `convert-stream-to-runtime` makes calls
    of the runtime of them. Nothing of the dialect is left afterwards.

    Attributes: `stream.of` on a function is the stream that its calls may run on;
    `stream.access` on its arguments is `read` or `write`, what it does to the
    buffer.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kOfAttrName = "stream.of";
    static constexpr ::llvm::StringLiteral kAccessAttrName = "stream.access";
    /// On a module: everything happens in the order of the program.
    static constexpr ::llvm::StringLiteral kSynchronousAttrName =
        "hp.synchronous";
  }];
}

#endif // HYPERPARALLEL_STREAM_DIALECT
