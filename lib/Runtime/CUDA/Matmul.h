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
/// Frees what was kept about products.
void forgetProducts(Device &device);

} // namespace hyperparallel::runtime::cuda

#endif // HYPERPARALLEL_LIB_RUNTIME_CUDA_MATMUL_H
