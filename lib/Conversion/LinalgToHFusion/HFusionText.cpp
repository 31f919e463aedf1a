//===- HFusionText.cpp - Functions in HFusion's text ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/HFusionText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mlir::hyperparallel {

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::string list(ArrayRef<int64_t> numbers) {
  std::string text = "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(numbers, stream);
  return text + "]";
}

static std::string tensorType(ArrayRef<int64_t> shape, Type element) {
  return print(RankedTensorType::get(shape, element));
}

std::string HFusionFunction::typeOf(const HFusionValue &value) {
  return value.isScalar ? print(value.element)
                        : tensorType(value.shape, value.element);
}

HFusionValue HFusionFunction::add(const std::string &text,
                                  ArrayRef<int64_t> shape, Type element,
                                  bool isScalar) {
  auto [entry, isNew] = known.try_emplace(text);
  if (isNew)
    entry->second = "%" + std::to_string(counter++);
  HFusionValue value{entry->second, llvm::to_vector(shape), element, isScalar};
  bool isCheap = isScalar;
  for (const char *op : {"tensor.empty", "linalg.fill", "hfusion.arange"})
    isCheap |= StringRef(text).starts_with(op);
  if (isNew)
    lines.push_back({value, text, isCheap});
  return value;
}

HFusionValue HFusionFunction::empty(ArrayRef<int64_t> shape, Type element) {
  return add("tensor.empty() : " + tensorType(shape, element), shape, element);
}

std::string HFusionFunction::operands(ArrayRef<HFusionValue> ins,
                                      ArrayRef<int64_t> shape, Type element) {
  std::string names, types;
  for (const HFusionValue &value : ins) {
    names += (names.empty() ? "" : ", ") + value.name;
    types += (types.empty() ? "" : ", ") + typeOf(value);
  }
  return " ins(" + names + " : " + types + ") outs(" +
         empty(shape, element).name + " : " + tensorType(shape, element) + ")";
}

HFusionValue HFusionFunction::addArgument(ArrayRef<int64_t> shape,
                                          Type element) {
  HFusionValue value{"%arg" + std::to_string(arguments.size()),
                     llvm::to_vector(shape), element, false};
  arguments.push_back(value);
  return value;
}

HFusionValue HFusionFunction::constant(TypedAttr value) {
  std::string text = "arith.constant ";
  llvm::raw_string_ostream(text) << static_cast<Attribute>(value);
  return add(text, {}, value.getType(), /*isScalar=*/true);
}

HFusionValue HFusionFunction::fill(const HFusionValue &scalar,
                                   ArrayRef<int64_t> shape) {
  return add("linalg.fill" + operands(scalar, shape, scalar.element) + " -> " +
                 tensorType(shape, scalar.element),
             shape, scalar.element);
}

HFusionValue HFusionFunction::count(int64_t size, Type element) {
  Type index = IndexType::get(element.getContext());
  HFusionValue zero = constant(IntegerAttr::get(index, 0));
  HFusionValue one = constant(IntegerAttr::get(index, 1));
  std::string type = tensorType(size, element);
  return add("hfusion.arange offset[" + zero.name + "] strides[" + one.name +
                 "] outs(" + empty(size, element).name + " : " + type +
                 ") -> " + type,
             size, element);
}

HFusionValue HFusionFunction::elementwise(StringRef op,
                                          ArrayRef<HFusionValue> ins,
                                          ArrayRef<int64_t> shape,
                                          Type element) {
  return add(op.str() + operands(ins, shape, element) + " -> " +
                 tensorType(shape, element),
             shape, element);
}

HFusionValue HFusionFunction::cast(const HFusionValue &value, Type element,
                                   StringRef rounding) {
  return elementwise(
      ("hfusion.cast {round_mode = #hfusion.round_mode<" + rounding + ">}")
          .str(),
      value, value.shape, element);
}

HFusionValue HFusionFunction::broadcast(const HFusionValue &value,
                                        ArrayRef<int64_t> added,
                                        ArrayRef<int64_t> shape) {
  return add("linalg.broadcast" + operands(value, shape, value.element) +
                 " dimensions = " + list(added),
             shape, value.element);
}

HFusionValue HFusionFunction::transpose(const HFusionValue &value,
                                        ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape;
  for (int64_t from : permutation)
    shape.push_back(value.shape[from]);
  return add("linalg.transpose" + operands(value, shape, value.element) +
                 " permutation = " + list(permutation),
             shape, value.element);
}

HFusionValue HFusionFunction::reduce(StringRef combiner,
                                     const HFusionValue &value,
                                     const HFusionValue &init,
                                     ArrayRef<int64_t> dimensions) {
  return add("linalg.reduce {" + combiner.str() + "} ins(" + value.name +
                 " : " + typeOf(value) + ") outs(" + init.name + " : " +
                 typeOf(init) + ") dimensions = " + list(dimensions),
             init.shape, value.element);
}

/// Which dimensions of the longer shape make one of the shorter: every
/// dimension of size 1 that the shorter lacks goes with a neighbour.
static std::string group(ArrayRef<int64_t> longer, ArrayRef<int64_t> shorter) {
  std::string text = "[";
  size_t at = 0;
  for (auto [number, size] : llvm::enumerate(shorter)) {
    SmallVector<int64_t> members;
    while (at < longer.size() && longer[at] == 1 && size != 1)
      members.push_back(static_cast<int64_t>(at++));
    members.push_back(static_cast<int64_t>(at++));
    bool isLast = number + 1 == shorter.size();
    while (isLast && at < longer.size())
      members.push_back(static_cast<int64_t>(at++));
    text += (number ? ", " : "") + list(members);
  }
  return text + "]";
}

HFusionValue HFusionFunction::reshape(const HFusionValue &value,
                                      ArrayRef<int64_t> shape) {
  if (ArrayRef<int64_t>(value.shape) == shape)
    return value;
  for (auto from = reshapedFrom.find(value.name); from != reshapedFrom.end();
       from = reshapedFrom.find(from->second.name))
    if (ArrayRef<int64_t>(from->second.shape) == shape)
      return from->second;
  bool expands = value.shape.size() < shape.size();
  std::string groups =
      expands ? group(shape, value.shape) : group(value.shape, shape);
  std::string to = tensorType(shape, value.element);
  HFusionValue result =
      add(expands ? "tensor.expand_shape " + value.name + " " + groups +
                        " output_shape " + list(shape) + " : " + typeOf(value) +
                        " into " + to
                  : "tensor.collapse_shape " + value.name + " " + groups +
                        " : " + typeOf(value) + " into " + to,
          shape, value.element);
  result.reshaped = value.origin().str();
  reshapedFrom[result.name] = value;
  return result;
}

std::string HFusionFunction::write(StringRef name,
                                   ArrayRef<HFusionValue> arguments,
                                   StringRef body,
                                   ArrayRef<HFusionValue> results) {
  std::string text = ("func.func @" + name + "(").str();
  for (auto [number, argument] : llvm::enumerate(arguments))
    text += (number ? ", " : "") + argument.name + ": " + typeOf(argument);
  std::string names, types;
  for (const HFusionValue &result : results) {
    names += (names.empty() ? "" : ", ") + result.name;
    types += (types.empty() ? "" : ", ") + typeOf(result);
  }
  return text + ") -> (" + types +
         ") attributes {hacc.entry, hacc.function_kind = "
         "#hacc.function_kind<DEVICE>} {\n" +
         body.str() + "  return " + names + " : " + types + "\n}\n";
}

std::string HFusionFunction::finish(ArrayRef<HFusionValue> results) const {
  std::string body;
  for (const Line &line : lines)
    body += "  " + line.result.name + " = " + line.text + "\n";
  return write(name, arguments, body, results);
}

} // namespace mlir::hyperparallel
