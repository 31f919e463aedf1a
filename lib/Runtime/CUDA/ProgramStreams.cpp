// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- ProgramStreams.cpp - Streams of programs, and who waits for whom --===//
//
// A device has a compute stream, one for copies each way, and a COMM stream.
// What else a program numbers is made when it is first used, and kept.
//
// Between hp_rt_stream_begin and hp_rt_stream_end collectives and messages are
// queued on that stream, with nothing before or after them: the program says
// who waits for whom. A mark is an event, recorded on its stream; those of a
// run are used again by the next one.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CUDA/Collectives.h"
#include "lib/Runtime/StreamNumbers.h"

#include <algorithm>

namespace hyperparallel::runtime::cuda {

Result takeEvent(Device &device, EventHandle *out) {
  if (device.freeEvents.empty())
    return device.context->driver.eventCreate(out, EventWithoutTiming);
  *out = device.freeEvents.back();
  device.freeEvents.pop_back();
  return Success;
}

Result followStream(Device &device, StreamHandle later, StreamHandle earlier) {
  Driver &driver = device.context->driver;
  EventHandle event = nullptr;
  Result result = takeEvent(device, &event);
  if (result == Success)
    result = driver.eventRecord(event, earlier);
  if (result == Success)
    result = driver.streamWait(later, event, 0);
  // A wait refers to the record that it saw; the event may be recorded anew.
  if (event)
    device.freeEvents.push_back(event);
  return result;
}

hp_status addTransfer(Device &device, StreamHandle stream, void **out) {
  Transfer transfer = {nullptr};
  Result result = takeEvent(device, &transfer.done);
  if (result == Success)
    result = device.context->driver.eventRecord(transfer.done, stream);
  hp_status status = device.context->driver.check(result, "recording an event");
  if (status != HP_OK)
    return status;
  device.transfers.push_back(std::make_unique<Transfer>(transfer));
  *out = device.transfers.back().get();
  return HP_OK;
}

void waitForTransfer(void *transfer) {
  Device &device = currentDevice();
  auto found =
      std::find_if(device.transfers.begin(), device.transfers.end(),
                   [&](const auto &known) { return known.get() == transfer; });
  if (found == device.transfers.end())
    proceed(device, fail(HP_INVALID_ARGUMENT,
                         "expected a copy or collective that was not waited "
                         "for but got %p",
                         transfer));
  Driver &driver = device.context->driver;
  Result result =
      driver.streamWait(device.streams[HP_STREAM_COMPUTE], (*found)->done, 0);
  device.freeEvents.push_back((*found)->done);
  device.transfers.erase(found);
  proceed(device, driver.check(result, "waiting for a copy"));
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

static StreamHandle *findStream(Device &device, int32_t number) {
  if (number >= 0 && number < NumOwnStreams)
    return &device.streams[number];
  for (SideStream &stream : device.beside)
    if (stream.number == number)
      return &stream.handle;
  return nullptr;
}

StreamHandle streamOf(Device &device, int32_t number) {
  return *findStream(device, number);
}

static hp_status getStream(Device &device, const char *what, int32_t number,
                           StreamHandle *out) {
  hp_status status = checkStreamNumber(what, number);
  if (status != HP_OK)
    return status;
  if (StreamHandle *known = findStream(device, number)) {
    *out = *known;
    return HP_OK;
  }
  Driver &driver = device.context->driver;
  status = driver.check(driver.streamCreate(out, StreamNonBlocking),
                        "making a stream");
  if (status != HP_OK)
    return status;
  device.beside.push_back({number, *out});
  device.tracer.addLane(device.context->trace, device.ordinal, number);
  return HP_OK;
}

void endMarks(Device &device) {
  device.freeEvents.insert(device.freeEvents.end(), device.marks.begin(),
                           device.marks.end());
  device.marks.clear();
  for (std::unique_ptr<Transfer> &transfer : device.transfers)
    device.freeEvents.push_back(transfer->done);
  device.transfers.clear();
  device.current = HP_STREAM_COMPUTE;
}

static hp_status begin(Device &device, int32_t number) {
  StreamHandle stream = nullptr;
  hp_status status = getStream(device, "hp_rt_stream_begin", number, &stream);
  if (status == HP_OK && device.current != HP_STREAM_COMPUTE)
    status = fail(HP_INVALID_ARGUMENT,
                  "hp_rt_stream_begin: the calls of the stream %s have not "
                  "ended",
                  streamName(device.current).c_str());
  if (status == HP_OK)
    device.current = number;
  return status;
}

static hp_status mark(Device &device, int32_t number, int64_t *out) {
  StreamHandle stream = nullptr;
  hp_status status = getStream(device, "hp_rt_stream_mark", number, &stream);
  if (status != HP_OK)
    return status;
  EventHandle event = nullptr;
  Driver &driver = device.context->driver;
  Result result = takeEvent(device, &event);
  if (result == Success) {
    *out = static_cast<int64_t>(device.marks.size());
    device.marks.push_back(event);
    result = driver.eventRecord(event, stream);
  }
  return driver.check(result, "marking a stream");
}

static hp_status wait(Device &device, int32_t number, int64_t mark) {
  StreamHandle stream = nullptr;
  hp_status status = getStream(device, "hp_rt_stream_wait", number, &stream);
  if (status == HP_OK &&
      (mark < 0 || mark >= static_cast<int64_t>(device.marks.size())))
    status = fail(HP_INVALID_ARGUMENT,
                  "hp_rt_stream_wait: expected one of %lld marks but got %lld",
                  static_cast<long long>(device.marks.size()),
                  static_cast<long long>(mark));
  if (status != HP_OK)
    return status;
  Driver &driver = device.context->driver;
  return driver.check(driver.streamWait(stream, device.marks[mark], 0),
                      "waiting for a mark");
}

//===----------------------------------------------------------------------===//
// What programs call
//===----------------------------------------------------------------------===//

static void rtStreamBegin(int32_t number) {
  Device &device = currentDevice();
  proceed(device, begin(device, number));
}
static void rtStreamEnd() { currentDevice().current = HP_STREAM_COMPUTE; }
static int64_t rtStreamMark(int32_t number) {
  Device &device = currentDevice();
  int64_t made = 0;
  proceed(device, mark(device, number, &made));
  return made;
}
static void rtStreamWait(int32_t number, int64_t mark) {
  Device &device = currentDevice();
  proceed(device, wait(device, number, mark));
}

void *findStreamCall(const char *name) {
  static const Import imports[] = {
      makeImport("hp_rt_stream_begin", rtStreamBegin),
      makeImport("hp_rt_stream_end", rtStreamEnd),
      makeImport("hp_rt_stream_mark", rtStreamMark),
      makeImport("hp_rt_stream_wait", rtStreamWait),
      makeImport("hp_rt_copy_wait", waitForTransfer),
      makeImport("hp_rt_wait", waitForTransfer),
  };
  return findIn(imports, sizeof(imports) / sizeof(*imports), name);
}

} // namespace hyperparallel::runtime::cuda
