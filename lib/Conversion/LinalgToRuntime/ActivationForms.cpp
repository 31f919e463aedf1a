//===- ActivationForms.cpp - Activations by their arithmetic --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Frontends write activations in many orders and groupings. So the value is
// expanded to a polynomial in its argument x and in one function t of a
// polynomial of x, and the polynomials are compared:
//
//   GELU, tanh   0.5 x + 0.5 x t,  t = tanh(sqrt(2/pi) x + 0.044715 ... x^3)
//   GELU, erf    0.5 x + 0.5 x t,  t = erf(x / sqrt 2)
//   SiLU         x t,              t = 1 / (1 + exp(-x))
//   ReLU         max(x, 0), in three spellings
//
// Coefficients agree to a millionth, far from what tells the two forms of GELU
// apart. Narrowing and widening on the way count as nothing: who folds the
// activation into a product rounds once, at the end.
//
// Cost: linear in the ops, as degrees are bounded.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToRuntime/ActivationForms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"

#include <cmath>
#include <map>

using namespace mlir;

namespace mlir::hyperparallel {

static constexpr int kMostDegree = 6;
static constexpr double kTolerance = 1e-6;

StringRef getActivationName(Activation activation) {
  switch (activation) {
  case Activation::None:
    return "none";
  case Activation::Relu:
    return "relu";
  case Activation::Gelu:
    return "gelu";
  case Activation::GeluTanh:
    return "gelu_tanh";
  case Activation::Silu:
    return "silu";
  }
  llvm_unreachable("an activation");
}

std::optional<Activation> parseActivation(StringRef name) {
  for (Activation activation : {Activation::Relu, Activation::Gelu,
                                Activation::GeluTanh, Activation::Silu})
    if (getActivationName(activation) == name)
      return activation;
  return std::nullopt;
}

namespace {
/// Coefficients by the powers of x and t.
using Polynomial = std::map<std::pair<int, int>, double>;

enum class Function { None, Tanh, Erf, Sigmoid };

class Expander {
public:
  explicit Expander(Value argument) { known[argument] = {{{1, 0}, 1.0}}; }

  std::optional<Polynomial> expand(Value value);
  Function function = Function::None;
  Polynomial inside; ///< the argument of the function

private:
  std::optional<Polynomial> compute(Operation *op);
  std::optional<Polynomial> apply(Function which, Value of, double scale = 1);
  std::optional<Polynomial> divide(Value numerator, Value denominator);
  llvm::DenseMap<Value, std::optional<Polynomial>> known;
};
} // namespace

static bool isClose(const Polynomial &left, const Polynomial &right) {
  auto isIn = [](const Polynomial &some, const Polynomial &other) {
    for (const auto &[powers, value] : some) {
      auto found = other.find(powers);
      double wanted = found == other.end() ? 0.0 : found->second;
      if (std::abs(value - wanted) > kTolerance)
        return false;
    }
    return true;
  };
  return isIn(left, right) && isIn(right, left);
}

static Polynomial add(const Polynomial &left, const Polynomial &right,
                      double scale) {
  Polynomial sum = left;
  for (const auto &[powers, value] : right)
    sum[powers] += scale * value;
  return sum;
}

static std::optional<Polynomial> multiply(const Polynomial &left,
                                          const Polynomial &right) {
  Polynomial product;
  for (const auto &[one, first] : left)
    for (const auto &[other, second] : right) {
      std::pair<int, int> powers = {one.first + other.first,
                                    one.second + other.second};
      if (powers.first > kMostDegree || powers.second > kMostDegree)
        return std::nullopt;
      product[powers] += first * second;
    }
  return product;
}

static std::optional<double> getConstant(const Polynomial &polynomial) {
  for (const auto &[powers, value] : polynomial)
    if (powers != std::pair(0, 0) && value != 0.0)
      return std::nullopt;
  auto found = polynomial.find({0, 0});
  return found == polynomial.end() ? 0.0 : found->second;
}

/// t, if it is the only function, or the same one again.
std::optional<Polynomial> Expander::apply(Function which, Value of,
                                          double scale) {
  std::optional<Polynomial> argument = expand(of);
  if (!argument)
    return std::nullopt;
  for (const auto &[powers, value] : *argument)
    if (powers.second != 0)
      return std::nullopt;
  Polynomial scaled = add({}, *argument, scale);
  if (function != Function::None &&
      (function != which || !isClose(inside, scaled)))
    return std::nullopt;
  function = which;
  inside = scaled;
  return Polynomial{{{0, 1}, 1.0}};
}

/// y of 1 + exp(y).
static Value getSigmoidArgument(Value denominator) {
  auto sum = denominator.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return {};
  for (unsigned number : {0u, 1u})
    if (auto power = sum->getOperand(number).getDefiningOp<math::ExpOp>();
        power && matchPattern(sum->getOperand(1 - number), m_OneFloat()))
      return power.getOperand();
  return {};
}

/// By a constant, or by 1 + exp(y), which makes the sigmoid of -y.
std::optional<Polynomial> Expander::divide(Value numerator, Value denominator) {
  std::optional<Polynomial> top = expand(numerator);
  if (!top)
    return std::nullopt;
  if (Value argument = getSigmoidArgument(denominator)) {
    std::optional<Polynomial> sigmoid =
        apply(Function::Sigmoid, argument, -1.0);
    return sigmoid ? multiply(*top, *sigmoid) : std::nullopt;
  }
  std::optional<Polynomial> bottom = expand(denominator);
  std::optional<double> number = bottom ? getConstant(*bottom) : std::nullopt;
  if (!number || *number == 0.0)
    return std::nullopt;
  return add({}, *top, 1.0 / *number);
}

std::optional<Polynomial> Expander::compute(Operation *op) {
  auto both = [&](auto combine) -> std::optional<Polynomial> {
    std::optional<Polynomial> left = expand(op->getOperand(0));
    std::optional<Polynomial> right =
        left ? expand(op->getOperand(1)) : std::nullopt;
    return right ? combine(*left, *right) : std::nullopt;
  };
  using Result = std::optional<Polynomial>;
  if (isa<arith::AddFOp>(op))
    return both([](auto &left, auto &right) -> Result {
      return add(left, right, 1.0);
    });
  if (isa<arith::SubFOp>(op))
    return both([](auto &left, auto &right) -> Result {
      return add(left, right, -1.0);
    });
  if (isa<arith::MulFOp>(op))
    return both([](auto &left, auto &right) -> Result {
      return multiply(left, right);
    });
  if (isa<arith::DivFOp>(op))
    return divide(op->getOperand(0), op->getOperand(1));
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return expand(op->getOperand(0));
  if (isa<arith::NegFOp>(op)) {
    Result inner = expand(op->getOperand(0));
    return inner ? Result(add({}, *inner, -1.0)) : std::nullopt;
  }
  if (isa<math::PowFOp>(op))
    return both([](auto &base, auto &exponent) -> Result {
      std::optional<double> power = getConstant(exponent);
      if (!power || (*power != 2.0 && *power != 3.0))
        return std::nullopt;
      Result square = multiply(base, base);
      return *power == 3.0 && square ? multiply(*square, base) : square;
    });
  if (isa<math::TanhOp>(op))
    return apply(Function::Tanh, op->getOperand(0));
  if (isa<math::ErfOp>(op))
    return apply(Function::Erf, op->getOperand(0));
  return std::nullopt;
}

std::optional<Polynomial> Expander::expand(Value value) {
  if (auto it = known.find(value); it != known.end())
    return it->second;
  std::optional<Polynomial> found;
  FloatAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    found = Polynomial{{{0, 0}, constant.getValueAsDouble()}};
  else if (Operation *op = value.getDefiningOp())
    found = compute(op);
  return known[value] = found;
}

static bool isRelu(Value value, Value argument) {
  auto isZero = [](Value other) {
    return matchPattern(other, m_AnyZeroFloat());
  };
  auto isMaximum = [&](Value left, Value right) {
    return (left == argument && isZero(right)) ||
           (right == argument && isZero(left));
  };
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(op))
    return isMaximum(op->getOperand(0), op->getOperand(1));
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  auto compare =
      select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : nullptr;
  if (!compare)
    return false;
  arith::CmpFPredicate predicate = compare.getPredicate();
  bool isGreater = predicate == arith::CmpFPredicate::OGT ||
                   predicate == arith::CmpFPredicate::UGT;
  return isGreater && compare.getLhs() == argument &&
         isZero(compare.getRhs()) && select.getTrueValue() == argument &&
         isZero(select.getFalseValue());
}

Activation matchActivation(Value value, Value argument) {
  if (isRelu(value, argument))
    return Activation::Relu;
  Expander expander(argument);
  std::optional<Polynomial> found = expander.expand(value);
  if (!found)
    return Activation::None;
  const Polynomial gelu = {{{1, 0}, 0.5}, {{1, 1}, 0.5}};
  const double root = std::sqrt(2.0 / std::acos(-1.0));
  switch (expander.function) {
  case Function::Tanh:
    return isClose(*found, gelu) &&
                   isClose(expander.inside,
                           {{{1, 0}, root}, {{3, 0}, 0.044715 * root}})
               ? Activation::GeluTanh
               : Activation::None;
  case Function::Erf:
    return isClose(*found, gelu) &&
                   isClose(expander.inside, {{{1, 0}, std::sqrt(0.5)}})
               ? Activation::Gelu
               : Activation::None;
  case Function::Sigmoid:
    return isClose(*found, {{{1, 1}, 1.0}}) &&
                   isClose(expander.inside, {{{1, 0}, 1.0}})
               ? Activation::Silu
               : Activation::None;
  case Function::None:
    return Activation::None;
  }
  llvm_unreachable("a function");
}

} // namespace mlir::hyperparallel
