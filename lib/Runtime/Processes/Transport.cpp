// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Processes/Transport.h"
#include "lib/Runtime/Status.h"
#include "lib/Runtime/Trace.h"

#include <algorithm>
#include <cstring>

namespace hyperparallel::runtime {

static constexpr int64_t Millisecond = 1000000;
/// Said by a process that does nothing more.
static constexpr uint64_t Ended = ~uint64_t(0);
/// Heartbeats in which nothing may change before a deadlock is believed.
static constexpr int QuietBeats = 3;
static constexpr int Tag = 1;
/// How long a process may take from its start to its first word.
static constexpr int64_t StartMs = 60000;

//===----------------------------------------------------------------------===//
// What other threads call
//===----------------------------------------------------------------------===//

hp_status Transport::create(const Options &options,
                            std::unique_ptr<Transport> *out) {
  std::unique_ptr<Transport> transport(new Transport(options));
  hp_status status = loadMpi(options.library, &transport->mpi);
  if (status != HP_OK)
    return status;
  transport->thread = std::thread([t = transport.get()] { t->threadMain(); });
  {
    std::unique_lock<std::mutex> lock(transport->mutex);
    transport->changed.wait(lock, [&] { return transport->hasStarted; });
    if (transport->status != HP_OK)
      return failWith(transport->status, transport->reason);
  }
  *out = std::move(transport);
  return HP_OK;
}

Transport::~Transport() {
  quitting = true;
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void Transport::listen(Deliver newDeliver, Fail newFail) {
  std::lock_guard<std::mutex> lock(mutex);
  deliver = std::move(newDeliver);
  fail_ = std::move(newFail);
  for (auto &[key, data] : early)
    deliver(std::move(key), std::move(data));
  early.clear();
  if (status != HP_OK)
    fail_(status, reason);
}

void Transport::post(int process, Kind kind, const ChannelKey &key,
                     const std::vector<char> &data) {
  // Kind, length of the key, key, data.
  int64_t head[2] = {static_cast<int64_t>(kind),
                     static_cast<int64_t>(key.size())};
  std::vector<char> bytes(sizeof(head) + 8 * key.size() + data.size());
  std::memcpy(bytes.data(), head, sizeof(head));
  if (!key.empty())
    std::memcpy(bytes.data() + sizeof(head), key.data(), 8 * key.size());
  if (!data.empty())
    std::memcpy(bytes.data() + sizeof(head) + 8 * key.size(), data.data(),
                data.size());
  std::lock_guard<std::mutex> lock(mutex);
  outbox.push_back({process, std::move(bytes), nullptr});
  ++numUnderWay;
  changed.notify_all();
}

void Transport::send(int process, const ChannelKey &key,
                     std::vector<char> data) {
  post(process, Kind::Data, key, data);
}

void Transport::tellFailure(const std::string &text) {
  std::vector<char> data(text.begin(), text.end());
  for (int process = 0; process < count; ++process)
    if (process != own)
      post(process, Kind::Failed, {}, data);
  // This process may end now: let MPI have all of it first.
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait_for(lock, std::chrono::milliseconds(500),
                   [&] { return numUnderWay == 0; });
}

hp_status Transport::awaitMeeting() {
  if (count == 1)
    return HP_OK;
  std::unique_lock<std::mutex> lock(mutex);
  int64_t number = ++meetings;
  lock.unlock();
  for (int process = 0; process < count; ++process)
    if (process != own)
      post(process, Kind::Meet, {}, {});
  lock.lock();
  changed.wait(lock, [&] { return met >= number || status != HP_OK; });
  if (met >= number)
    return HP_OK;
  return failWith(status, reason + "\n  this rank waits for all others, to "
                                   "begin, to save or to end");
}

hp_status Transport::meet() { return awaitMeeting(); }

hp_status Transport::finish() {
  stuck = Ended;
  return awaitMeeting();
}

//===----------------------------------------------------------------------===//
// The transport's thread
//===----------------------------------------------------------------------===//

hp_status Transport::start() {
  int provided = 0;
  int error =
      mpi.Init_thread(nullptr, nullptr, MpiLibrary::ThreadFunneled, &provided);
  if (error == 0)
    error = mpi.Comm_set_errhandler(MpiLibrary::world(),
                                    MpiLibrary::errorsReturn());
  if (error == 0)
    error = mpi.Comm_rank(MpiLibrary::world(), &own);
  if (error == 0)
    error = mpi.Comm_size(MpiLibrary::world(), &count);
  if (error != 0)
    return fail(HP_INTERNAL, "cannot start MPI: %s",
                mpi.describe(error).c_str());
  peers.resize(count);
  lastTurn = nowNs();
  for (Peer &peer : peers)
    peer.heard = lastTurn;
  return HP_OK;
}

void Transport::threadMain() {
  hp_status started = start();
  {
    std::lock_guard<std::mutex> lock(mutex);
    status = started;
    reason = lastError();
    hasStarted = true;
    changed.notify_all();
  }
  if (started != HP_OK)
    return;
  int idle = 0;
  while (!quitting) {
    if (doWork()) {
      idle = 0;
      continue;
    }
    // Nothing to do: ask less often the longer that lasts. What is to be sent
    // wakes the thread; what is to be received cannot.
    int64_t microseconds = idle < 200 ? 20 : idle < 2000 ? 100 : 500;
    ++idle;
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_for(lock, std::chrono::microseconds(microseconds),
                     [&] { return !outbox.empty() || quitting; });
  }
  // In peace all have met, but who came last may not have told the others yet.
  // MPI's own end then waits for them.
  if (broken || stuck != Ended)
    return;
  auto isSending = [](const Peer &peer) { return !peer.outgoing.empty(); };
  do
    doWork();
  while (!broken && std::any_of(peers.begin(), peers.end(), isSending));
  if (!broken)
    mpi.Finalize();
}

bool Transport::doWork() {
  bool any = postSends();
  any |= finishSends();
  any |= probe();
  any |= finishReceives();
  int64_t now = nowNs();
  // Who was stopped for a while has not listened either.
  if (int64_t pause = now - lastTurn; pause > 1000 * Millisecond)
    for (Peer &peer : peers)
      peer.heard += pause;
  lastTurn = now;
  if (now - lastBeat >= options.heartbeatMs * Millisecond)
    beat(now);
  if (!broken)
    lookForLost(now);
  return any;
}

bool Transport::postSends() {
  std::deque<Outgoing> taken;
  {
    std::lock_guard<std::mutex> lock(mutex);
    taken.swap(outbox);
  }
  for (Outgoing &message : taken) {
    std::deque<Outgoing> &queue = peers[message.process].outgoing;
    int process = message.process;
    int64_t kind = 0;
    std::memcpy(&kind, message.bytes.data(), sizeof(kind));
    numSent += kind == static_cast<int64_t>(Kind::Data);
    queue.push_back(std::move(message));
    Outgoing &last = queue.back();
    int error = mpi.Isend_c(
        last.bytes.data(), static_cast<int64_t>(last.bytes.size()),
        MpiLibrary::byte(), process, Tag, MpiLibrary::world(), &last.request);
    if (error != 0) {
      queue.pop_back();
      noteSent(1);
      breakDown(HP_LOST, "cannot send to rank " + std::to_string(process) +
                             ": " + mpi.describe(error));
    }
  }
  return !taken.empty();
}

void Transport::noteSent(int64_t messages) {
  std::lock_guard<std::mutex> lock(mutex);
  numUnderWay -= messages;
  changed.notify_all();
}

bool Transport::finishSends() {
  int64_t sent = 0;
  for (Peer &peer : peers)
    while (!peer.outgoing.empty()) {
      int isDone = 0;
      MpiStatus ignored = {};
      mpi.Test(&peer.outgoing.front().request, &isDone, &ignored);
      if (!isDone)
        break;
      peer.outgoing.pop_front();
      ++sent;
    }
  if (sent != 0)
    noteSent(sent);
  return sent != 0;
}

/// Begins to receive what has come. Messages of a peer are handled in order,
/// however long each takes.
bool Transport::probe() {
  bool any = false;
  for (;;) {
    int isThere = 0;
    MpiHandle handle = nullptr;
    MpiStatus found = {};
    int error = mpi.Improbe(MpiLibrary::AnySource, Tag, MpiLibrary::world(),
                            &isThere, &handle, &found);
    if (error != 0 || !isThere)
      return any;
    int64_t bytes = 0;
    mpi.Get_count_c(&found, MpiLibrary::byte(), &bytes);
    std::deque<Incoming> &queue = peers[found.source].incoming;
    queue.push_back({found.source, std::vector<char>(bytes), nullptr});
    mpi.Imrecv_c(queue.back().bytes.data(), bytes, MpiLibrary::byte(), &handle,
                 &queue.back().request);
    any = true;
  }
}

bool Transport::finishReceives() {
  bool any = false;
  for (Peer &peer : peers)
    while (!peer.incoming.empty()) {
      Incoming &next = peer.incoming.front();
      int isDone = 0;
      MpiStatus ignored = {};
      mpi.Test(&next.request, &isDone, &ignored);
      if (!isDone)
        break;
      handle(next.process, next.bytes);
      peer.incoming.pop_front();
      any = true;
    }
  return any;
}

void Transport::handle(int process, const std::vector<char> &bytes) {
  Peer &peer = peers[process];
  peer.heard = nowNs();
  peer.hasSpoken = true;
  int64_t head[2];
  std::memcpy(head, bytes.data(), sizeof(head));
  ChannelKey key(static_cast<size_t>(head[1]));
  const char *data = bytes.data() + sizeof(head) + 8 * key.size();
  const char *end = bytes.data() + bytes.size();
  if (!key.empty())
    std::memcpy(key.data(), bytes.data() + sizeof(head), 8 * key.size());
  switch (static_cast<Kind>(head[0])) {
  case Kind::Data: {
    ++numReceived;
    std::lock_guard<std::mutex> lock(mutex);
    if (deliver)
      deliver(std::move(key), std::vector<char>(data, end));
    else
      early.emplace_back(std::move(key), std::vector<char>(data, end));
    return;
  }
  case Kind::Heartbeat: {
    uint64_t said[3];
    std::memcpy(said, data, sizeof(said));
    bool isSame = !std::memcmp(said, peer.said, sizeof(said));
    peer.unchanged = isSame ? peer.unchanged + 1 : 0;
    std::memcpy(peer.said, said, sizeof(said));
    lookForDeadlock();
    return;
  }
  case Kind::Failed:
    breakDown(HP_CANCELLED, "rank " + std::to_string(process) +
                                " failed: " + std::string(data, end));
    return;
  case Kind::Meet: {
    ++peer.meetings;
    break;
  }
  }
  int64_t least = peer.meetings;
  for (int other = 0; other < count; ++other)
    if (other != own)
      least = std::min(least, peers[other].meetings);
  std::lock_guard<std::mutex> lock(mutex);
  met = least;
  changed.notify_all();
}

void Transport::beat(int64_t now) {
  lastBeat = now;
  Peer &self = peers[own];
  uint64_t said[3] = {stuck, numSent, numReceived};
  bool isSame = !std::memcmp(said, self.said, sizeof(said));
  self.unchanged = isSame ? self.unchanged + 1 : 0;
  std::memcpy(self.said, said, sizeof(said));
  std::vector<char> data(sizeof(said));
  std::memcpy(data.data(), said, sizeof(said));
  for (int process = 0; process < count; ++process)
    // No heap of heartbeats for one that does not take them.
    if (process != own && peers[process].outgoing.size() < 64)
      post(process, Kind::Heartbeat, {}, data);
}

void Transport::lookForLost(int64_t now) {
  if (count == 1)
    return;
  for (int process = 0; process < count; ++process) {
    int64_t silence = (now - peers[process].heard) / Millisecond;
    bool hasSpoken = peers[process].hasSpoken;
    if (process == own || silence < (hasSpoken ? options.lostMs : StartMs))
      continue;
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), "%.1f", double(silence) / 1000);
    breakDown(HP_LOST, "rank " + std::to_string(process) +
                           (hasSpoken ? " is lost: nothing was heard of it for "
                                      : " is lost: it did not start within ") +
                           seconds +
                           " s (killed, stopped, or its host is gone)");
    return;
  }
}

void Transport::lookForDeadlock() {
  uint64_t sent = 0, received = 0;
  bool anyWaits = false;
  for (const Peer &peer : peers) {
    if (peer.unchanged < QuietBeats || peer.said[0] == 0)
      return;
    anyWaits |= peer.said[0] != Ended;
    sent += peer.said[1];
    received += peer.said[2];
  }
  if (anyWaits && sent == received)
    deadlocked = true;
}

void Transport::breakDown(hp_status why, const std::string &text) {
  if (broken.exchange(true))
    return;
  Fail tell;
  {
    std::lock_guard<std::mutex> lock(mutex);
    status = why;
    reason = text;
    tell = fail_;
    changed.notify_all();
  }
  if (tell)
    tell(why, text);
}

} // namespace hyperparallel::runtime
