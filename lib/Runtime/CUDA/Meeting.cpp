// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Meeting.cpp - Members of a group find each other ------------------===//

#include "lib/Runtime/CUDA/Nccl.h"

#include <chrono>

namespace hyperparallel::runtime::cuda {

hp_status Nccl::meet(const std::string &key, bool isFirst,
                     const std::atomic<bool> &stopping, nccl::UniqueId *out) {
  std::unique_lock<std::mutex> lock(mutex);
  if (isFirst) {
    hp_status status = check(uniqueId(out), "naming a group of devices");
    if (status == HP_OK)
      ids[key] = *out;
    changed.notify_all();
    return status;
  }
  while (!ids.count(key)) {
    if (stopping)
      return fail(HP_CANCELLED, "the run was stopped");
    changed.wait_for(lock, std::chrono::milliseconds(50));
  }
  *out = ids[key];
  return HP_OK;
}

} // namespace hyperparallel::runtime::cuda
