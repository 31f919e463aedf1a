// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- CublasLt.h - The part of cuBLASLt that is used --------------------===//
//
// Our own prototypes of libcublasLt, opened at the first product.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CUDA_CUBLASLT_H
#define HYPERPARALLEL_LIB_RUNTIME_CUDA_CUBLASLT_H

#include "lib/Runtime/CUDA/Driver.h"

#include <mutex>
#include <string>

namespace hyperparallel::runtime::cuda {

namespace lt {
using Handle = struct cublasLtContext *;
using MatmulDesc = struct cublasLtMatmulDescOpaque *;
using Layout = struct cublasLtMatrixLayoutOpaque *;
using Preference = struct cublasLtMatmulPreferenceOpaque *;

// cudaDataType.
constexpr int R32F = 0, R64F = 1, R16F = 2, R16BF = 14;
// cublasComputeType_t.
constexpr int Compute32F = 68, Compute64F = 70, Compute32FFastTF32 = 77;
// cublasLtMatmulDescAttributes_t.
constexpr int TransA = 3, TransB = 4, Epilogue = 7, BiasPointer = 8;
// cublasLtEpilogue_t.
constexpr uint32_t EpilogueDefault = 1, EpilogueRelu = 2, EpilogueBias = 4,
                   EpilogueGelu = 32;
// cublasLtMatrixLayoutAttribute_t.
constexpr int BatchCount = 5, BatchStride = 6;
// cublasLtMatmulPreferenceAttributes_t.
constexpr int MaxWorkspaceBytes = 1, MinAlignmentA = 5, MinAlignmentB = 6,
              MinAlignmentC = 7, MinAlignmentD = 8;

/// cublasLtMatmulHeuristicResult_t.
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspaceSize;
  int state;
  float wavesCount;
  int reserved[4];
};
} // namespace lt

#define HP_CUBLASLT_FUNCTIONS(X)                                               \
  X(cublasLtCreate, create, (lt::Handle *))                                    \
  X(cublasLtDestroy, destroy, (lt::Handle))                                    \
  X(cublasLtMatmulDescCreate, descCreate, (lt::MatmulDesc *, int, int))        \
  X(cublasLtMatmulDescDestroy, descDestroy, (lt::MatmulDesc))                  \
  X(cublasLtMatmulDescSetAttribute, descSet,                                   \
    (lt::MatmulDesc, int, const void *, size_t))                               \
  X(cublasLtMatrixLayoutCreate, layoutCreate,                                  \
    (lt::Layout *, int, uint64_t, uint64_t, int64_t))                          \
  X(cublasLtMatrixLayoutDestroy, layoutDestroy, (lt::Layout))                  \
  X(cublasLtMatrixLayoutSetAttribute, layoutSet,                               \
    (lt::Layout, int, const void *, size_t))                                   \
  X(cublasLtMatmulPreferenceCreate, preferenceCreate, (lt::Preference *))      \
  X(cublasLtMatmulPreferenceDestroy, preferenceDestroy, (lt::Preference))      \
  X(cublasLtMatmulPreferenceSetAttribute, preferenceSet,                       \
    (lt::Preference, int, const void *, size_t))                               \
  X(cublasLtMatmulAlgoGetHeuristic, heuristic,                                 \
    (lt::Handle, lt::MatmulDesc, lt::Layout, lt::Layout, lt::Layout,           \
     lt::Layout, lt::Preference, int, lt::Heuristic *, int *))                 \
  X(cublasLtMatmul, matmul,                                                    \
    (lt::Handle, lt::MatmulDesc, const void *, const void *, lt::Layout,       \
     const void *, lt::Layout, const void *, const void *, lt::Layout, void *, \
     lt::Layout, const void *, void *, size_t, StreamHandle))

struct CublasLt {
#define HP_CUBLASLT_MEMBER(NAME, MEMBER, PARAMETERS) int(*MEMBER) PARAMETERS;
  HP_CUBLASLT_FUNCTIONS(HP_CUBLASLT_MEMBER)
#undef HP_CUBLASLT_MEMBER

  std::string path; ///< what the option names
  bool tf32 = false;
  hp_status load();
  hp_status check(int result, const char *what) const;

private:
  std::mutex mutex;
  bool loaded = false;
};

} // namespace hyperparallel::runtime::cuda

#endif // HYPERPARALLEL_LIB_RUNTIME_CUDA_CUBLASLT_H
