// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- WorkerPool.h - Helper threads for parallel loops ------------------===//
//
// One pool serves all devices of a context. A device posts its loop in its own
// slot, works on it itself, and leaves when no piece is left and no helper is
// inside. Helpers look through the slots and join where fewer than `width - 1`
// have joined. A loop therefore never depends on a helper being free, helpers
// never wait inside a loop, and no set of devices can deadlock the pool.
//
//      device d:  post ── pieces ── close ── wait until inside == 0
//      helper:          enter (inside += 1) ── still open? pieces ── leave
//
// Cost: with idle helpers still spinning (about 50 us after their last work)
// posting is two atomic stores; after that, one futex wake.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_WORKERPOOL_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_WORKERPOOL_H

#include "lib/Runtime/CPU/Counter.h"

#include <memory>
#include <thread>
#include <vector>

namespace hyperparallel::runtime {

/// Runs piece [begin, end); false stops the loop.
using PieceFn = bool (*)(void *context, int64_t begin, int64_t end);

class WorkerPool {
public:
  WorkerPool(int helpers, int slots);
  ~WorkerPool();

  /// Runs `fn` over a partition of [0, n) by the caller and at most width - 1
  /// helpers; false if a piece returned false.
  bool run(int slot, int width, PieceFn fn, void *context, int64_t n,
           int64_t grain);

private:
  struct alignas(64) Slot {
    std::atomic<bool> open{false};
    std::atomic<int> inside{0};
    std::atomic<int> tickets{0};
    std::atomic<bool> stopped{false};
    PieceFn fn = nullptr;
    void *context = nullptr;
    int64_t n = 0, piece = 1;
    alignas(64) std::atomic<int64_t> next{0};
  };

  void helperMain();
  bool helpAny();
  static void work(Slot &slot);

  std::unique_ptr<Slot[]> slots;
  int numSlots;
  Counter posts; ///< grows with every posted loop and at the end
  std::atomic<bool> quitting{false};
  std::vector<std::thread> helpers;
};

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_WORKERPOOL_H
