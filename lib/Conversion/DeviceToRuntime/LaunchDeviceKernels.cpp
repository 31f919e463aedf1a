//===- LaunchDeviceKernels.cpp - Calls of kernels to launches -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  func, scf, cf, arith and memref on buffers, with calls of
//   `hp.kernel` functions; buffers have been allocated and freed.
// Contract out: the module is the host's program; a nested module @hp_device
//   holds the kernels and the constants that they read.
//
//   1. A kernel whose body has assertions gets one more argument, the
//      place where a thread that fails one leaves its number.
//   2. A call of a kernel stores its arguments in words on the stack, and calls
//      `hp_rt_launch` with the kernel's name and geometry.
//   3. What the host itself loads or stores in the device's memory becomes a
//      copy that waits (`hp_rt_read`, `hp_rt_write`).
//   4. Kernels move into @hp_device. Of a fragment, which has no body here, the
//      name and the text are listed there; of an operator, nothing is left.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_LAUNCHDEVICEKERNELS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

/// Numbers the assertions of kernels from 1 on, equal texts alike; returns the
/// texts, each ended by a nul.
static std::string numberAssertions(ArrayRef<func::FuncOp> kernels) {
  std::string texts;
  llvm::StringMap<int32_t> numbers;
  for (func::FuncOp kernel : kernels) {
    bool asserts = false;
    kernel.walk([&](cf::AssertOp op) {
      auto [entry, isNew] =
          numbers.try_emplace(op.getMsg(), numbers.size() + 1);
      if (isNew)
        texts += op.getMsg().str() + '\0';
      op->setAttr("hp.assertion", Builder(op).getI32IntegerAttr(entry->second));
      asserts = true;
    });
    if (!asserts)
      continue;
    auto pointer = LLVM::LLVMPointerType::get(kernel.getContext());
    kernel.front().addArgument(pointer, kernel.getLoc());
    kernel.setType(FunctionType::get(kernel.getContext(),
                                     kernel.front().getArgumentTypes(), {}));
    kernel->setAttr("hp.asserts", UnitAttr::get(kernel.getContext()));
  }
  return texts;
}

/// What those who form kernels say of them.
static LogicalResult verifyKernel(func::FuncOp kernel) {
  if (!kernel->hasAttr("hp.geometry"))
    return kernel.emitError(
        "expected a kernel with a geometry (hp.geometry); run "
        "hp-form-device-kernels, not hp-form-kernels");
  auto geometry = kernel->getAttrOfType<DenseI64ArrayAttr>("hp.geometry");
  if (!geometry || geometry.size() != 2)
    return kernel.emitError("expected hp.geometry to be two numbers but got ")
           << kernel->getAttr("hp.geometry");
  Attribute library = kernel->getAttr("hp.library");
  if (!library)
    return success();
  if (auto name = dyn_cast<StringAttr>(library); !name || name.empty())
    return kernel.emitError("expected hp.library to be a name but got ")
           << library;
  if (!kernel->getAttrOfType<DenseI64ArrayAttr>("hp.words"))
    return kernel.emitError("expected an operator with words (hp.words)");
  return success();
}

/// A scalar as the 8 bytes from which the launch takes it.
static Value toWord(OpBuilder &builder, Location loc, Value value) {
  Type type = value.getType();
  if (type.isIndex())
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                      value);
  if (type.isInteger(1))
    return arith::ExtUIOp::create(builder, loc, builder.getI64Type(), value);
  return value;
}

/// An operator gets its buffers, and what they are. An upload is the host's,
/// and of a workspace the back end is told.
static void callLibrary(func::CallOp call, func::FuncOp function) {
  OpBuilder builder(call);
  RuntimeCallBuilder runtime(builder, call.getLoc());
  StringRef operation =
      function->getAttrOfType<StringAttr>("hp.library").getValue();
  if (operation == "upload") {
    auto type = cast<MemRefType>(call.getOperand(0).getType());
    runtime.call("hp_rt_write",
                 {runtime.pointerTo(call.getOperand(1)),
                  runtime.pointerTo(call.getOperand(0)),
                  runtime.i64(type.getNumElements() *
                              getElementBytes(type.getElementType()))});
    call->erase();
    return;
  }
  ArrayRef<int64_t> words =
      function->getAttrOfType<DenseI64ArrayAttr>("hp.words").asArrayRef();
  if (operation == "workspace") {
    runtime.call("hp_rt_workspace", {runtime.pointerTo(call.getOperand(0)),
                                     runtime.i64(words.back())});
    call->erase();
    return;
  }
  Value buffers = runtime.stackWords(call.getNumOperands());
  for (auto [number, operand] : llvm::enumerate(call.getOperands()))
    runtime.storeWord(isa<MemRefType>(operand.getType())
                          ? runtime.pointerTo(operand)
                          : operand,
                      buffers, number);
  runtime.call("hp_rt_library",
               {runtime.constantString(operation), buffers,
                runtime.i64(call.getNumOperands()),
                runtime.constantWords(words), runtime.i64(words.size())});
  call->erase();
}

static void launch(func::CallOp call, func::FuncOp kernel) {
  if (kernel->hasAttr("hp.library"))
    return callLibrary(call, kernel);
  OpBuilder builder(call);
  Location loc = call.getLoc();
  RuntimeCallBuilder runtime(builder, loc);
  SmallVector<Value> arguments;
  for (Value operand : call.getOperands())
    arguments.push_back(isa<MemRefType>(operand.getType())
                            ? runtime.pointerTo(operand)
                            : toWord(builder, loc, operand));
  if (kernel->hasAttr("hp.asserts"))
    arguments.push_back(
        runtime.call("hp_rt_assertion_word", {}, runtime.pointerType));
  Value words = runtime.stackWords(std::max<int64_t>(arguments.size(), 1));
  for (auto [number, argument] : llvm::enumerate(arguments))
    runtime.storeWord(argument, words, number);
  ArrayRef<int64_t> geometry =
      kernel->getAttrOfType<DenseI64ArrayAttr>("hp.geometry").asArrayRef();
  runtime.call("hp_rt_launch",
               {runtime.constantString(kernel.getSymName()),
                runtime.i64(geometry[0]), runtime.i64(geometry[1]), words,
                runtime.i64(arguments.size())});
  call->erase();
}

//===----------------------------------------------------------------------===//
// Loads and stores by the host
//===----------------------------------------------------------------------===//

/// True if the buffer is the device's: all but those on the host's stack.
static bool isOnDevice(Value buffer) {
  return !getBufferRoot(buffer).getDefiningOp<memref::AllocaOp>() &&
         !getBufferRoot(buffer).getDefiningOp<memref::GetGlobalOp>();
}

static Value addressOf(OpBuilder &builder, Location loc, Value buffer,
                       ValueRange indices) {
  RuntimeCallBuilder runtime(builder, loc);
  Value pointer = runtime.pointerTo(buffer);
  if (indices.empty())
    return pointer;
  auto metadata =
      memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  Value place = arith::ConstantIndexOp::create(builder, loc, 0);
  for (auto [index, stride] : llvm::zip_equal(indices, metadata.getStrides()))
    place = arith::AddIOp::create(
        builder, loc, place,
        arith::MulIOp::create(builder, loc, index, stride));
  int64_t size =
      getElementBytes(cast<MemRefType>(buffer.getType()).getElementType());
  Value bytes = arith::MulIOp::create(
      builder, loc, place, arith::ConstantIndexOp::create(builder, loc, size));
  return runtime.advance(
      pointer,
      arith::IndexCastOp::create(builder, loc, builder.getI64Type(), bytes));
}

/// A place on the host's stack for one element, as a buffer.
static Value stackElement(Operation *user, Type element) {
  auto function = user->getParentOfType<func::FuncOp>();
  OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
  return memref::AllocaOp::create(builder, user->getLoc(),
                                  MemRefType::get({}, element),
                                  builder.getI64IntegerAttr(8));
}

static int64_t replaceHostAccesses(func::FuncOp function) {
  SmallVector<Operation *> accesses;
  function.walk([&](Operation *op) {
    if (auto load = dyn_cast<memref::LoadOp>(op);
        load && isOnDevice(load.getMemRef()))
      accesses.push_back(op);
    if (auto store = dyn_cast<memref::StoreOp>(op);
        store && isOnDevice(store.getMemRef()))
      accesses.push_back(op);
  });
  for (Operation *op : accesses) {
    OpBuilder builder(op);
    Location loc = op->getLoc();
    RuntimeCallBuilder runtime(builder, loc);
    auto load = dyn_cast<memref::LoadOp>(op);
    auto store = dyn_cast<memref::StoreOp>(op);
    Value buffer = load ? load.getMemRef() : store.getMemRef();
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    Value place = stackElement(op, element);
    Value size = runtime.i64(getElementBytes(element));
    Value address = addressOf(builder, loc, buffer,
                              load ? load.getIndices() : store.getIndices());
    if (load) {
      runtime.call("hp_rt_read", {runtime.pointerTo(place), address, size});
      load.replaceAllUsesWith(
          memref::LoadOp::create(builder, loc, place).getResult());
    } else {
      memref::StoreOp::create(builder, loc, store.getValue(), place);
      runtime.call("hp_rt_write", {address, runtime.pointerTo(place), size});
    }
    op->erase();
  }
  return accesses.size();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Moves the kernels and what they read of the module's constants.
static void moveKernels(ModuleOp module, ArrayRef<func::FuncOp> kernels) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto device = ModuleOp::create(builder, module.getLoc(), "hp_device");
  builder.setInsertionPointToStart(device.getBody());
  SymbolTable symbols(module);
  llvm::SetVector<Operation *> globals, declarations;
  SmallVector<Attribute> fragments;
  for (func::FuncOp kernel : kernels) {
    if (kernel.isExternal()) {
      if (Attribute text = kernel->getAttr("hp.fragment"))
        fragments.push_back(
            builder.getArrayAttr({kernel.getSymNameAttr(), text}));
      kernel->erase();
      continue;
    }
    kernel.walk([&](func::CallOp op) {
      if (Operation *function = symbols.lookup(op.getCallee()))
        declarations.insert(function);
    });
    kernel.walk([&](memref::GetGlobalOp op) {
      if (Operation *global = symbols.lookup(op.getName()))
        globals.insert(global);
    });
    kernel->moveBefore(device.getBody(), device.getBody()->end());
  }
  if (!fragments.empty())
    device->setAttr("hp.fragments", builder.getArrayAttr(fragments));
  for (Operation *declaration : declarations)
    declaration->moveBefore(device.getBody(), device.getBody()->begin());
  llvm::DenseSet<StringRef> usedByHost;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk(
        [&](memref::GetGlobalOp op) { usedByHost.insert(op.getName()); });
  for (Operation *global : globals) {
    builder.clone(*global);
    if (!usedByHost.contains(cast<memref::GlobalOp>(global).getSymName()))
      global->erase();
  }
}

/// The texts of the assertions, for the runtime.
static void exportAssertions(ModuleOp module, StringRef texts) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  std::string stored = texts.str() + '\0';
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), stored.size());
  LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/true,
                         LLVM::Linkage::External, "hp_program_assertions",
                         builder.getStringAttr(stored));
}

namespace {
struct LaunchDeviceKernelsPass
    : impl::LaunchDeviceKernelsBase<LaunchDeviceKernelsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> kernels, functions;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function->hasAttr("hp.kernel"))
        kernels.push_back(function);
      else if (!function.isExternal())
        functions.push_back(function);
    }
    for (func::FuncOp kernel : kernels)
      if (failed(verifyKernel(kernel)))
        return signalPassFailure();
    if (Attribute attr = module->getAttr("hp.assertions")) {
      auto known = dyn_cast<ArrayAttr>(attr);
      if (!known || !llvm::all_of(known, llvm::IsaPred<StringAttr>)) {
        module.emitError("expected hp.assertions to be texts but got ") << attr;
        return signalPassFailure();
      }
    }
    std::string texts = numberAssertions(kernels);
    if (auto known = module->getAttrOfType<ArrayAttr>("hp.assertions")) {
      for (auto text : known.getAsRange<StringAttr>())
        texts += text.getValue().str() + '\0';
      module->removeAttr("hp.assertions");
    }
    SymbolTable symbols(module);
    llvm::MapVector<StringAttr, int64_t> operations;
    SmallVector<func::CallOp> calls;
    for (func::FuncOp function : functions)
      function.walk([&](func::CallOp call) { calls.push_back(call); });
    for (func::CallOp call : calls) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee || !callee->hasAttr("hp.kernel"))
        continue;
      if (auto operation = callee->getAttrOfType<StringAttr>("hp.library");
          operation && operation != "workspace")
        ++operations[operation];
      launch(call, callee);
      ++numLaunches;
    }
    Builder builder(module);
    SmallVector<NamedAttribute> counts;
    for (auto [operation, count] : operations)
      counts.push_back({operation, builder.getI64IntegerAttr(count)});
    if (!counts.empty())
      module->setAttr("hp.operations", builder.getDictionaryAttr(counts));
    for (func::FuncOp function : functions)
      numHostAccesses += replaceHostAccesses(function);
    moveKernels(module, kernels);
    exportAssertions(module, texts);
  }
};
} // namespace

} // namespace mlir::hyperparallel
