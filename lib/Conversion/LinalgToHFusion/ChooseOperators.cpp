//===- ChooseOperators.cpp - Operators or fragments, by cost --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  as hp-call-library leaves it; calls of the functions that
//   hp-outline-operators made, on buffers.
// Contract out: no such call. What an operator does best is a call of it, the
//   rest is linalg for hp-form-fragments.
//
//   1. Every call becomes the ops of its function, and `formKernelGroups` says
//      with which others they would share a fragment. What the call gives the
//      caller's caller is written there at once.
//   2. A fragment is one launch, and moves what it reads and writes to and from
//      memory once. With the operator, the ops of its groups that come before
//      and after are launches of their own, and buffers between them are
//      moved. The operator is called if that is no more; a launch counts as
//      many bytes as are moved in its time.
//   3. Then groups that are one op, and that an operator does (see
//      SimpleOperators.h), are a call of it: neither is a fragment compiled,
//      nor a launch more.
//
// What was chosen, and why, is counted in `hp.choices` of the module, and told
// in remarks.
//
// Cost: that of grouping, and linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/Counts.h"
#include "lib/Conversion/LinalgToHFusion/LibraryCalls.h"
#include "lib/Conversion/LinalgToHFusion/SimpleOperators.h"
#include "lib/Conversion/LinalgToKernels/KernelGrouping.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

#define DEBUG_TYPE "hp-choose-operators"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CHOOSEOPERATORS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

static constexpr llvm::StringLiteral kByCost = "by-cost", kAlways = "always",
                                     kNever = "never";
static constexpr llvm::StringLiteral kNoMore =
    "no more launches and trips to memory than a fragment";

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

namespace {
struct Cost {
  int64_t launches = 0, bytes = 0;

  Cost operator+(const Cost &other) const {
    return {launches + other.launches, bytes + other.bytes};
  }
};

/// A call of an outlined function, and its ops once they are in its place.
struct Site {
  func::FuncOp function;
  StringRef name;
  ArrayRef<int64_t> results; ///< of the operator, that the function gives
  SmallVector<Value> operands;
  Location loc;
  SmallVector<Operation *> ops;
};
} // namespace

static int64_t getBytes(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  return type.hasStaticShape()
             ? type.getNumElements() * getElementBytes(type.getElementType())
             : 0;
}

/// One fragment of some ops: buffers that it reads before it writes them, and
/// those that it writes and others see.
static Cost costOf(ArrayRef<LinalgOp> ops) {
  if (ops.empty())
    return {};
  llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
  llvm::SmallMapVector<Value, bool, 8> seen; // buffer: is it written
  Cost cost{1, 0};
  for (LinalgOp op : ops)
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<MemRefType>(operand.get().getType()))
        continue;
      auto [entry, isNew] = seen.insert({operand.get(), false});
      bool reads = op.payloadUsesValueFromOperand(&operand) &&
                   !operand.get().getDefiningOp<memref::GetGlobalOp>();
      if (isNew && reads)
        cost.bytes += getBytes(operand.get());
      entry->second |= op.isDpsInit(&operand);
    }
  for (auto [buffer, isWritten] : seen)
    if (isWritten && llvm::any_of(buffer.getUsers(), [&](Operation *user) {
          return !members.contains(user);
        }))
      cost.bytes += getBytes(buffer);
    else if (isWritten && !buffer.getDefiningOp<memref::AllocOp>())
      cost.bytes += getBytes(buffer);
  return cost;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct ChooseOperatorsPass : impl::ChooseOperatorsBase<ChooseOperatorsPass> {
  using ChooseOperatorsBase::ChooseOperatorsBase;
  void runOnOperation() override;
  void runOnBlock(Block &block, SymbolTable &symbols, LibraryCalls &library);
  bool decide(Site &site, ArrayRef<KernelGroup> groups,
              const DenseMap<Operation *, size_t> &groupOf);
  bool callSimple(const KernelGroup &group, LibraryCalls &library);
  void record(Location loc, bool isOperator, StringRef name, StringRef reason,
              const std::string &figures);
  int64_t weigh(const Cost &cost) const {
    return cost.bytes + cost.launches * bytesPerLaunch;
  }

  std::map<std::string, int64_t> counts;
};
} // namespace

void ChooseOperatorsPass::record(Location loc, bool isOperator, StringRef name,
                                 StringRef reason, const std::string &figures) {
  std::string told = llvm::formatv(
      "{0}: {1}, {2}", name, isOperator ? "operator" : "fragment", reason);
  ++counts[told];
  auto options = remark::RemarkOpts::name(isOperator ? "operator" : "fragment")
                     .category(DEBUG_TYPE);
  auto remark = [&](auto &&emitted) {
    emitted << remark::add("{0}{1}", told, figures);
  };
  if (isOperator)
    remark(remark::passed(loc, options));
  else
    remark(remark::missed(loc, options));
}

/// The outlined function of a call, if it is one.
static func::FuncOp getOutlined(func::CallOp call, SymbolTable &symbols) {
  auto function = symbols.lookup<func::FuncOp>(call.getCallee());
  return function && function->hasAttr("hp.operator") ? function
                                                      : func::FuncOp();
}

/// A buffer that is only copied to one which nobody else uses, a result of the
/// function, is that one.
static void writeInPlace(func::CallOp call) {
  for (Value operand : call.getOperands()) {
    auto alloc = operand.getDefiningOp<memref::AllocOp>();
    if (!alloc || llvm::range_size(operand.getUsers()) != 2)
      continue;
    for (Operation *user : operand.getUsers()) {
      auto copy = dyn_cast<linalg::CopyOp>(user);
      if (!copy || copy.getInputs()[0] != operand)
        continue;
      Value target = copy.getOutputs()[0];
      if (!isa<BlockArgument>(target) || !target.hasOneUse() ||
          target.getType() != operand.getType())
        continue;
      copy->erase();
      operand.replaceAllUsesWith(target);
      alloc->erase();
      break;
    }
  }
}

/// The ops of a call's function, in its place.
static Site inlineCall(func::CallOp call, func::FuncOp function) {
  Site site{
      function,
      function->getAttrOfType<StringAttr>("hp.operator").getValue(),
      function->getAttrOfType<DenseI64ArrayAttr>("hp.results").asArrayRef(),
      llvm::to_vector(call.getOperands()),
      call.getLoc(),
      {}};
  OpBuilder builder(call);
  IRMapping mapping;
  mapping.map(function.getArguments(), call.getOperands());
  for (Operation &op : function.front().without_terminator())
    site.ops.push_back(builder.clone(op, mapping));
  for (auto [result, value] : llvm::zip_equal(
           call.getResults(), function.front().getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(value));
  call->erase();
  return site;
}

/// How many inputs and results an operator has.
static std::pair<size_t, size_t> getArity(StringRef name) {
  return name == "softmax"      ? std::pair<size_t, size_t>(1, 1)
         : name == "layer_norm" ? std::pair<size_t, size_t>(3, 3)
                                : std::pair<size_t, size_t>(2, 2);
}

/// Whether the function takes a buffer for each of its results, which shares
/// nothing with the inputs, and all are without gaps.
static bool isCallable(Site &site) {
  size_t numInputs = getArity(site.name).first;
  if (site.function.getNumResults() != 0 ||
      site.operands.size() != numInputs + site.results.size())
    return false;
  ArrayRef<Value> operands = site.operands;
  return llvm::all_of(operands,
                      [&](Value operand) {
                        return isContiguous(
                            cast<MemRefType>(operand.getType()));
                      }) &&
         llvm::none_of(operands.drop_front(numInputs), [&](Value result) {
           return llvm::any_of(
               operands.take_front(numInputs), [&](Value input) {
                 return mayAlias(getBufferRoot(input), getBufferRoot(result));
               });
         });
}

/// The inputs, then all results: what nobody wants gets a buffer, too.
static SmallVector<LibraryView> getViews(const Site &site, OpBuilder &builder) {
  auto [numInputs, numResults] = getArity(site.name);
  SmallVector<LibraryView> views;
  for (Value input : ArrayRef<Value>(site.operands).take_front(numInputs))
    views.push_back(viewOf(input));
  SmallVector<int64_t> rows = views.front().sizes;
  rows.back() = 1;
  for (size_t number = 0; number < numResults; ++number) {
    const auto *given = llvm::find(site.results, static_cast<int64_t>(number));
    Value buffer =
        given == site.results.end()
            ? allocateBuffer(builder, site.loc, rows, builder.getF32Type())
            : site.operands[numInputs + (given - site.results.begin())];
    views.push_back(number == 0 ? viewOf(buffer) : packedView(buffer, rows));
  }
  return views;
}

/// Whether the operator costs no more than fragments do.
bool ChooseOperatorsPass::decide(Site &site, ArrayRef<KernelGroup> groups,
                                 const DenseMap<Operation *, size_t> &groupOf) {
  llvm::SmallPtrSet<Operation *, 16> own(site.ops.begin(), site.ops.end());
  llvm::SetVector<size_t> touched;
  for (Operation *op : site.ops)
    if (auto found = groupOf.find(op); found != groupOf.end())
      touched.insert(found->second);
  Cost fused, apart;
  for (size_t number : touched) {
    SmallVector<LinalgOp> all, before, after;
    bool isPast = false;
    for (const KernelMember &member : groups[number].members) {
      all.push_back(member.op);
      if (own.contains(member.op))
        isPast = true;
      else
        (isPast ? after : before).push_back(member.op);
    }
    fused = fused + costOf(all);
    apart = apart + costOf(before) + costOf(after);
  }
  Cost alone{1, 0};
  for (Value operand : site.operands)
    alone.bytes += getBytes(operand);
  apart = apart + alone;
  bool isOperator = isCallable(site) && operators != kNever &&
                    (operators == kAlways || weigh(apart) <= weigh(fused));
  StringRef reason =
      !isCallable(site)      ? "the operator would write what it reads"
      : operators != kByCost ? StringRef("as was asked for")
      : isOperator ? StringRef(kNoMore)
                   : StringRef("shares launches and trips to memory with other "
                               "ops");
  record(site.loc, isOperator, site.name, reason,
         llvm::formatv(
             " ({0} launches and {1} bytes; with the operator {2} and {3})",
             fused.launches, fused.bytes, apart.launches, apart.bytes));
  return isOperator;
}

/// A reduction alone, and the fill of what it adds to.
static std::optional<KernelGroup> withFill(const KernelGroup &group) {
  LinalgOp op = group.members.front().op;
  if (group.members.size() != 1 || op.getNumReductionLoops() == 0 ||
      op.getNumDpsInits() != 1)
    return std::nullopt;
  linalg::FillOp fill = findFill(op, op.getDpsInits()[0]);
  if (!fill)
    return std::nullopt;
  return KernelGroup{
      {{cast<LinalgOp>(fill.getOperation()), {}}, group.members.front()}};
}

/// True if an operator is called for the group, whose ops are to end.
bool ChooseOperatorsPass::callSimple(const KernelGroup &group,
                                     LibraryCalls &library) {
  std::optional<SimpleOperator> simple = matchSimpleOperator(group);
  if (!simple)
    return false;
  LinalgOp last = group.members.back().op;
  OpBuilder builder(last);
  record(last->getLoc(), true, simple->name, kNoMore, "");
  callSimpleOperator(builder, last->getLoc(), *simple, library);
  ++numOperators;
  return true;
}

void ChooseOperatorsPass::runOnBlock(Block &block, SymbolTable &symbols,
                                     LibraryCalls &library) {
  SmallVector<Site> sites;
  for (auto call : llvm::make_early_inc_range(block.getOps<func::CallOp>()))
    if (func::FuncOp function = getOutlined(call, symbols)) {
      writeInPlace(call);
      sites.push_back(inlineCall(call, function));
    }
  SmallVector<KernelGroup> groups = formKernelGroups(block);
  DenseMap<Operation *, size_t> groupOf;
  for (auto [number, group] : llvm::enumerate(groups))
    for (const KernelMember &member : group.members)
      groupOf[member.op] = number;
  // All are decided on before the ops of any end: two may share a fragment.
  SmallVector<Site *> chosen;
  for (Site &site : sites) {
    if (decide(site, groups, groupOf))
      chosen.push_back(&site);
    else
      ++numFragments;
  }
  for (Site *one : chosen) {
    Site &site = *one;
    OpBuilder builder(site.ops.front());
    auto epsilon = site.function->getAttrOfType<FloatAttr>("hp.epsilon");
    library.call(builder, site.loc, site.name, getViews(site, builder), {},
                 {llvm::bit_cast<int64_t>(epsilon.getValueAsDouble())});
    for (Operation *op : llvm::reverse(site.ops))
      op->erase();
    ++numOperators;
  }
  if (operators == kNever)
    return;
  if (!chosen.empty())
    groups = formKernelGroups(block);
  llvm::SmallPtrSet<Operation *, 16> done;
  for (KernelGroup &group : groups)
    if (auto filled = withFill(group); filled && callSimple(*filled, library))
      for (KernelMember &member : filled->members)
        done.insert(member.op);
  for (KernelGroup &group : groups)
    if (!done.contains(group.members.front().op) && callSimple(group, library))
      for (KernelMember &member : group.members)
        done.insert(member.op);
  for (Operation *op : done)
    op->erase();
}

void ChooseOperatorsPass::runOnOperation() {
  if (failed(verifyOnBuffers(getOperation())))
    return signalPassFailure();
  counts.clear();
  if (operators != kByCost && operators != kAlways && operators != kNever) {
    getOperation()->emitError("expected operators=by-cost, always or never but "
                              "got '")
        << operators << "'";
    return signalPassFailure();
  }
  SymbolTable symbols(getOperation());
  LibraryCalls library(getOperation());
  SmallVector<func::FuncOp> outlined;
  SmallVector<Block *> blocks;
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    if (function->hasAttr("hp.operator")) {
      if (!function->getAttrOfType<StringAttr>("hp.operator") ||
          !function->getAttrOfType<DenseI64ArrayAttr>("hp.results") ||
          !function->getAttrOfType<FloatAttr>("hp.epsilon")) {
        function.emitError("expected an operator with a name (hp.operator), "
                           "hp.results and hp.epsilon");
        return signalPassFailure();
      }
      outlined.push_back(function);
    } else {
      function.walk([&](Block *block) {
        if (!isa<LinalgOp>(block->getParentOp()))
          blocks.push_back(block);
      });
    }
  }
  for (Block *block : blocks)
    runOnBlock(*block, symbols, library);
  for (func::FuncOp function : outlined)
    function->erase();
  setCounts(getOperation(), "hp.choices", counts);
}

} // namespace mlir::hyperparallel
