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
  X(aclDestroyScalar, destroyScalar, int, (const ScalarHandle *))

// X(operator, member, parameters before the workspace's size)
#define HP_OPAPI_OPERATORS(X)                                                  \
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
     uint64_t *, ExecutorHandle **))

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
  /// A number of which these are the bits: an integer, f32 or f64.
  ScalarHandle *scalarOfBits(int64_t bits, int64_t dtype);
  /// Whether all could be made.
  bool complete() const { return !failed; }

private:
  ScalarHandle *keep(ScalarHandle *made);

  std::vector<TensorHandle *> tensors;
  std::vector<ScalarHandle *> scalars;
  bool failed = false;
};

/// Frees what growWorkspace has left, when a context ends.
void forgetWorkspaces(cuda::Device &device);
/// The second step of an operator whose first one returned `result`: the
/// workspace is the compute stream's, or memory in the order of another one.
hp_status queueOperator(cuda::Device &device, cuda::StreamHandle stream,
                        const char *name, int result, uint64_t workspaceBytes,
                        ExecutorHandle *executor, Opapi::Run run);

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
