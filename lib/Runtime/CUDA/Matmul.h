// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Matmul.h - Products through cuBLASLt ------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CUDA_MATMUL_H
#define HYPERPARALLEL_LIB_RUNTIME_CUDA_MATMUL_H

#include "lib/Runtime/CUDA/Device.h"

namespace hyperparallel::runtime::cuda {

/// Queues a product. The device's context must be current.
hp_status multiply(Device &device, const hp_matmul_desc &desc,
                   StreamHandle stream);
/// HP_OK, or why not.
hp_status canMultiply(int64_t dtype, int64_t activation);
hp_status canAttend(int64_t dtype, int64_t width);
/// How many of the last batch dimensions are one for all operands. Vendors'
/// products know one batch dimension.
inline int64_t countFolded(const hp_matmul_desc &desc) {
  int64_t folded = desc.batch_rank > 0 ? 1 : 0;
  while (folded > 0 && folded < desc.batch_rank) {
    int64_t inner = desc.batch_rank - folded, outer = inner - 1;
    auto continues = [&](const int64_t *stride) {
      return stride[outer] == stride[inner] * desc.batch[inner];
    };
    if (!continues(desc.stride_a) || !continues(desc.stride_b) ||
        !continues(desc.stride_c))
      break;
    ++folded;
  }
  return folded;
}
/// Frees what was kept about products.
void forgetProducts(Device &device);

} // namespace hyperparallel::runtime::cuda

#endif // HYPERPARALLEL_LIB_RUNTIME_CUDA_MATMUL_H
