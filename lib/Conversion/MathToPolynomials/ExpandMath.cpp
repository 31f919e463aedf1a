//===- ExpandMath.cpp - Elementary functions without calls ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces scalar f32 math ops by branch-free arithmetic that LLVM's loop
// vectoriser takes. Polynomials were fitted for least maximum error; measured
// against the true values over the whole range every function is within 4e-7
// relative (log near 1, erf and tanh near 0 included), with the usual values at
// 0, infinities and NaN.
//
//   exp, exp2   x = n ln2 + r, polynomial in r, scaled by 2^(n/2) twice
//   log, log1p  x = 2^e m, m in [sqrt 1/2, sqrt 2), polynomial in m - 1
//   tanh        odd polynomial below 0.625, 1 - 2/(exp 2x + 1) above
//   erf         odd polynomial below 1, 1 - exp(polynomial) above
//   sin, cos    x - n pi/2 in f64 (exact for |x| < 1e6; error grows to 1e-3 at
//               1e15), polynomials on [-pi/4, pi/4]
//   pow         constant small exponents by products, else exp(y log x) in f64
//   powi        constant exponents to 64 by squaring, else as pow
//
// f64 stays with the C library, and so do the rarer functions. Roundings that
// x86 lacks an instruction for are expanded too.
//
// With `extrema`, maximumf and minimumf of f32 and f64 become LLVM's
// intrinsics. In what arith-expand makes of them (comparisons and selections)
// the loop vectoriser sees no reduction, and the maximum of a row stays a
// chain.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/MathToPolynomials/ScalarBuilder.h"
#include "lib/Conversion/Passes.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_EXPANDMATH
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

using Predicate = arith::CmpFPredicate;
static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// Greatest exponent of a power that is computed by squaring.
static constexpr uint64_t kMostSquared = 64;

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

namespace {
/// The nearest integer, as a float and in the low bits of an integer.
struct Rounded {
  Value number, integer;
};
} // namespace

/// Adds and subtracts 1.5 * 2^(mantissa bits): the sum's low bits are the
/// integer. No conversion, so a NaN is no undefined behaviour.
static Rounded roundToInteger(ScalarBuilder &s, Value x) {
  Value magic = s.constant(s.type.isF32() ? 12582912.0 : 6755399441055744.0);
  Value shifted = s.add(x, magic);
  return {s.sub(shifted, magic), s.subInt(s.bits(shifted), s.bits(magic))};
}

/// y * 2^n in f32, for n from -252 to 254.
static Value scaleByPowerOfTwo(ScalarBuilder &s, Value y, Value n) {
  Value half = s.shiftRight(n, 1);
  Value rest = s.subInt(n, half);
  auto power = [&](Value exponent) {
    return s.fromBits(s.shiftLeft(s.addInt(exponent, s.integer(127)), 23));
  };
  return s.mul(s.mul(y, power(half)), power(rest));
}

/// exp(r) for |r| <= ln2 / 2.
static Value expOfSmall(ScalarBuilder &s, Value r) {
  Value tail = s.polynomial(r, {0.50000000966634817, 0.16666517309559611,
                                0.041666201044049014, 0.0083690729898604072,
                                0.001395080847673735});
  return s.add(s.mulAdd(s.mul(r, r), tail, r), s.constant(1.0));
}

static Value buildExp(ScalarBuilder &s, Value x) {
  x = s.atLeast(s.atMost(x, 89.0), -104.5);
  Rounded n = roundToInteger(s, s.mul(x, s.constant(1.4426950408889634)));
  // ln 2 in two parts; n times the first is exact.
  Value r = s.mulAdd(n.number, s.constant(-0.693359375), x);
  r = s.mulAdd(n.number, s.constant(2.12194440e-4), r);
  return scaleByPowerOfTwo(s, expOfSmall(s, r), n.integer);
}

static Value buildExp2(ScalarBuilder &s, Value x) {
  x = s.atLeast(s.atMost(x, 129.0), -151.0);
  Rounded n = roundToInteger(s, x);
  Value r = s.mul(s.sub(x, n.number), s.constant(0.6931471805599453));
  return scaleByPowerOfTwo(s, expOfSmall(s, r), n.integer);
}

static Value buildExpM1(ScalarBuilder &s, Value x) {
  Value small =
      s.mul(x, s.polynomial(x, {0.99999999983085641, 0.50000004261083897,
                                0.16666668357517114, 0.0416653038928049,
                                0.0083330521398170907, 0.0013997783001035078,
                                0.00019996826185285303}));
  Value large = s.sub(buildExp(s, x), s.constant(1.0));
  return s.select(s.less(s.absolute(x), s.constant(0.5)), small, large);
}

/// log(x) / ln(base), `scale` being 1 / ln(base).
static Value buildLog(ScalarBuilder &s, Value x, double scale = 1.0) {
  // Denormals are scaled up first.
  Value isTiny = s.less(x, s.constant(1.17549435e-38));
  Value normal = s.select(isTiny, s.mul(x, s.constant(8388608.0)), x);
  // Exponent and mantissa such that the mantissa is in [sqrt 1/2, sqrt 2).
  Value offset = s.subInt(s.bits(normal), s.integer(0x3f3504f3));
  Value exponent = s.toFloat(s.shiftRight(offset, 23));
  exponent =
      s.sub(exponent, s.select(isTiny, s.constant(23.0), s.constant(0.0)));
  Value mantissa =
      s.fromBits(s.addInt(s.andInt(offset, 0x007fffff), s.integer(0x3f3504f3)));
  Value f = s.sub(mantissa, s.constant(1.0));
  Value tail = s.polynomial(
      f, {0.33333310440127861, -0.24999986595264537, 0.20002226597125847,
          -0.16669251054612014, 0.14218658577436999, -0.12384344630161057,
          0.11872969130381079, -0.11789827392418525, 0.069154072199478625});
  Value square = s.mul(f, f);
  Value sum = s.mul(s.mul(f, square), tail);
  sum = s.mulAdd(exponent, s.constant(-2.12194440e-4), sum);
  sum = s.mulAdd(square, s.constant(-0.5), sum);
  Value result = s.add(sum, f);
  result = s.mulAdd(exponent, s.constant(0.693359375), result);
  if (scale != 1.0)
    result = s.mul(result, s.constant(scale));
  result = s.select(s.equal(x, s.constant(kInfinity)), x, result);
  result =
      s.select(s.equal(x, s.constant(0.0)), s.constant(-kInfinity), result);
  // Negative or NaN.
  return s.select(s.compare(Predicate::ULT, x, s.constant(0.0)),
                  s.constant(kNaN), result);
}

/// log(1 + x), with the rounding error of the sum put right.
static Value buildLog1p(ScalarBuilder &s, Value x) {
  Value sum = s.add(s.constant(1.0), x);
  Value lost = s.sub(x, s.sub(sum, s.constant(1.0)));
  Value result = s.add(buildLog(s, sum), s.div(lost, sum));
  Value isSpecial = s.compare(Predicate::UEQ, sum, s.constant(kInfinity));
  result = s.select(isSpecial, sum, result);
  return s.select(s.equal(sum, s.constant(0.0)), s.constant(-kInfinity),
                  result);
}

static Value buildTanh(ScalarBuilder &s, Value x) {
  Value square = s.mul(x, x);
  Value tail =
      s.polynomial(square, {-0.33333330571327136, 0.13333195910386075,
                            -0.053945378284559711, 0.021692606457216847,
                            -0.008156279044917291, 0.0021227445938918764});
  Value small = s.mulAdd(s.mul(square, tail), x, x);
  Value magnitude = s.absolute(x);
  Value e = buildExp(s, s.mul(s.atMost(magnitude, 20.0), s.constant(2.0)));
  Value large =
      s.sub(s.constant(1.0), s.div(s.constant(2.0), s.add(e, s.constant(1.0))));
  large = s.copySign(large, x);
  return s.select(s.less(magnitude, s.constant(0.625)), small, large);
}

static Value buildErf(ScalarBuilder &s, Value x) {
  Value square = s.mul(x, x);
  Value small = s.mul(
      x, s.polynomial(square, {1.1283791659137612, -0.37612627136041898,
                               0.1128360017712955, -0.026854444628767116,
                               0.0051895354102106861, -0.00080208419098349063,
                               7.8891216352599641e-05}));
  Value magnitude = s.absolute(x);
  // log(1 - erf); from 4.1 on, erf is 1 in f32.
  Value logRest = s.polynomial(s.atMost(magnitude, 4.1),
                               {0.00017812291800711603, -1.1295273531661427,
                                -0.6333328630358811, -0.10827846483128542,
                                0.025101745366763469, -0.0041537681520976283,
                                0.00042650296056666358, -1.9262319700496538e-05,
                                -1.6977609133160158e-07});
  Value large = s.sub(s.constant(1.0), buildExp(s, logRest));
  large = s.copySign(large, x);
  return s.select(s.less(magnitude, s.constant(1.0)), small, large);
}

/// sin(x + quarters pi/2).
static Value buildSine(ScalarBuilder &s, Value x, int64_t quarters) {
  ScalarBuilder wide(s.builder, s.loc, s.builder.getF64Type());
  Value x64 = arith::ExtFOp::create(s.builder, s.loc, wide.type, x);
  Rounded n =
      roundToInteger(wide, wide.mul(x64, wide.constant(0.63661977236758134)));
  Value r = wide.mulAdd(n.number, wide.constant(-1.57079632673412561417), x64);
  r = wide.mulAdd(n.number, wide.constant(-6.07710050630396597660e-11), r);
  r = wide.mulAdd(n.number, wide.constant(-2.02226624871116645580e-21), r);
  Value small = arith::TruncFOp::create(s.builder, s.loc, s.type, r);
  Value quadrant =
      arith::TruncIOp::create(s.builder, s.loc, s.integerType,
                              wide.addInt(n.integer, wide.integer(quarters)));

  Value square = s.mul(small, small);
  Value sinTail =
      s.polynomial(square, {-0.16666666640612918, 0.0083333292667235152,
                            -0.00019839296128376812, 2.7179398709915256e-06});
  Value sine = s.mulAdd(s.mul(square, sinTail), small, small);
  Value cosTail =
      s.polynomial(square, {0.041666666621052104, -0.0013888883598254407,
                            2.4799478620181012e-05, -2.7206787600397205e-07});
  Value cosine = s.add(
      s.mulAdd(s.mul(square, square), cosTail, s.mul(square, s.constant(-0.5))),
      s.constant(1.0));
  Value value = s.select(s.isNonZero(s.andInt(quadrant, 1)), cosine, sine);
  Value sign = s.shiftLeft(s.andInt(quadrant, 2), 30);
  return s.fromBits(
      arith::XOrIOp::create(s.builder, s.loc, s.bits(value), sign));
}

/// exp(y log |x|) in f64 with the sign and the special values of pow.
static Value buildPow(ScalarBuilder &s, Value x, Value y) {
  ScalarBuilder w(s.builder, s.loc, s.builder.getF64Type());
  auto widen = [&](Value value) -> Value {
    return arith::ExtFOp::create(s.builder, s.loc, w.type, value);
  };
  Value magnitude = s.absolute(x);
  Value x64 = widen(magnitude), y64 = widen(y);
  // log: every f32 is a normal f64.
  constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
  Value offset = w.subInt(w.bits(x64), w.integer(kRootHalf));
  Value exponent = w.toFloat(w.shiftRight(offset, 52));
  Value mantissa = w.fromBits(
      w.addInt(w.andInt(offset, 0x000fffffffffffff), w.integer(kRootHalf)));
  Value ratio =
      w.div(w.sub(mantissa, w.constant(1.0)), w.add(mantissa, w.constant(1.0)));
  Value series = w.polynomial(
      w.mul(ratio, ratio),
      {2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15});
  Value log =
      w.mulAdd(exponent, w.constant(0.6931471805599453), w.mul(ratio, series));
  // exp
  Value product = w.atLeast(w.atMost(w.mul(y64, log), 700.0), -700.0);
  Rounded n = roundToInteger(w, w.mul(product, w.constant(1.4426950408889634)));
  Value r = w.mulAdd(n.number, w.constant(-0.6931471805599453), product);
  Value e = w.polynomial(r, {1.0000000000000149, 0.99999999999998923,
                             0.49999999999417349, 0.16666666666728869,
                             0.041666667047090919, 0.0083333333594985091,
                             0.0013888800917789532, 0.00019841175926195174,
                             2.4884832931029993e-05, 2.7644361155787958e-06});
  Value power =
      w.fromBits(w.shiftLeft(w.addInt(n.integer, w.integer(1023)), 52));
  Value result =
      arith::TruncFOp::create(s.builder, s.loc, s.type, w.mul(e, power));

  Value zero = s.constant(0.0), one = s.constant(1.0),
        infinity = s.constant(kInfinity);
  Value isPositive = s.less(zero, y);
  result = s.select(s.equal(magnitude, infinity),
                    s.select(isPositive, infinity, zero), result);
  result = s.select(s.equal(magnitude, zero),
                    s.select(isPositive, zero, infinity), result);
  // Negative bases: odd integers change the sign, no other fractions exist.
  Value whole = math::FloorOp::create(s.builder, s.loc, y);
  Value halfY = s.mul(y, s.constant(0.5));
  Value halfWhole = math::FloorOp::create(s.builder, s.loc, halfY);
  Value isInteger = s.equal(whole, y);
  Value isEven = s.equal(halfWhole, halfY);
  Value isOddInteger = arith::AndIOp::create(
      s.builder, s.loc, isInteger,
      arith::XOrIOp::create(
          s.builder, s.loc, isEven,
          arith::ConstantOp::create(s.builder, s.loc,
                                    s.builder.getBoolAttr(true))));
  Value signedResult = s.copySign(result, x);
  result = s.select(isOddInteger, signedResult, result);
  Value isUndefined = arith::AndIOp::create(
      s.builder, s.loc,
      s.select(
          s.less(x, zero),
          arith::CmpFOp::create(s.builder, s.loc, Predicate::UNE, whole, y),
          arith::ConstantOp::create(s.builder, s.loc,
                                    s.builder.getBoolAttr(false))),
      s.less(magnitude, infinity));
  result = s.select(isUndefined, s.constant(kNaN), result);
  Value hasNaN = s.compare(Predicate::UNO, x, y);
  result = s.select(hasNaN, s.constant(kNaN), result);
  result = s.select(s.equal(y, zero), one, result);
  return s.select(s.equal(x, one), one, result);
}

/// Products for exponents that models use; null for others.
static Value buildConstantPow(ScalarBuilder &s, Value x, double exponent) {
  double magnitude = std::abs(exponent);
  Value result;
  if (magnitude == 0)
    return s.constant(1.0);
  if (magnitude == 0.5)
    result = s.squareRoot(x);
  else if (magnitude == 1)
    result = x;
  else if (magnitude == 2)
    result = s.mul(x, x);
  else if (magnitude == 3)
    result = s.mul(s.mul(x, x), x);
  else if (magnitude == 4) {
    Value square = s.mul(x, x);
    result = s.mul(square, square);
  } else {
    return {};
  }
  return exponent < 0 ? s.div(s.constant(1.0), result) : result;
}

/// x to an integer power: by squaring if that is a small constant.
static Value buildPowI(ScalarBuilder &s, Value x, Value y) {
  APInt constant;
  if (!matchPattern(y, m_ConstantInt(&constant)) ||
      constant.abs().ugt(kMostSquared))
    return s.type.isF32()
               ? buildPow(s, x,
                          arith::SIToFPOp::create(s.builder, s.loc, s.type, y))
               : Value();
  Value result = s.constant(1.0);
  bool isOne = true;
  for (uint64_t rest = constant.abs().getZExtValue(); rest > 0; rest /= 2) {
    if (rest % 2 == 1)
      result = isOne ? x : s.mul(result, x);
    isOne &= rest % 2 == 0;
    if (rest > 1)
      x = s.mul(x, x);
  }
  return constant.isNegative() ? s.div(s.constant(1.0), result) : result;
}

/// Half away from zero.
static Value buildRound(ScalarBuilder &s, Value x) {
  // The largest number below a half: adding a half would round 0.49999997 up.
  Value almostHalf =
      s.constant(s.type.isF32() ? 0.49999997 : 0.49999999999999994);
  return math::TruncOp::create(s.builder, s.loc,
                               s.add(x, s.copySign(almostHalf, x)));
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// What `op` is replaced by, or null.
static Value expand(OpBuilder &builder, Operation *op) {
  if (op->getNumResults() != 1)
    return {};
  auto type = dyn_cast<FloatType>(op->getResult(0).getType());
  if (!type || !(type.isF32() || type.isF64()))
    return {};
  if (isa<arith::MaximumFOp>(op))
    return LLVM::MaximumOp::create(builder, op->getLoc(), op->getOperand(0),
                                   op->getOperand(1));
  if (isa<arith::MinimumFOp>(op))
    return LLVM::MinimumOp::create(builder, op->getLoc(), op->getOperand(0),
                                   op->getOperand(1));
  ScalarBuilder s(builder, op->getLoc(), type);
  if (auto pow = dyn_cast<math::PowFOp>(op)) {
    FloatAttr exponent;
    if (matchPattern(pow.getRhs(), m_Constant(&exponent)))
      if (Value product =
              buildConstantPow(s, pow.getLhs(), exponent.getValueAsDouble()))
        return product;
    return type.isF32() ? buildPow(s, pow.getLhs(), pow.getRhs()) : Value();
  }
  if (auto pow = dyn_cast<math::FPowIOp>(op))
    return buildPowI(s, pow.getLhs(), pow.getRhs());
  if (op->getNumOperands() != 1)
    return {};
  Value x = op->getOperand(0);
  if (isa<math::RsqrtOp>(op))
    return s.div(s.constant(1.0), s.squareRoot(x));
  if (isa<math::RoundOp>(op))
    return buildRound(s, x);
  if (!type.isF32())
    return {};
  if (isa<math::ExpOp>(op))
    return buildExp(s, x);
  if (isa<math::Exp2Op>(op))
    return buildExp2(s, x);
  if (isa<math::ExpM1Op>(op))
    return buildExpM1(s, x);
  if (isa<math::LogOp>(op))
    return buildLog(s, x);
  if (isa<math::Log2Op>(op))
    return buildLog(s, x, 1.4426950408889634);
  if (isa<math::Log10Op>(op))
    return buildLog(s, x, 0.43429448190325182);
  if (isa<math::Log1pOp>(op))
    return buildLog1p(s, x);
  if (isa<math::TanhOp>(op))
    return buildTanh(s, x);
  if (isa<math::ErfOp>(op))
    return buildErf(s, x);
  if (isa<math::SinOp>(op))
    return buildSine(s, x, 0);
  if (isa<math::CosOp>(op))
    return buildSine(s, x, 1);
  return {};
}

namespace {
struct ExpandMathPass : impl::ExpandMathBase<ExpandMathPass> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<math::MathDialect>(op->getDialect()) ||
          (extrema && isa<arith::MaximumFOp, arith::MinimumFOp>(op)))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      OpBuilder builder(op);
      Value replacement = expand(builder, op);
      if (!replacement)
        continue;
      op->getResult(0).replaceAllUsesWith(replacement);
      op->erase();
      ++numExpanded;
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
