//===- ReserveWorkspace.cpp - Memory for what libraries need beside -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  func on buffers with every allocation and deallocation written,
//   kernels formed, no arena; products are linalg ops, operators calls of
//   `hp.library` functions.
// Contract out: the same, with a buffer around each of them:
//
//     %w = memref.alloc() : memref<…xi8>
//     call @library_workspace(%w)     words end with the bytes
//     linalg.matmul …
//     call @library_workspace_0(%w)   words end with 0: it is over
//     memref.dealloc %w
//
//   so that it is placed, measured and verified as all others are. The second
//   call keeps it alive as long as the first one's product.
//
//   1. A call gets as much as its operands and results take, as the library
//      sees them, at most 32 MiB; or what the module's `hp.workspace` says.
//   2. Back ends align it to 512 bytes, of which arenas know nothing: the
//      buffer is so much larger.
//   3. How much, for how many calls, and why is `hp.reserved` of the module.
//
// Why a buffer for each call and not one for the program: what is reserved then
// is so only while nothing else runs, and the arena has other buffers there
// before and after; the peak is never more, and less where it is elsewhere.
//
// Cost: linear in ops.
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/LibraryCalls.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

#define DEBUG_TYPE "hp-reserve-workspace"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_RESERVEWORKSPACE
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

/// What cuBLASLt is best served with on recent chips, and CANN's products use.
static constexpr int64_t kMostBytes = 32 << 20;
/// Of the address that an operator gets (hp_backend.h), and of arenas.
static constexpr int64_t kAlignment = 512, kBufferAlignment = 64;

namespace {
/// An op that is a call of a library, and what it gets.
struct Reservation {
  Operation *op;
  int64_t operandBytes;
  int64_t bytes;
};

struct ReserveWorkspacePass : impl::ReserveWorkspaceBase<ReserveWorkspacePass> {
  void runOnOperation() override;
};
} // namespace

/// True if a library's function does it, which may need a workspace.
static bool callsLibrary(Operation *op, SymbolTable &symbols) {
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    auto operation =
        callee ? callee->getAttrOfType<StringAttr>("hp.library") : StringAttr();
    // The host does these itself.
    return operation && operation != "check" && operation != "upload";
  }
  auto product = dyn_cast<linalg::LinalgOp>(op);
  return product && product.hasPureBufferSemantics() &&
         isRuntimeContraction(op);
}

/// What its operands take together, as the library sees them: an operator is
/// told sizes, and may repeat what is smaller in memory. Nothing if one has no
/// static shape.
static std::optional<int64_t> bytesOfOperands(Operation *op,
                                              SymbolTable &symbols) {
  int64_t bytes = 0;
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    ArrayRef<int64_t> words =
        callee->getAttrOfType<DenseI64ArrayAttr>("hp.words").asArrayRef();
    for (Value operand : call.getOperands())
      if (auto type = dyn_cast<MemRefType>(operand.getType())) {
        size_t rank = words[1];
        int64_t size = getElementBytes(type.getElementType());
        for (int64_t extent : words.slice(2, rank))
          size *= extent;
        bytes += size;
        words = words.drop_front(2 + 2 * rank);
      }
    return bytes;
  }
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<MemRefType>(operand.getType())) {
      if (!type.hasStaticShape())
        return std::nullopt;
      bytes += type.getNumElements() * getElementBytes(type.getElementType());
    }
  return bytes;
}

/// Asks for `asked` bytes for each call, or for what the rule says.
static SmallVector<Reservation> decide(ModuleOp module, IntegerAttr asked) {
  SymbolTable symbols(module);
  SmallVector<Reservation> decided;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function->hasAttr("hp.kernel"))
      continue;
    function.walk([&](Operation *op) {
      if (!callsLibrary(op, symbols))
        return;
      int64_t operands = bytesOfOperands(op, symbols).value_or(kMostBytes);
      int64_t bytes = asked ? asked.getInt() : std::min(operands, kMostBytes);
      if (bytes > 0)
        decided.push_back(
            {op, operands,
             static_cast<int64_t>(llvm::alignTo(bytes, kAlignment))});
    });
  }
  return decided;
}

static std::string reasonOf(const Reservation &most, bool isAsked) {
  if (isAsked)
    return "as asked for";
  return most.operandBytes <= kMostBytes
             ? llvm::formatv("operands and results of the largest call take "
                             "{0} bytes",
                             most.operandBytes)
                   .str()
             : llvm::formatv("as much as is reserved unasked, of {0} bytes "
                             "that operands and results of a call take",
                             most.operandBytes)
                   .str();
}

void ReserveWorkspacePass::runOnOperation() {
  ModuleOp module = getOperation();
  auto asked = module->getAttrOfType<IntegerAttr>("hp.workspace");
  if (asked && asked.getInt() < 0) {
    module.emitError("expected hp.workspace of 0 or more bytes but got ")
        << asked.getInt();
    return signalPassFailure();
  }
  SmallVector<Reservation> decided = decide(module, asked);
  LibraryCalls library(module);
  const Reservation *most = nullptr;
  for (const Reservation &reservation : decided) {
    Operation *op = reservation.op;
    OpBuilder builder(op);
    Value buffer =
        allocateBuffer(builder, op->getLoc(),
                       {reservation.bytes + kAlignment - kBufferAlignment},
                       builder.getI8Type());
    auto tell = [&](int64_t bytes) {
      library.call(builder, op->getLoc(), "workspace", {viewOf(buffer)}, {},
                   {bytes});
    };
    tell(reservation.bytes);
    builder.setInsertionPointAfter(op);
    tell(0);
    memref::DeallocOp::create(builder, op->getLoc(), buffer);
    ++numReserved;
    mostBytes = std::max<int64_t>(mostBytes, reservation.bytes);
    if (!most || reservation.bytes > most->bytes)
      most = &reservation;
  }
  if (!most)
    return;
  std::string reason = reasonOf(*most, asked != nullptr);
  remark::passed(most->op->getLoc(),
                 remark::RemarkOpts::name("workspace").category(DEBUG_TYPE))
      << remark::add("at most {0} bytes of workspace for {1} calls: {2}",
                     most->bytes, decided.size(), reason);
  Builder builder(module);
  module->setAttr(
      "hp.reserved",
      builder.getDictionaryAttr(
          {{builder.getStringAttr("because"), builder.getStringAttr(reason)},
           {builder.getStringAttr("bytes"),
            builder.getI64IntegerAttr(most->bytes)},
           {builder.getStringAttr("calls"),
            builder.getI64IntegerAttr(decided.size())}}));
}

} // namespace mlir::hyperparallel
