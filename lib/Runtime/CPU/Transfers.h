// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Transfers.h - Copies between tiers that a program starts ----------===//
//
// A device has two transfer threads, one to its memory and one from it, each
// doing its copies in the order in which they were started. They are made when
// a program first copies, and outlive its run.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_TRANSFERS_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_TRANSFERS_H

#include "lib/Runtime/CPU/Stream.h"

#include <vector>

namespace hyperparallel::runtime {

struct Device;

/// A copy that was started and not waited for.
struct Transfer {
  std::shared_ptr<EventRecord> done;
};

/// The transfers of one device; used by its own thread only.
class Transfers {
public:
  Transfer *start(Device &device, void *target, int32_t targetTier,
                  const void *source, int64_t bytes);
  Transfer *startRows(Device &device, void *target, const void *source,
                      int64_t rowBytes, const int64_t *rows, int64_t count);
  /// Waits and forgets; false if there is no such transfer.
  bool finish(Device &device, Transfer *transfer);
  /// Waits for all copies, so that their memory may be reused.
  void drain();

private:
  Transfer *enqueue(Device &device, bool isIncoming, const char *name,
                    int64_t bytes, std::function<void()> copy);

  Stream *incoming = nullptr; ///< the context owns the streams
  Stream *outgoing = nullptr;
  std::vector<std::unique_ptr<Transfer>> running;
};

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_TRANSFERS_H
