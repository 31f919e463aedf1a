//===- Deadlock.h - proof that no process waits forever ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_SCHEDULER_DEADLOCK_H
#define HYPERPARALLEL_LIB_SCHEDULER_DEADLOCK_H

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::hyperparallel::scheduler {

/// One thing that a process does and others are in.
struct Action {
  enum class What : uint32_t {
    Send,    ///< to process `peer`, under `tag`
    Receive, ///< from process `peer`, under `tag`
    Meet,    ///< with all other members of circle `peer`
  } what = What::Send;
  uint32_t peer = 0;
  int64_t tag = 0;
  /// What both sides must agree on; less than zero: not known.
  int64_t bytes = -1;
  /// What to call it in messages.
  std::string label;
};

enum class Semantics {
  /// A send ends when its receive has begun: what holds here holds everywhere.
  Rendezvous,
  /// A send ends at once; the message waits for its receiver.
  Buffered,
};

struct Processes {
  std::vector<std::string> names;
  /// By process, in order.
  std::vector<std::vector<Action>> actions;
  /// Process numbers that meet (collectives), by circle.
  std::vector<std::vector<uint32_t>> circles;
};

/// Empty if all processes come to their end in every run; else what happens
/// instead: who waits for whom in a circle, or for somebody who never comes.
std::string findDeadlock(const Processes &processes, Semantics semantics);

} // namespace mlir::hyperparallel::scheduler

#endif // HYPERPARALLEL_LIB_SCHEDULER_DEADLOCK_H
