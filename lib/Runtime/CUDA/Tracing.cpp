// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CUDA/Tracing.h"
#include "lib/Runtime/CUDA/Collectives.h"
#include "lib/Runtime/StreamNumbers.h"

namespace hyperparallel::runtime::cuda {

void DeviceTracer::addLane(Trace &trace, int ordinal, int32_t stream) {
  std::string name = "device " + std::to_string(ordinal);
  if (stream != HP_STREAM_COMPUTE)
    name += " " + streamName(stream, " stream");
  lanes[stream] = trace.addLane(name);
}

static Result recordOn(Device &device, int32_t stream, EventHandle *event) {
  Driver &driver = device.context->driver;
  Result result = driver.eventCreate(event, 0);
  return result == Success
             ? driver.eventRecord(*event, streamOf(device, stream))
             : result;
}

hp_status DeviceTracer::beginRun(Device &device) {
  if (!device.context->trace.enabled())
    return HP_OK;
  Driver &driver = device.context->driver;
  Result result = recordOn(device, HP_STREAM_COMPUTE, &base);
  if (result == Success)
    result = driver.eventSynchronize(base);
  baseNs = nowNs();
  return driver.check(result, "beginning a trace");
}

hp_status DeviceTracer::begin(Device &device, int32_t stream,
                              const char *category, std::string name,
                              int64_t bytes) {
  if (!isOn())
    return HP_OK;
  open.push_back(marks.size());
  marks.push_back({stream, category, std::move(name), bytes, nullptr, nullptr});
  return device.context->driver.check(
      recordOn(device, stream, &marks.back().start), "tracing");
}

hp_status DeviceTracer::end(Device &device) {
  if (!isOn() || open.empty())
    return HP_OK;
  TraceMark &mark = marks[open.back()];
  open.pop_back();
  return device.context->driver.check(recordOn(device, mark.stream, &mark.end),
                                      "tracing");
}

hp_status DeviceTracer::endRun(Device &device, int64_t beginNs) {
  if (!isOn())
    return HP_OK;
  Driver &driver = device.context->driver;
  Result result = Success;
  auto timeOf = [&](EventHandle event) {
    float milliseconds = 0;
    if (result == Success)
      result = driver.eventElapsed(&milliseconds, base, event);
    return baseNs + static_cast<int64_t>(milliseconds * 1e6);
  };
  for (TraceMark &mark : marks) {
    // A program that failed may have left some open.
    if (mark.start && mark.end) {
      int64_t from = timeOf(mark.start);
      lanes[mark.stream]->spans.push_back({mark.category, std::move(mark.name),
                                           from, timeOf(mark.end), mark.bytes});
    }
    for (EventHandle event : {mark.start, mark.end})
      if (event)
        driver.eventDestroy(event);
  }
  lanes[0]->spans.push_back(
      {"program", device.launch.entry, beginNs, nowNs(), -1});
  driver.eventDestroy(base);
  base = nullptr;
  marks.clear();
  open.clear();
  return driver.check(result, "ending a trace");
}

} // namespace hyperparallel::runtime::cuda
