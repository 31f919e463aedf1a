// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Transport.h - Messages between the processes of a run -------------===//
//
// Devices of a run may be spread over processes. A transport carries messages
// from any thread of one process to the channels of another, and knows at all
// times who is alive.
//
//   device threads ──send──▶ outbox ─┐            ┌─▶ deliver ──▶ channels
//                                    ├─ thread ───┤
//   other processes ◀──── MPI ◀──────┘            └─▶ fail ──▶ the run ends
//
// One thread does all MPI, so any level of thread support will do. Sends copy
// and never wait; messages between two processes arrive in order.
//
// Who is alive. Each process tells all others every `heartbeatMs` that it is
// there, and how far it is; one that is not heard of for `lostMs` is lost
// (killed, stopped, or its host is gone), and that ends the run everywhere. A
// pause of this process itself (a stopped job) is nobody else's silence, and a
// process that has not spoken yet is given a minute to start. A process whose
// run fails tells the others why.
//
// Deadlocks over processes. A heartbeat carries whether all devices of the
// process wait, a number that changes with everything they do, and how many
// messages it has sent and received. If all processes have waited or ended, and
// no message is under way, in two rounds in which nothing changed, then nobody
// is left who could end the wait.
//
// Cost: processes - 1 small messages each `heartbeatMs`, of each process.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_PROCESSES_TRANSPORT_H
#define HYPERPARALLEL_LIB_RUNTIME_PROCESSES_TRANSPORT_H

#include "lib/Runtime/Processes/MpiLibrary.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hyperparallel::runtime {

/// Where a message belongs: equal keys are one channel, in order.
using ChannelKey = std::vector<int64_t>;

class Transport {
public:
  struct Options {
    std::string library; ///< path of libmpi_abi.so.1; empty: by search path
    int64_t heartbeatMs = 500;
    int64_t lostMs = 4000;
  };
  /// Called on the transport's thread.
  using Deliver = std::function<void(ChannelKey, std::vector<char>)>;
  using Fail = std::function<void(hp_status, const std::string &)>;

  /// Starts MPI and meets the other processes. At most one in a process.
  static hp_status create(const Options &options,
                          std::unique_ptr<Transport> *out);
  ~Transport();

  int process() const { return own; }
  int processes() const { return count; }

  /// From now on messages are handed over; those that came before, at once.
  void listen(Deliver deliver, Fail fail);
  void send(int process, const ChannelKey &key, std::vector<char> data);
  /// Tells all others that this process fails, and why.
  void tellFailure(const std::string &text);
  /// What the next heartbeats say: `progress` changes with all that devices do;
  /// 0 if somebody here can go on.
  void setStuck(uint64_t progress) { stuck = progress; }
  /// True if a process is lost or has failed.
  bool isBroken() const { return broken; }
  /// True if every process is stuck or has ended, for good.
  bool isDeadlocked() const { return deadlocked; }
  /// Waits until all processes are here; fails if one is lost or has failed.
  hp_status meet();
  /// As meet, after the last run: this process will do nothing more. Ends MPI.
  hp_status finish();

private:
  enum class Kind : int64_t { Data, Heartbeat, Failed, Meet };
  struct Outgoing {
    int process;
    std::vector<char> bytes;
    MpiHandle request = nullptr;
  };
  struct Incoming {
    int process;
    std::vector<char> bytes;
    MpiHandle request = nullptr;
  };
  /// Another process, or this one.
  struct Peer {
    int64_t heard = 0; ///< when, in ns
    bool hasSpoken = false;
    uint64_t said[3] = {};
    int unchanged = 0; ///< heartbeats that said the same
    int64_t meetings = 0;
    std::deque<Incoming> incoming;
    std::deque<Outgoing> outgoing;
  };

  explicit Transport(const Options &options) : options(options) {}
  hp_status start();
  void threadMain();
  bool doWork();
  bool postSends();
  bool finishSends();
  void noteSent(int64_t messages);
  bool probe();
  bool finishReceives();
  void handle(int process, const std::vector<char> &bytes);
  void beat(int64_t now);
  void lookForLost(int64_t now);
  void lookForDeadlock();
  void breakDown(hp_status status, const std::string &text);
  void post(int process, Kind kind, const ChannelKey &key,
            const std::vector<char> &data);
  hp_status awaitMeeting();

  Options options;
  MpiLibrary mpi = {};
  int own = 0, count = 1;
  std::thread thread;

  std::mutex mutex; ///< guards what follows, up to the blank line
  std::condition_variable changed;
  std::deque<Outgoing> outbox;
  int64_t numUnderWay = 0; ///< messages that MPI has not taken whole
  Deliver deliver;
  Fail fail_;
  std::vector<std::pair<ChannelKey, std::vector<char>>> early;
  int64_t meetings = 0, met = 0; ///< asked for, and reached by all
  bool hasStarted = false;
  hp_status status = HP_OK; ///< why it broke down
  std::string reason;

  std::vector<Peer> peers; ///< the thread's
  int64_t lastBeat = 0, lastTurn = 0;
  uint64_t numSent = 0, numReceived = 0;
  std::atomic<uint64_t> stuck{0};
  std::atomic<bool> deadlocked{false}, quitting{false}, broken{false};
};

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_PROCESSES_TRANSPORT_H
