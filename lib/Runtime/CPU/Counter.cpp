// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CPU/Counter.h"

#ifdef __linux__
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <chrono>
#include <condition_variable>
#include <mutex>
#endif

namespace hyperparallel::runtime {

#ifdef __linux__

void Counter::sleep(uint32_t seen, int64_t nanoseconds) {
  timespec timeout;
  timeout.tv_sec = nanoseconds / 1000000000;
  timeout.tv_nsec = nanoseconds % 1000000000;
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&value), FUTEX_WAIT_PRIVATE,
          seen, &timeout, nullptr, 0);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void Counter::wakeAll() {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&value), FUTEX_WAKE_PRIVATE,
          INT_MAX, nullptr, nullptr, 0);
}

#else

// Without futexes all counters share a few condition variables.
namespace {
struct Bed {
  std::mutex mutex;
  std::condition_variable condition;
};
} // namespace

static Bed &bedOf(const void *address) {
  static Bed beds[16];
  return beds[(reinterpret_cast<uintptr_t>(address) / 64) % 16];
}

void Counter::sleep(uint32_t seen, int64_t nanoseconds) {
  Bed &bed = bedOf(this);
  std::unique_lock<std::mutex> lock(bed.mutex);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (value.load(std::memory_order_seq_cst) == seen)
    bed.condition.wait_for(lock, std::chrono::nanoseconds(nanoseconds));
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void Counter::wakeAll() {
  Bed &bed = bedOf(this);
  std::lock_guard<std::mutex> lock(bed.mutex);
  bed.condition.notify_all();
}

#endif

} // namespace hyperparallel::runtime
