//===- OutlineOperators.cpp - Functions of what one operator computes -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  linalg on tensors, before or after fusion.
// Contract out: the same; what an operator of a vendor computes at once is a
//   call of a private function with `hp.operator`, which has the ops as they
//   were.
//
//   1. From the last op of a block to the first: an op that ends a form
//      (OperatorForms.cpp) takes all ops of the form.
//      With `leave-attention`, not a softmax between two products.
//   2. They are cloned into a function; equal forms share it. What is wanted of
//      the form elsewhere are its results.
//
// Cost: linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/OperatorForms.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_OUTLINEOPERATORS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

namespace {
struct OutlineOperatorsPass : impl::OutlineOperatorsBase<OutlineOperatorsPass> {
  using OutlineOperatorsBase::OutlineOperatorsBase;
  void runOnOperation() override;
  void outline(const OperatorForm &form, SymbolTable &symbols,
               llvm::DenseSet<Operation *> &erased);
  func::FuncOp getFunction(const OperatorForm &form, ArrayRef<int64_t> wanted,
                           SymbolTable &symbols);

  llvm::StringMap<func::FuncOp> known;
};
} // namespace

/// Whether all that is done with a value is a product, perhaps of it in another
/// shape or type.
static bool isOnlyMultiplied(Value value) {
  for (;;) {
    if (!value.hasOneUse())
      return false;
    Operation *user = *value.getUsers().begin();
    auto op = dyn_cast<linalg::LinalgOp>(user);
    if (op && linalg::isaContractionOpInterface(op))
      return true;
    bool isMoved =
        isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user) ||
        (op && op.getNumDpsInputs() == 1 && op.getNumReductionLoops() == 0);
    if (!isMoved || user->getNumResults() != 1)
      return false;
    value = user->getResult(0);
  }
}

/// The numbers of the results that are wanted outside of the form: the whole
/// one is always.
static SmallVector<int64_t> findWanted(const OperatorForm &form) {
  llvm::SmallPtrSet<Operation *, 16> members(form.ops.begin(), form.ops.end());
  SmallVector<int64_t> wanted;
  for (auto [number, result] : llvm::enumerate(form.results))
    if (number == 0 ||
        (result && llvm::any_of(result.getUsers(), [&](Operation *user) {
           return !members.contains(user);
         })))
      wanted.push_back(static_cast<int64_t>(number));
  return wanted;
}

func::FuncOp OutlineOperatorsPass::getFunction(const OperatorForm &form,
                                               ArrayRef<int64_t> wanted,
                                               SymbolTable &symbols) {
  SmallVector<Value> results;
  for (int64_t number : wanted)
    results.push_back(form.results[number]);
  OpBuilder builder(&getContext());
  auto type = builder.getFunctionType(TypeRange(ValueRange(form.inputs)),
                                      TypeRange(ValueRange(results)));
  std::string key;
  llvm::raw_string_ostream stream(key);
  stream << form.name << type << llvm::bit_cast<uint64_t>(form.epsilon) << " ";
  llvm::interleaveComma(wanted, stream);
  func::FuncOp &function = known[key];
  if (function)
    return function;
  Location loc = results.front().getLoc();
  function = func::FuncOp::create(loc, ("operator_" + form.name).str(), type);
  function.setPrivate();
  function->setAttr("hp.operator", builder.getStringAttr(form.name));
  function->setAttr("hp.epsilon", builder.getF64FloatAttr(form.epsilon));
  function->setAttr("hp.results", builder.getDenseI64ArrayAttr(wanted));
  symbols.insert(function);
  builder.setInsertionPointToStart(function.addEntryBlock());
  IRMapping mapping;
  mapping.map(form.inputs, function.getArguments());
  for (Operation *op : form.ops)
    builder.clone(*op, mapping);
  SmallVector<Value> returned;
  for (Value result : results)
    returned.push_back(mapping.lookup(result));
  func::ReturnOp::create(builder, loc, returned);
  return function;
}

/// Where the call goes: before the last op, and before all that uses what it
/// gives. Null if an input is made later.
static Operation *findPlace(const OperatorForm &form,
                            ArrayRef<int64_t> wanted) {
  Operation *place = form.ops.back();
  llvm::SmallPtrSet<Operation *, 16> members(form.ops.begin(), form.ops.end());
  auto isLeft = [&](Operation *op) {
    return !members.contains(op) ||
           llvm::any_of(op->getResults(), [&](Value result) {
             return !llvm::is_contained(form.results, result) &&
                    llvm::any_of(result.getUsers(), [&](Operation *user) {
                      return !members.contains(user);
                    });
           });
  };
  for (int64_t number : wanted)
    for (Operation *user : form.results[number].getUsers()) {
      Operation *inBlock = place->getBlock()->findAncestorOpInBlock(*user);
      if (inBlock && isLeft(inBlock) && inBlock->isBeforeInBlock(place))
        place = inBlock;
    }
  for (Value input : form.inputs)
    if (Operation *made = input.getDefiningOp();
        made && made->getBlock() == place->getBlock() &&
        !made->isBeforeInBlock(place))
      return nullptr;
  return place;
}

void OutlineOperatorsPass::outline(const OperatorForm &form,
                                   SymbolTable &symbols,
                                   llvm::DenseSet<Operation *> &erased) {
  SmallVector<int64_t> wanted = findWanted(form);
  Operation *place = findPlace(form, wanted);
  if (!place)
    return;
  func::FuncOp function = getFunction(form, wanted, symbols);
  OpBuilder builder(place);
  auto call = func::CallOp::create(builder, form.ops.back()->getLoc(), function,
                                   form.inputs);
  for (auto [number, result] : llvm::zip_equal(wanted, call.getResults())) {
    Value replaced = form.results[number];
    replaced.replaceAllUsesWith(result);
  }
  for (Operation *op : llvm::reverse(form.ops)) {
    if (!op->use_empty())
      continue;
    erased.insert(op);
    op->erase();
  }
  ++numOutlined;
}

void OutlineOperatorsPass::runOnOperation() {
  known.clear();
  SymbolTable symbols(getOperation());
  SmallVector<linalg::GenericOp> roots;
  for (auto function : getOperation().getOps<func::FuncOp>())
    if (!function->hasAttr("hp.operator"))
      function.walk([&](linalg::GenericOp op) { roots.push_back(op); });
  llvm::DenseSet<Operation *> erased;
  for (linalg::GenericOp root : llvm::reverse(roots)) {
    if (erased.contains(root))
      continue;
    auto form = matchOperator(root);
    if (form && !(leaveAttention && form->name == "softmax" &&
                  isOnlyMultiplied(root->getResult(0))))
      outline(*form, symbols, erased);
  }
}

} // namespace mlir::hyperparallel
