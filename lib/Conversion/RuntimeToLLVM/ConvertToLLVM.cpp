//===- ConvertToLLVM.cpp - The runtime's ABI, then the LLVM dialect -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  func, cf, arith, math, memref (no subviews), index, llvm.
// Contract out: the LLVM dialect only.
//
//   1. Assertions become branches to hp_rt_assert_fail.
//   2. Conversion with bare pointers: a buffer argument is one pointer.
//      Allocations call the runtime, with the memory space as tier.
//   3. Calls marked `hp.parallel_grain` pack their arguments in words on the
//      stack and go to hp_rt_parallel_for, with a function that unpacks them.
//   4. Booleans are bytes in memory: what the ABI says, and what vectorises.
//   5. Every public function gets an entry that unpacks args and results.
//
//===----------------------------------------------------------------------===//

#include "dialects/Offload/Offload.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"
#include "lib/Conversion/RuntimeToLLVM/CodeToLLVM.h"

#include "mlir/Analysis/DataLayoutAnalysis.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CONVERTTOLLVM
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

/// HP_ABI_VERSION of the runtime's header.
static constexpr int64_t kAbiVersion = 1;

//===----------------------------------------------------------------------===//
// Assertions
//===----------------------------------------------------------------------===//

static void lowerAssert(cf::AssertOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Block *before = op->getBlock();
  Block *after = before->splitBlock(op->getNextNode());
  Block *failure =
      builder.createBlock(before->getParent(), before->getParent()->end());
  RuntimeCallBuilder runtime(builder, loc);
  runtime.call("hp_rt_assert_fail", {runtime.constantString(op.getMsg())});
  LLVM::UnreachableOp::create(builder, loc);
  builder.setInsertionPointToEnd(before);
  cf::CondBranchOp::create(builder, loc, op.getArg(), after, failure);
  op->erase();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

namespace {
struct AllocToRuntime : ConvertOpToLLVMPattern<memref::AllocOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(memref::AllocOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    MemRefType type = op.getType();
    SmallVector<Value> sizes, strides;
    Value bytes;
    getMemRefDescriptorSizes(loc, type, adaptor.getDynamicSizes(), rewriter,
                             sizes, strides, bytes);
    Value tier = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32Type(),
                                          getRuntimeTier(type));
    auto pointerType = LLVM::LLVMPointerType::get(rewriter.getContext());
    Value pointer = LLVM::CallOp::create(rewriter, loc, TypeRange(pointerType),
                                         "hp_rt_alloc", ValueRange{bytes, tier})
                        .getResult();
    Value descriptor = createMemRefDescriptor(loc, type, pointer, pointer,
                                              sizes, strides, rewriter);
    rewriter.replaceOp(op, descriptor);
    return success();
  }
};

struct DeallocToRuntime : ConvertOpToLLVMPattern<memref::DeallocOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(memref::DeallocOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    MemRefDescriptor descriptor(adaptor.getMemref());
    LLVM::CallOp::create(
        rewriter, op.getLoc(), TypeRange(), "hp_rt_free",
        ValueRange(descriptor.allocatedPtr(rewriter, op.getLoc())));
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

static void declareMemoryFunctions(ModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  MLIRContext *context = module.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto none = LLVM::LLVMVoidType::get(context);
  auto declare = [&](StringRef name, Type result, ArrayRef<Type> arguments) {
    if (!module.lookupSymbol(name))
      LLVM::LLVMFuncOp::create(builder, module.getLoc(), name,
                               LLVM::LLVMFunctionType::get(result, arguments));
  };
  declare("hp_rt_alloc", pointer, {builder.getI64Type(), builder.getI32Type()});
  declare("hp_rt_free", none, {pointer});
}

//===----------------------------------------------------------------------===//
// Parallel calls
//===----------------------------------------------------------------------===//

/// @kernel_range(ptr words, i64 begin, i64 end): unpacks and calls the kernel.
static LLVM::LLVMFuncOp getRangeFunction(ModuleOp module,
                                         LLVM::LLVMFuncOp kernel) {
  std::string name = (kernel.getSymName() + "_range").str();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder builder(kernel);
  Location loc = kernel.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  Type i64 = builder.getI64Type();
  auto range = LLVM::LLVMFuncOp::create(
      builder, loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(module.getContext()),
                                  {pointer, i64, i64}),
      LLVM::Linkage::Internal);
  Block *entry = range.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  ArrayRef<Type> types = kernel.getFunctionType().getParams();
  SmallVector<Value> arguments;
  for (auto [number, type] : llvm::enumerate(types.drop_back(2))) {
    Value slot =
        LLVM::GEPOp::create(builder, loc, pointer, i64, entry->getArgument(0),
                            ArrayRef<LLVM::GEPArg>{int32_t(number)});
    arguments.push_back(LLVM::LoadOp::create(builder, loc, type, slot));
  }
  arguments.push_back(entry->getArgument(1));
  arguments.push_back(entry->getArgument(2));
  LLVM::CallOp::create(builder, loc, kernel, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return range;
}

static void parallelise(ModuleOp module, LLVM::CallOp call) {
  auto kernel = module.lookupSymbol<LLVM::LLVMFuncOp>(*call.getCallee());
  LLVM::LLVMFuncOp range = getRangeFunction(module, kernel);
  OpBuilder builder(call);
  RuntimeCallBuilder runtime(builder, call.getLoc());
  OperandRange arguments = call.getArgOperands();
  OperandRange captured = arguments.drop_back(2);
  Value words = runtime.stackWords(std::max<int64_t>(captured.size(), 1));
  for (auto [number, argument] : llvm::enumerate(captured))
    runtime.storeWord(argument, words, number);
  Value function = LLVM::AddressOfOp::create(builder, call.getLoc(), range);
  auto grain = call->getAttrOfType<IntegerAttr>("hp.parallel_grain");
  runtime.call("hp_rt_parallel_for", {function, words, arguments.back(),
                                      runtime.i64(grain.getInt())});
  call->erase();
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

namespace {
struct Entry {
  std::string function;
  int64_t numResults;
};
} // namespace

static void writeEntry(ModuleOp module, const Entry &entry) {
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(entry.function);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = function.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  auto wrapper = LLVM::LLVMFuncOp::create(
      builder, loc, "hp_entry_" + entry.function,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(module.getContext()),
                                  {pointer, pointer}));
  Block *block = wrapper.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  int64_t numParameters = function.getFunctionType().getNumParams();
  SmallVector<Value> arguments;
  for (int64_t number = 0; number < numParameters; ++number) {
    int64_t firstResult = numParameters - entry.numResults;
    bool isResult = number >= firstResult;
    Value slot = LLVM::GEPOp::create(
        builder, loc, pointer, pointer, block->getArgument(isResult),
        ArrayRef<LLVM::GEPArg>{
            int32_t(isResult ? number - firstResult : number)});
    arguments.push_back(LLVM::LoadOp::create(builder, loc, pointer, slot));
  }
  LLVM::CallOp::create(builder, loc, function, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
}

static void exportAbiVersion(ModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  LLVM::GlobalOp::create(builder, module.getLoc(), builder.getI32Type(),
                         /*isConstant=*/true, LLVM::Linkage::External,
                         "hp_program_abi",
                         builder.getI32IntegerAttr(kAbiVersion));
}

/// A buffer without elements, such as 3x0x2, as a row of none: its strides are
/// not static, which MLIR's bare pointers ask for.
static MemRefType getFlatEmptyType(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || memref.getRank() < 2 || !memref.hasStaticShape() ||
      memref.getNumElements() != 0)
    return {};
  return MemRefType::get({0}, memref.getElementType(),
                         MemRefLayoutAttrInterface(), memref.getMemorySpace());
}

/// Another view of no elements is any buffer of none.
static Value makeEmpty(OpBuilder &builder, Location loc, MemRefType type) {
  return memref::AllocaOp::create(builder, loc, type);
}

/// Functions take empty buffers flat.
static void flattenEmptyArguments(ModuleOp module) {
  module.walk([](func::FuncOp function) {
    if (function.isExternal())
      return;
    OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
    for (BlockArgument argument : function.getArguments()) {
      MemRefType flat = getFlatEmptyType(argument.getType());
      if (!flat)
        continue;
      auto type = cast<MemRefType>(argument.getType());
      argument.setType(flat);
      argument.replaceAllUsesWith(makeEmpty(builder, argument.getLoc(), type));
    }
    function.setType(builder.getFunctionType(
        function.front().getArgumentTypes(), function.getResultTypes()));
  });
  module.walk([](func::CallOp call) {
    OpBuilder builder(call);
    for (OpOperand &operand : call->getOpOperands())
      if (MemRefType flat = getFlatEmptyType(operand.get().getType()))
        operand.set(makeEmpty(builder, call.getLoc(), flat));
  });
}

/// Attributes of the program level mean nothing to LLVM.
static void dropProgramAttributes(func::FuncOp function) {
  auto isForLLVM = [](NamedAttribute attribute) {
    return attribute.getName().getValue().starts_with("llvm.");
  };
  for (unsigned number = 0; number < function.getNumArguments(); ++number) {
    SmallVector<NamedAttribute> kept;
    for (NamedAttribute attribute :
         mlir::function_interface_impl::getArgAttrs(function, number))
      if (isForLLVM(attribute))
        kept.push_back(attribute);
    function.setArgAttrs(number, kept);
  }
  for (unsigned number = 0; number < function.getNumResults(); ++number)
    function.setResultAttrs(number, ArrayRef<NamedAttribute>());
}

/// The public functions with bodies; fails if one is not an entry of buffers.
static FailureOr<SmallVector<Entry>> collectEntries(ModuleOp module) {
  SmallVector<Entry> entries;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    auto numResults = function->getAttrOfType<IntegerAttr>("hp.num_results");
    bool isOfBuffers =
        function.getNumResults() == 0 &&
        llvm::all_of(function.getArgumentTypes(), llvm::IsaPred<MemRefType>);
    if (!isOfBuffers || !numResults)
      return function.emitError("expected a public function of tensors but "
                                "got arguments or results of other types");
    int64_t results = numResults.getInt();
    if (results < 0 || results > function.getNumArguments())
      return function.emitError("expected hp.num_results to be at most the ")
             << function.getNumArguments() << " buffers but got " << results;
    entries.push_back({function.getSymName().str(), results});
  }
  return entries;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct ConvertToLLVMPass : impl::ConvertToLLVMBase<ConvertToLLVMPass> {
  LogicalResult convertDialects();
  void runOnOperation() override;
};
} // namespace

LogicalResult ConvertToLLVMPass::convertDialects() {
  return convertCodeToLLVM(getOperation(), [](LLVMTypeConverter &converter,
                                              RewritePatternSet &patterns) {
    // A tier is where the runtime allocates; pointers are alike.
    converter.addTypeAttributeConversion(
        [](BaseMemRefType type, offload::TierAttr) -> Attribute {
          return IntegerAttr::get(IntegerType::get(type.getContext(), 64), 0);
        });
    patterns.add<AllocToRuntime, DeallocToRuntime>(converter, /*benefit=*/2);
  });
}

void ConvertToLLVMPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<SmallVector<Entry>> entries = collectEntries(module);
  if (failed(entries))
    return signalPassFailure();

  SmallVector<cf::AssertOp> assertions;
  module.walk([&](cf::AssertOp op) { assertions.push_back(op); });
  llvm::for_each(assertions, lowerAssert);
  module.walk(dropProgramAttributes);
  flattenEmptyArguments(module);
  declareMemoryFunctions(module);
  if (failed(convertDialects()))
    return signalPassFailure();

  SmallVector<LLVM::CallOp> parallelCalls;
  module.walk([&](LLVM::CallOp call) {
    if (call->hasAttr("hp.parallel_grain"))
      parallelCalls.push_back(call);
  });
  for (LLVM::CallOp call : parallelCalls)
    parallelise(module, call);
  for (const Entry &entry : *entries)
    writeEntry(module, entry);
  exportAbiVersion(module);
}

} // namespace mlir::hyperparallel
