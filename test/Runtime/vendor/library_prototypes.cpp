// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Our own prototypes of cuBLASLt and NCCL against the vendor's headers, where
// they are at hand. Only compiled, by a test; never a part of the product.
#include "lib/Runtime/CUDA/CublasLt.h"
#include "lib/Runtime/CUDA/Nccl.h"
#include "test/Runtime/vendor/alike.h"

#include <cublasLt.h>
#include <nccl.h>

namespace ours = hyperparallel::runtime::cuda;
namespace lt = ours::lt;
namespace nccl = ours::nccl;

#define CHECK_LT(NAME, MEMBER, PARAMETERS)                                     \
  static_assert(Same<decltype(ours::CublasLt::MEMBER), decltype(&::NAME)>,     \
                #NAME);
HP_CUBLASLT_FUNCTIONS(CHECK_LT)

static_assert(lt::R32F == CUDA_R_32F && lt::R64F == CUDA_R_64F);
static_assert(lt::R16F == CUDA_R_16F && lt::R16BF == CUDA_R_16BF);
static_assert(lt::Compute32F == CUBLAS_COMPUTE_32F);
static_assert(lt::Compute64F == CUBLAS_COMPUTE_64F);
static_assert(lt::Compute32FFastTF32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(lt::TransA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(lt::TransB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(lt::Epilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(lt::BiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(lt::EpilogueDefault == CUBLASLT_EPILOGUE_DEFAULT);
static_assert(lt::EpilogueRelu == CUBLASLT_EPILOGUE_RELU);
static_assert(lt::EpilogueBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(lt::EpilogueGelu == CUBLASLT_EPILOGUE_GELU);
// Ours are put together by or.
static_assert((lt::EpilogueRelu | lt::EpilogueBias) ==
              CUBLASLT_EPILOGUE_RELU_BIAS);
static_assert((lt::EpilogueGelu | lt::EpilogueBias) ==
              CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(lt::BatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(lt::BatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(lt::MaxWorkspaceBytes ==
              CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(lt::MinAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(lt::MinAlignmentB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(lt::MinAlignmentC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(lt::MinAlignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(lt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(lt::Heuristic, workspaceSize) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(lt::Heuristic, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(sizeof(lt::Heuristic::algorithm) == sizeof(cublasLtMatmulAlgo_t));

#define CHECK_NCCL(NAME, MEMBER, PARAMETERS)                                   \
  static_assert(Same<decltype(ours::Nccl::MEMBER), decltype(&::NAME)>, #NAME);
HP_NCCL_FUNCTIONS(CHECK_NCCL)

static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));
static_assert(nccl::Int8 == ncclInt8 && nccl::Uint8 == ncclUint8);
static_assert(nccl::Int32 == ncclInt32 && nccl::Int64 == ncclInt64);
static_assert(nccl::Float16 == ncclFloat16 && nccl::Bfloat16 == ncclBfloat16);
static_assert(nccl::Float32 == ncclFloat32 && nccl::Float64 == ncclFloat64);
static_assert(nccl::Sum == ncclSum && nccl::Prod == ncclProd);
static_assert(nccl::Max == ncclMax && nccl::Min == ncclMin);
static_assert(nccl::Avg == ncclAvg);
