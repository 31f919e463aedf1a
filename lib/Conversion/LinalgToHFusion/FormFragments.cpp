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
//   3. What a buffer gets unchanged from another, an operator copies: Ascend's
//      compiler refuses arguments as results.
//   4. Where a member has assertions, the last result is the number of one that
//      fails, which the operator `check` hands to the host.
//   5. Fragments whose text's digest is in the module's `hp.refused` are cut in
//      parts (FragmentCuts.cpp).
//   6. Equal fragments are written once.
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
  void callFragment(OpBuilder &builder, Location loc, StringRef text,
                    ValueRange operands, size_t numReads, StringRef parentName,
                    SymbolTable &symbols);
  int32_t numberAssertion(StringRef text);

  llvm::StringSet<> refused;           ///< digests of texts
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

/// The private function of a text, for these buffers.
void FormFragmentsPass::callFragment(OpBuilder &builder, Location loc,
                                     StringRef text, ValueRange operands,
                                     size_t numReads, StringRef parentName,
                                     SymbolTable &symbols) {
  auto [entry, isNew] = known.try_emplace(text);
  func::FuncOp &fragment = entry->second;
  auto signature = builder.getFunctionType(operands.getTypes(), {});
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
    for (size_t i = 0; i < operands.size(); ++i)
      setAccess(fragment, i, i >= numReads);
    symbols.insert(fragment);
    ++numFragments;
  } else {
    ++numShared;
  }
  func::CallOp::create(builder, loc, fragment, operands);
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
  SmallVector<Value> outputs, internal, computed;
  for (Value buffer : writer.getWritten())
    (isInternal(buffer, group) ? internal : outputs).push_back(buffer);
  auto findComputed = [&](Value output) {
    return llvm::find_if(
        computed, [&](Value other) { return writer.areEqual(output, other); });
  };
  for (Value output : outputs)
    if (!writer.getUnchanged(output) && findComputed(output) == computed.end())
      computed.push_back(output);
  CutFragment cut = writer.finish(computed, refused);
  numCuts += cut.parts.size() > 1;

  LinalgOp last = group.members.back().op;
  Location loc = last.getLoc();
  OpBuilder builder(last);
  SmallVector<Value> operands = llvm::to_vector(writer.getInputs());
  SmallVector<std::pair<Value, Value>> copies;
  for (Value output : outputs) {
    auto type = cast<MemRefType>(output.getType());
    bool isRead = llvm::is_contained(writer.getInputs(), output);
    bool sharesMemory = llvm::any_of(writer.getInputs(), [&](Value input) {
      return input != output &&
             mayAlias(getBufferRoot(input), getBufferRoot(output));
    });
    Value source = writer.getUnchanged(output), target = output;
    if (source == output)
      continue;
    if (auto *first = findComputed(output); !source && *first != output) {
      copies.push_back(
          {operands[writer.getInputs().size() + (first - computed.begin())],
           output});
      continue;
    }
    if (sharesMemory ||
        (isRead && (source || outputs.size() > 1 || cut.parts.size() > 1 ||
                    !isElementwiseOn(output, group)))) {
      target =
          allocateBuffer(builder, loc, type.getShape(), type.getElementType());
      copies.push_back({target, output});
    }
    if (source)
      library.call(builder, loc, "copy",
                   {packedView(source, type.getShape()),
                    packedView(target, type.getShape())});
    else
      operands.push_back(target);
  }
  Value violation;
  if (writer.hasAssertions()) {
    violation = allocateBuffer(builder, loc, {1}, builder.getI32Type());
    operands.push_back(violation);
  }
  bool hasResults = operands.size() > writer.getInputs().size();
  for (const HFusionValue &temporary : cut.temporaries)
    operands.push_back(
        allocateBuffer(builder, loc, temporary.shape, temporary.element));
  for (const FragmentPart &part : cut.parts) {
    if (!hasResults)
      break;
    SmallVector<Value> taken;
    for (size_t number : llvm::concat<const size_t>(part.reads, part.writes))
      taken.push_back(operands[number]);
    callFragment(builder, loc, part.text, taken, part.reads.size(), parentName,
                 symbols);
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
  if (failed(verifyOnBuffers(getOperation())))
    return signalPassFailure();
  SymbolTable symbols(getOperation());
  LibraryCalls library(getOperation());
  known.clear();
  numbers.clear();
  assertions.clear();
  numNames = 0;
  refused.clear();
  if (Attribute attr = getOperation()->getAttr("hp.refused")) {
    auto texts = dyn_cast<ArrayAttr>(attr);
    if (!texts || !llvm::all_of(texts, llvm::IsaPred<StringAttr>)) {
      getOperation()->emitError("expected hp.refused to be texts but got ")
          << attr;
      return signalPassFailure();
    }
    for (auto text : texts.getAsRange<StringAttr>())
      refused.insert(text.getValue());
  }
  getOperation()->removeAttr("hp.refused");
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
