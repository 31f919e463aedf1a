// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- LibraryCalls.cpp - hp_rt_library through CANN's operators ---------===//
//
//   check (number): of an assertion that failed, or 0. It is copied to the
//         host, which looks at all of them when the run ends
//
// All others are in OperatorCalls.cpp.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Ascend/Opapi.h"
#include "lib/Runtime/CUDA/Collectives.h"
#include "lib/Runtime/CUDA/Matmul.h"

#include <cstring>
#include <utility>

namespace hyperparallel::runtime::cuda {

namespace {

/// Where the numbers of assertions arrive on the host. Those of captured steps
/// are theirs, and looked at after every run.
struct Slots {
  std::vector<int32_t *> pages; ///< pinned
  size_t used = 0;
  std::vector<int32_t *> ofSteps;
  size_t left = 0; ///< in the newest page of ofSteps
  std::vector<int32_t *> pagesOfSteps;
};
constexpr size_t SlotsOfPage = 1024;
std::mutex slotsMutex;
std::unordered_map<const Device *, Slots> slotsOf;

hp_status addPage(Device &device, std::vector<int32_t *> &pages) {
  void *page = nullptr;
  Driver &driver = device.context->driver;
  hp_status status = driver.check(
      driver.hostAlloc(&page, SlotsOfPage * sizeof(int32_t), HostAllocPortable),
      "allocating pinned memory");
  if (status == HP_OK)
    pages.push_back(static_cast<int32_t *>(page));
  return status;
}

hp_status takeSlot(Device &device, int32_t **out) {
  std::lock_guard<std::mutex> lock(slotsMutex);
  Slots &slots = slotsOf[&device];
  if (device.graphs.isCapturing) {
    if (slots.left == 0)
      return fail(HP_UNIMPLEMENTED, "it has more assertions than there is room "
                                    "for");
    *out = slots.pagesOfSteps.back() + --slots.left;
    slots.ofSteps.push_back(*out);
    return HP_OK;
  }
  hp_status status = HP_OK;
  if (slots.used == slots.pages.size() * SlotsOfPage)
    status = addPage(device, slots.pages);
  // A capture must not allocate: before it begins there is always room for half
  // a page. A step with more assertions than that is not captured.
  if (status == HP_OK && slots.left < SlotsOfPage / 2) {
    status = addPage(device, slots.pagesOfSteps);
    if (status == HP_OK) {
      slots.left = SlotsOfPage;
      std::memset(slots.pagesOfSteps.back(), 0, SlotsOfPage * sizeof(int32_t));
    }
  }
  if (status != HP_OK)
    return status;
  *out = slots.pages[slots.used / SlotsOfPage] + slots.used % SlotsOfPage;
  **out = 0;
  ++slots.used;
  return HP_OK;
}

hp_status check(Device &device, const void *number) {
  int32_t *slot = nullptr;
  hp_status status = takeSlot(device, &slot);
  Driver &driver = device.context->driver;
  return status != HP_OK
             ? status
             : driver.check(
                   driver.copyAsync(reinterpret_cast<DevicePointer>(slot),
                                    reinterpret_cast<DevicePointer>(number),
                                    sizeof(int32_t),
                                    device.streams[HP_STREAM_COMPUTE]),
                   "reading an assertion");
}

hp_status callLibrary(Device &device, const char *operation,
                      void *const *buffers, int64_t count, const int64_t *words,
                      int64_t numWords) {
  if (!std::strcmp(operation, "check") && count == 1)
    return check(device, buffers[0]);
  return ascend::callOperator(device, operation, buffers, count, words,
                              numWords);
}

void rtLibrary(const char *operation, void *const *buffers, int64_t count,
               const int64_t *words, int64_t numWords) {
  Device &device = currentDevice();
  proceed(device,
          callLibrary(device, operation, buffers, count, words, numWords));
}

} // namespace

int32_t takeViolation(Device &device) {
  std::lock_guard<std::mutex> lock(slotsMutex);
  Slots &slots = slotsOf[&device];
  int32_t found = 0;
  for (size_t i = 0; i < slots.used && found == 0; ++i)
    found = slots.pages[i / SlotsOfPage][i % SlotsOfPage];
  slots.used = 0;
  for (int32_t *slot : slots.ofSteps)
    if (int32_t number = std::exchange(*slot, 0); number && !found)
      found = number;
  return found;
}

const Vendor &vendor() {
  static const Vendor names = {"ascend", "NPUs"};
  return names;
}

hp_status applyOption(Context &context, const char *key, const char *value) {
  if (!std::strcmp(key, "libascendcl"))
    context.driverPath = value;
  else if (!std::strcmp(key, "libopapi"))
    ascend::opapi().path = value;
  else if (!std::strcmp(key, "libhccl"))
    context.collectives.path = value;
  else if (!std::strcmp(key, "graphs"))
    context.capturesSteps = std::strcmp(value, "0") != 0;
  else
    return fail(HP_INVALID_ARGUMENT,
                "back end 'ascend' has no option '%s'; it knows libascendcl, "
                "libopapi, libhccl and graphs",
                key);
  return HP_OK;
}

void forgetProducts(Device &device) {
  std::lock_guard<std::mutex> lock(slotsMutex);
  const Slots &slots = slotsOf[&device];
  for (const auto *pages : {&slots.pages, &slots.pagesOfSteps})
    for (int32_t *page : *pages)
      device.context->driver.hostFree(page);
  slotsOf.erase(&device);
}

void *findVendorImport(const char *name) {
  static const Import imports[] = {makeImport("hp_rt_library", rtLibrary)};
  return findIn(imports, sizeof(imports) / sizeof(*imports), name);
}

} // namespace hyperparallel::runtime::cuda
