//===- LibraryCalls.cpp - Calls of a vendor's operators -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/LibraryCalls.h"
#include "dialects/Stream/Stream.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mlir::hyperparallel {

bool isContiguous(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0, expected = 1;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)))
    return false;
  for (auto [size, stride] :
       llvm::reverse(llvm::zip_equal(type.getShape(), strides))) {
    if (size != 1 && stride != expected)
      return false;
    expected *= size;
  }
  return true;
}

Value allocateBuffer(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape,
                     Type element) {
  return memref::AllocOp::create(builder, loc, MemRefType::get(shape, element),
                                 builder.getI64IntegerAttr(64));
}

LibraryView viewOf(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  LibraryView view{buffer, llvm::to_vector(type.getShape()), {}};
  int64_t offset = 0;
  (void)type.getStridesAndOffset(view.strides, offset);
  return view;
}

LibraryView packedView(Value buffer, ArrayRef<int64_t> sizes) {
  LibraryView view{buffer, llvm::to_vector(sizes),
                   SmallVector<int64_t>(sizes.size())};
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i])
    view.strides[i] = stride;
  return view;
}

void setAccess(func::FuncOp function, unsigned argument, bool writes) {
  function.setArgAttr(
      argument, stream::StreamDialect::kAccessAttrName,
      StringAttr::get(function.getContext(), writes ? "write" : "read"));
}

/// An operator writes its last buffer; `index_add` its first, `check` none, and
/// those of normalisations and attention numbers of the rows, too.
static bool writes(StringRef operation, size_t buffer, size_t count) {
  if (operation == "index_add")
    return buffer == 0;
  size_t written = llvm::StringSwitch<size_t>(operation)
                       .Case("check", 0)
                       .Case("rms_norm", 2)
                       .Case("max_dim", 2)
                       .Case("layer_norm", 3)
                       .Case("attention", 3)
                       .Default(1);
  return buffer + written >= count;
}

void LibraryCalls::call(OpBuilder &builder, Location loc, StringRef operation,
                        ArrayRef<LibraryView> views, Value word,
                        ArrayRef<int64_t> numbers) {
  SmallVector<Value> buffers;
  SmallVector<Type> types;
  SmallVector<int64_t> words;
  if (word) {
    buffers.push_back(word);
    types.push_back(word.getType());
  }
  for (const LibraryView &view : views) {
    auto type = cast<MemRefType>(view.buffer.getType());
    buffers.push_back(view.buffer);
    types.push_back(type);
    words.push_back(*getRuntimeDtype(type.getElementType()));
    words.push_back(static_cast<int64_t>(view.sizes.size()));
    llvm::append_range(words, view.sizes);
    llvm::append_range(words, view.strides);
  }
  llvm::append_range(words, numbers);
  auto signature = builder.getFunctionType(types, {});
  std::string key;
  llvm::raw_string_ostream stream(key);
  stream << operation << signature;
  llvm::interleaveComma(words, stream);
  func::FuncOp &function = known[key];
  if (!function) {
    function =
        func::FuncOp::create(loc, ("library_" + operation).str(), signature);
    function.setPrivate();
    function->setAttr("hp.kernel", builder.getUnitAttr());
    function->setAttr("hp.geometry", builder.getDenseI64ArrayAttr({1, 1}));
    function->setAttr("hp.library", builder.getStringAttr(operation));
    function->setAttr("hp.words", builder.getDenseI64ArrayAttr(words));
    for (size_t i = 0; i < views.size(); ++i)
      setAccess(function, i + (word ? 1 : 0),
                writes(operation, i, views.size()));
    symbols.insert(function);
  }
  func::CallOp::create(builder, loc, function, buffers);
}

void LibraryCalls::copy(OpBuilder &builder, Location loc, Value source,
                        Value target) {
  call(builder, loc, "copy", {viewOf(source), viewOf(target)});
}

} // namespace mlir::hyperparallel
