// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Messages.h - From one device to another ---------------------------===//
//
// A message is copied to a buffer of the sender when it is sent, and waits in a
// mailbox for the receiver:
//
//   sender's stream     copy to buffer ─▶ record ready
//   receiver's stream         wait ready ─▶ copy from device to device
//                                                      ─▶ record taken
//
// The receiver's host waits until the message was sent, not until it is there.
// So nobody waits for a receiver, messages may be taken in any order of tags,
// and a send and a receive that cross each other cannot block. The sender frees
// the buffer at a later send, or at the end. All devices are this process's.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_CUDA_MESSAGES_H
#define HYPERPARALLEL_LIB_RUNTIME_CUDA_MESSAGES_H

#include "lib/Runtime/CUDA/Driver.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

namespace hyperparallel::runtime {
class TensorBlock;
}

namespace hyperparallel::runtime::cuda {

struct Device;

struct Message {
  const Device *sender;
  void *buffer = nullptr;
  int64_t bytes = 0;
  EventHandle ready = nullptr;
  EventHandle taken = nullptr; ///< null until the receiver has queued its copy
};

/// Who a message is for: the communicator (0 for a run), sender, receiver, tag.
using MessageKey = std::tuple<int64_t, int64_t, int64_t, int64_t>;

/// Messages that nobody has taken.
class Mailbox {
public:
  void beginRun(size_t devices);
  /// A device of the run sends no more. True for the last one.
  bool endDevice();
  void put(const MessageKey &key, std::shared_ptr<Message> message);
  /// Waits for a message, until `check` fails. Those of a run fail as well if
  /// all its devices have ended or wait for messages that nobody can send.
  hp_status take(const MessageKey &key, const std::function<hp_status()> &check,
                 std::shared_ptr<Message> *out);
  /// Forgets the messages of a communicator.
  void forget(int64_t communicator);
  /// Wakes those who wait, to check.
  void wake() { changed.notify_all(); }
  /// Says that the receiver's copy was queued before `taken`.
  void markTaken(Message &message, EventHandle taken);
  EventHandle takenEvent(const Message &message);

private:
  bool isDeadlocked() const;

  std::mutex mutex;
  std::condition_variable changed;
  std::map<MessageKey, std::deque<std::shared_ptr<Message>>> messages;
  std::multiset<MessageKey> awaited; ///< by devices of the run
  size_t devices = 0, ended = 0;
};

/// Messages of a sender whose buffers are not freed.
class SentMessages {
public:
  /// Copies blocks to a buffer, one after the other, on `stream`, and puts it
  /// into the mailbox.
  hp_status send(Device &device, StreamHandle stream, const MessageKey &key,
                 const std::vector<TensorBlock> &blocks);
  /// Frees what has arrived, or all, on `stream`.
  hp_status free(Device &device, StreamHandle stream, bool all);
  bool empty() const { return messages.empty(); }

private:
  std::vector<std::shared_ptr<Message>> messages;
};

/// Waits for a message, and copies it to its blocks, on `stream`.
hp_status receiveMessage(Device &device, StreamHandle stream,
                         const MessageKey &key,
                         const std::vector<TensorBlock> &blocks,
                         const std::function<hp_status()> &check);

/// The function behind a slot of a message; null if there is none.
void *findMessage(const char *name);

} // namespace hyperparallel::runtime::cuda

#endif // HYPERPARALLEL_LIB_RUNTIME_CUDA_MESSAGES_H
