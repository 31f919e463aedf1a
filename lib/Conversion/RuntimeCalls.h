//===- RuntimeCalls.h - Calls of hp_rt_* from generated code ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that knows how the functions of lib/Runtime/hp_runtime.h look
// from the LLVM dialect.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_RUNTIMECALLS_H
#define HYPERPARALLEL_LIB_CONVERSION_RUNTIMECALLS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::hyperparallel {

/// hp_dtype of an element type, or nothing if the runtime has none.
std::optional<int64_t> getRuntimeDtype(Type type);
/// hp_tier of a buffer, by its memory space.
int64_t getRuntimeTier(MemRefType type);
/// Bytes of one element in memory.
int64_t getElementBytes(Type type);

/// Writes calls of the runtime at the builder's insertion point.
class RuntimeCallBuilder {
public:
  RuntimeCallBuilder(OpBuilder &builder, Location loc);

  /// Pointer to the first element of a buffer.
  Value pointerTo(Value memref);
  /// The pointer, so many bytes further.
  Value advance(Value pointer, Value bytes);
  Value i64(int64_t value);
  Value i32(int64_t value);
  Value f64(double value);
  Value nullPointer();
  /// Pointer to a read-only array of words (kept in the program's constants).
  Value constantWords(ArrayRef<int64_t> words);
  /// Pointer to a nul-terminated string.
  Value constantString(StringRef text);
  /// Space for `count` words on the stack, made once per call of the function.
  Value stackWords(int64_t count);
  /// Stores an 8-byte value as the given word.
  void storeWord(Value value, Value words, int64_t number);
  /// Calls `name`; the result is null where `result` is.
  Value call(StringRef name, ArrayRef<Value> arguments, Type result = {});

  LLVM::LLVMPointerType pointerType;

private:
  Value addressOf(StringRef prefix, Type type, Attribute value);

  OpBuilder &builder;
  Location loc;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_RUNTIMECALLS_H
