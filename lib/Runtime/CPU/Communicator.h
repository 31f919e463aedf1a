// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Communicator.h - Collectives that hosts queue on streams ----------===//
//
// The public hp_comm_* functions. Members join a circle by its name and ranks.
// Each operation gets its number in the circle when it is queued, so members
// agree on the order whatever streams they use; the stream's thread then meets
// the other members in the round of that number:
//
//   arrive ─▶ compare ─▶ pull (in all_reduce: reduce a part, meet, pull) ─▶
//   leave
//
// All members leave together, so a buffer may be reused when its operation is
// done. As with NCCL and HCCL, an operation that a member never queues keeps
// the others waiting; destroying one member's handle ends that wait.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CPU_COMMUNICATOR_H
#define HYPERPARALLEL_LIB_RUNTIME_CPU_COMMUNICATOR_H

#include "lib/Runtime/CPU/Collectives.h"
#include "lib/Runtime/hp_backend.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hyperparallel::runtime {

/// What the members of a communicator share.
class Circle {
public:
  Circle(std::string name, std::vector<int64_t> ranks);

  /// Performs `call` as member `call.rank` in the round of that number.
  hp_status perform(Call call, uint64_t number);
  void send(const Call &call);
  hp_status receive(const Call &call);
  /// Ends all waits; later operations fail.
  void close(std::string reason);

  int64_t size() const { return static_cast<int64_t>(ranks.size()); }

  const std::string name;
  const std::vector<int64_t> ranks; ///< device ordinals
  std::vector<bool> joined;         ///< by rank; guarded by the context

private:
  struct Round {
    std::vector<Call> calls;
    int64_t arrived = 0, met = 0, left = 0;
  };

  hp_status compare(const Round &round) const;
  hp_status await(std::unique_lock<std::mutex> &lock, const int64_t &counter);
  hp_status move(std::unique_lock<std::mutex> &lock, Round &round,
                 const Call &call);

  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, Round> rounds;
  std::map<std::vector<int64_t>, std::deque<std::vector<char>>> messages;
  bool closed = false;
  hp_status status = HP_OK;
  std::string reason;
};

/// All circles of a context.
class Circles {
public:
  std::shared_ptr<Circle> find(const std::string &name,
                               const std::vector<int64_t> &ranks);
  void closeAll();

  std::mutex mutex; ///< also guards Circle::joined

private:
  std::map<std::pair<std::string, std::vector<int64_t>>, std::weak_ptr<Circle>>
      circles;
};

/// The table's entries for communicators.
void addCommunicatorEntries(hp_backend_v1 &table);

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_CPU_COMMUNICATOR_H
