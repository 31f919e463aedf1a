//===- OperatorForms.cpp - Operators by their arithmetic ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A scalar of a body is followed to what it is computed of, through the bodies
// of elementwise ops, so that it does not matter which ops were made one:
//
//   softmax      e / sum(e),  e = exp(x - max(x))
//   layer_norm   (x - m) r w + b,  m = sum(x) / n,
//                r = rsqrt(sum((x - m)^2) / n + epsilon)
//   rms_norm     x r w,  r = rsqrt(sum(x^2) / n + epsilon)
//
// All ops have the loops of the last one, and reduce along the innermost.
// Widening and narrowing on the way count as nothing: an operator computes in
// f32 and rounds once, at the end.
//
// Ops that others use, too, stay, where they are one step from what the
// operator is given or gives (x - m). If one would be computed twice over rows
// (an exponential, a sum), the form is none.
//
// Cost: linear in the ops of a form, of which there are few.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/OperatorForms.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using linalg::GenericOp;

namespace mlir::hyperparallel {

namespace {
/// A scalar for each iteration of the root's loops: of a tensor, `map` says
/// which element; of a body, `map` says which iteration of `in`.
struct Term {
  Value value;
  GenericOp in;
  AffineMap map;

  bool operator==(const Term &other) const {
    return value == other.value && in == other.in && map == other.map;
  }
};

class FormReader {
public:
  explicit FormReader(GenericOp root)
      : root(root), extents(root.getStaticLoopRanges()) {}

  std::optional<OperatorForm> readSoftmax();
  std::optional<OperatorForm> readLayerNorm();
  std::optional<OperatorForm> readRmsNorm();

private:
  bool readReciprocal(Term term, Term &square, double &epsilon);
  Term getRoot();
  Term settle(Term term);
  Term compute(Term term);
  /// The operands of the op that computes a term, if it is such a one.
  template <typename Op>
  std::optional<SmallVector<Term, 2>> take(Term term);
  /// A factor of a product that `accept` takes; gives the other one.
  std::optional<Term> takeFactor(Term product,
                                 llvm::function_ref<bool(Term)> accept);
  template <typename Combiner>
  std::optional<Term> takeReduced(Term row);
  std::optional<Term> takeMean(Term row);
  std::optional<double> getNumber(Term term);
  bool isWhole(Term term);
  bool isColumn(Term term);
  std::optional<OperatorForm> finish(OperatorForm form);

  GenericOp root;
  SmallVector<int64_t> extents;
};
} // namespace

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

static bool isElementwise(GenericOp op) {
  return op && op.hasPureTensorSemantics() && op.getNumReductionLoops() == 0 &&
         !op.hasIndexSemantics();
}

Term FormReader::getRoot() {
  return {root.getBlock()->getTerminator()->getOperand(0), root,
          AffineMap::getMultiDimIdentityMap(extents.size(), root.getContext())};
}

/// A body's argument is the element of a tensor.
Term FormReader::settle(Term term) {
  auto argument = dyn_cast<BlockArgument>(term.value);
  if (!term.in || !argument || argument.getOwner() != term.in.getBlock())
    return term;
  OpOperand &operand = term.in->getOpOperand(argument.getArgNumber());
  AffineMap map = term.in.getMatchingIndexingMap(&operand);
  return {operand.get(), {}, map.compose(term.map)};
}

/// The scalar that computes a term, past changes of its width; the element of a
/// tensor that no elementwise op made stays.
Term FormReader::compute(Term term) {
  for (;;) {
    term = settle(term);
    if (!term.in) {
      auto made = term.value.getDefiningOp<GenericOp>();
      if (!isElementwise(made) || made->getBlock() != root->getBlock())
        return term;
      unsigned number = cast<OpResult>(term.value).getResultNumber();
      if (!made.getMatchingIndexingMap(
                   made.getDpsInitOperand(static_cast<int64_t>(number)))
               .isIdentity())
        return term;
      term = {made.getBlock()->getTerminator()->getOperand(number), made,
              term.map};
      continue;
    }
    Operation *op = term.value.getDefiningOp();
    if (!isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(op))
      return term;
    term.value = op->getOperand(0);
  }
}

template <typename Op>
std::optional<SmallVector<Term, 2>> FormReader::take(Term term) {
  term = compute(term);
  auto op = term.value.getDefiningOp<Op>();
  if (!term.in || !op || op->getBlock() != term.in.getBlock())
    return std::nullopt;
  SmallVector<Term, 2> operands;
  for (Value operand : op->getOperands())
    operands.push_back(settle({operand, term.in, term.map}));
  return operands;
}

std::optional<Term>
FormReader::takeFactor(Term product, llvm::function_ref<bool(Term)> accept) {
  auto factors = take<arith::MulFOp>(product);
  if (!factors)
    return std::nullopt;
  for (unsigned number : {0u, 1u})
    if (accept((*factors)[number]))
      return (*factors)[1 - number];
  return std::nullopt;
}

std::optional<double> FormReader::getNumber(Term term) {
  term = compute(term);
  FloatAttr number;
  DenseElementsAttr splat;
  if (matchPattern(term.value, m_Constant(&number)))
    return number.getValueAsDouble();
  if (!term.in && matchPattern(term.value, m_Constant(&splat)) &&
      splat.isSplat() && isa<FloatType>(splat.getElementType()))
    return splat.getSplatValue<APFloat>().convertToDouble();
  return std::nullopt;
}

/// An element for each iteration.
bool FormReader::isWhole(Term term) {
  return !term.in && isa<RankedTensorType>(term.value.getType()) &&
         term.map.isIdentity();
}

/// An element of a vector along the innermost loop.
bool FormReader::isColumn(Term term) {
  if (term.in || !isa<RankedTensorType>(term.value.getType()) ||
      term.map.getNumResults() != 1)
    return false;
  auto dim = dyn_cast<AffineDimExpr>(term.map.getResult(0));
  return dim && dim.getPosition() + 1 == extents.size();
}

/// Of a number of a row that the row's elements are combined to, the element.
template <typename Combiner>
std::optional<Term> FormReader::takeReduced(Term row) {
  row = compute(row);
  auto op = row.value.getDefiningOp<GenericOp>();
  if (row.in || !op || !op.hasPureTensorSemantics() ||
      op->getBlock() != root->getBlock() || op->getNumResults() != 1 ||
      op.getNumReductionLoops() != 1 || op.hasIndexSemantics() ||
      !linalg::isReductionIterator(op.getIteratorTypesArray().back()) ||
      op.getStaticLoopRanges() != extents ||
      op.getMatchingIndexingMap(op.getDpsInitOperand(0)) != row.map)
    return std::nullopt;
  auto combiner = dyn_cast_or_null<Combiner>(getCombiner(op, 0));
  Attribute start;
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!combiner || !fill ||
      !matchPattern(fill.getInputs()[0], m_Constant(&start)) ||
      start != *arith::getNeutralElement(combiner))
    return std::nullopt;
  BlockArgument sum = op.getMatchingBlockArgument(op.getDpsInitOperand(0));
  Value element = combiner->getOperand(combiner->getOperand(0) == sum);
  return settle(
      {element, op,
       AffineMap::getMultiDimIdentityMap(extents.size(), root.getContext())});
}

/// Of a row's mean, the element.
std::optional<Term> FormReader::takeMean(Term row) {
  auto n = static_cast<double>(extents.back());
  if (auto quotient = take<arith::DivFOp>(row);
      quotient && getNumber((*quotient)[1]) == n)
    return takeReduced<arith::AddFOp>((*quotient)[0]);
  auto sum = takeFactor(row, [&](Term factor) {
    std::optional<double> number = getNumber(factor);
    return number && std::abs(*number * n - 1) < 1e-6;
  });
  return sum ? takeReduced<arith::AddFOp>(*sum) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

std::optional<OperatorForm> FormReader::readSoftmax() {
  auto quotient = take<arith::DivFOp>(getRoot());
  auto summed =
      quotient ? takeReduced<arith::AddFOp>((*quotient)[1]) : std::nullopt;
  if (!summed || !(compute(*summed) == compute((*quotient)[0])))
    return std::nullopt;
  auto power = take<math::ExpOp>((*quotient)[0]);
  auto difference = power ? take<arith::SubFOp>((*power)[0]) : std::nullopt;
  auto highest = difference ? takeReduced<arith::MaximumFOp>((*difference)[1])
                            : std::nullopt;
  if (!highest || !(*highest == (*difference)[0]) || !isWhole(*highest))
    return std::nullopt;
  return finish({"softmax", {highest->value}, {root->getResult(0)}, 0, {}});
}

/// The tensor of rows' numbers that a term is an element of.
static Value getRows(Term term) { return term.in ? Value() : term.value; }

/// rsqrt(mean(square) + epsilon)
bool FormReader::readReciprocal(Term term, Term &square, double &epsilon) {
  auto root = take<math::RsqrtOp>(term);
  auto sum = root ? take<arith::AddFOp>((*root)[0]) : std::nullopt;
  if (!sum)
    return false;
  for (unsigned number : {0u, 1u}) {
    std::optional<double> constant = getNumber((*sum)[number]);
    auto mean = constant ? takeMean((*sum)[1 - number]) : std::nullopt;
    if (!mean)
      continue;
    square = *mean;
    epsilon = *constant;
    return true;
  }
  return false;
}

std::optional<OperatorForm> FormReader::readLayerNorm() {
  auto sum = take<arith::AddFOp>(getRoot());
  if (!sum)
    return std::nullopt;
  for (unsigned number : {0u, 1u}) {
    Term bias = compute((*sum)[number]), weight, row, square;
    auto isWeight = [&](Term factor) {
      weight = compute(factor);
      return isColumn(weight);
    };
    auto scaled = takeFactor((*sum)[1 - number], isWeight);
    double epsilon = 0;
    auto isReciprocal = [&](Term factor) {
      row = factor;
      return readReciprocal(factor, square, epsilon);
    };
    auto centred = scaled ? takeFactor(*scaled, isReciprocal) : std::nullopt;
    auto difference = centred ? take<arith::SubFOp>(*centred) : std::nullopt;
    if (!isColumn(bias) || !difference)
      continue;
    auto averaged = takeMean((*difference)[1]);
    auto factors = take<arith::MulFOp>(square);
    Term x = compute((*difference)[0]);
    if (!averaged || !factors || !isWhole(x) || !(compute(*averaged) == x) ||
        !(compute((*factors)[0]) == compute(*centred)) ||
        !(compute((*factors)[1]) == compute(*centred)))
      continue;
    return finish(
        {"layer_norm",
         {x.value, weight.value, bias.value},
         {root->getResult(0), getRows((*difference)[1]), getRows(row)},
         epsilon,
         {}});
  }
  return std::nullopt;
}

std::optional<OperatorForm> FormReader::readRmsNorm() {
  Term weight, row, square;
  double epsilon = 0;
  auto scaled = takeFactor(getRoot(), [&](Term factor) {
    weight = compute(factor);
    return isColumn(weight);
  });
  auto factor =
      scaled ? takeFactor(*scaled,
                          [&](Term factor) {
                            row = factor;
                            return readReciprocal(factor, square, epsilon);
                          })
             : std::nullopt;
  auto factors = factor ? take<arith::MulFOp>(square) : std::nullopt;
  if (!factors)
    return std::nullopt;
  Term x = compute(*factor);
  if (!isWhole(x) || !(compute((*factors)[0]) == x) ||
      !(compute((*factors)[1]) == x))
    return std::nullopt;
  return finish({"rms_norm",
                 {x.value, weight.value},
                 {root->getResult(0), getRows(row)},
                 epsilon,
                 {}});
}

//===----------------------------------------------------------------------===//
// What may be replaced
//===----------------------------------------------------------------------===//

static bool isHalfOrSingle(Type type) {
  return type.isF32() || type.isF16() || type.isBF16();
}

/// Types that the operators have: the input's and the result's are one, and
/// numbers of the columns are that or f32.
static bool hasTypes(const OperatorForm &form) {
  Type element = getElementTypeOrSelf(form.inputs[0].getType());
  if (!isHalfOrSingle(element) ||
      getElementTypeOrSelf(form.results[0].getType()) != element)
    return false;
  Type column = form.inputs.size() > 1
                    ? getElementTypeOrSelf(form.inputs[1].getType())
                    : element;
  return (column == element || column.isF32()) &&
         llvm::all_of(ArrayRef<Value>(form.inputs).drop_front(),
                      [&](Value input) {
                        return getElementTypeOrSelf(input.getType()) == column;
                      });
}

/// True if an op reads nothing but what stays, and computes no reduction and no
/// function: it costs nothing to leave it where it is.
static bool mayStay(Operation *op, const OperatorForm &form) {
  auto generic = dyn_cast<GenericOp>(op);
  if (!generic)
    return true; // constants, empty tensors, fills
  if (!isElementwise(generic) ||
      generic.getBlock()
          ->walk([](math::ExpOp) { return WalkResult::interrupt(); })
          .wasInterrupted())
    return false;
  return llvm::all_of(generic.getInputs(), [&](Value input) {
    return llvm::is_contained(form.inputs, input) ||
           llvm::is_contained(form.results, input) ||
           !llvm::is_contained(form.ops, input.getDefiningOp());
  });
}

std::optional<OperatorForm> FormReader::finish(OperatorForm form) {
  if (!hasTypes(form))
    return std::nullopt;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) {
    return op->getBlock() == root->getBlock() &&
           llvm::none_of(form.inputs, [&](Value input) {
             return input.getDefiningOp() == op;
           });
  };
  SetVector<Operation *> slice;
  if (failed(getBackwardSlice(root.getOperation(), &slice, options)))
    return std::nullopt;
  for (Operation *op : slice)
    if (!isa<linalg::LinalgOp, tensor::EmptyOp, arith::ConstantOp>(op))
      return std::nullopt;
  form.ops = llvm::to_vector(slice);
  llvm::sort(form.ops, [](Operation *left, Operation *right) {
    return left->isBeforeInBlock(right);
  });
  llvm::SmallPtrSet<Operation *, 16> members(form.ops.begin(), form.ops.end());
  SetVector<Value> captured;
  for (Operation *op : form.ops)
    getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (!members.contains(value.getDefiningOp()))
      return std::nullopt;
  for (Operation *op : form.ops)
    for (Value result : op->getResults()) {
      if (llvm::is_contained(form.results, result))
        continue;
      bool isUsedElsewhere =
          llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !members.contains(user);
          });
      if (isUsedElsewhere && !mayStay(op, form))
        return std::nullopt;
    }
  return form;
}

std::optional<OperatorForm> matchOperator(GenericOp root) {
  if (!isElementwise(root) || root->getNumResults() != 1 ||
      root.getNumLoops() == 0 ||
      llvm::any_of(root.getStaticLoopRanges(), ShapedType::isDynamic) ||
      !root.getMatchingIndexingMap(root.getDpsInitOperand(0)).isIdentity())
    return std::nullopt;
  FormReader reader(root);
  if (auto form = reader.readSoftmax())
    return form;
  if (auto form = reader.readLayerNorm())
    return form;
  return reader.readRmsNorm();
}

} // namespace mlir::hyperparallel
