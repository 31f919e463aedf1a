//===- Copies.cpp - queues of copies that share wires ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The first copy of each queue is under way: in its latency, or flowing. The
// event that comes next is the earliest end of either. When a flow begins or
// ends, the flows of its segment get new rates; a rate that did not change
// leaves its end untouched, so that alone on its wire a copy takes exactly
// latency + bytes / bandwidth.
//
// Copies come before operations at the device's memory: an operation that needs
// d bytes per second while copies take c of the memory's H goes on at
// min(1, (H - c) / d) of its speed.
//
// Cost: O(links) for each copy; O(1) if links share nothing.
//===----------------------------------------------------------------------===//
#include "lib/Planner/Copies.h"

#include <algorithm>
#include <limits>

using namespace mlir::hyperparallel::planner;

/// However many copies there are, an operation gets this part of its speed.
static constexpr double kLeastSpeed = 0.05;

Copies::Copies(const Problem &problem) : problem(problem) {
  for (const Tier &tier : problem.tiers) {
    queues.emplace_back();
    queues.back().link = &tier.out;
    queues.emplace_back();
    queues.back().link = &tier.in;
    isShared |= tier.out.segment >= 0 || tier.in.segment >= 0;
  }
  isShared |= problem.memoryBandwidth > 0;
}

void Copies::issue(uint32_t link, int64_t bytes, bool joined, double *start,
                   double *end) {
  Queue &queue = queues[link];
  double latency = queue.link->latency *
                   double(queue.link->chunks(bytes) - (joined ? 1 : 0));
  if (!isShared) {
    *start = std::max(time, queue.free);
    *end = queue.free =
        *start + latency + double(bytes) / problem.rate(*queue.link);
    return;
  }
  *end = std::numeric_limits<double>::infinity();
  queue.copies.push_back({bytes, latency, start, end});
  if (queue.copies.size() == 1)
    begin(queue);
}

void Copies::begin(Queue &queue) {
  const Copy &copy = queue.copies.front();
  *copy.start = time;
  queue.next = time + copy.latency;
}

Copies::Queue *Copies::earliest() {
  Queue *found = nullptr;
  for (Queue &queue : queues)
    if (!queue.copies.empty() && (!found || queue.next < found->next))
      found = &queue;
  return found;
}

void Copies::setRate(Queue &queue, double rate) {
  if (rate == queue.rate)
    return;
  queue.remaining -= queue.rate * (time - queue.since);
  queue.since = time;
  queue.rate = rate;
  queue.next = time + std::max(queue.remaining, 0.0) / rate;
}

/// Water filling over the few flows of a segment.
void Copies::shareSegment(int32_t segment) {
  std::vector<Queue *> flows;
  for (Queue &queue : queues)
    if (queue.isFlowing && queue.link->segment == segment)
      flows.push_back(&queue);
  std::sort(flows.begin(), flows.end(), [](Queue *a, Queue *b) {
    return a->link->bandwidth < b->link->bandwidth;
  });
  double left = problem.segments[segment];
  for (size_t i = 0; i < flows.size(); ++i) {
    double share = left / double(flows.size() - i);
    double rate = std::min(share, flows[i]->link->bandwidth);
    left -= rate;
    setRate(*flows[i], rate);
  }
}

/// What comes at the queue's `next`: the flow begins, or ends.
void Copies::finishStep(Queue &queue) {
  int32_t segment = queue.link->segment;
  if (!queue.isFlowing) {
    queue.isFlowing = true;
    queue.remaining = double(queue.copies.front().bytes);
    queue.since = time;
    queue.rate = 0;
    if (segment < 0)
      setRate(queue, queue.link->bandwidth);
  } else {
    *queue.copies.front().end = time;
    queue.copies.pop_front();
    queue.isFlowing = false;
    queue.rate = 0;
  }
  if (segment >= 0)
    shareSegment(segment);
  if (!queue.isFlowing && !queue.copies.empty())
    begin(queue);
  flow = 0;
  for (const Queue &other : queues)
    if (other.isFlowing)
      flow += other.rate;
}

void Copies::advance(double moment) {
  if (!isShared) {
    time = std::max(time, moment);
    return;
  }
  for (Queue *queue = earliest(); queue && queue->next <= moment;
       queue = earliest()) {
    time = std::max(time, queue->next);
    finishStep(*queue);
  }
  time = std::max(time, moment);
}

void Copies::wait(const double *end) {
  if (!isShared) {
    time = std::max(time, *end);
    return;
  }
  while (*end > time) {
    Queue *queue = earliest();
    if (!queue)
      return;
    time = std::max(time, queue->next);
    finishStep(*queue);
  }
}

void Copies::run(double seconds, int64_t bytes) {
  if (problem.memoryBandwidth <= 0 || bytes <= 0 || seconds <= 0) {
    advance(time + seconds);
    return;
  }
  double demand = double(bytes) / seconds;
  while (true) {
    double speed =
        std::clamp((problem.memoryBandwidth - flow) / demand, kLeastSpeed, 1.0);
    double end = time + seconds / speed;
    Queue *queue = earliest();
    if (!queue || queue->next > end) {
      time = end;
      return;
    }
    double moment = std::max(time, queue->next);
    seconds -= (moment - time) * speed;
    time = moment;
    finishStep(*queue);
  }
}
