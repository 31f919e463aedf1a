//===- RuntimeCalls.cpp - Calls of hp_rt_* from generated code ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/RuntimeCalls.h"

#include "dialects/Offload/Offload.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"

using namespace mlir;

namespace mlir::hyperparallel {

std::optional<int64_t> getRuntimeDtype(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    switch (integer.getWidth()) {
    case 1:
      return 0;
    case 8:
      return 1;
    case 16:
      return 2;
    case 32:
      return 3;
    case 64:
      return 4;
    default:
      return std::nullopt;
    }
  }
  if (type.isIndex())
    return 4;
  if (type.isF16())
    return 5;
  if (type.isBF16())
    return 6;
  if (type.isF32())
    return 7;
  if (type.isF64())
    return 8;
  return std::nullopt;
}

int64_t getRuntimeTier(MemRefType type) {
  constexpr int64_t kDevice = 0, kHost = 2; // of hp_tier
  Attribute space = type.getMemorySpace();
  if (auto number = dyn_cast_or_null<IntegerAttr>(space))
    return number.getInt();
  return isa_and_nonnull<offload::TierAttr>(space) ? kHost : kDevice;
}

int64_t getElementBytes(Type type) {
  return type.isIndex() ? 8 : (type.getIntOrFloatBitWidth() + 7) / 8;
}

RuntimeCallBuilder::RuntimeCallBuilder(OpBuilder &builder, Location loc)
    : pointerType(LLVM::LLVMPointerType::get(builder.getContext())),
      builder(builder), loc(loc) {}

Value RuntimeCallBuilder::i64(int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), value);
}

Value RuntimeCallBuilder::i32(int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), value);
}

Value RuntimeCallBuilder::f64(double value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getF64Type(),
                                  builder.getF64FloatAttr(value));
}

Value RuntimeCallBuilder::nullPointer() {
  return LLVM::ZeroOp::create(builder, loc, pointerType);
}

Value RuntimeCallBuilder::advance(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(builder, loc, pointerType, builder.getI8Type(),
                             pointer, ValueRange{bytes});
}

Value RuntimeCallBuilder::pointerTo(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, memref);
  Value word =
      arith::IndexCastOp::create(builder, loc, builder.getI64Type(), address);
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  bool isStrided = succeeded(type.getStridesAndOffset(strides, offset));
  if (!isStrided || offset != 0) {
    Value elements;
    if (isStrided && !ShapedType::isDynamic(offset)) {
      elements = i64(offset);
    } else {
      auto metadata =
          memref::ExtractStridedMetadataOp::create(builder, loc, memref);
      elements = arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                            metadata.getOffset());
    }
    Value bytes = LLVM::MulOp::create(
        builder, loc, elements, i64(getElementBytes(type.getElementType())));
    word = LLVM::AddOp::create(builder, loc, word, bytes);
  }
  return LLVM::IntToPtrOp::create(builder, loc, pointerType, word);
}

static ModuleOp getModule(OpBuilder &builder) {
  return builder.getInsertionBlock()
      ->getParentOp()
      ->getParentOfType<ModuleOp>();
}

/// The address of a constant. Its name is made from its content, so that equal
/// constants are stored once and names do not depend on the order of passes.
Value RuntimeCallBuilder::addressOf(StringRef prefix, Type type,
                                    Attribute value) {
  ModuleOp module = getModule(builder);
  std::string content;
  llvm::raw_string_ostream(content) << type << value;
  std::string name =
      (prefix + "_" +
       llvm::toHex(llvm::SHA1::hash(llvm::arrayRefFromStringRef(content)),
                   /*LowerCase=*/true))
          .str();
  auto global = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!global) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                                    LLVM::Linkage::Private, name, value,
                                    /*alignment=*/8);
  }
  return LLVM::AddressOfOp::create(builder, loc, global);
}

Value RuntimeCallBuilder::constantWords(ArrayRef<int64_t> words) {
  if (words.empty())
    return nullPointer();
  auto type = LLVM::LLVMArrayType::get(builder.getI64Type(), words.size());
  return addressOf("hp_words", type, builder.getI64TensorAttr(words));
}

Value RuntimeCallBuilder::constantString(StringRef text) {
  std::string stored = text.str();
  stored.push_back('\0');
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), stored.size());
  return addressOf("hp_text", type, builder.getStringAttr(stored));
}

Value RuntimeCallBuilder::stackWords(int64_t count) {
  OpBuilder::InsertionGuard guard(builder);
  Operation *parent = builder.getInsertionBlock()->getParentOp();
  auto function = dyn_cast<FunctionOpInterface>(parent);
  if (!function)
    function = parent->getParentOfType<FunctionOpInterface>();
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  return LLVM::AllocaOp::create(builder, loc, pointerType, builder.getI64Type(),
                                i64(count),
                                /*alignment=*/8);
}

void RuntimeCallBuilder::storeWord(Value value, Value words, int64_t number) {
  Value slot =
      LLVM::GEPOp::create(builder, loc, pointerType, builder.getI64Type(),
                          words, ArrayRef<LLVM::GEPArg>{int32_t(number)});
  LLVM::StoreOp::create(builder, loc, value, slot);
}

Value RuntimeCallBuilder::call(StringRef name, ArrayRef<Value> arguments,
                               Type result) {
  ModuleOp module = getModule(builder);
  if (!module.lookupSymbol(name)) {
    SmallVector<Type> types;
    for (Value argument : arguments)
      types.push_back(argument.getType());
    OpBuilder declarations = OpBuilder::atBlockBegin(module.getBody());
    LLVM::LLVMFuncOp::create(
        declarations, loc, name,
        LLVM::LLVMFunctionType::get(
            result ? result : LLVM::LLVMVoidType::get(builder.getContext()),
            types));
  }
  auto call = LLVM::CallOp::create(
      builder, loc, result ? TypeRange(result) : TypeRange(), name, arguments);
  return result ? call.getResult() : Value();
}

} // namespace mlir::hyperparallel
