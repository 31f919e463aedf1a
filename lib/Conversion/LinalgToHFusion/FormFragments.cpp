//===- FormFragments.cpp - Linalg on buffers to fragments of HFusion ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  as hp-call-library leaves it.
// Contract out: no linalg but contractions. Every group of `formKernelGroups`
//   is a call of a private function without a body, whose attribute
//   `hp.fragment` is its text (FragmentWriter). Operands are the buffers that
//   it reads, then those that it writes.
//
//   1. A buffer that only the group touches is none of its results.
//   2. A fragment must not write what it reads, for its compiler may read
//      again; unless there is one result, and every member is elementwise and
//      visits that buffer in the same order. Otherwise the result goes to a
//      buffer of its own, and is copied.
//   3. Where a member has assertions, the last result is the number of one that
//      fails, which the operator `check` hands to the host.
//   4. Equal fragments are written once.
//
// Cost: that of grouping, and linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/FragmentWriter.h"
#include "lib/Conversion/LinalgToHFusion/LibraryCalls.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_FORMFRAGMENTS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// True if nothing but members of the group touches the buffer.
static bool isInternal(Value buffer, const KernelGroup &group) {
  auto alloc = buffer.getDefiningOp<memref::AllocOp>();
  return alloc && llvm::all_of(alloc->getUsers(), [&](Operation *user) {
           return llvm::any_of(group.members, [&](KernelMember member) {
             return member.op.getOperation() == user;
           });
         });
}

/// True if every member does one element of the buffer after the other, and
/// all in the same order.
static bool isElementwiseOn(Value buffer, const KernelGroup &group) {
  std::optional<AffineMap> order;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    if (op.getNumReductionLoops() != 0)
      return false;
    for (OpOperand &operand : op->getOpOperands()) {
      if (operand.get() != buffer)
        continue;
      AffineMap map = op.getMatchingIndexingMap(&operand);
      if (!map.isPermutation() || (order && *order != map))
        return false;
      order = map;
    }
  }
  return order.has_value();
}

namespace {
struct FormFragmentsPass : impl::FormFragmentsBase<FormFragmentsPass> {
  void runOnOperation() override;
  LogicalResult rewriteGroup(KernelGroup &group, StringRef parentName,
                             SymbolTable &symbols, LibraryCalls &library);
  int32_t numberAssertion(StringRef text);

  llvm::StringMap<func::FuncOp> known; ///< by text
  llvm::StringMap<int32_t> numbers;    ///< of assertions
  SmallVector<Attribute> assertions;
  int64_t numNames = 0;
};
} // namespace

int32_t FormFragmentsPass::numberAssertion(StringRef text) {
  auto [entry, isNew] = numbers.try_emplace(text, numbers.size() + 1);
  if (isNew)
    assertions.push_back(StringAttr::get(&getContext(), text));
  return entry->second;
}

LogicalResult FormFragmentsPass::rewriteGroup(KernelGroup &group,
                                              StringRef parentName,
                                              SymbolTable &symbols,
                                              LibraryCalls &library) {
  auto numberOf = [&](StringRef assertion) {
    return numberAssertion(assertion);
  };
  FragmentWriter writer(group, numberOf);
  if (failed(writer.write()))
    return failure();
  SmallVector<Value> outputs, internal;
  for (Value buffer : writer.getWritten())
    (isInternal(buffer, group) ? internal : outputs).push_back(buffer);

  LinalgOp last = group.members.back().op;
  Location loc = last.getLoc();
  OpBuilder builder(last);
  auto allocate = [&](ArrayRef<int64_t> shape, Type element) -> Value {
    return memref::AllocOp::create(builder, loc,
                                   MemRefType::get(shape, element),
                                   builder.getI64IntegerAttr(64));
  };
  SmallVector<Value> operands = llvm::to_vector(writer.getInputs());
  SmallVector<std::pair<Value, Value>> copies;
  for (Value output : outputs) {
    bool isRead = llvm::is_contained(writer.getInputs(), output);
    bool sharesMemory = llvm::any_of(writer.getInputs(), [&](Value input) {
      return input != output &&
             mayAlias(getBufferRoot(input), getBufferRoot(output));
    });
    Value target = output;
    if (sharesMemory ||
        (isRead && (outputs.size() > 1 || !isElementwiseOn(output, group)))) {
      auto type = cast<MemRefType>(output.getType());
      target = allocate(type.getShape(), type.getElementType());
      copies.push_back({target, output});
    }
    operands.push_back(target);
  }
  Value violation;
  if (writer.hasAssertions()) {
    violation = allocate({1}, builder.getI32Type());
    operands.push_back(violation);
  }
  std::string text = writer.finish(outputs);
  if (operands.size() > writer.getInputs().size()) {
    auto [entry, isNew] = known.try_emplace(text);
    func::FuncOp &fragment = entry->second;
    SmallVector<Type> types;
    for (Value operand : operands)
      types.push_back(operand.getType());
    auto signature = builder.getFunctionType(types, {});
    if (!isNew && fragment.getFunctionType() != signature)
      isNew = true; // the same on buffers with other offsets
    if (isNew) {
      // Ascend's compiler appends numbers to names: so must not we.
      std::string name =
          ("fragment" + Twine(numNames++) + "_of_" + parentName).str();
      fragment = func::FuncOp::create(loc, name, signature);
      fragment.setPrivate();
      fragment->setAttr("hp.kernel", builder.getUnitAttr());
      fragment->setAttr("hp.geometry", builder.getDenseI64ArrayAttr({1, 1}));
      fragment->setAttr("hp.fragment", builder.getStringAttr(text));
      symbols.insert(fragment);
      ++numFragments;
    } else {
      ++numShared;
    }
    func::CallOp::create(builder, loc, fragment, operands);
  }
  for (auto [from, to] : copies)
    library.copy(builder, loc, from, to);
  numCopies += copies.size();
  if (violation)
    library.call(builder, loc, "check", packedView(violation, {1}));
  for (KernelMember &member : group.members)
    member.op->erase();
  for (Value buffer : internal)
    if (buffer.use_empty())
      buffer.getDefiningOp()->erase();
  return success();
}

void FormFragmentsPass::runOnOperation() {
  SymbolTable symbols(getOperation());
  LibraryCalls library(getOperation());
  known.clear();
  numbers.clear();
  assertions.clear();
  numNames = 0;
  SmallVector<func::FuncOp> functions;
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (!function.isExternal())
      functions.push_back(function);
  for (func::FuncOp function : functions) {
    SmallVector<Block *> blocks;
    function.walk([&](Block *block) {
      if (!isa<LinalgOp>(block->getParentOp()) &&
          !block->getParentOp()->getParentOfType<LinalgOp>())
        blocks.push_back(block);
    });
    for (Block *block : blocks)
      for (KernelGroup &group : formKernelGroups(*block))
        if (failed(
                rewriteGroup(group, function.getSymName(), symbols, library)))
          return signalPassFailure();
  }
  if (!assertions.empty())
    getOperation()->setAttr("hp.assertions",
                            ArrayAttr::get(&getContext(), assertions));
}

} // namespace mlir::hyperparallel
