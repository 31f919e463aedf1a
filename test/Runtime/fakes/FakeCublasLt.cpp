// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeCublasLt.cpp - A fake cuBLASLt (a test double) ----------------===//
//
// NOT NVIDIA's library: libhp_fake_cublaslt.so answers the functions that the
// back end uses, on the CPU, over the fake driver (FakeCuda.h). Columns-major
// products with a batch, a bias and RELU or tanh-GELU; sums are in f32 for
// everything but f64. Layouts and alignments are checked. The heuristic wants
// all of the workspace that it may have; nothing else may be there.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/HalfFloat.h"
#include "lib/Runtime/CUDA/CublasLt.h"
#include "test/Runtime/fakes/FakeCuda.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace lt = hyperparallel::runtime::cuda::lt;
using hyperparallel::runtime::BFloat16;
using hyperparallel::runtime::Float16;

namespace {

constexpr int Success = 0, InvalidValue = 7, ExecutionFailed = 13,
              NotSupported = 15;

struct Desc {
  int compute, scale;
  int32_t transA = 0, transB = 0;
  uint32_t epilogue = lt::EpilogueDefault;
  const void *bias = nullptr;
};

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};

struct Preference {
  size_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

/// What the heuristic promised, kept in the algorithm's opaque words.
struct Promise {
  uint64_t magic;
  uint64_t workspace;
  uint32_t alignment[4];
};
constexpr uint64_t Magic = 0x68705f66616b6521;

int sizeOf(int type) { return type == lt::R64F ? 8 : type == lt::R32F ? 4 : 2; }

double load(const void *base, int64_t index, int type) {
  switch (type) {
  case lt::R64F:
    return static_cast<const double *>(base)[index];
  case lt::R32F:
    return static_cast<const float *>(base)[index];
  case lt::R16F:
    return Float16::toFloat(static_cast<const Float16 *>(base)[index]);
  default:
    return BFloat16::toFloat(static_cast<const BFloat16 *>(base)[index]);
  }
}

void store(void *base, int64_t index, int type, double value) {
  switch (type) {
  case lt::R64F:
    static_cast<double *>(base)[index] = value;
    break;
  case lt::R32F:
    static_cast<float *>(base)[index] = static_cast<float>(value);
    break;
  case lt::R16F:
    static_cast<Float16 *>(base)[index] =
        Float16::fromFloat(static_cast<float>(value));
    break;
  default:
    static_cast<BFloat16 *>(base)[index] =
        BFloat16::fromFloat(static_cast<float>(value));
  }
}

/// A float with 10 bits of fraction, the nearest one: TF32.
double toTf32(double value) {
  float single = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof(bits));
  bits = (bits + 0x1000) & ~uint32_t(0x1fff);
  std::memcpy(&single, &bits, sizeof(bits));
  return single;
}

/// The operand as a dense matrix of `rows` rows of op(x), in f32 or f64.
template <typename T>
std::vector<T> gather(const char *base, const Layout &layout, bool transposed,
                      int compute) {
  uint64_t rows = transposed ? layout.columns : layout.rows;
  uint64_t columns = transposed ? layout.rows : layout.columns;
  std::vector<T> dense(rows * columns);
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = 0; j < columns; ++j)
      dense[i * columns + j] = static_cast<T>(load(
          base,
          transposed
              ? static_cast<int64_t>(j) + static_cast<int64_t>(i) * layout.ld
              : static_cast<int64_t>(i) + static_cast<int64_t>(j) * layout.ld,
          layout.type));
  if (compute == lt::Compute32FFastTF32)
    for (T &value : dense)
      value = static_cast<T>(toTf32(static_cast<double>(value)));
  return dense;
}

double activate(uint32_t epilogue, double x) {
  if (epilogue & lt::EpilogueRelu)
    return x > 0 ? x : 0;
  if (epilogue & lt::EpilogueGelu)
    return 0.5 * x *
           (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  return x;
}

template <typename T>
void multiply(const Desc &desc, double alpha, double beta, const char *a,
              const Layout &layoutA, const char *b, const Layout &layoutB,
              const char *c, char *d, const Layout &layoutC) {
  std::vector<T> left = gather<T>(a, layoutA, desc.transA != 0, desc.compute);
  // By columns, so that the innermost loop is contiguous in all three.
  std::vector<T> right = gather<T>(b, layoutB, desc.transB != 0, desc.compute);
  size_t rows = layoutC.rows, columns = layoutC.columns;
  size_t inner = rows ? left.size() / rows : 0;
  std::vector<T> sums(rows * columns, 0);
  for (size_t i = 0; i < rows; ++i)
    for (size_t p = 0; p < inner; ++p) {
      T factor = left[i * inner + p];
      const T *row = right.data() + p * columns;
      T *sum = sums.data() + i * columns;
      for (size_t j = 0; j < columns; ++j)
        sum[j] += factor * row[j];
    }
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) {
      int64_t at =
          static_cast<int64_t>(i) + static_cast<int64_t>(j) * layoutC.ld;
      double value = alpha * static_cast<double>(sums[i * columns + j]);
      if (beta != 0)
        value += beta * load(c, at, layoutC.type);
      if (desc.epilogue & lt::EpilogueBias)
        value += load(desc.bias, static_cast<int64_t>(i), layoutC.type);
      store(d, at, layoutC.type, activate(desc.epilogue, value));
    }
}

int refuse(const std::string &what) {
  hp_fake_cuda_refuse(("cuBLASLt: " + what).c_str());
  return InvalidValue;
}

/// Notes what a product touches of a matrix: every column.
int touch(void *stream, const fakes::Workspace &workspace, const void *base,
          const Layout &layout, bool writes) {
  for (int32_t batch = 0; batch < layout.batch; ++batch) {
    auto begin =
        reinterpret_cast<uint64_t>(base) +
        static_cast<uint64_t>(batch * layout.stride) * sizeOf(layout.type);
    bool isDense = layout.ld == static_cast<int64_t>(layout.rows);
    uint64_t columns = isDense ? 1 : layout.columns;
    uint64_t bytes =
        layout.rows * sizeOf(layout.type) * (isDense ? layout.columns : 1);
    for (uint64_t column = 0; column < columns; ++column) {
      uint64_t at = begin + column * static_cast<uint64_t>(layout.ld) *
                                static_cast<uint64_t>(sizeOf(layout.type));
      if (workspace.meets(at, bytes))
        return refuse("an operand of a product lies in its workspace");
      if (int fault = hp_fake_cuda_access(stream, at, bytes, writes))
        return fault;
    }
  }
  return 0;
}

} // namespace

FAKE int cublasLtCreate(void **handle) {
  *handle = new int(1);
  return Success;
}
FAKE int cublasLtDestroy(void *handle) {
  delete static_cast<int *>(handle);
  return Success;
}

FAKE int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
  bool isDouble = compute == lt::Compute64F && scale == lt::R64F;
  bool isSingle =
      (compute == lt::Compute32F || compute == lt::Compute32FFastTF32) &&
      scale == lt::R32F;
  if (!isDouble && !isSingle)
    return refuse("unknown compute type");
  *out = new Desc{compute, scale, 0, 0, lt::EpilogueDefault, nullptr};
  return Success;
}
FAKE int cublasLtMatmulDescDestroy(void *desc) {
  delete static_cast<Desc *>(desc);
  return Success;
}

FAKE int cublasLtMatmulDescSetAttribute(void *handle, int attribute,
                                        const void *value, size_t bytes) {
  auto &desc = *static_cast<Desc *>(handle);
  auto set = [&](void *to, size_t size) {
    if (bytes != size)
      return InvalidValue;
    std::memcpy(to, value, size);
    return Success;
  };
  switch (attribute) {
  case lt::TransA:
    return set(&desc.transA, 4);
  case lt::TransB:
    return set(&desc.transB, 4);
  case lt::Epilogue:
    return set(&desc.epilogue, 4);
  case lt::BiasPointer:
    return set(&desc.bias, sizeof(void *));
  default:
    return refuse("unknown attribute of a product");
  }
}

FAKE int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows,
                                    uint64_t columns, int64_t ld) {
  if (rows == 0 || columns == 0 || ld < static_cast<int64_t>(rows))
    return refuse("a matrix of " + std::to_string(rows) + " rows and " +
                  std::to_string(columns) + " columns at a distance of " +
                  std::to_string(ld));
  *out = new Layout{type, rows, columns, ld, 1, 0};
  return Success;
}
FAKE int cublasLtMatrixLayoutDestroy(void *layout) {
  delete static_cast<Layout *>(layout);
  return Success;
}

FAKE int cublasLtMatrixLayoutSetAttribute(void *handle, int attribute,
                                          const void *value, size_t bytes) {
  auto &layout = *static_cast<Layout *>(handle);
  if (attribute == lt::BatchCount && bytes == 4)
    std::memcpy(&layout.batch, value, 4);
  else if (attribute == lt::BatchStride && bytes == 8)
    std::memcpy(&layout.stride, value, 8);
  else
    return refuse("unknown attribute of a matrix");
  return Success;
}

FAKE int cublasLtMatmulPreferenceCreate(void **out) {
  *out = new Preference();
  return Success;
}
FAKE int cublasLtMatmulPreferenceDestroy(void *preference) {
  delete static_cast<Preference *>(preference);
  return Success;
}

FAKE int cublasLtMatmulPreferenceSetAttribute(void *handle, int attribute,
                                              const void *value, size_t bytes) {
  auto &preference = *static_cast<Preference *>(handle);
  if (attribute == lt::MaxWorkspaceBytes && bytes == sizeof(size_t))
    std::memcpy(&preference.workspace, value, bytes);
  else if (attribute >= lt::MinAlignmentA && attribute <= lt::MinAlignmentD &&
           bytes == 4)
    std::memcpy(&preference.alignment[attribute - lt::MinAlignmentA], value, 4);
  else
    return refuse("unknown preference");
  return Success;
}

FAKE int cublasLtMatmulAlgoGetHeuristic(void *, void *, void *, void *, void *,
                                        void *, void *handle, int wanted,
                                        lt::Heuristic *out, int *found) {
  if (wanted < 1)
    return InvalidValue;
  const auto &preference = *static_cast<Preference *>(handle);
  *out = {};
  Promise promise = {Magic, preference.workspace, {}};
  std::memcpy(promise.alignment, preference.alignment,
              sizeof(promise.alignment));
  std::memcpy(out->algorithm, &promise, sizeof(promise));
  out->workspaceSize = preference.workspace;
  *found = 1;
  return Success;
}

/// A product whose arguments were checked.
struct Product {
  Desc desc;
  const void *a;
  Layout layoutA;
  const void *b;
  Layout layoutB;
  void *d;
  Layout layoutC;
  double scaleA, scaleC;
  void *workspace;
  uint64_t workspaceBytes;
};

static int runProduct(void *stream, const Product &product) {
  const auto &[desc, a, layoutA, b, layoutB, d, layoutC, scaleA, scaleC,
               workspace, workspaceBytes] = product;
  bool isDouble = desc.compute == lt::Compute64F;
  fakes::Workspace own(workspace, workspaceBytes);
  int fault = hp_fake_cuda_begin(stream, "a product of cuBLASLt");
  if (!fault)
    fault = touch(stream, own, a, layoutA, false);
  if (!fault)
    fault = touch(stream, own, b, layoutB, false);
  if (!fault && scaleC != 0)
    fault = touch(stream, own, d, layoutC, false);
  if (!fault && desc.bias && (desc.epilogue & lt::EpilogueBias))
    fault = hp_fake_cuda_access(stream, reinterpret_cast<uint64_t>(desc.bias),
                                layoutC.rows * sizeOf(layoutC.type), 0);
  if (!fault)
    fault = touch(stream, own, d, layoutC, true);
  if (!fault && workspaceBytes)
    fault = hp_fake_cuda_access(stream, reinterpret_cast<uint64_t>(workspace),
                                workspaceBytes, 1);
  if (fault)
    return ExecutionFailed;
  own.fill();
  for (int32_t i = 0; i < layoutC.batch; ++i) {
    auto part = [&](const void *base, const Layout &layout) {
      return static_cast<const char *>(base) +
             i * layout.stride * sizeOf(layout.type);
    };
    char *to = const_cast<char *>(part(d, layoutC));
    if (isDouble)
      multiply<double>(desc, scaleA, scaleC, part(a, layoutA), layoutA,
                       part(b, layoutB), layoutB, to, to, layoutC);
    else
      multiply<float>(desc, scaleA, scaleC, part(a, layoutA), layoutA,
                      part(b, layoutB), layoutB, to, to, layoutC);
  }
  hp_fake_cuda_end(stream);
  return own.isIntact() ? Success
                        : refuse("a product wrote to its own workspace");
}

FAKE int cublasLtMatmul(void *handle, void *descHandle, const void *alpha,
                        const void *a, void *aLayout, const void *b,
                        void *bLayout, const void *beta, const void *c,
                        void *cLayout, void *d, void *dLayout,
                        const void *algorithm, void *workspace,
                        size_t workspaceBytes, void *stream) {
  if (!handle || !descHandle || !algorithm)
    return InvalidValue;
  const auto &desc = *static_cast<Desc *>(descHandle);
  const auto &layoutA = *static_cast<Layout *>(aLayout);
  const auto &layoutB = *static_cast<Layout *>(bLayout);
  const auto &layoutC = *static_cast<Layout *>(cLayout);
  if (cLayout != dLayout || c != d)
    return NotSupported;
  Promise promise;
  std::memcpy(&promise, algorithm, sizeof(promise));
  if (promise.magic != Magic)
    return refuse("an algorithm that no heuristic gave");
  if (workspaceBytes < promise.workspace || (promise.workspace && !workspace))
    return refuse("the algorithm needs a workspace of " +
                  std::to_string(promise.workspace) + " bytes");
  if (reinterpret_cast<uint64_t>(workspace) % 256 != 0)
    return refuse("a workspace that is not aligned to 256 bytes");
  const void *pointers[4] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<uint64_t>(pointers[i]) % promise.alignment[i] != 0)
      return refuse("an operand is not aligned to what the heuristic was told");
  uint64_t m = desc.transA ? layoutA.columns : layoutA.rows;
  uint64_t k = desc.transA ? layoutA.rows : layoutA.columns;
  uint64_t k2 = desc.transB ? layoutB.columns : layoutB.rows;
  uint64_t n = desc.transB ? layoutB.rows : layoutB.columns;
  if (m != layoutC.rows || n != layoutC.columns || k != k2 ||
      layoutA.batch != layoutC.batch || layoutB.batch != layoutC.batch)
    return refuse("the operands of a product do not fit each other");
  if ((desc.compute == lt::Compute64F) != (layoutA.type == lt::R64F) ||
      layoutA.type != layoutB.type)
    return refuse("the operands' types do not fit the compute type");
  bool isDouble = desc.compute == lt::Compute64F;
  double scaleA = isDouble ? *static_cast<const double *>(alpha)
                           : *static_cast<const float *>(alpha);
  double scaleC = isDouble ? *static_cast<const double *>(beta)
                           : *static_cast<const float *>(beta);
  std::function<int(void *)> work = [=, desc = desc, layoutA = layoutA,
                                     layoutB = layoutB,
                                     layoutC = layoutC](void *on) {
    return runProduct(on, {desc, a, layoutA, b, layoutB, d, layoutC, scaleA,
                           scaleC, workspace, promise.workspace});
  };
  return hp_fake_cuda_defer(stream, &work) ? Success : work(stream);
}
