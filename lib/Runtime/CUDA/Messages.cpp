// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CUDA/Messages.h"
#include "lib/Runtime/CUDA/Device.h"
#include "lib/Runtime/TensorBlocks.h"

#include <algorithm>
#include <chrono>

namespace hyperparallel::runtime::cuda {

//===----------------------------------------------------------------------===//
// The mailbox
//===----------------------------------------------------------------------===//

void Mailbox::beginRun(size_t count) {
  forget(0);
  std::lock_guard<std::mutex> lock(mutex);
  devices = count;
  ended = 0;
}

bool Mailbox::endDevice() {
  bool isLast;
  {
    std::lock_guard<std::mutex> lock(mutex);
    isLast = ++ended == devices;
  }
  changed.notify_all();
  return isLast;
}

void Mailbox::put(const MessageKey &key, std::shared_ptr<Message> message) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    messages[key].push_back(std::move(message));
  }
  changed.notify_all();
}

void Mailbox::forget(int64_t communicator) {
  std::lock_guard<std::mutex> lock(mutex);
  messages.erase(messages.lower_bound({communicator, INT64_MIN, 0, 0}),
                 messages.lower_bound({communicator + 1, INT64_MIN, 0, 0}));
}

bool Mailbox::isDeadlocked() const {
  if (awaited.size() + ended < devices)
    return false;
  return std::none_of(
      awaited.begin(), awaited.end(), [&](const MessageKey &key) {
        auto found = messages.find(key);
        return found != messages.end() && !found->second.empty();
      });
}

hp_status Mailbox::take(const MessageKey &key,
                        const std::function<hp_status()> &check,
                        std::shared_ptr<Message> *out) {
  std::unique_lock<std::mutex> lock(mutex);
  bool isOfRun = std::get<0>(key) == 0;
  auto place = isOfRun ? awaited.insert(key) : awaited.end();
  changed.notify_all(); // those who wait look whether anybody is left
  auto &queue = messages[key];
  hp_status status = HP_OK;
  while (status == HP_OK && queue.empty()) {
    status = check();
    if (status == HP_OK && isOfRun && isDeadlocked())
      status = fail(HP_DEADLOCK,
                    "recv: expected a message from device %lld with tag %lld, "
                    "but all devices have ended or wait for messages",
                    static_cast<long long>(std::get<1>(key)),
                    static_cast<long long>(std::get<3>(key)));
    if (status == HP_OK)
      changed.wait_for(lock, std::chrono::milliseconds(50));
  }
  if (isOfRun)
    awaited.erase(place);
  if (status != HP_OK)
    return status;
  *out = std::move(queue.front());
  queue.pop_front();
  return HP_OK;
}

void Mailbox::markTaken(Message &message, EventHandle taken) {
  std::lock_guard<std::mutex> lock(mutex);
  message.taken = taken;
}

EventHandle Mailbox::takenEvent(const Message &message) {
  std::lock_guard<std::mutex> lock(mutex);
  return message.taken;
}

//===----------------------------------------------------------------------===//
// Sending and receiving
//===----------------------------------------------------------------------===//

static Result copyBytes(Driver &driver, void *to, const void *from,
                        int64_t bytes, StreamHandle stream) {
  return bytes == 0 ? Success
                    : driver.copyAsync(reinterpret_cast<DevicePointer>(to),
                                       reinterpret_cast<DevicePointer>(from),
                                       static_cast<size_t>(bytes), stream);
}

static int64_t bytesOf(const std::vector<TensorBlock> &blocks) {
  int64_t bytes = 0;
  for (const TensorBlock &block : blocks)
    bytes += block.bytes();
  return bytes;
}

/// Copies a block to contiguous memory, or back from there.
static Result copyBlock(Driver &driver, StreamHandle stream,
                        const TensorBlock &block, char *message,
                        bool isToMessage) {
  if (block.isContiguous())
    return copyBytes(driver, isToMessage ? message : block.first(),
                     isToMessage ? block.first() : message, block.bytes(),
                     stream);
  Result result = Success;
  block.forEachRows([&](char *there, int64_t here) {
    char *packed = message + here;
    int64_t width = block.runBytes(), pitch = block.pitchBytes();
    Copy2D copy =
        isToMessage
            ? describeRows(packed, width, there, pitch, width, block.numRows())
            : describeRows(there, pitch, packed, width, width, block.numRows());
    if (result == Success)
      result = driver.copy2DAsync(&copy, stream);
  });
  return result;
}

/// The same for blocks that lie one after the other in the message.
static Result copyBlocks(Driver &driver, StreamHandle stream,
                         const std::vector<TensorBlock> &blocks, void *message,
                         bool isToMessage) {
  char *next = static_cast<char *>(message);
  Result result = Success;
  for (const TensorBlock &block : blocks) {
    if (result == Success)
      result = copyBlock(driver, stream, block, next, isToMessage);
    next += block.bytes();
  }
  return result;
}

hp_status SentMessages::send(Device &device, StreamHandle stream,
                             const MessageKey &key,
                             const std::vector<TensorBlock> &blocks) {
  Driver &driver = device.context->driver;
  hp_status status = free(device, stream, /*all=*/false);
  auto message = std::make_shared<Message>();
  message->sender = &device;
  message->bytes = bytesOf(blocks);
  if (status == HP_OK)
    status = allocateMemory(device, HP_TIER_DEVICE, message->bytes,
                            /*ofRun=*/false, stream, &message->buffer);
  if (status != HP_OK)
    return status;
  messages.push_back(message);
  Result result = copyBlocks(driver, stream, blocks, message->buffer, true);
  if (result == Success)
    result = driver.eventCreate(&message->ready, EventWithoutTiming);
  if (result == Success)
    result = driver.eventRecord(message->ready, stream);
  if (result == Success)
    device.context->mailbox.put(key, std::move(message));
  return driver.check(result, "sending");
}

hp_status SentMessages::free(Device &device, StreamHandle stream, bool all) {
  Driver &driver = device.context->driver;
  hp_status status = HP_OK;
  auto isFreed = [&](const std::shared_ptr<Message> &message) {
    EventHandle taken = device.context->mailbox.takenEvent(*message);
    if (!all && (!taken || driver.eventQuery(taken) != Success))
      return false;
    hp_status freed = freeMemory(device, message->buffer, stream);
    if (status == HP_OK)
      status = freed;
    for (EventHandle event : {message->ready, taken})
      if (event)
        driver.eventDestroy(event);
    return true;
  };
  messages.erase(std::remove_if(messages.begin(), messages.end(), isFreed),
                 messages.end());
  return status;
}

hp_status receiveMessage(Device &device, StreamHandle stream,
                         const MessageKey &key,
                         const std::vector<TensorBlock> &blocks,
                         const std::function<hp_status()> &check) {
  Mailbox &mailbox = device.context->mailbox;
  Driver &driver = device.context->driver;
  std::shared_ptr<Message> message;
  hp_status status = mailbox.take(key, check, &message);
  if (status != HP_OK)
    return status;
  int64_t bytes = message->bytes, wanted = bytesOf(blocks);
  if (bytes != wanted)
    return fail(HP_MISMATCH,
                "recv: expected a message of %lld bytes from %lld with tag "
                "%lld but got one of %lld",
                static_cast<long long>(wanted),
                static_cast<long long>(std::get<1>(key)),
                static_cast<long long>(std::get<3>(key)),
                static_cast<long long>(bytes));
  bool isDirect = blocks.size() == 1 && blocks.front().isContiguous();
  void *arrived = isDirect ? blocks.front().first() : nullptr;
  if (!isDirect)
    status = allocateMemory(device, HP_TIER_DEVICE, bytes, /*ofRun=*/true,
                            stream, &arrived);
  if (status != HP_OK)
    return status;
  EventHandle taken = nullptr;
  Result result = driver.streamWait(stream, message->ready, 0);
  bool isFar = message->sender != &device;
  if (result == Success && bytes > 0)
    result =
        isFar ? driver.copyPeerAsync(
                    reinterpret_cast<DevicePointer>(arrived), device.handle,
                    reinterpret_cast<DevicePointer>(message->buffer),
                    message->sender->handle, static_cast<size_t>(bytes), stream)
              : copyBytes(driver, arrived, message->buffer, bytes, stream);
  if (result == Success)
    result = driver.eventCreate(&taken, EventWithoutTiming);
  if (result == Success)
    result = driver.eventRecord(taken, stream);
  if (result == Success)
    mailbox.markTaken(*message, taken);
  if (result == Success && !isDirect)
    result = copyBlocks(driver, stream, blocks, arrived, false);
  status = driver.check(result, "receiving");
  if (status == HP_OK && !isDirect)
    status = freeMemory(device, arrived, stream);
  return status;
}

} // namespace hyperparallel::runtime::cuda
