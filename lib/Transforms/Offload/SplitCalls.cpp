//===- SplitCalls.cpp - calls of large functions in parts -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In:  a fused local program, before it is planned. A call is one op to the
//   planner: all that it touches is on the device while it runs.
// Out: the same values. A called function that touches more than `grain` is
//   several functions, and each call of it one call of each.
//
//   call @block(x, w1, w2)  ──▶  t = call @block_1(x, w1); call @block_2(t, w2)
//
//   1. Ops that cost nothing (views, declarations, constants) are of no part;
//      each part makes those again that it needs.
//   2. The rest is taken in order. A part ends before an op with which it would
//      touch more than the grain, where no kernel (KernelFusion.h) is cut and
//      no collective is under way.
//   3. What a part takes from others or from the caller are its arguments, what
//      others or the caller take from it its results.
//      What the function returns in another shape than it was made in is a
//      part's result in the shape that is returned: so the next value of a
//      state that is updated is of its type, and can be made in its place.
//   4. A part that is a call alone is that call, which may be split in turn.
//
// The code of a part is that of the function, and is compiled once for all
// calls; what is inside a block comes and goes like what is between blocks.
//
// Cost: linear in ops and uses of each function, and in calls times parts.
// Limits: called functions of one block; what loops and branches do is one op.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Offload/Passes.h"

#include "lib/Analysis/CostModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::hyperparallel::offload {
#define GEN_PASS_DEF_SPLITCALLSPASS
#include "lib/Transforms/Offload/Passes.h.inc"
} // namespace mlir::hyperparallel::offload

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;

namespace {
struct Part {
  SmallVector<Operation *> ops;
  llvm::SetVector<Value> inputs, outputs;
  func::FuncOp function;
};

/// A function in parts.
struct Parts {
  llvm::SmallPtrSet<Operation *, 32> free;
  SmallVector<Part> parts;
  /// What is returned in another shape, by what it is made from.
  DenseMap<Value, Operation *> reshaped;

  Type typeOf(Value output) const {
    Operation *reshape = reshaped.lookup(output);
    return reshape ? reshape->getResult(0).getType() : output.getType();
  }
};

class CallSplitter {
public:
  CallSplitter(ModuleOp module, int64_t grain)
      : module(module), symbols(module), model(module), grain(grain) {}

  /// The function in parts, if there are several.
  std::optional<Parts> cut(func::FuncOp function);
  void makeFunctions(func::FuncOp function, Parts &parts);
  void replace(func::CallOp call, func::FuncOp function, const Parts &parts);

  /// The callee that may be split, or null.
  func::FuncOp getCallee(func::CallOp call);

private:
  bool isFree(Operation *op);
  void connect(func::FuncOp function, Parts &parts);

  ModuleOp module;
  SymbolTable symbols;
  CostModel model;
  int64_t grain;
};
} // namespace

/// It takes no time, and can be made again where it is needed.
bool CallSplitter::isFree(Operation *op) {
  bool hasBody =
      op->getNumRegions() > 0 && !isa<DestinationStyleOpInterface>(op);
  return !hasBody && isMemoryEffectFree(op) && model.getCost(op).seconds <= 0;
}

static llvm::SetVector<Value> operandsOf(Operation *op) {
  llvm::SetVector<Value> operands(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), operands);
  return operands;
}

/// The values behind ops that cost nothing.
static void findSources(Value value, const Parts &parts,
                        llvm::SetVector<Value> &sources) {
  Operation *maker = value.getDefiningOp();
  if (!maker || !parts.free.contains(maker)) {
    sources.insert(value);
    return;
  }
  for (Value operand : operandsOf(maker))
    findSources(operand, parts, sources);
}

//===----------------------------------------------------------------------===//
// Where to cut
//===----------------------------------------------------------------------===//

/// Whether the value can be handed from one function to another.
static bool canCross(Value value) {
  return isa<RankedTensorType, IntegerType, FloatType, IndexType>(
      value.getType());
}

/// By op: whether a part may begin with it.
static SmallVector<bool> findCuts(Block &block, ArrayRef<Operation *> ops) {
  DenseMap<Operation *, size_t> position;
  for (auto [number, op] : llvm::enumerate(ops))
    position[op] = number;
  SmallVector<bool> isCut(ops.size(), true);
  SmallVector<int> open(ops.size() + 1, 0);
  auto keepTogether = [&](size_t first, size_t last) {
    if (first >= last)
      return;
    ++open[first + 1];
    --open[last + 1];
  };
  for (const FusedKernel &kernel : planKernels(block).kernels) {
    size_t first = ops.size(), last = 0;
    for (const KernelMember &member : kernel.members)
      if (auto found = position.find(member.op); found != position.end()) {
        first = std::min(first, found->second);
        last = std::max(last, found->second);
      }
    keepTogether(first, last);
  }
  for (auto [number, op] : llvm::enumerate(ops))
    for (Value result : op->getResults())
      if (!canCross(result))
        for (Operation *user : result.getUsers())
          if (auto found = position.find(block.findAncestorOpInBlock(*user));
              found != position.end())
            keepTogether(number, found->second);
  int depth = 0;
  for (size_t number = 0; number < ops.size(); ++number) {
    depth += open[number];
    isCut[number] = depth == 0;
  }
  return isCut;
}

std::optional<Parts> CallSplitter::cut(func::FuncOp function) {
  Block &block = function.getBody().front();
  Parts result;
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator()) {
    if (isFree(&op))
      result.free.insert(&op);
    else
      ops.push_back(&op);
  }
  SmallVector<bool> isCut = findCuts(block, ops);
  llvm::DenseSet<Value> touched;
  int64_t bytes = 0;
  for (size_t begin = 0; begin < ops.size();) {
    // What cannot be cut is taken together.
    size_t end = begin + 1;
    while (end < ops.size() && !isCut[end])
      ++end;
    llvm::SetVector<Value> needed;
    for (Operation *op : ArrayRef(ops).slice(begin, end - begin)) {
      for (Value operand : operandsOf(op))
        findSources(operand, result, needed);
      needed.insert(op->result_begin(), op->result_end());
    }
    int64_t more = 0, all = 0;
    for (Value value : needed) {
      all += byteSize(value.getType());
      if (!touched.contains(value))
        more += byteSize(value.getType());
    }
    if (result.parts.empty() || bytes + more > grain) {
      result.parts.emplace_back();
      touched.clear();
      bytes = 0;
      more = all;
    }
    result.parts.back().ops.append(ops.begin() + begin, ops.begin() + end);
    touched.insert(needed.begin(), needed.end());
    bytes += more;
    begin = end;
  }
  if (result.parts.size() < 2)
    return std::nullopt;
  connect(function, result);
  return result;
}

/// What each part takes and gives.
void CallSplitter::connect(func::FuncOp function, Parts &parts) {
  DenseMap<Operation *, Part *> partOf;
  for (Part &part : parts.parts)
    for (Operation *op : part.ops)
      partOf[op] = &part;
  auto give = [&](Value value, Part *taker) {
    Operation *maker = value.getDefiningOp();
    Part *giver = maker ? partOf.lookup(maker) : nullptr;
    if (giver == taker)
      return;
    if (giver)
      giver->outputs.insert(value);
    if (taker)
      taker->inputs.insert(value);
  };
  for (Part &part : parts.parts) {
    llvm::SetVector<Value> sources;
    for (Operation *op : part.ops)
      for (Value operand : operandsOf(op))
        findSources(operand, parts, sources);
    for (Value value : sources)
      give(value, &part);
  }
  llvm::DenseSet<Value> returnedTwice;
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    if (Operation *maker = value.getDefiningOp();
        isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
            maker) &&
        cast<RankedTensorType>(value.getType()).hasStaticShape() &&
        partOf.contains(maker->getOperand(0).getDefiningOp()) &&
        returnedTwice.insert(maker->getOperand(0)).second)
      parts.reshaped[maker->getOperand(0)] = maker;
  llvm::SetVector<Value> returned;
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    findSources(value, parts, returned);
  for (Value value : returned)
    give(value, nullptr);
}

//===----------------------------------------------------------------------===//
// Functions and calls
//===----------------------------------------------------------------------===//

/// What stands for the value; ops that cost nothing are made again.
static Value makeAgain(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *maker = value.getDefiningOp();
  for (Value operand : operandsOf(maker))
    makeAgain(builder, operand, mapping);
  builder.clone(*maker, mapping);
  return mapping.lookup(value);
}

/// A part that needs no function of its own.
static func::CallOp getOnlyCall(const Part &part) {
  return part.ops.size() == 1 ? dyn_cast<func::CallOp>(part.ops.front())
                              : func::CallOp();
}

void CallSplitter::makeFunctions(func::FuncOp function, Parts &parts) {
  for (auto [number, part] : llvm::enumerate(parts.parts)) {
    if (getOnlyCall(part))
      continue;
    OpBuilder builder(function);
    SmallVector<Value> inputs(part.inputs.begin(), part.inputs.end());
    SmallVector<Value> outputs(part.outputs.begin(), part.outputs.end());
    std::string name = (function.getName() + "_" + Twine(number + 1)).str();
    SmallVector<Type> types;
    for (Value output : outputs)
      types.push_back(parts.typeOf(output));
    part.function = func::FuncOp::create(
        builder, function.getLoc(), name,
        builder.getFunctionType(TypeRange(ValueRange(inputs)), types));
    part.function.setPrivate();
    Block *body = part.function.addEntryBlock();
    builder.setInsertionPointToStart(body);
    IRMapping mapping;
    mapping.map(inputs, body->getArguments());
    for (Operation *op : part.ops) {
      for (Value operand : operandsOf(op))
        makeAgain(builder, operand, mapping);
      builder.clone(*op, mapping);
    }
    SmallVector<Value> results;
    for (Value output : outputs) {
      Operation *reshape = parts.reshaped.lookup(output);
      results.push_back(reshape
                            ? makeAgain(builder, reshape->getResult(0), mapping)
                            : mapping.lookup(output));
    }
    func::ReturnOp::create(builder, function.getLoc(), results);
    part.function->remove();
    symbols.insert(part.function);
  }
}

/// What the reshape has been made from, made of its result.
static Value shapeBack(OpBuilder &builder, Operation *reshape, Value result) {
  auto type = cast<RankedTensorType>(reshape->getOperand(0).getType());
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(reshape))
    return tensor::ExpandShapeOp::create(builder, reshape->getLoc(), type,
                                         result,
                                         collapse.getReassociationIndices());
  return tensor::CollapseShapeOp::create(
      builder, reshape->getLoc(), type, result,
      cast<tensor::ExpandShapeOp>(reshape).getReassociationIndices());
}

void CallSplitter::replace(func::CallOp call, func::FuncOp function,
                           const Parts &parts) {
  OpBuilder builder(call);
  IRMapping mapping;
  SmallVector<Value> shapedBack;
  mapping.map(function.getArguments(), call.getOperands());
  auto keepAttributes = [&](Operation *made) {
    for (NamedAttribute attribute : call->getDiscardableAttrs())
      made->setDiscardableAttr(attribute.getName(), attribute.getValue());
  };
  for (const Part &part : parts.parts) {
    if (func::CallOp only = getOnlyCall(part)) {
      for (Value operand : only.getOperands())
        makeAgain(builder, operand, mapping);
      keepAttributes(builder.clone(*only, mapping));
      continue;
    }
    SmallVector<Value> operands;
    for (Value input : part.inputs)
      operands.push_back(mapping.lookup(input));
    auto made =
        func::CallOp::create(builder, call.getLoc(), part.function, operands);
    keepAttributes(made);
    for (auto [output, result] :
         llvm::zip_equal(part.outputs, made.getResults())) {
      mapping.map(output, result);
      if (Operation *reshape = parts.reshaped.lookup(output)) {
        mapping.map(reshape->getResult(0), result);
        shapedBack.push_back(shapeBack(builder, reshape, result));
        mapping.map(output, shapedBack.back());
      }
    }
  }
  Operation *terminator = function.getBody().front().getTerminator();
  SmallVector<Value> results;
  for (Value value : terminator->getOperands())
    results.push_back(makeAgain(builder, value, mapping));
  call.replaceAllUsesWith(results);
  call.erase();
  for (Value value : shapedBack)
    if (value.use_empty())
      value.getDefiningOp()->erase();
}

func::FuncOp CallSplitter::getCallee(func::CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  bool canSplit = callee && !callee.isExternal() && callee.isPrivate() &&
                  callee.getBody().hasOneBlock();
  return canSplit ? callee : func::FuncOp();
}

namespace {
struct SplitCallsPass final
    : offload::impl::SplitCallsPassBase<SplitCallsPass> {
  using SplitCallsPassBase::SplitCallsPassBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal() ||
        !function.getBody().hasOneBlock()) {
      getOperation().emitError("expected a function @")
          << entry << " with one block to split the calls of";
      return signalPassFailure();
    }
    if (grain <= 0) {
      function.emitError("expected a grain of at least one byte but got ")
          << int64_t(grain);
      return signalPassFailure();
    }
    CallSplitter splitter(getOperation(), grain);
    llvm::MapVector<Operation *, std::optional<Parts>> known;
    SmallVector<func::CallOp> calls(
        function.getBody().front().getOps<func::CallOp>());
    // Calls that come of calls are split, too: one level of nesting in a round.
    while (!calls.empty()) {
      bool isAnySplit = false;
      for (func::CallOp call : calls) {
        func::FuncOp callee = splitter.getCallee(call);
        if (!callee)
          continue;
        auto [parts, isNew] = known.insert({callee, std::nullopt});
        if (isNew) {
          std::optional<Parts> found = splitter.cut(callee);
          if (found) {
            splitter.makeFunctions(callee, *found);
            emitRemark(callee.getLoc(), "offload: @")
                << callee.getName() << " is done in " << found->parts.size()
                << " parts, so that not all that it uses is needed at once";
            ++numFunctions;
            numParts += found->parts.size();
          }
          known[callee] = std::move(found);
          parts = known.find(callee);
        }
        if (!parts->second)
          continue;
        splitter.replace(call, callee, *parts->second);
        isAnySplit = true;
      }
      calls.clear();
      if (isAnySplit)
        llvm::append_range(calls,
                           function.getBody().front().getOps<func::CallOp>());
    }
    for (auto &[callee, parts] : known)
      if (parts && SymbolTable::symbolKnownUseEmpty(callee, getOperation()))
        callee->erase();
  }
};
} // namespace
