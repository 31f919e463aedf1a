//===- StreamToRuntime.cpp - Streams to calls of the runtime --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  func on buffers with `stream` ops.
// Contract out: no op and no attribute of the dialect.
//
//   1. `on` becomes its call between hp_rt_stream_begin and hp_rt_stream_end.
//   2. `record` becomes hp_rt_stream_mark, whose word `wait` hands to
//      hp_rt_stream_wait. A mark that nobody waits for is not made.
//   3. A stream is a word: the role, and above three bits its number.
//
//===----------------------------------------------------------------------===//

#include "dialects/Stream/Stream.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CONVERTSTREAMTORUNTIME
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

using namespace stream;

/// HP_STREAM_ROLE_BITS.
static constexpr int64_t kRoleBits = 3;

static int64_t wordOf(IdAttr id) {
  return int64_t(id.getRole()) | id.getNumber() << kRoleBits;
}

static void convert(OnOp on) {
  OpBuilder builder(on);
  RuntimeCallBuilder runtime(builder, on.getLoc());
  runtime.call("hp_rt_stream_begin", {runtime.i32(wordOf(on.getStream()))});
  on.getBody().front().front().moveBefore(on);
  runtime.call("hp_rt_stream_end", {});
  on.erase();
}

static void convert(RecordOp record) {
  OpBuilder builder(record);
  if (record.getMark().use_empty())
    return record.erase();
  RuntimeCallBuilder runtime(builder, record.getLoc());
  Value mark = runtime.call("hp_rt_stream_mark",
                            {runtime.i32(wordOf(record.getStream()))},
                            builder.getI64Type());
  for (Operation *user : llvm::make_early_inc_range(record->getUsers())) {
    auto wait = cast<WaitOp>(user);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(wait);
    RuntimeCallBuilder waiting(builder, wait.getLoc());
    waiting.call("hp_rt_stream_wait",
                 {waiting.i32(wordOf(wait.getStream())), mark});
    wait.erase();
  }
  record.erase();
}

namespace {
struct ConvertStreamToRuntimePass
    : impl::ConvertStreamToRuntimeBase<ConvertStreamToRuntimePass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<OnOp, RecordOp>(op))
        ops.push_back(op);
      auto function = dyn_cast<FunctionOpInterface>(op);
      if (!function)
        return;
      function->removeAttr(StreamDialect::kOfAttrName);
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        function.removeArgAttr(i, StreamDialect::kAccessAttrName);
    });
    for (Operation *op : ops) {
      if (auto on = dyn_cast<OnOp>(op)) {
        convert(on);
        ++numQueued;
      } else {
        convert(cast<RecordOp>(op));
        ++numMarks;
      }
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
