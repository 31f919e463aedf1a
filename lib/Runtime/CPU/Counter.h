// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Counter.h - A counter that threads can wait on --------------------===//
//
// A 32-bit counter that only grows (modulo 2^32). Waiting for it to reach a
// target needs no lock and leaves no state behind, so a counter is never reset
// and a late reader cannot miss a round. Adding costs one atomic operation
// when nobody sleeps, and one system call when somebody does.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_COUNTER_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_COUNTER_H

#include <atomic>
#include <cstdint>

namespace hyperparallel::runtime {

/// Tells the core that this is a spinning loop.
inline void cpuRelax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class alignas(64) Counter {
public:
  uint32_t load() const { return value.load(std::memory_order_acquire); }

  bool reached(uint32_t target) const {
    return static_cast<int32_t>(load() - target) >= 0;
  }

  void add() {
    value.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0)
      wakeAll();
  }

  /// Spins for at most `spins` rounds; true if the target was reached.
  bool spin(uint32_t target, int spins) const {
    for (int i = 0; i < spins; ++i) {
      if (reached(target))
        return true;
      cpuRelax();
    }
    return reached(target);
  }

  /// Sleeps while the value is `seen`, for at most `nanoseconds`; may return
  /// early for no reason.
  void sleep(uint32_t seen, int64_t nanoseconds);

  void wakeAll();

private:
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};
};

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_COUNTER_H
