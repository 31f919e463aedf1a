// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CPU/Transfers.h"
#include "lib/Runtime/CPU/GeneratedCode.h"
#include "lib/Runtime/Status.h"

#include <algorithm>
#include <cstring>

namespace hyperparallel::runtime {

static Stream &streamOf(Stream *&stream, Device &device, hp_stream_role role) {
  if (!stream) {
    stream = new Stream(device, role);
    device.context->addStream(stream);
  }
  return *stream;
}

Transfer *Transfers::enqueue(Device &device, bool isIncoming, const char *name,
                             int64_t bytes, std::function<void()> copy) {
  Stream &stream = isIncoming ? streamOf(incoming, device, HP_STREAM_H2D)
                              : streamOf(outgoing, device, HP_STREAM_D2H);
  auto done = std::make_shared<EventRecord>();
  const char *label = threadState().label;
  stream.enqueue(label ? label : name, bytes, [copy = std::move(copy), done] {
    copy();
    done->complete();
    return HP_OK;
  });
  ++device.stats.copies[isIncoming ? 0 : 1];
  device.stats.copied[isIncoming ? 0 : 1] += bytes;
  running.push_back(std::make_unique<Transfer>(Transfer{std::move(done)}));
  return running.back().get();
}

Transfer *Transfers::start(Device &device, void *target, int32_t targetTier,
                           const void *source, int64_t bytes) {
  bool isIncoming = targetTier == HP_TIER_DEVICE;
  return enqueue(device, isIncoming, isIncoming ? "prefetch" : "store", bytes,
                 [=] {
                   if (bytes > 0)
                     std::memcpy(target, source, static_cast<size_t>(bytes));
                 });
}

Transfer *Transfers::startRows(Device &device, void *target, const void *source,
                               int64_t rowBytes, const int64_t *rows,
                               int64_t count) {
  std::vector<int64_t> wanted(rows, rows + count);
  return enqueue(
      device, /*isIncoming=*/true, "prefetch_rows", rowBytes * count, [=] {
        char *to = static_cast<char *>(target);
        const char *from = static_cast<const char *>(source);
        for (int64_t row : wanted) {
          std::memcpy(to, from + row * rowBytes, static_cast<size_t>(rowBytes));
          to += rowBytes;
        }
      });
}

bool Transfers::finish(Device &device, Transfer *transfer) {
  auto found = std::find_if(running.begin(), running.end(), [&](auto &known) {
    return known.get() == transfer;
  });
  if (found == running.end())
    return false;
  int64_t begin = nowNs();
  (*found)->done->wait();
  int64_t end = nowNs();
  device.stats.copy_wait_ns += end - begin;
  if (device.context->trace.enabled() && device.lane && end - begin > 1000)
    device.lane->spans.push_back({"copy", "wait for a copy", begin, end, -1});
  running.erase(found);
  return true;
}

void Transfers::drain() {
  for (std::unique_ptr<Transfer> &transfer : running)
    transfer->done->wait();
  running.clear();
}

static hp_status checkCopy(const void *target, int32_t targetTier,
                           const void *source, int32_t sourceTier,
                           int64_t bytes) {
  auto isTier = [](int32_t tier) { return tier >= 0 && tier < HP_TIER_COUNT; };
  if (!isTier(targetTier) || !isTier(sourceTier))
    return fail(HP_INVALID_ARGUMENT,
                "hp_rt_copy_start: expected tiers but got %d and %d",
                static_cast<int>(sourceTier), static_cast<int>(targetTier));
  if ((targetTier == HP_TIER_DEVICE) == (sourceTier == HP_TIER_DEVICE))
    return fail(HP_INVALID_ARGUMENT,
                "hp_rt_copy_start: expected a copy to the device or from it");
  if (bytes < 0 || (bytes > 0 && (!target || !source)))
    return fail(HP_INVALID_ARGUMENT, "hp_rt_copy_start: expected two buffers");
  return HP_OK;
}

static hp_status checkRows(const void *target, const void *source,
                           int32_t sourceTier, int64_t rowBytes,
                           int64_t numRows, const int64_t *rows,
                           int64_t count) {
  hp_status status = checkCopy(target, HP_TIER_DEVICE, source, sourceTier,
                               rowBytes < 0 ? -1 : rowBytes * count);
  if (status != HP_OK)
    return status;
  for (int64_t i = 0; i < count; ++i)
    if (rows[i] < 0 || rows[i] >= numRows)
      return fail(HP_PROGRAM_ERROR,
                  "expected the index of one of %lld rows but got %lld",
                  static_cast<long long>(numRows),
                  static_cast<long long>(rows[i]));
  return HP_OK;
}

} // namespace hyperparallel::runtime

using namespace hyperparallel::runtime;

extern "C" {

void *hp_rt_copy_start(void *target, int32_t target_tier, const void *source,
                       int32_t source_tier, int64_t bytes) {
  Device &device = currentDevice("hp_rt_copy_start");
  hp_status status = mayCall(device, "hp_rt_copy_start");
  if (status == HP_OK)
    status = checkCopy(target, target_tier, source, source_tier, bytes);
  if (status != HP_OK)
    leaveProgram(device, status);
  return device.transfers.start(device, target, target_tier, source, bytes);
}

void *hp_rt_copy_rows_start(void *target, const void *source,
                            int32_t source_tier, int64_t row_bytes,
                            int64_t num_rows, const int64_t *rows,
                            int64_t count) {
  Device &device = currentDevice("hp_rt_copy_rows_start");
  hp_status status = mayCall(device, "hp_rt_copy_rows_start");
  if (status == HP_OK)
    status = checkRows(target, source, source_tier, row_bytes, num_rows, rows,
                       count);
  if (status != HP_OK)
    leaveProgram(device, status);
  return device.transfers.startRows(device, target, source, row_bytes, rows,
                                    count);
}

void hp_rt_copy_wait(void *copy) {
  Device &device = currentDevice("hp_rt_copy_wait");
  hp_status status = mayCall(device, "hp_rt_copy_wait");
  if (status == HP_OK &&
      !device.transfers.finish(device, static_cast<Transfer *>(copy)))
    status = fail(HP_INVALID_ARGUMENT,
                  "hp_rt_copy_wait: expected a copy that was not waited for "
                  "but got %p",
                  copy);
  if (status != HP_OK)
    leaveProgram(device, status);
}

} // extern "C"
