// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- StreamCalls.cpp - Streams, events, copies and products ------------===//

#include "lib/Runtime/ArgumentChecks.h"
#include "lib/Runtime/CUDA/Matmul.h"

#include <memory>
#include <string>

namespace hyperparallel::runtime::cuda {

namespace {

Stream &streamOf(hp_stream *stream) {
  return *reinterpret_cast<Stream *>(stream);
}
Event &eventOf(hp_event *event) { return *reinterpret_cast<Event *>(event); }
Driver &driverOf(const Device &device) { return device.context->driver; }
DevicePointer address(const void *pointer) {
  return reinterpret_cast<DevicePointer>(pointer);
}

/// Makes the object's device current, then asks the driver.
template <typename Object, typename Action>
hp_status on(Object &object, const char *what, Action action) {
  if (hp_status status = enter(*object.device); status != HP_OK)
    return status;
  Driver &driver = driverOf(*object.device);
  return driver.check(action(driver), what);
}

hp_status createStream(hp_device *handle, hp_stream_role role,
                       hp_stream **out) {
  if (hp_status status = checkNewStream(role, out); status != HP_OK)
    return status;
  auto stream = std::make_unique<Stream>();
  stream->device = reinterpret_cast<Device *>(handle);
  stream->backend = stream->device->backend;
  hp_status status = on(*stream, "making a stream", [&](Driver &driver) {
    return driver.streamCreate(&stream->handle, StreamNonBlocking);
  });
  if (status == HP_OK)
    *out = reinterpret_cast<hp_stream *>(stream.release());
  return status;
}

hp_status syncStream(hp_stream *stream) {
  return on(streamOf(stream), "waiting for a stream", [&](Driver &driver) {
    return driver.streamSynchronize(streamOf(stream).handle);
  });
}

hp_status destroyStream(hp_stream *stream) {
  hp_status status =
      on(streamOf(stream), "ending a stream", [&](Driver &driver) {
        Result result = driver.streamSynchronize(streamOf(stream).handle);
        Result ended = driver.streamDestroy(streamOf(stream).handle);
        return result == Success ? ended : result;
      });
  delete &streamOf(stream);
  return status;
}

hp_status createEvent(hp_device *handle, hp_event **out) {
  if (hp_status status =
          checkGiven(out, "hp_event_create", "a place for the result");
      status != HP_OK)
    return status;
  auto event = std::make_unique<Event>();
  event->device = reinterpret_cast<Device *>(handle);
  event->backend = event->device->backend;
  hp_status status = on(*event, "making an event", [&](Driver &driver) {
    return driver.eventCreate(&event->handle, 0);
  });
  if (status == HP_OK)
    *out = reinterpret_cast<hp_event *>(event.release());
  return status;
}

hp_status recordEvent(hp_event *event, hp_stream *stream) {
  if (hp_status status = checkGiven(stream, "hp_event_record", "a stream");
      status != HP_OK)
    return status;
  eventOf(event).recorded = true;
  return on(streamOf(stream), "recording an event", [&](Driver &driver) {
    return driver.eventRecord(eventOf(event).handle, streamOf(stream).handle);
  });
}

hp_status waitOnStream(hp_stream *stream, hp_event *event) {
  if (hp_status status = checkGiven(event, "hp_stream_wait", "an event");
      status != HP_OK)
    return status;
  return on(streamOf(stream), "waiting for an event", [&](Driver &driver) {
    return driver.streamWait(streamOf(stream).handle, eventOf(event).handle, 0);
  });
}

hp_status queryEvent(hp_event *event, int32_t *done) {
  if (hp_status status =
          checkGiven(done, "hp_event_query", "a place for the result");
      status != HP_OK)
    return status;
  return on(eventOf(event), "asking for an event", [&](Driver &driver) {
    Result result = driver.eventQuery(eventOf(event).handle);
    *done = result == Success;
    return result == NotReady ? Success : result;
  });
}

hp_status syncEvent(hp_event *event) {
  return on(eventOf(event), "waiting for an event", [&](Driver &driver) {
    return driver.eventSynchronize(eventOf(event).handle);
  });
}

hp_status elapsed(hp_event *start, hp_event *end, double *milliseconds) {
  if (!end || !milliseconds || !eventOf(start).recorded ||
      !eventOf(end).recorded)
    return fail(HP_INVALID_ARGUMENT,
                "hp_event_elapsed: expected two events that were recorded");
  float between = 0;
  hp_status status = on(eventOf(end), "timing events", [&](Driver &driver) {
    Result result = driver.eventSynchronize(eventOf(start).handle);
    if (result == Success)
      result = driver.eventSynchronize(eventOf(end).handle);
    if (result == Success)
      result = driver.eventElapsed(&between, eventOf(start).handle,
                                   eventOf(end).handle);
    return result;
  });
  *milliseconds = between;
  return status;
}

hp_status destroyEvent(hp_event *event) {
  hp_status status = on(eventOf(event), "ending an event", [&](Driver &driver) {
    return driver.eventDestroy(eventOf(event).handle);
  });
  delete &eventOf(event);
  return status;
}

hp_status copy(void *dst, const void *src, int64_t bytes, hp_stream *stream) {
  if (hp_status status = checkCopy(dst, src, bytes); status != HP_OK)
    return status;
  if (bytes == 0)
    return HP_OK;
  return on(streamOf(stream), "copying", [&](Driver &driver) {
    return driver.copyAsync(address(dst), address(src),
                            static_cast<size_t>(bytes),
                            streamOf(stream).handle);
  });
}

hp_status copy2d(void *dst, int64_t dstPitch, const void *src, int64_t srcPitch,
                 int64_t width, int64_t rows, hp_stream *stream) {
  if (hp_status status =
          checkCopyRows(dst, dstPitch, src, srcPitch, width, rows);
      status != HP_OK)
    return status;
  if (width * rows == 0)
    return HP_OK;
  Copy2D what = describeRows(dst, dstPitch, src, srcPitch, width, rows);
  return on(streamOf(stream), "copying rows", [&](Driver &driver) {
    return driver.copy2DAsync(&what, streamOf(stream).handle);
  });
}

/// The pattern is laid once, column by column of bytes, then doubled in place.
hp_status fillMemory(void *dst, const void *pattern, int64_t patternBytes,
                     int64_t bytes, hp_stream *stream) {
  if (hp_status status = checkFill(dst, pattern, patternBytes, bytes);
      status != HP_OK)
    return status;
  const auto *values = static_cast<const unsigned char *>(pattern);
  return on(streamOf(stream), "filling", [&](Driver &driver) {
    StreamHandle handle = streamOf(stream).handle;
    Result result = Success;
    bool isUniform = true;
    for (int64_t i = 1; i < patternBytes; ++i)
      isUniform &= values[i] == values[0];
    if (isUniform)
      return bytes == 0
                 ? Success
                 : driver.setBytesAsync(address(dst), values[0],
                                        static_cast<size_t>(bytes), handle);
    for (int64_t i = 0; result == Success && i < patternBytes && bytes > 0; ++i)
      result = driver.setBytesAsync(address(dst) + i, values[i], 1, handle);
    for (int64_t filled = patternBytes; result == Success && filled < bytes;) {
      int64_t more = filled < bytes - filled ? filled : bytes - filled;
      result = driver.copyAsync(address(dst) + filled, address(dst),
                                static_cast<size_t>(more), handle);
      filled += more;
    }
    return result;
  });
}

hp_status hostTask(hp_stream *stream, hp_host_task_fn fn, void *arg) {
  if (hp_status status = checkGiven(reinterpret_cast<const void *>(fn),
                                    "hp_host_task", "a function");
      status != HP_OK)
    return status;
  return on(streamOf(stream), "queueing a host task", [&](Driver &driver) {
    return driver.hostFunction(streamOf(stream).handle, fn, arg);
  });
}

hp_status matmul(const hp_matmul_desc *desc, hp_stream *stream) {
  if (hp_status given = checkGiven(desc, "hp_matmul", "a description");
      given != HP_OK)
    return given;
  Stream &queue = streamOf(stream);
  hp_status status = enter(*queue.device);
  return status == HP_OK ? multiply(*queue.device, *desc, queue.handle)
                         : status;
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

} // namespace hyperparallel::runtime::cuda
