// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CPU/WorkerPool.h"

#include <algorithm>
#include <sched.h>

namespace hyperparallel::runtime {

/// How long an idle helper looks for work before it sleeps (about 50 us).
static constexpr int IdleSpins = 2000;
static constexpr int64_t SleepNs = 1000000000;
/// Pieces per thread: enough to even out cores that others use too.
static constexpr int64_t PiecesPerThread = 4;

WorkerPool::WorkerPool(int numHelpers, int numSlots)
    : slots(new Slot[numSlots]), numSlots(numSlots) {
  for (int i = 0; i < numHelpers; ++i)
    helpers.emplace_back([this] { helperMain(); });
}

WorkerPool::~WorkerPool() {
  quitting = true;
  posts.add();
  for (std::thread &helper : helpers)
    helper.join();
}

void WorkerPool::work(Slot &slot) {
  while (!slot.stopped.load(std::memory_order_relaxed)) {
    int64_t begin = slot.next.fetch_add(slot.piece, std::memory_order_relaxed);
    if (begin >= slot.n)
      return;
    if (!slot.fn(slot.context, begin, std::min(begin + slot.piece, slot.n)))
      slot.stopped.store(true, std::memory_order_relaxed);
  }
}

bool WorkerPool::helpAny() {
  bool worked = false;
  for (int i = 0; i < numSlots; ++i) {
    Slot &slot = slots[i];
    if (!slot.open.load(std::memory_order_relaxed))
      continue;
    // Enter first, look again then: the owner closes first and then waits for
    // `inside`, so either we see it closed or it sees us inside.
    slot.inside.fetch_add(1, std::memory_order_seq_cst);
    if (slot.open.load(std::memory_order_seq_cst) &&
        slot.tickets.fetch_sub(1, std::memory_order_relaxed) > 0) {
      work(slot);
      worked = true;
    }
    slot.inside.fetch_sub(1, std::memory_order_release);
  }
  return worked;
}

void WorkerPool::helperMain() {
  uint32_t seen = posts.load();
  while (!quitting.load(std::memory_order_relaxed)) {
    if (helpAny())
      continue;
    if (posts.spin(seen + 1, IdleSpins)) {
      seen = posts.load();
      continue;
    }
    posts.sleep(seen, SleepNs);
  }
}

bool WorkerPool::run(int index, int width, PieceFn fn, void *context, int64_t n,
                     int64_t grain) {
  if (n <= 0)
    return true;
  grain = std::max<int64_t>(grain, 1);
  width = static_cast<int>(std::min<int64_t>(width, (n + grain - 1) / grain));
  width = std::min(width, static_cast<int>(helpers.size()) + 1);
  if (width <= 1)
    return fn(context, 0, n);
  Slot &slot = slots[index];
  slot.fn = fn;
  slot.context = context;
  slot.n = n;
  slot.piece = std::max(grain, n / (width * PiecesPerThread));
  slot.next.store(0, std::memory_order_relaxed);
  slot.stopped.store(false, std::memory_order_relaxed);
  slot.tickets.store(width - 1, std::memory_order_relaxed);
  slot.open.store(true, std::memory_order_seq_cst);
  posts.add();
  work(slot);
  slot.open.store(false, std::memory_order_seq_cst);
  for (int spins = 0; slot.inside.load(std::memory_order_seq_cst) != 0;
       ++spins) {
    cpuRelax();
    if (spins > 1000)
      sched_yield();
  }
  return !slot.stopped.load(std::memory_order_relaxed);
}

} // namespace hyperparallel::runtime
