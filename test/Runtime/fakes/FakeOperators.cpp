// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeOperators.cpp - Operators of CANN on elements and rows --------===//
//
// NOT Huawei's library (a test double, see FakeOpapi.cpp): functions of
// elements, changes of their type, permutations, reductions, and operators
// along rows. They check shapes and element types, and compute in f32.
//
//===----------------------------------------------------------------------===//

#include "test/Runtime/fakes/FakeOpapi.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

namespace ascend = hyperparallel::runtime::ascend;
using namespace fakes;

namespace {

constexpr uint64_t SmallWorkspace = 512;

bool isNumber(int type) {
  return isFloat(type) || (sizeOf(type) > 0 && type != ascend::Bool);
}

/// The operands' and the result's types are one, and the result's shape is what
/// the operands' are repeated to.
bool fits(const std::vector<const TensorHandle *> &operands,
          const TensorHandle *out) {
  std::vector<int64_t> shape(out ? out->sizes.size() : 0, 1);
  for (const TensorHandle *operand : operands) {
    if (!operand || !out || operand->type != out->type ||
        !isNumber(operand->type) || !broadcasts(*operand, out->sizes))
      return false;
    size_t missing = shape.size() - operand->sizes.size();
    for (size_t i = 0; i < operand->sizes.size(); ++i)
      shape[missing + i] = std::max(shape[missing + i], operand->sizes[i]);
  }
  return out && shape == out->sizes;
}

/// One function of a result's elements: of floats, or of integers.
template <typename Floats, typename Whole>
int planElements(const char *name, std::vector<const TensorHandle *> operands,
                 const TensorHandle *out, Floats floats, Whole whole,
                 uint64_t *size, ExecutorHandle **executor) {
  if (!fits(operands, out))
    return refuse(std::string(name) +
                  ": shapes or element types that do not fit");
  return plan(
      name, SmallWorkspace, operands, {out},
      [=] {
        forEach(out->sizes, [&](const Index &index) {
          std::vector<float> numbers;
          std::vector<int64_t> integers;
          for (const TensorHandle *operand : operands) {
            const char *at = placeOf(*operand, index);
            if (isFloat(operand->type))
              numbers.push_back(load(at, operand->type));
            else
              integers.push_back(loadWhole(at, operand->type));
          }
          char *to = placeOf(*out, index);
          if (isFloat(out->type))
            store(to, out->type, floats(numbers));
          else
            storeWhole(to, out->type, whole(integers));
        });
        return std::string();
      },
      size, executor);
}

using Floats = const std::vector<float> &;
using Integers = const std::vector<int64_t> &;

int64_t none(Integers) { return 0; }

int planUnary(const char *name, const TensorHandle *self, TensorHandle *out,
              float (*function)(float), uint64_t *size,
              ExecutorHandle **executor) {
  if (!self || !isFloat(self->type))
    return refuse(std::string(name) + ": expected floats");
  return planElements(
      name, {self}, out, [=](Floats x) { return function(x[0]); }, none, size,
      executor);
}

float rsqrt(float x) { return 1.f / std::sqrt(x); }
float negate(float x) { return -x; }

/// A number of the elements' kind.
bool isKind(const ScalarHandle *number, const TensorHandle *tensor) {
  return number && tensor && isFloat(number->type) == isFloat(tensor->type);
}

} // namespace

#define UNARY(NAME, FUNCTION)                                                  \
  FAKE int NAME##GetWorkspaceSize(const TensorHandle *self, TensorHandle *out, \
                                  uint64_t *size, ExecutorHandle **executor) { \
    return planUnary(#NAME, self, out, FUNCTION, size, executor);              \
  }                                                                            \
  RUN(NAME)
UNARY(aclnnAbs, std::fabs)
UNARY(aclnnCeil, std::ceil)
UNARY(aclnnCos, std::cos)
UNARY(aclnnErf, std::erf)
UNARY(aclnnExp, std::exp)
UNARY(aclnnFloor, std::floor)
UNARY(aclnnLog, std::log)
UNARY(aclnnNeg, negate)
UNARY(aclnnRsqrt, rsqrt)
UNARY(aclnnSin, std::sin)
UNARY(aclnnSqrt, std::sqrt)
UNARY(aclnnTanh, std::tanh)

#define BINARY(NAME, OF_FLOATS, OF_INTEGERS)                                   \
  FAKE int NAME##GetWorkspaceSize(                                             \
      const TensorHandle *self, const TensorHandle *other, TensorHandle *out,  \
      uint64_t *size, ExecutorHandle **executor) {                             \
    return planElements(                                                       \
        #NAME, {self, other}, out, [](Floats x) { return OF_FLOATS; },         \
        [](Integers x) { return OF_INTEGERS; }, size, executor);               \
  }                                                                            \
  RUN(NAME)
BINARY(aclnnMul, x[0] * x[1], x[0] * x[1])
BINARY(aclnnMaximum, x[0] > x[1] || std::isnan(x[0]) ? x[0] : x[1],
       std::max(x[0], x[1]))
BINARY(aclnnMinimum, x[0] < x[1] || std::isnan(x[0]) ? x[0] : x[1],
       std::min(x[0], x[1]))

FAKE int aclnnDivGetWorkspaceSize(const TensorHandle *self,
                                  const TensorHandle *other, TensorHandle *out,
                                  uint64_t *size, ExecutorHandle **executor) {
  if (!self || !isFloat(self->type))
    return refuse("aclnnDiv: expected floats");
  return planElements(
      "aclnnDiv", {self, other}, out, [](Floats x) { return x[0] / x[1]; },
      none, size, executor);
}
RUN(aclnnDiv)

// Sums have a factor of the second operand.
#define SUM(NAME, SIGN)                                                        \
  FAKE int NAME##GetWorkspaceSize(                                             \
      const TensorHandle *self, const TensorHandle *other,                     \
      const ScalarHandle *alpha, TensorHandle *out, uint64_t *size,            \
      ExecutorHandle **executor) {                                             \
    if (!isKind(alpha, self))                                                  \
      return refuse(#NAME ": a number of another kind");                       \
    ScalarHandle factor = *alpha;                                              \
    return planElements(                                                       \
        #NAME, {self, other}, out,                                             \
        [=](Floats x) {                                                        \
          return x[0] SIGN static_cast<float>(factor.value) * x[1];            \
        },                                                                     \
        [=](Integers x) { return x[0] SIGN factor.whole * x[1]; }, size,       \
        executor);                                                             \
  }                                                                            \
  RUN(NAME)
SUM(aclnnAdd, +)
SUM(aclnnSub, -)

#define SCALAR_SUM(NAME, SIGN)                                                 \
  FAKE int NAME##GetWorkspaceSize(                                             \
      const TensorHandle *self, const ScalarHandle *other,                     \
      const ScalarHandle *alpha, TensorHandle *out, uint64_t *size,            \
      ExecutorHandle **executor) {                                             \
    if (!isKind(alpha, self) || !isKind(other, self))                          \
      return refuse(#NAME ": a number of another kind");                       \
    ScalarHandle factor = *alpha, number = *other;                             \
    return planElements(                                                       \
        #NAME, {self}, out,                                                    \
        [=](Floats x) {                                                        \
          return x[0] SIGN static_cast<float>(factor.value * number.value);    \
        },                                                                     \
        [=](Integers x) { return x[0] SIGN factor.whole * number.whole; },     \
        size, executor);                                                       \
  }                                                                            \
  RUN(NAME)
SCALAR_SUM(aclnnAdds, +)
SCALAR_SUM(aclnnSubs, -)

#define SCALAR(NAME, OF_FLOATS, OF_INTEGERS)                                   \
  FAKE int NAME##GetWorkspaceSize(                                             \
      const TensorHandle *self, const ScalarHandle *other, TensorHandle *out,  \
      uint64_t *size, ExecutorHandle **executor) {                             \
    if (!isKind(other, self))                                                  \
      return refuse(#NAME ": a number of another kind");                       \
    ScalarHandle number = *other;                                              \
    return planElements(                                                       \
        #NAME, {self}, out,                                                    \
        [=](Floats x) {                                                        \
          auto n = static_cast<float>(number.value);                           \
          return OF_FLOATS;                                                    \
        },                                                                     \
        [=](Integers x) {                                                      \
          [[maybe_unused]] int64_t n = number.whole;                           \
          return OF_INTEGERS;                                                  \
        },                                                                     \
        size, executor);                                                       \
  }                                                                            \
  RUN(NAME)
SCALAR(aclnnMuls, x[0] * n, x[0] * n)

FAKE int aclnnDivsGetWorkspaceSize(const TensorHandle *self,
                                   const ScalarHandle *other, TensorHandle *out,
                                   uint64_t *size, ExecutorHandle **executor) {
  if (!self || !isFloat(self->type) || !isKind(other, self))
    return refuse("aclnnDivs: expected floats");
  auto number = static_cast<float>(other->value);
  return planElements(
      "aclnnDivs", {self}, out, [=](Floats x) { return x[0] / number; }, none,
      size, executor);
}
RUN(aclnnDivs)

//===----------------------------------------------------------------------===//
// Types and places
//===----------------------------------------------------------------------===//

FAKE int aclnnCastGetWorkspaceSize(const TensorHandle *self, int type,
                                   TensorHandle *out, uint64_t *size,
                                   ExecutorHandle **executor) {
  if (!self || !out || self->sizes != out->sizes || type != out->type ||
      sizeOf(self->type) == 0 || out->type == ascend::Bool)
    return refuse("aclnnCast: shapes or element types that do not fit");
  return plan(
      "aclnnCast", SmallWorkspace, {self}, {out},
      [=] {
        forEach(self->sizes, [&](const Index &index) {
          const char *from = placeOf(*self, index);
          char *to = placeOf(*out, index);
          if (isFloat(self->type) && isFloat(out->type))
            store(to, out->type, load(from, self->type));
          else if (isFloat(self->type)) // towards zero
            storeWhole(to, out->type,
                       static_cast<int64_t>(load(from, self->type)));
          else if (isFloat(out->type))
            store(to, out->type,
                  static_cast<float>(loadWhole(from, self->type)));
          else
            storeWhole(to, out->type, loadWhole(from, self->type));
        });
        return std::string();
      },
      size, executor);
}
RUN(aclnnCast)

FAKE int aclnnPermuteGetWorkspaceSize(const TensorHandle *self,
                                      const IntArrayHandle *dims,
                                      TensorHandle *out, uint64_t *size,
                                      ExecutorHandle **executor) {
  bool isFit = self && dims && out && self->type == out->type &&
               dims->values.size() == self->sizes.size() &&
               out->sizes.size() == self->sizes.size();
  std::vector<int64_t> sorted = isFit ? dims->values : std::vector<int64_t>();
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    isFit &= sorted[i] == static_cast<int64_t>(i);
  for (size_t i = 0; isFit && i < sorted.size(); ++i)
    isFit &= out->sizes[i] == self->sizes[dims->values[i]];
  if (!isFit)
    return refuse("aclnnPermute: expected each dimension once, and the result "
                  "in their order");
  std::vector<int64_t> order = dims->values;
  return plan(
      "aclnnPermute", SmallWorkspace, {self}, {out},
      [=] {
        forEach(out->sizes, [&](const Index &index) {
          Index from(index.size());
          for (size_t i = 0; i < order.size(); ++i)
            from[order[i]] = index[i];
          std::memcpy(placeOf(*out, index), placeOf(*self, from),
                      static_cast<size_t>(sizeOf(out->type)));
        });
        return std::string();
      },
      size, executor);
}
RUN(aclnnPermute)

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

namespace {

/// The shape with 1 where it is reduced; none if a dimension is not there.
std::optional<std::vector<int64_t>> reducedShape(const TensorHandle &self,
                                                 const IntArrayHandle &dims) {
  std::vector<int64_t> shape = self.sizes;
  for (int64_t dim : dims.values) {
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
      return std::nullopt;
    shape[dim] = 1;
  }
  return shape;
}

template <typename OfFloats, typename OfIntegers>
int planReduction(const char *name, const TensorHandle *self,
                  const IntArrayHandle *dims, bool keeps, TensorHandle *out,
                  float floatStart, int64_t wholeStart, OfFloats ofFloats,
                  OfIntegers ofIntegers, uint64_t *size,
                  ExecutorHandle **executor) {
  auto shape = self && dims ? reducedShape(*self, *dims) : std::nullopt;
  if (!shape || !keeps || !out || out->sizes != *shape ||
      out->type != self->type || !isNumber(self->type))
    return refuse(std::string(name) +
                  ": shapes, dimensions or element types that do not fit");
  return plan(
      name, 4096, {self}, {out},
      [=] {
        int64_t places = 1;
        for (int64_t extent : out->sizes)
          places *= extent;
        std::vector<float> floats(places, floatStart);
        std::vector<int64_t> wholes(places, wholeStart);
        auto numberOf = [&](const Index &index) {
          int64_t number = 0;
          for (size_t i = 0; i < index.size(); ++i)
            number =
                number * out->sizes[i] + (out->sizes[i] == 1 ? 0 : index[i]);
          return number;
        };
        forEach(self->sizes, [&](const Index &index) {
          const char *at = placeOf(*self, index);
          int64_t number = numberOf(index);
          if (isFloat(self->type))
            floats[number] = ofFloats(floats[number], load(at, self->type));
          else
            wholes[number] =
                ofIntegers(wholes[number], loadWhole(at, self->type));
        });
        forEach(out->sizes, [&](const Index &index) {
          char *to = placeOf(*out, index);
          if (isFloat(out->type))
            store(to, out->type, floats[numberOf(index)]);
          else
            storeWhole(to, out->type, wholes[numberOf(index)]);
        });
        return std::string();
      },
      size, executor);
}

constexpr float Infinite = std::numeric_limits<float>::infinity();

} // namespace

FAKE int aclnnReduceSumGetWorkspaceSize(const TensorHandle *self,
                                        const IntArrayHandle *dims, bool keeps,
                                        int type, TensorHandle *out,
                                        uint64_t *size,
                                        ExecutorHandle **executor) {
  if (!out || type != out->type)
    return refuse("aclnnReduceSum: a type that is not the result's");
  return planReduction(
      "aclnnReduceSum", self, dims, keeps, out, 0.f, 0,
      [](float sum, float x) { return sum + x; },
      [](int64_t sum, int64_t x) { return sum + x; }, size, executor);
}
RUN(aclnnReduceSum)
FAKE int aclnnAmaxGetWorkspaceSize(const TensorHandle *self,
                                   const IntArrayHandle *dims, bool keeps,
                                   TensorHandle *out, uint64_t *size,
                                   ExecutorHandle **executor) {
  return planReduction(
      "aclnnAmax", self, dims, keeps, out, -Infinite,
      std::numeric_limits<int64_t>::min(),
      [](float most, float x) { return x > most || std::isnan(x) ? x : most; },
      [](int64_t most, int64_t x) { return std::max(most, x); }, size,
      executor);
}
RUN(aclnnAmax)
FAKE int aclnnAminGetWorkspaceSize(const TensorHandle *self,
                                   const IntArrayHandle *dims, bool keeps,
                                   TensorHandle *out, uint64_t *size,
                                   ExecutorHandle **executor) {
  return planReduction(
      "aclnnAmin", self, dims, keeps, out, Infinite,
      std::numeric_limits<int64_t>::max(),
      [](float least, float x) {
        return x < least || std::isnan(x) ? x : least;
      },
      [](int64_t least, int64_t x) { return std::min(least, x); }, size,
      executor);
}
RUN(aclnnAmin)

FAKE int aclnnMaxDimGetWorkspaceSize(const TensorHandle *self, int64_t dim,
                                     bool keeps, TensorHandle *out,
                                     TensorHandle *places, uint64_t *size,
                                     ExecutorHandle **executor) {
  auto shape = self ? reducedShape(*self, {{dim}}) : std::nullopt;
  if (!shape || !keeps || !out || !places || out->sizes != *shape ||
      places->sizes != *shape || out->type != self->type ||
      !isFloat(self->type) || places->type != ascend::Int64)
    return refuse("aclnnMaxDim: shapes, a dimension or element types that do "
                  "not fit");
  return plan(
      "aclnnMaxDim", 4096, {self}, {out, places},
      [=] {
        forEach(out->sizes, [&](const Index &index) {
          Index at = index;
          float most = -Infinite;
          int64_t place = 0;
          for (at[dim] = 0; at[dim] < self->sizes[dim]; ++at[dim])
            if (float x = load(placeOf(*self, at), self->type); x > most) {
              most = x;
              place = at[dim];
            }
          store(placeOf(*out, index), out->type, most);
          storeWhole(placeOf(*places, index), places->type, place);
        });
        return std::string();
      },
      size, executor);
}
RUN(aclnnMaxDim)

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {

/// A vector along the rows, of their type or f32.
bool isColumns(const TensorHandle *tensor, const TensorHandle &self) {
  return tensor && tensor->sizes == std::vector<int64_t>{self.sizes.back()} &&
         (tensor->type == self.type || tensor->type == ascend::Float);
}

/// A number of each row, in f32.
bool isRows(const TensorHandle *tensor, const TensorHandle &self) {
  std::vector<int64_t> sizes = self.sizes;
  sizes.back() = 1;
  return tensor && tensor->sizes == sizes && tensor->type == ascend::Float;
}

/// Visits rows: what it is given gets a row's first index, and its elements.
void forEachRow(
    const TensorHandle &self,
    const std::function<void(const Index &, std::vector<float> &)> &visit) {
  std::vector<int64_t> rows = self.sizes;
  rows.back() = 1;
  forEach(rows, [&](Index index) {
    std::vector<float> row(self.sizes.back());
    for (size_t i = 0; i < row.size(); ++i) {
      index.back() = static_cast<int64_t>(i);
      row[i] = load(placeOf(self, index), self.type);
    }
    index.back() = 0;
    visit(index, row);
  });
}

void storeRow(const TensorHandle &out, Index index,
              const std::vector<float> &row) {
  for (size_t i = 0; i < row.size(); ++i) {
    index.back() = static_cast<int64_t>(i);
    store(placeOf(out, index), out.type, row[i]);
  }
}

float columnAt(const TensorHandle &tensor, size_t number) {
  return load(placeOf(tensor, {static_cast<int64_t>(number)}), tensor.type);
}

bool isRowwise(const TensorHandle *self, const TensorHandle *out) {
  return self && out && !self->sizes.empty() && self->sizes == out->sizes &&
         self->type == out->type && isFloat(self->type);
}

} // namespace

FAKE int aclnnSoftmaxGetWorkspaceSize(const TensorHandle *self, int64_t dim,
                                      TensorHandle *out, uint64_t *size,
                                      ExecutorHandle **executor) {
  auto rank = self ? static_cast<int64_t>(self->sizes.size()) : 0;
  if (!isRowwise(self, out) || (dim != -1 && dim != rank - 1))
    return refuse("aclnnSoftmax: shapes, element types or a dimension that do "
                  "not fit");
  return plan(
      "aclnnSoftmax", 4096, {self}, {out},
      [=] {
        forEachRow(*self, [&](const Index &index, std::vector<float> &row) {
          float most = *std::max_element(row.begin(), row.end()), sum = 0;
          for (float &x : row)
            sum += x = std::exp(x - most);
          for (float &x : row)
            x /= sum;
          storeRow(*out, index, row);
        });
        return std::string();
      },
      size, executor);
}
RUN(aclnnSoftmax)

FAKE int aclnnLayerNormGetWorkspaceSize(
    const TensorHandle *self, const IntArrayHandle *shape,
    const TensorHandle *weight, const TensorHandle *bias, double epsilon,
    TensorHandle *out, TensorHandle *mean, TensorHandle *reciprocal,
    uint64_t *size, ExecutorHandle **executor) {
  if (!isRowwise(self, out) || !shape ||
      shape->values != std::vector<int64_t>{self->sizes.back()} ||
      !isColumns(weight, *self) || !isColumns(bias, *self) ||
      !isRows(mean, *self) || !isRows(reciprocal, *self) || !(epsilon >= 0))
    return refuse("aclnnLayerNorm: shapes or element types that do not fit");
  return plan(
      "aclnnLayerNorm", 4096, {self, weight, bias}, {out, mean, reciprocal},
      [=] {
        forEachRow(*self, [&](const Index &index, std::vector<float> &row) {
          auto n = static_cast<float>(row.size());
          float sum = 0, squares = 0;
          for (float x : row)
            sum += x;
          for (float x : row)
            squares += (x - sum / n) * (x - sum / n);
          float factor = rsqrt(squares / n + static_cast<float>(epsilon));
          for (size_t i = 0; i < row.size(); ++i)
            row[i] = (row[i] - sum / n) * factor * columnAt(*weight, i) +
                     columnAt(*bias, i);
          storeRow(*out, index, row);
          store(placeOf(*mean, index), ascend::Float, sum / n);
          store(placeOf(*reciprocal, index), ascend::Float, factor);
        });
        return std::string();
      },
      size, executor);
}
RUN(aclnnLayerNorm)

FAKE int aclnnRmsNormGetWorkspaceSize(const TensorHandle *self,
                                      const TensorHandle *weight,
                                      double epsilon, const TensorHandle *out,
                                      const TensorHandle *reciprocal,
                                      uint64_t *size,
                                      ExecutorHandle **executor) {
  if (!isRowwise(self, out) || !isColumns(weight, *self) ||
      !isRows(reciprocal, *self) || !(epsilon >= 0))
    return refuse("aclnnRmsNorm: shapes or element types that do not fit");
  return plan(
      "aclnnRmsNorm", 4096, {self, weight}, {out, reciprocal},
      [=] {
        forEachRow(*self, [&](const Index &index, std::vector<float> &row) {
          float squares = 0;
          for (float x : row)
            squares += x * x;
          float factor = rsqrt(squares / static_cast<float>(row.size()) +
                               static_cast<float>(epsilon));
          for (size_t i = 0; i < row.size(); ++i)
            row[i] *= factor * columnAt(*weight, i);
          storeRow(*out, index, row);
          store(placeOf(*reciprocal, index), ascend::Float, factor);
        });
        return std::string();
      },
      size, executor);
}
RUN(aclnnRmsNorm)
