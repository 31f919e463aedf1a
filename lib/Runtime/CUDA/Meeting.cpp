// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Meeting.cpp - Groups of devices, whatever the library -------------===//

#include "lib/Runtime/CUDA/Nccl.h"
#include "lib/Runtime/ElementTypes.h"

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

hp_status nccl::findReduction(int64_t dtype, int64_t op, int *type, int *how) {
  static const int types[] = {Uint8,   Int8,     -1,      Int32,  Int64,
                              Float16, Bfloat16, Float32, Float64};
  *type = dtypeBytes(dtype) > 0 ? types[dtype] : -1;
  bool isFloat = dtype >= HP_F16;
  *how = op == HP_SUM              ? Sum
         : op == HP_MAX            ? Max
         : op == HP_MIN            ? Min
         : op == HP_PROD           ? Prod
         : op == HP_AVG && isFloat ? Avg
                                   : -1;
  if (dtype == HP_I1) // bytes of 0 and 1
    *how = op == HP_OR ? Max : op == HP_AND || op == HP_PROD ? Min : -1;
  return *type >= 0 && *how >= 0
             ? HP_OK
             : fail(HP_UNIMPLEMENTED, "NCCL has no %s of %s elements",
                    reductionName(op), dtypeName(dtype));
}

} // namespace hyperparallel::runtime::cuda
