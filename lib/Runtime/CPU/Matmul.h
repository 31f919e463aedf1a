// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Matmul.h - Matrix products through OpenBLAS -----------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_MATMUL_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_MATMUL_H

#include "lib/Runtime/hp_runtime.h"

#include <atomic>
#include <mutex>
#include <string>

namespace hyperparallel::runtime {

class WorkerPool;

/// The functions of libscipy_openblas.so, loaded when first needed. OpenBLAS's
/// own threads stay idle: the runtime splits products over its worker pool,
/// so that devices never compete for a second set of threads.
class Blas {
public:
  using Gemm32 = void (*)(int, int, int, int, int, int, float, const float *,
                          int, const float *, int, float, float *, int);
  using Gemm64 = void (*)(int, int, int, int, int, int, double, const double *,
                          int, const double *, int, double, double *, int);
  using Gemv32 = void (*)(int, int, int, int, float, const float *, int,
                          const float *, int, float, float *, int);
  using Gemv64 = void (*)(int, int, int, int, double, const double *, int,
                          const double *, int, double, double *, int);

  void setPath(std::string path) { this->path = std::move(path); }
  /// HP_NOT_FOUND with a hint if the library or a function is missing.
  hp_status load();

  Gemm32 sgemm = nullptr;
  Gemm64 dgemm = nullptr;
  Gemv32 sgemv = nullptr;
  Gemv64 dgemv = nullptr;

private:
  hp_status loadLocked();

  std::atomic<bool> loaded{false};
  std::mutex mutex;
  std::string path;
};

/// HP_INVALID_ARGUMENT if the description makes no sense.
hp_status checkMatmul(const hp_matmul_desc &desc);

/// Computes the product with up to `width` threads of `pool` (slot `slot`).
/// Requires a loaded library and a checked description.
void runMatmul(const Blas &blas, const hp_matmul_desc &desc, WorkerPool *pool,
               int slot, int width);

double matmulFlops(const hp_matmul_desc &desc);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_MATMUL_H
