//===- DeviceThreads.cpp - Threads and blocks of a device kernel ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToDevice/DeviceThreads.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace mlir::hyperparallel {

static Value constant32(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getI32IntegerAttr(value));
}

/// Calls a function that every device answers in its own way.
static func::CallOp callDevice(ModuleOp module, OpBuilder &builder,
                               Location loc, StringRef name,
                               ValueRange operands, TypeRange results) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function) {
    OpBuilder declarations = OpBuilder::atBlockEnd(module.getBody());
    function = func::FuncOp::create(
        declarations, loc, name,
        builder.getFunctionType(operands.getTypes(), results));
    function.setPrivate();
  }
  return func::CallOp::create(builder, loc, function, operands);
}

Value DeviceThreads::threadNumber(OpBuilder &builder) {
  return callDevice(module, builder, loc, kDeviceThread, {},
                    builder.getI32Type())
      .getResult(0);
}

Value DeviceThreads::blockNumber(OpBuilder &builder) {
  return callDevice(module, builder, loc, kDeviceBlock, {},
                    builder.getI32Type())
      .getResult(0);
}

void DeviceThreads::barrier(OpBuilder &builder) {
  callDevice(module, builder, loc, kDeviceBarrier, {}, {});
}

Value DeviceThreads::exchangeWord(OpBuilder &builder, Value word,
                                  int64_t distance) {
  return callDevice(module, builder, loc, kDeviceExchange,
                    {word, constant32(builder, loc, distance)},
                    builder.getI32Type())
      .getResult(0);
}

/// The value of the thread whose number differs in one bit.
Value DeviceThreads::exchange(OpBuilder &builder, Value value,
                              int64_t distance) {
  Type type = value.getType();
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  bool isIndex = type.isIndex();
  unsigned width = isIndex ? 64 : type.getIntOrFloatBitWidth();
  Type bitsType = builder.getIntegerType(width);
  Value bits = value;
  if (isIndex)
    bits = arith::IndexCastOp::create(builder, loc, i64, value);
  else if (type != bitsType)
    bits = arith::BitcastOp::create(builder, loc, bitsType, value);
  if (width == 64) {
    Value shift =
        arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(32));
    Value low = arith::TruncIOp::create(builder, loc, i32, bits);
    Value high = arith::TruncIOp::create(
        builder, loc, i32, arith::ShRUIOp::create(builder, loc, bits, shift));
    low = arith::ExtUIOp::create(builder, loc, i64,
                                 exchangeWord(builder, low, distance));
    high = arith::ExtUIOp::create(builder, loc, i64,
                                  exchangeWord(builder, high, distance));
    bits = arith::OrIOp::create(
        builder, loc, low, arith::ShLIOp::create(builder, loc, high, shift));
  } else if (width == 32) {
    bits = exchangeWord(builder, bits, distance);
  } else {
    bits = arith::TruncIOp::create(
        builder, loc, bitsType,
        exchangeWord(builder, arith::ExtUIOp::create(builder, loc, i32, bits),
                     distance));
  }
  if (isIndex)
    return arith::IndexCastOp::create(builder, loc, type, bits);
  return type == bitsType
             ? bits
             : arith::BitcastOp::create(builder, loc, type, bits).getResult();
}

Value DeviceThreads::reduceWarp(OpBuilder &builder, Operation *combiner,
                                Value value) {
  for (int64_t distance = kWarp / 2; distance > 0; distance /= 2)
    value = combineValues(builder, combiner, value,
                          exchange(builder, value, distance));
  return value;
}

Value DeviceThreads::sharedBuffer(OpBuilder &builder, StringRef name,
                                  MemRefType type) {
  auto shared = MemRefType::get(type.getShape(), type.getElementType(),
                                MemRefLayoutAttrInterface(),
                                builder.getI64IntegerAttr(kSharedSpace));
  if (!module.lookupSymbol(name)) {
    OpBuilder globals = OpBuilder::atBlockBegin(module.getBody());
    memref::GlobalOp::create(globals, loc, name,
                             globals.getStringAttr("private"), shared,
                             globals.getUnitAttr(), /*constant=*/false,
                             globals.getI64IntegerAttr(16));
  }
  return memref::GetGlobalOp::create(builder, loc, shared, name);
}

Value DeviceThreads::reduce(OpBuilder &builder, Operation *combiner,
                            Value partial) {
  Value ofWarp = reduceWarp(builder, combiner, partial);
  int64_t numWarps = blockSize / kWarp;
  if (numWarps == 1)
    return ofWarp;
  Type type = partial.getType();
  std::string name = "hp_shared_reduce_";
  llvm::raw_string_ostream(name) << type;
  Value buffer = sharedBuffer(builder, name, MemRefType::get({kWarp}, type));
  Value thread = threadNumber(builder);
  auto toIndex = [&](Value number) -> Value {
    return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                        number);
  };
  Value lane = arith::AndIOp::create(builder, loc, thread,
                                     constant32(builder, loc, kWarp - 1));
  Value warp =
      arith::ShRUIOp::create(builder, loc, thread, constant32(builder, loc, 5));
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        lane, constant32(builder, loc, 0));
  scf::IfOp::create(builder, loc, isFirst, [&](OpBuilder &nested, Location) {
    Value place =
        arith::IndexCastUIOp::create(nested, loc, nested.getIndexType(), warp);
    memref::StoreOp::create(nested, loc, ofWarp, buffer, place);
    scf::YieldOp::create(nested, loc);
  });
  barrier(builder);
  Value neutral = arith::ConstantOp::create(
      builder, loc, *arith::getNeutralElement(combiner));
  Value isWarp =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, lane,
                            constant32(builder, loc, numWarps));
  Value loaded =
      memref::LoadOp::create(builder, loc, buffer, ValueRange(toIndex(lane)));
  Value all = reduceWarp(
      builder, combiner,
      arith::SelectOp::create(builder, loc, isWarp, loaded, neutral));
  barrier(builder); // the buffer may be written again
  return all;
}

} // namespace mlir::hyperparallel
