// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Opapi.h - The operators of CANN (aclnn) that are used -------------===//
//
// Our own prototypes of libnnopbase.so (tensors and scalars) and libopapi.so
// (operators; since CANN 8.5 also libopapi_math.so and libopapi_nn.so), opened
// at the first operator. Every operator is called in two steps: the first says
// how large a workspace it needs, the second queues the work.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_ASCEND_OPAPI_H
#define HYPERPARALLEL_LIB_RUNTIME_ASCEND_OPAPI_H

#include "lib/Runtime/Ascend/Acl.h"
#include "lib/Runtime/CUDA/Device.h"

#include <vector>

namespace hyperparallel::runtime::ascend {

struct TensorHandle;
struct ScalarHandle;
struct IntArrayHandle;
struct ExecutorHandle;

// aclDataType and aclFormat.
constexpr int Float = 0, Float16 = 1, Int8 = 2, Int32 = 3, Int16 = 6, Int64 = 9,
              Double = 11, Bool = 12, Bfloat16 = 27;
constexpr int FormatNd = 2;
/// cubeMathType: sums and products in the operands' own type.
constexpr int8_t KeepType = 0;

#define HP_OPAPI_META(X)                                                       \
  X(aclCreateTensor, createTensor, TensorHandle *,                             \
    (const int64_t *, uint64_t, int, const int64_t *, int64_t, int,            \
     const int64_t *, uint64_t, void *))                                       \
  X(aclDestroyTensor, destroyTensor, int, (const TensorHandle *))              \
  X(aclCreateScalar, createScalar, ScalarHandle *, (void *, int))              \
  X(aclDestroyScalar, destroyScalar, int, (const ScalarHandle *))              \
  X(aclCreateIntArray, createIntArray, IntArrayHandle *,                       \
    (const int64_t *, uint64_t))                                               \
  X(aclDestroyIntArray, destroyIntArray, int, (const IntArrayHandle *))

// Lists of operators: X(operator, member, parameters).
#define HP_OPAPI_WHOLE(X)                                                      \
  X(aclnnMatmul, matmul,                                                       \
    (const TensorHandle *, const TensorHandle *, TensorHandle *, int8_t,       \
     uint64_t *, ExecutorHandle **))                                           \
  X(aclnnBatchMatMul, batchMatmul,                                             \
    (const TensorHandle *, const TensorHandle *, TensorHandle *, int8_t,       \
     uint64_t *, ExecutorHandle **))                                           \
  X(aclnnAddmm, addmm,                                                         \
    (const TensorHandle *, const TensorHandle *, const TensorHandle *,         \
     const ScalarHandle *, const ScalarHandle *, TensorHandle *, int8_t,       \
     uint64_t *, ExecutorHandle **))                                           \
  X(aclnnBaddbmm, baddbmm,                                                     \
    (const TensorHandle *, const TensorHandle *, const TensorHandle *,         \
     const ScalarHandle *, const ScalarHandle *, TensorHandle *, int8_t,       \
     uint64_t *, ExecutorHandle **))                                           \
  X(aclnnInplaceCopy, copy,                                                    \
    (TensorHandle *, const TensorHandle *, uint64_t *, ExecutorHandle **))     \
  X(aclnnInplaceZero, zero, (TensorHandle *, uint64_t *, ExecutorHandle **))   \
  X(aclnnInplaceFillScalar, fillScalar,                                        \
    (TensorHandle *, const ScalarHandle *, uint64_t *, ExecutorHandle **))     \
  X(aclnnInplaceIndexAdd, indexAdd,                                            \
    (TensorHandle *, int64_t, const TensorHandle *, const TensorHandle *,      \
     const ScalarHandle *, uint64_t *, ExecutorHandle **))                     \
  X(aclnnEmbedding, embedding,                                                 \
    (const TensorHandle *, const TensorHandle *, const TensorHandle *,         \
     uint64_t *, ExecutorHandle **))                                           \
  X(aclnnSoftmax, softmax,                                                     \
    (const TensorHandle *, int64_t, TensorHandle *, uint64_t *,                \
     ExecutorHandle **))                                                       \
  X(aclnnLayerNorm, layerNorm,                                                 \
    (const TensorHandle *, const IntArrayHandle *, const TensorHandle *,       \
     const TensorHandle *, double, TensorHandle *, TensorHandle *,             \
     TensorHandle *, uint64_t *, ExecutorHandle **))                           \
  X(aclnnRmsNorm, rmsNorm,                                                     \
    (const TensorHandle *, const TensorHandle *, double, const TensorHandle *, \
     const TensorHandle *, uint64_t *, ExecutorHandle **))                     \
  X(aclnnFlashAttentionScoreV2, attention,                                     \
    (const TensorHandle *, const TensorHandle *, const TensorHandle *,         \
     const TensorHandle *, const TensorHandle *, const TensorHandle *,         \
     const TensorHandle *, const IntArrayHandle *, const IntArrayHandle *,     \
     const IntArrayHandle *, double, double, int64_t, int64_t, int64_t,        \
     char *, int64_t, int64_t, int64_t, const TensorHandle *,                  \
     const TensorHandle *, const TensorHandle *, const TensorHandle *,         \
     uint64_t *, ExecutorHandle **))                                           \
  X(aclnnMaxDim, maxDim,                                                       \
    (const TensorHandle *, int64_t, bool, TensorHandle *, TensorHandle *,      \
     uint64_t *, ExecutorHandle **))                                           \
  X(aclnnCast, cast,                                                           \
    (const TensorHandle *, int, TensorHandle *, uint64_t *,                    \
     ExecutorHandle **))                                                       \
  X(aclnnPermute, permute,                                                     \
    (const TensorHandle *, const IntArrayHandle *, TensorHandle *, uint64_t *, \
     ExecutorHandle **))                                                       \
  X(aclnnReduceSum, sum,                                                       \
    (const TensorHandle *, const IntArrayHandle *, bool, int, TensorHandle *,  \
     uint64_t *, ExecutorHandle **))

/// Functions of a tensor's elements.
#define HP_OPAPI_OF_ONE                                                        \
  (const TensorHandle *, TensorHandle *, uint64_t *, ExecutorHandle **)
#define HP_OPAPI_UNARY(X)                                                      \
  X(aclnnAbs, abs, HP_OPAPI_OF_ONE)                                            \
  X(aclnnCeil, ceil, HP_OPAPI_OF_ONE)                                          \
  X(aclnnCos, cos, HP_OPAPI_OF_ONE)                                            \
  X(aclnnErf, erf, HP_OPAPI_OF_ONE)                                            \
  X(aclnnExp, exp, HP_OPAPI_OF_ONE)                                            \
  X(aclnnFloor, floor, HP_OPAPI_OF_ONE)                                        \
  X(aclnnLog, log, HP_OPAPI_OF_ONE)                                            \
  X(aclnnNeg, neg, HP_OPAPI_OF_ONE)                                            \
  X(aclnnRsqrt, rsqrt, HP_OPAPI_OF_ONE)                                        \
  X(aclnnSin, sin, HP_OPAPI_OF_ONE)                                            \
  X(aclnnSqrt, sqrt, HP_OPAPI_OF_ONE)                                          \
  X(aclnnTanh, tanh, HP_OPAPI_OF_ONE)

/// Of two tensors' elements, of which dimensions of size 1 are repeated.
#define HP_OPAPI_OF_TWO                                                        \
  (const TensorHandle *, const TensorHandle *, TensorHandle *, uint64_t *,     \
   ExecutorHandle **)
#define HP_OPAPI_BINARY(X)                                                     \
  X(aclnnMul, mul, HP_OPAPI_OF_TWO)                                            \
  X(aclnnDiv, div, HP_OPAPI_OF_TWO)                                            \
  X(aclnnMaximum, maximum, HP_OPAPI_OF_TWO)                                    \
  X(aclnnMinimum, minimum, HP_OPAPI_OF_TWO)

/// The same, with a factor of the second.
#define HP_OPAPI_OF_TWO_SCALED                                                 \
  (const TensorHandle *, const TensorHandle *, const ScalarHandle *,           \
   TensorHandle *, uint64_t *, ExecutorHandle **)
#define HP_OPAPI_SUMS(X)                                                       \
  X(aclnnAdd, add, HP_OPAPI_OF_TWO_SCALED)                                     \
  X(aclnnSub, sub, HP_OPAPI_OF_TWO_SCALED)

/// Of a tensor's elements and a number.
#define HP_OPAPI_OF_NUMBER                                                     \
  (const TensorHandle *, const ScalarHandle *, TensorHandle *, uint64_t *,     \
   ExecutorHandle **)
#define HP_OPAPI_SCALAR(X)                                                     \
  X(aclnnMuls, mul_scalar, HP_OPAPI_OF_NUMBER)                                 \
  X(aclnnDivs, div_scalar, HP_OPAPI_OF_NUMBER)
#define HP_OPAPI_OF_NUMBER_SCALED                                              \
  (const TensorHandle *, const ScalarHandle *, const ScalarHandle *,           \
   TensorHandle *, uint64_t *, ExecutorHandle **)
#define HP_OPAPI_SCALAR_SUMS(X)                                                \
  X(aclnnAdds, add_scalar, HP_OPAPI_OF_NUMBER_SCALED)                          \
  X(aclnnSubs, sub_scalar, HP_OPAPI_OF_NUMBER_SCALED)

/// Along dimensions, which stay, with size 1, or do not.
#define HP_OPAPI_OF_DIMS                                                       \
  (const TensorHandle *, const IntArrayHandle *, bool, TensorHandle *,         \
   uint64_t *, ExecutorHandle **)
#define HP_OPAPI_EXTREMES(X)                                                   \
  X(aclnnAmax, max, HP_OPAPI_OF_DIMS)                                          \
  X(aclnnAmin, min, HP_OPAPI_OF_DIMS)

#define HP_OPAPI_OPERATORS(X)                                                  \
  HP_OPAPI_WHOLE(X)                                                            \
  HP_OPAPI_UNARY(X)                                                            \
  HP_OPAPI_BINARY(X)                                                           \
  HP_OPAPI_SUMS(X)                                                             \
  HP_OPAPI_SCALAR(X)                                                           \
  HP_OPAPI_SCALAR_SUMS(X)                                                      \
  HP_OPAPI_EXTREMES(X)

struct Opapi {
  using Run = int (*)(void *, uint64_t, ExecutorHandle *, Handle);
#define HP_OPAPI_MEMBER(NAME, MEMBER, RESULT, PARAMETERS)                      \
  RESULT(*MEMBER) PARAMETERS;
  HP_OPAPI_META(HP_OPAPI_MEMBER)
#undef HP_OPAPI_MEMBER
#define HP_OPAPI_MEMBER(NAME, MEMBER, PARAMETERS)                              \
  int(*MEMBER##Size) PARAMETERS;                                               \
  Run MEMBER;
  HP_OPAPI_OPERATORS(HP_OPAPI_MEMBER)
#undef HP_OPAPI_MEMBER

  std::string path; ///< what the option names
  hp_status load();

private:
  std::mutex mutex;
  bool loaded = false;
};

Opapi &opapi();

/// Tensors and scalars of one call of an operator; they end with it.
class Operands {
public:
  ~Operands();
  /// A view of the device's memory; strides are in elements.
  TensorHandle *tensor(const void *data, int64_t dtype,
                       std::vector<int64_t> sizes,
                       std::vector<int64_t> strides);
  /// A number for operands of that type.
  ScalarHandle *scalar(double value, int64_t dtype);
  /// A number of which these are the bits.
  ScalarHandle *scalarOfBits(int64_t bits, int64_t dtype);
  /// Numbers of dimensions, or sizes.
  IntArrayHandle *numbers(const std::vector<int64_t> &values);
  /// Whether all could be made.
  bool complete() const { return !failed; }

private:
  ScalarHandle *keep(ScalarHandle *made);

  std::vector<TensorHandle *> tensors;
  std::vector<ScalarHandle *> scalars;
  std::vector<IntArrayHandle *> arrays;
  bool failed = false;
};

/// The second step of an operator whose first one returned `result`: the
/// workspace is what the program reserved on the compute stream, or, where that
/// is too little or there is none, memory in the stream's order.
hp_status queueOperator(cuda::Device &device, cuda::StreamHandle stream,
                        const char *name, int result, uint64_t workspaceBytes,
                        ExecutorHandle *executor, Opapi::Run run);

/// Runs an operator on the compute stream, by the name that programs have for
/// it. `words` say what the buffers are, and are followed by its numbers.
hp_status callOperator(cuda::Device &device, const char *operation,
                       void *const *buffers, int64_t count,
                       const int64_t *words, int64_t numWords);

/// aclDataType of an hp_dtype; -1 if there is none.
int dataTypeOf(int64_t dtype);

} // namespace hyperparallel::runtime::ascend

/// Both steps of an operator: HP_RUN_OPERATOR(device, stream, member, operands…)
#define HP_RUN_OPERATOR(DEVICE, STREAM, MEMBER, ...)                           \
  [&]() -> hp_status {                                                         \
    using namespace hyperparallel::runtime::ascend;                            \
    uint64_t workspaceBytes = 0;                                               \
    ExecutorHandle *executor = nullptr;                                        \
    int result =                                                               \
        opapi().MEMBER##Size(__VA_ARGS__, &workspaceBytes, &executor);         \
    return queueOperator(DEVICE, STREAM, #MEMBER, result, workspaceBytes,      \
                         executor, opapi().MEMBER);                            \
  }()

#endif // HYPERPARALLEL_LIB_RUNTIME_ASCEND_OPAPI_H
