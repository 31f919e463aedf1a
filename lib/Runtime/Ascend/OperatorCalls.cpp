// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- OperatorCalls.cpp - CANN's operators by programs' names -----------===//
//
//   copy        (source, target): views of one shape, with any strides
//   permute     (source, target), then the source's dimension of each
//   embedding   (table, rows, target): rows of the table, by number
//   index_add   (table, rows, updates): adds each update to the row that its
//               number says; in which order is the operator's
//   fill        (bits, target): a number in every element
//   softmax     (source, target): along the last dimension
//   layer_norm  (source, weight, bias, target, mean, reciprocal deviation),
//               then the bits of epsilon; rows are the last dimension
//   rms_norm    (source, weight, target, reciprocal deviation), the same
//   attention   (Q, K, V, perhaps a mask, the rows' maxima, their sums,
//               target), then the bits of the scale; batch, heads, rows,
//               columns. The mask is added behind the scale.
//   max_dim     (source, greatest elements, their places), then the dimension,
//               which stays
//   cast        (source, target)
//   sum, max, min (source, target), then the dimensions, which stay
//   abs, add, … (sources, target): elements; of `…_scalar`, then the number:
//               the bits of a double, or an integer
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Ascend/Opapi.h"

#include <cstring>

namespace hyperparallel::runtime::ascend {

namespace {

/// What a call has to work with.
struct Call {
  cuda::Device &device;
  const char *operation;
  Operands &operands;
  std::vector<TensorHandle *> tensors;
  std::vector<std::vector<int64_t>> sizes; ///< of the tensors
  int64_t dtype;                           ///< of the first tensor
  int64_t lastDtype;
  ScalarHandle *one; ///< of the first tensor's kind
  std::vector<int64_t> numbers;

  cuda::StreamHandle stream() const {
    return device.streams[HP_STREAM_COMPUTE];
  }
  bool is(const char *name, size_t numTensors, size_t numNumbers) const {
    return !std::strcmp(operation, name) && tensors.size() == numTensors &&
           numbers.size() == numNumbers;
  }
  /// A number of the elements' kind.
  ScalarHandle *scalar(int64_t word) const {
    double value = 0;
    std::memcpy(&value, &word, sizeof(value));
    return operands.scalar(dtype >= HP_F16 ? value : static_cast<double>(word),
                           dtype);
  }
  double bits(size_t number) const {
    double value = 0;
    std::memcpy(&value, &numbers[number], sizeof(value));
    return value;
  }
};

template <typename Size>
struct Entry {
  const char *name;
  Size size;
  Opapi::Run Opapi::*run;
};
#define HP_ENTRY(NAME, MEMBER, PARAMETERS)                                     \
  {#MEMBER, &Opapi::MEMBER##Size, &Opapi::MEMBER},
constexpr Entry<decltype(&Opapi::absSize)> Unary[] = {HP_OPAPI_UNARY(HP_ENTRY)};
constexpr Entry<decltype(&Opapi::mulSize)> Binary[] = {
    HP_OPAPI_BINARY(HP_ENTRY)};
constexpr Entry<decltype(&Opapi::addSize)> Sums[] = {HP_OPAPI_SUMS(HP_ENTRY)};
constexpr Entry<decltype(&Opapi::mul_scalarSize)> Scalar[] = {
    HP_OPAPI_SCALAR(HP_ENTRY)};
constexpr Entry<decltype(&Opapi::add_scalarSize)> ScalarSums[] = {
    HP_OPAPI_SCALAR_SUMS(HP_ENTRY)};
constexpr Entry<decltype(&Opapi::maxSize)> Extremes[] = {
    HP_OPAPI_EXTREMES(HP_ENTRY)};
#undef HP_ENTRY

/// Runs the operator of a family that has the call's name; false if none has.
template <typename Size, size_t Count, typename... Arguments>
bool runOneOf(const Entry<Size> (&family)[Count], const Call &call,
              hp_status &status, Arguments... arguments) {
  for (const Entry<Size> &entry : family) {
    if (std::strcmp(entry.name, call.operation) != 0)
      continue;
    uint64_t bytes = 0;
    ExecutorHandle *executor = nullptr;
    int result = (opapi().*entry.size)(arguments..., &bytes, &executor);
    status = queueOperator(call.device, call.stream(), entry.name, result,
                           bytes, executor, opapi().*entry.run);
    return true;
  }
  return false;
}

bool runElementwise(const Call &call, hp_status &status) {
  const auto &tensors = call.tensors;
  size_t count = tensors.size(), numbers = call.numbers.size();
  if (count == 2 && numbers == 0)
    return runOneOf(Unary, call, status, tensors[0], tensors[1]);
  if (count == 3 && numbers == 0)
    return runOneOf(Binary, call, status, tensors[0], tensors[1], tensors[2]) ||
           runOneOf(Sums, call, status, tensors[0], tensors[1], call.one,
                    tensors[2]);
  if (count != 2 || numbers != 1)
    return false;
  ScalarHandle *number = call.scalar(call.numbers[0]);
  return runOneOf(Scalar, call, status, tensors[0], number, tensors[1]) ||
         runOneOf(ScalarSums, call, status, tensors[0], number, call.one,
                  tensors[1]);
}

/// Along dimensions that the call names.
bool runAlong(const Call &call, hp_status &status) {
  if (call.tensors.size() != 2 || call.numbers.empty())
    return false;
  TensorHandle *source = call.tensors[0], *target = call.tensors[1];
  IntArrayHandle *dims = call.operands.numbers(call.numbers);
  if (!dims) {
    status =
        fail(HP_INTERNAL, "operation '%s': CANN made no array", call.operation);
    return true;
  }
  bool isSum = !std::strcmp(call.operation, "sum");
  if (isSum)
    status = HP_RUN_OPERATOR(call.device, call.stream(), sum, source, dims,
                             true, dataTypeOf(call.dtype), target);
  else if (!std::strcmp(call.operation, "permute"))
    status = HP_RUN_OPERATOR(call.device, call.stream(), permute, source, dims,
                             target);
  else
    return runOneOf(Extremes, call, status, source, dims, true, target);
  return true;
}

hp_status runWhole(const Call &call) {
  cuda::Device &device = call.device;
  cuda::StreamHandle stream = call.stream();
  const auto &tensors = call.tensors;
  if (call.is("copy", 2, 0))
    return HP_RUN_OPERATOR(device, stream, copy, tensors[1], tensors[0]);
  if (call.is("embedding", 3, 0))
    return HP_RUN_OPERATOR(device, stream, embedding, tensors[0], tensors[1],
                           tensors[2]);
  if (call.is("index_add", 3, 0))
    return HP_RUN_OPERATOR(device, stream, indexAdd, tensors[0], 0, tensors[1],
                           tensors[2], call.one);
  if (call.is("softmax", 2, 1))
    return HP_RUN_OPERATOR(device, stream, softmax, tensors[0], -1, tensors[1]);
  if (call.is("max_dim", 3, 1))
    return HP_RUN_OPERATOR(device, stream, maxDim, tensors[0], call.numbers[0],
                           true, tensors[1], tensors[2]);
  if (call.is("cast", 2, 0))
    return HP_RUN_OPERATOR(device, stream, cast, tensors[0],
                           dataTypeOf(call.lastDtype), tensors[1]);
  if (call.is("layer_norm", 6, 1)) {
    IntArrayHandle *row = call.operands.numbers({call.sizes[0].back()});
    return HP_RUN_OPERATOR(device, stream, layerNorm, tensors[0], row,
                           tensors[1], tensors[2], call.bits(0), tensors[3],
                           tensors[4], tensors[5]);
  }
  if (call.is("rms_norm", 4, 1))
    return HP_RUN_OPERATOR(device, stream, rmsNorm, tensors[0], tensors[1],
                           call.bits(0), tensors[2], tensors[3]);
  if (call.is("attention", 6, 1) || call.is("attention", 7, 1)) {
    constexpr int64_t AllTokens = INT32_MAX, AddBehindScale = 0;
    char layout[] = "BNSD";
    bool isMasked = tensors.size() == 7;
    TensorHandle *mask = isMasked ? tensors[3] : nullptr;
    TensorHandle *const *results = tensors.data() + (isMasked ? 4 : 3);
    return HP_RUN_OPERATOR(
        device, stream, attention, tensors[0], tensors[1], tensors[2], mask,
        nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, call.bits(0), 1.0,
        AllTokens, AllTokens, call.sizes[0][1], layout, 0, 0, AddBehindScale,
        results[0], results[1], nullptr, results[2]);
  }
  return fail(HP_UNIMPLEMENTED, "back end 'ascend' has no operation '%s'",
              call.operation);
}

} // namespace

hp_status callOperator(cuda::Device &device, const char *operation,
                       void *const *buffers, int64_t count,
                       const int64_t *words, int64_t numWords) {
  hp_status status = opapi().load();
  if (status != HP_OK)
    return status;
  Operands operands;
  Call call{device, operation, operands, {}, {}, HP_F32, HP_F32, nullptr, {}};
  const int64_t *end = words + numWords;
  bool isFill = !std::strcmp(operation, "fill") && count == 2;
  for (int64_t i = isFill; i < count; ++i) {
    if (end - words < 2 || end - words < 2 + 2 * words[1])
      return fail(HP_INVALID_ARGUMENT,
                  "operation '%s': expected words for each buffer", operation);
    int64_t dtype = words[0], rank = words[1];
    words += 2;
    call.sizes.emplace_back(words, words + rank);
    call.tensors.push_back(
        operands.tensor(buffers[i], dtype, call.sizes.back(),
                        std::vector<int64_t>(words + rank, words + 2 * rank)));
    (call.tensors.size() == 1 ? call.dtype : call.lastDtype) = dtype;
    words += 2 * rank;
  }
  call.numbers.assign(words, end);
  call.one = operands.scalar(1, call.dtype);
  if (!operands.complete())
    return fail(HP_INTERNAL, "operation '%s': CANN made no tensor", operation);
  if (isFill) {
    ScalarHandle *number = operands.scalarOfBits(
        static_cast<int64_t>(reinterpret_cast<intptr_t>(buffers[0])),
        call.dtype);
    return HP_RUN_OPERATOR(device, call.stream(), fillScalar, call.tensors[0],
                           number);
  }
  if (runElementwise(call, status) || runAlong(call, status))
    return status;
  return runWhole(call);
}

} // namespace hyperparallel::runtime::ascend
