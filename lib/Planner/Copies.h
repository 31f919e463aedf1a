//===- Copies.h - queues of copies that share wires -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Each link does its copies one after the other, in the order in which they
// were issued. A copy takes its latency, then its bytes flow at the link's
// bandwidth, or at what the link's segment leaves it: the flows of a segment
// get equal parts, and what one cannot use goes to the others.
//
// Time only goes forward: it is told by whoever issues and waits.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_PLANNER_COPIES_H
#define HYPERPARALLEL_LIB_PLANNER_COPIES_H

#include "lib/Planner/Problem.h"

#include <deque>

namespace mlir::hyperparallel::planner {

class Copies {
public:
  /// Two links for each tier.
  explicit Copies(const Problem &problem);

  static uint32_t outLink(uint32_t tier) { return 2 * tier; }
  static uint32_t inLink(uint32_t tier) { return 2 * tier + 1; }

  /// Queues a copy at the present moment; start and end are written to where
  /// they point, when they are known. One that is `joined` to the copy that was
  /// issued before it on the link takes no latency of its own.
  void issue(uint32_t link, int64_t bytes, bool joined, double *start,
             double *end);

  double now() const { return time; }
  /// Time goes on to the moment.
  void advance(double moment);
  /// Time goes on until the copy that writes its end there has ended.
  void wait(const double *end);
  /// Time goes on by what `seconds` of an operation take that moves `bytes`
  /// through the device's memory.
  void run(double seconds, int64_t bytes);

private:
  struct Copy {
    int64_t bytes;
    double latency;
    double *start, *end;
  };
  struct Queue {
    const Link *link;
    std::deque<Copy> copies;
    bool isFlowing = false;
    /// Of the first copy: when its latency is over, or its flow ends.
    double next = 0;
    double remaining = 0, rate = 0, since = 0;
    /// Where nothing is shared: when the last copy ends.
    double free = 0;
  };

  void begin(Queue &queue);
  void finishStep(Queue &queue);
  void setRate(Queue &queue, double rate);
  void shareSegment(int32_t segment);
  /// The queue with the earliest event, if any copy is under way.
  Queue *earliest();

  const Problem &problem;
  double time = 0;
  std::vector<Queue> queues;
  double flow = 0;
  /// Copies share no wire and slow nothing down: their ends are known at once.
  bool isShared = false;
};

} // namespace mlir::hyperparallel::planner

#endif // HYPERPARALLEL_LIB_PLANNER_COPIES_H
