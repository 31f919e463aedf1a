// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Trace.h"
#include "lib/Runtime/Status.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace hyperparallel::runtime {

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TraceLane *Trace::addLane(std::string name) {
  std::lock_guard<std::mutex> lock(mutex);
  lanes.push_back({std::move(name), {}});
  return &lanes.back();
}

hp_status Trace::begin(const char *file) {
  if (!file || !*file)
    return fail(HP_INVALID_ARGUMENT, "hp_trace_begin: expected a path");
  std::lock_guard<std::mutex> lock(mutex);
  if (recording)
    return fail(HP_INVALID_ARGUMENT,
                "hp_trace_begin: a trace to '%s' is being recorded",
                path.c_str());
  // Fail now rather than after the work has been done.
  FILE *probe = std::fopen(file, "w");
  if (!probe)
    return fail(HP_NOT_FOUND, "cannot write the trace '%s': %s", file,
                std::strerror(errno));
  std::fclose(probe);
  path = file;
  start = nowNs();
  for (TraceLane &lane : lanes)
    lane.spans.clear();
  recording = true;
  return HP_OK;
}

static void writeString(FILE *file, const std::string &text) {
  std::fputc('"', file);
  for (unsigned char c : text) {
    if (c == '"' || c == '\\')
      std::fprintf(file, "\\%c", c);
    else if (c < 0x20)
      std::fprintf(file, "\\u%04x", c);
    else
      std::fputc(c, file);
  }
  std::fputc('"', file);
}

static void writeSpan(FILE *file, const Span &span, int lane, int64_t start) {
  std::fprintf(file, ",\n{\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"cat\":\"%s\"",
               lane, span.category);
  std::fputs(",\"name\":", file);
  writeString(file, span.name);
  std::fprintf(file, ",\"ts\":%.3f,\"dur\":%.3f", (span.begin - start) / 1e3,
               (span.end - span.begin) / 1e3);
  if (span.bytes >= 0)
    std::fprintf(file, ",\"args\":{\"bytes\":%lld}",
                 static_cast<long long>(span.bytes));
  std::fputc('}', file);
}

hp_status Trace::end() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!recording)
    return fail(HP_INVALID_ARGUMENT, "hp_trace_end: no trace was begun");
  recording = false;
  FILE *file = std::fopen(path.c_str(), "w");
  if (!file)
    return fail(HP_NOT_FOUND, "cannot write the trace '%s': %s", path.c_str(),
                std::strerror(errno));
  std::fputs("{\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"name\":"
             "\"process_name\",\"args\":{\"name\":\"hyperparallel\"}}",
             file);
  int number = 0;
  for (const TraceLane &lane : lanes) {
    std::fprintf(file,
                 ",\n{\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"name\":\"thread_"
                 "name\",\"args\":{\"name\":",
                 number);
    writeString(file, lane.name);
    std::fputs("}}", file);
    for (const Span &span : lane.spans)
      writeSpan(file, span, number, start);
    ++number;
  }
  std::fputs("\n],\"displayTimeUnit\":\"ms\"}\n", file);
  bool failed = std::ferror(file) != 0;
  failed |= std::fclose(file) != 0;
  if (failed)
    return fail(HP_INTERNAL, "cannot write the trace '%s': %s", path.c_str(),
                std::strerror(errno));
  return HP_OK;
}

} // namespace hyperparallel::runtime
