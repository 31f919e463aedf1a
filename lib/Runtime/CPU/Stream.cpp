// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CPU/Stream.h"
#include "lib/Runtime/ArgumentChecks.h"
#include "lib/Runtime/CPU/Device.h"
#include "lib/Runtime/Status.h"

#include <algorithm>
#include <cstring>

namespace hyperparallel::runtime {

static const char *roleName(hp_stream_role role) {
  static const char *const names[] = {"compute", "h2d", "d2h", "comm"};
  return names[role];
}

Stream::Stream(Device &device, hp_stream_role role)
    : backend(device.backend), device(device),
      lane(device.context->trace.addLane("device " +
                                         std::to_string(device.ordinal) + " " +
                                         roleName(role) + " stream")) {
  thread = std::thread([this] { threadMain(); });
}

Stream::~Stream() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    quitting = true;
  }
  changed.notify_all();
  thread.join();
}

void Stream::enqueue(const char *name, int64_t bytes, Action action) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    queue.push_back({name, bytes, std::move(action)});
  }
  changed.notify_all();
}

hp_status Stream::sync() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return queue.empty() && !busy; });
  return status == HP_OK ? HP_OK : failWith(status, message);
}

void Stream::threadMain() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return quitting || !queue.empty(); });
    if (queue.empty())
      return;
    Item item = std::move(queue.front());
    queue.pop_front();
    // Records and waits happen even after a failure: others depend on them.
    bool skip = status != HP_OK && item.bytes >= 0;
    busy = true;
    lock.unlock();
    int64_t begin = nowNs();
    hp_status result = skip ? HP_OK : item.action();
    if (device.context->trace.enabled())
      lane->spans.push_back({"stream", item.name, begin, nowNs(), item.bytes});
    item.action = nullptr; // what it holds is released before sync returns
    lock.lock();
    busy = false;
    if (result != HP_OK && status == HP_OK) {
      status = result;
      message = lastError();
    }
    changed.notify_all();
  }
}

void EventRecord::complete() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    time = nowNs();
  }
  changed.notify_all();
}

void EventRecord::wait() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return done; });
}

std::shared_ptr<EventRecord> Event::latest() {
  std::lock_guard<std::mutex> lock(mutex);
  return record;
}

namespace {

Stream *streamOf(hp_stream *stream) {
  return reinterpret_cast<Stream *>(stream);
}
Event *eventOf(hp_event *event) { return reinterpret_cast<Event *>(event); }

hp_status createStream(hp_device *handle, hp_stream_role role,
                       hp_stream **out) {
  if (hp_status status = checkNewStream(role, out); status != HP_OK)
    return status;
  Device &device = *reinterpret_cast<Device *>(handle);
  Stream *stream = new Stream(device, role);
  device.context->addStream(stream);
  *out = reinterpret_cast<hp_stream *>(stream);
  return HP_OK;
}

hp_status syncStream(hp_stream *stream) { return streamOf(stream)->sync(); }

hp_status destroyStream(hp_stream *handle) {
  Stream *stream = streamOf(handle);
  stream->device.context->removeStream(stream);
  delete stream;
  return HP_OK;
}

hp_status createEvent(hp_device *device, hp_event **out) {
  if (hp_status status =
          checkGiven(out, "hp_event_create", "a place for the result");
      status != HP_OK)
    return status;
  Event *event = new Event;
  event->backend = reinterpret_cast<Device *>(device)->backend;
  *out = reinterpret_cast<hp_event *>(event);
  return HP_OK;
}

hp_status recordEvent(hp_event *event, hp_stream *stream) {
  if (hp_status status = checkGiven(stream, "hp_event_record", "a stream");
      status != HP_OK)
    return status;
  auto record = std::make_shared<EventRecord>();
  {
    std::lock_guard<std::mutex> lock(eventOf(event)->mutex);
    eventOf(event)->record = record;
  }
  streamOf(stream)->enqueue("record", -1, [record] {
    record->complete();
    return HP_OK;
  });
  return HP_OK;
}

hp_status waitOnStream(hp_stream *stream, hp_event *event) {
  if (hp_status status = checkGiven(event, "hp_stream_wait", "an event");
      status != HP_OK)
    return status;
  if (std::shared_ptr<EventRecord> record = eventOf(event)->latest())
    streamOf(stream)->enqueue("wait", -1, [record] {
      record->wait();
      return HP_OK;
    });
  return HP_OK;
}

hp_status queryEvent(hp_event *event, int32_t *done) {
  if (hp_status status =
          checkGiven(done, "hp_event_query", "a place for the result");
      status != HP_OK)
    return status;
  std::shared_ptr<EventRecord> record = eventOf(event)->latest();
  if (!record) {
    *done = 1;
    return HP_OK;
  }
  std::lock_guard<std::mutex> lock(record->mutex);
  *done = record->done;
  return HP_OK;
}

hp_status syncEvent(hp_event *event) {
  if (std::shared_ptr<EventRecord> record = eventOf(event)->latest())
    record->wait();
  return HP_OK;
}

hp_status elapsed(hp_event *start, hp_event *end, double *milliseconds) {
  std::shared_ptr<EventRecord> first = eventOf(start)->latest();
  std::shared_ptr<EventRecord> second = end ? eventOf(end)->latest() : nullptr;
  if (!first || !second || !milliseconds)
    return fail(HP_INVALID_ARGUMENT,
                "hp_event_elapsed: expected two events that were recorded");
  first->wait();
  second->wait();
  *milliseconds = static_cast<double>(second->time - first->time) / 1e6;
  return HP_OK;
}

hp_status destroyEvent(hp_event *event) {
  delete eventOf(event);
  return HP_OK;
}

hp_status copy(void *dst, const void *src, int64_t bytes, hp_stream *stream) {
  if (hp_status status = checkCopy(dst, src, bytes); status != HP_OK)
    return status;
  streamOf(stream)->enqueue("copy", bytes, [=] {
    if (bytes > 0)
      std::memcpy(dst, src, static_cast<size_t>(bytes));
    return HP_OK;
  });
  return HP_OK;
}

hp_status copy2d(void *dst, int64_t dstPitch, const void *src, int64_t srcPitch,
                 int64_t width, int64_t rows, hp_stream *stream) {
  if (hp_status status =
          checkCopyRows(dst, dstPitch, src, srcPitch, width, rows);
      status != HP_OK)
    return status;
  streamOf(stream)->enqueue("copy_2d", width * rows, [=] {
    for (int64_t row = 0; width > 0 && row < rows; ++row)
      std::memcpy(static_cast<char *>(dst) + row * dstPitch,
                  static_cast<const char *>(src) + row * srcPitch,
                  static_cast<size_t>(width));
    return HP_OK;
  });
  return HP_OK;
}

hp_status fillMemory(void *dst, const void *pattern, int64_t patternBytes,
                     int64_t bytes, hp_stream *stream) {
  if (hp_status status = checkFill(dst, pattern, patternBytes, bytes);
      status != HP_OK)
    return status;
  const char *first = static_cast<const char *>(pattern);
  std::string copied(first, first + patternBytes);
  streamOf(stream)->enqueue("fill", bytes, [=] {
    for (int64_t at = 0; at < bytes; at += patternBytes)
      std::memcpy(static_cast<char *>(dst) + at, copied.data(), copied.size());
    return HP_OK;
  });
  return HP_OK;
}

hp_status hostTask(hp_stream *stream, hp_host_task_fn fn, void *arg) {
  if (hp_status status = checkGiven(reinterpret_cast<const void *>(fn),
                                    "hp_host_task", "a function");
      status != HP_OK)
    return status;
  streamOf(stream)->enqueue("host_task", 0, [=] {
    fn(arg);
    return HP_OK;
  });
  return HP_OK;
}

hp_status matmul(const hp_matmul_desc *desc, hp_stream *stream) {
  if (hp_status given = checkGiven(desc, "hp_matmul", "a description");
      given != HP_OK)
    return given;
  hp_status status = checkMatmul(*desc);
  Blas &blas = streamOf(stream)->device.context->blas;
  if (status == HP_OK)
    status = blas.load();
  if (status != HP_OK)
    return status;
  hp_matmul_desc copied = *desc;
  streamOf(stream)->enqueue("matmul", 0, [&blas, copied] {
    runMatmul(blas, copied, nullptr, 0, 1);
    return HP_OK;
  });
  return HP_OK;
}

} // namespace

void addStreamEntries(hp_backend_v1 &table) {
  table.stream_create = createStream;
  table.stream_sync = syncStream;
  table.stream_destroy = destroyStream;
  table.event_create = createEvent;
  table.event_record = recordEvent;
  table.stream_wait = waitOnStream;
  table.event_query = queryEvent;
  table.event_sync = syncEvent;
  table.event_elapsed = elapsed;
  table.event_destroy = destroyEvent;
  table.copy = copy;
  table.copy_2d = copy2d;
  table.fill = fillMemory;
  table.host_task = hostTask;
  table.matmul = matmul;
}

} // namespace hyperparallel::runtime
