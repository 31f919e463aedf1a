//===- BindRuntimeImports.cpp - Programs that name their imports ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  the LLVM dialect, with declarations of `hp_rt_*`.
// Contract out: no such declaration. Each has become
//
//     func @hp_rt_x(...) { call through hp_program_import_slots[i] }
//
//   hp_program_import_names   the names, each ended by a nul, and one more nul
//   hp_program_import_slots   as many pointers, which the back end sets
//
// Names are in alphabetical order, so equal programs are equal objects.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_BINDRUNTIMEIMPORTS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

static void writeJump(LLVM::LLVMFuncOp function, LLVM::GlobalOp slots,
                      int32_t number) {
  OpBuilder builder(function.getContext());
  Location loc = function.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(function.getContext());
  Block *entry = function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  Value table = LLVM::AddressOfOp::create(builder, loc, slots);
  Value slot = LLVM::GEPOp::create(builder, loc, pointer, pointer, table,
                                   ArrayRef<LLVM::GEPArg>{number});
  SmallVector<Value> operands = {
      LLVM::LoadOp::create(builder, loc, pointer, slot)};
  llvm::append_range(operands, entry->getArguments());
  auto call =
      LLVM::CallOp::create(builder, loc, function.getFunctionType(), operands);
  LLVM::ReturnOp::create(builder, loc, call.getResults());
}

namespace {
struct BindRuntimeImportsPass
    : impl::BindRuntimeImportsBase<BindRuntimeImportsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<LLVM::LLVMFuncOp> imports;
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (function.isExternal() && function.getName().starts_with("hp_rt_"))
        imports.push_back(function);
    llvm::sort(imports, [](LLVM::LLVMFuncOp left, LLVM::LLVMFuncOp right) {
      return left.getName() < right.getName();
    });
    std::string names;
    for (LLVM::LLVMFuncOp function : imports)
      names += function.getName().str() + '\0';
    names += '\0';
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    Location loc = module.getLoc();
    LLVM::GlobalOp::create(
        builder, loc,
        LLVM::LLVMArrayType::get(builder.getI8Type(), names.size()),
        /*isConstant=*/true, LLVM::Linkage::External, "hp_program_import_names",
        builder.getStringAttr(names));
    auto pointer = LLVM::LLVMPointerType::get(module.getContext());
    auto slots = LLVM::GlobalOp::create(
        builder, loc,
        LLVM::LLVMArrayType::get(pointer, std::max<size_t>(imports.size(), 1)),
        /*isConstant=*/false, LLVM::Linkage::External,
        "hp_program_import_slots", Attribute());
    builder.createBlock(&slots.getInitializerRegion());
    Value zero = LLVM::ZeroOp::create(builder, loc, slots.getGlobalType());
    LLVM::ReturnOp::create(builder, loc, zero);
    for (auto [number, function] : llvm::enumerate(imports)) {
      writeJump(function, slots, number);
      ++numImports;
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
