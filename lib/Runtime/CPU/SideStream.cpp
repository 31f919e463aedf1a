// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CPU/SideStream.h"
#include "lib/Runtime/CPU/GeneratedCode.h"
#include "lib/Runtime/StreamNumbers.h"

namespace hyperparallel::runtime {

Device::Device() { owner = this; }
Device::~Device() = default;

SideStream::SideStream(Device &device, int32_t number) {
  owner = &device;
  stream = number;
  lane =
      device.context->trace.addLane("device " + std::to_string(device.ordinal) +
                                    " " + streamName(number, " stream"));
  thread = std::thread([this] { threadMain(); });
}

SideStream::~SideStream() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    quitting = true;
  }
  changed.notify_all();
  thread.join();
}

void SideStream::enqueue(Action action) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(std::move(action));
    ++total;
    if (activity == Activity::Idle)
      activity = Activity::Running;
  }
  changed.notify_one();
}

void SideStream::threadMain() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return quitting || !queue.empty(); });
    if (queue.empty())
      return;
    Action action = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    hp_status status = checkStopping(*this);
    if (status == HP_OK)
      status = action(*this);
    if (status != HP_OK && status != HP_CANCELLED)
      recordFailure(*owner, status);
    action = nullptr;
    // Before the stream says that it is idle: who waits for it must not look
    // as if nobody could help.
    done.add();
    lock.lock();
    ++progress;
    if (queue.empty())
      activity = Activity::Idle;
  }
}

static SideStream *findStream(Device &device, int32_t number) {
  for (std::unique_ptr<SideStream> &stream : device.beside)
    if (stream->stream == number)
      return stream.get();
  return nullptr;
}

static SideStream &getStream(Device &device, int32_t number) {
  if (SideStream *known = findStream(device, number))
    return *known;
  auto made = std::make_unique<SideStream>(device, number);
  std::lock_guard<std::mutex> lock(device.besideMutex);
  device.beside.push_back(std::move(made));
  return *device.beside.back();
}

Lane &currentLane(Device &device) {
  return device.current ? static_cast<Lane &>(*device.current) : device;
}

hp_status perform(Device &device, SideStream::Action action) {
  if (!device.current)
    return action(device);
  device.current->enqueue(std::move(action));
  return HP_OK;
}

static hp_status waitForStream(Lane &lane, SideStream &other, uint32_t target) {
  Call call;
  call.awaitedStream = other.stream;
  return waitFor(lane, other.done, target, call);
}

void joinStreams(Device &device) {
  device.current = nullptr;
  for (std::unique_ptr<SideStream> &stream : device.beside)
    while (!stream->done.reached(stream->queued()))
      if (waitForStream(device, *stream, stream->queued()) != HP_OK)
        std::this_thread::yield(); // stopping: the stream drops what is left
}

//===----------------------------------------------------------------------===//
// What programs call
//===----------------------------------------------------------------------===//

static hp_status beginOn(Device &device, int32_t stream) {
  hp_status status = mayCall(device, "hp_rt_stream_begin");
  if (status == HP_OK)
    status = checkStreamNumber("hp_rt_stream_begin", stream);
  if (status == HP_OK && device.current)
    status = fail(HP_INVALID_ARGUMENT,
                  "hp_rt_stream_begin: the calls of the stream %s have not "
                  "ended",
                  streamName(device.current->stream).c_str());
  if (status == HP_OK && stream != HP_STREAM_COMPUTE)
    device.current = &getStream(device, stream);
  return status;
}

static hp_status markOf(Device &device, int32_t stream, int64_t &mark) {
  hp_status status = mayCall(device, "hp_rt_stream_mark");
  if (status == HP_OK)
    status = checkStreamNumber("hp_rt_stream_mark", stream);
  if (status != HP_OK)
    return status;
  // What the device's thread was asked for is done.
  SideStream *known = findStream(device, stream);
  mark = int64_t(stream) << 32 | (known ? known->queued() : 0);
  return HP_OK;
}

static hp_status waitForMark(Device &device, int32_t stream, int64_t mark) {
  hp_status status = mayCall(device, "hp_rt_stream_wait");
  if (status == HP_OK)
    status = checkStreamNumber("hp_rt_stream_wait", stream);
  if (status != HP_OK)
    return status;
  SideStream *other = findStream(device, static_cast<int32_t>(mark >> 32));
  uint32_t target = static_cast<uint32_t>(mark);
  if (!other || other->done.reached(target))
    return HP_OK;
  if (stream == HP_STREAM_COMPUTE)
    return waitForStream(device, *other, target);
  getStream(device, stream).enqueue([other, target](Lane &lane) {
    return waitForStream(lane, *other, target);
  });
  return HP_OK;
}

} // namespace hyperparallel::runtime

using namespace hyperparallel::runtime;

extern "C" {

void hp_rt_stream_begin(int32_t stream) {
  Device &device = currentDevice("hp_rt_stream_begin");
  hp_status status = beginOn(device, stream);
  if (status != HP_OK)
    leaveProgram(device, status);
}

void hp_rt_stream_end(void) {
  currentDevice("hp_rt_stream_end").current = nullptr;
}

int64_t hp_rt_stream_mark(int32_t stream) {
  Device &device = currentDevice("hp_rt_stream_mark");
  int64_t mark = 0;
  hp_status status = markOf(device, stream, mark);
  if (status != HP_OK)
    leaveProgram(device, status);
  return mark;
}

void hp_rt_stream_wait(int32_t stream, int64_t mark) {
  Device &device = currentDevice("hp_rt_stream_wait");
  hp_status status = waitForMark(device, stream, mark);
  if (status != HP_OK)
    leaveProgram(device, status);
}

} // extern "C"
