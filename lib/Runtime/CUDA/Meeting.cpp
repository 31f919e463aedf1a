// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Meeting.cpp - Groups of devices, whatever the library -------------===//

#include "lib/Runtime/CUDA/Nccl.h"

namespace hyperparallel::runtime::cuda {

hp_status Nccl::meet(const std::string &key, int64_t size,
                     nccl::UniqueId *out) {
  std::lock_guard<std::mutex> lock(mutex);
  auto [entry, isNew] = meetings.try_emplace(key);
  if (isNew) {
    hp_status status =
        check(uniqueId(&entry->second.id), "naming a group of devices");
    if (status != HP_OK) {
      meetings.erase(entry);
      return status;
    }
    entry->second.absent = size;
  }
  *out = entry->second.id;
  if (--entry->second.absent == 0)
    meetings.erase(entry);
  return HP_OK;
}

} // namespace hyperparallel::runtime::cuda
