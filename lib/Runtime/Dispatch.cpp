// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Dispatch.cpp - The public API, forwarded to the back end's table --===//
//
// Finds back ends by name and forwards every public call through the table
// that the call's object points to (hp_backend.h). A missing library, a
// missing table entry and a NULL object are statuses, never crashes.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/CpuBackend.h"
#include "lib/Runtime/Status.h"
#include "lib/Runtime/hp_backend.h"

#include <cctype>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <string>

using namespace hyperparallel::runtime;

namespace {

/// All objects of a back end begin like this.
struct Object {
  const hp_backend_v1 *backend;
};

const hp_backend_v1 *tableOf(const void *object) {
  return static_cast<const Object *>(object)->backend;
}

template <typename Fn>
Fn entryAt(const hp_backend_v1 *table, size_t offset) {
  if (offset + sizeof(Fn) > table->struct_size)
    return nullptr;
  Fn fn;
  std::memcpy(&fn, reinterpret_cast<const char *>(table) + offset, sizeof(fn));
  return fn;
}

/// The directory of this library, with a slash; empty if it cannot be told.
std::string ownDirectory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&hp_abi_version), &info) ||
      !info.dli_fname)
    return "";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

/// Loads libhp_NAME.so, first from beside this library, then by search path.
/// Back ends stay loaded: their threads and atexit handlers may outlive us.
hp_status findBackend(const char *name, const hp_backend_v1 **out) {
  if (!std::strcmp(name, "cpu")) {
    *out = cpuBackend();
    return HP_OK;
  }
  for (const char *c = name; *c; ++c)
    if (!std::isalnum(static_cast<unsigned char>(*c)) && *c != '_')
      return fail(HP_INVALID_ARGUMENT,
                  "expected a back end's name of letters, digits and _ but got "
                  "'%s'",
                  name);
  std::string file = "libhp_" + std::string(name) + ".so";
  void *library = dlopen((ownDirectory() + file).c_str(), RTLD_NOW);
  if (!library)
    library = dlopen(file.c_str(), RTLD_NOW);
  if (!library)
    return fail(HP_NOT_FOUND,
                "back end '%s' is not installed: cannot load %s (%s); 'cpu' is "
                "always there",
                name, file.c_str(), dlerror());
  auto get =
      reinterpret_cast<hp_backend_get_fn>(dlsym(library, "hp_backend_get"));
  *out = get ? get(HP_ABI_VERSION) : nullptr;
  if (!*out)
    return fail(HP_NOT_FOUND, "%s is no back end for runtime ABI version %u",
                file.c_str(), HP_ABI_VERSION);
  return HP_OK;
}

hp_status unimplemented(const hp_backend_v1 *table, const char *what) {
  return fail(HP_UNIMPLEMENTED, "back end '%s' does not implement hp_%s",
              table->name, what);
}

} // namespace

/// `return HP_FORWARD(object, entry, arguments)`.
#define HP_FORWARD(OBJECT, ENTRY, ...)                                         \
  forward(OBJECT, #OBJECT, #ENTRY, offsetof(hp_backend_v1, ENTRY),             \
          static_cast<decltype(hp_backend_v1::ENTRY)>(nullptr), __VA_ARGS__)

template <typename Fn, typename... Args>
static hp_status forward(const void *object, const char *objectName,
                         const char *entryName, size_t offset, Fn,
                         Args... args) {
  if (!object)
    return fail(HP_INVALID_ARGUMENT, "hp_%s: expected a %s but got NULL",
                entryName, objectName);
  const hp_backend_v1 *table = tableOf(object);
  Fn fn = entryAt<Fn>(table, offset);
  return fn ? fn(args...) : unimplemented(table, entryName);
}

extern "C" {

hp_status hp_backend_error(hp_status status, const char *message) {
  return failWith(status, message ? message : "");
}

hp_status hp_context_create(const hp_context_desc *desc, hp_context **out) {
  if (!desc || !out || desc->struct_size < sizeof(hp_context_desc))
    return fail(HP_INVALID_ARGUMENT,
                "hp_context_create: expected a description with struct_size "
                "set to its size, and a place for the result");
  *out = nullptr;
  const hp_backend_v1 *table = nullptr;
  hp_status status = findBackend(desc->backend ? desc->backend : "cpu", &table);
  if (status != HP_OK)
    return status;
  auto create = entryAt<decltype(hp_backend_v1::context_create)>(
      table, offsetof(hp_backend_v1, context_create));
  return create ? create(desc, out) : unimplemented(table, "context_create");
}

void hp_context_destroy(hp_context *context) {
  if (context)
    tableOf(context)->context_destroy(context);
}

const char *hp_context_backend(const hp_context *context) {
  return context ? tableOf(context)->name : "";
}

int64_t hp_device_count(const hp_context *context) {
  return context ? tableOf(context)->device_count(context) : 0;
}

hp_status hp_device_get(hp_context *context, int64_t ordinal, hp_device **out) {
  return HP_FORWARD(context, device_get, context, ordinal, out);
}

hp_status hp_device_can(hp_device *device, hp_capability capability,
                        int64_t first, int64_t second) {
  return HP_FORWARD(device, device_can, device, capability, first, second);
}

hp_status hp_tier_set_limit(hp_device *device, hp_tier tier, int64_t limit) {
  return HP_FORWARD(device, tier_set_limit, device, tier, limit);
}
hp_status hp_tier_info(hp_device *device, hp_tier tier, int64_t *limit,
                       int64_t *used, int64_t *peak) {
  return HP_FORWARD(device, tier_info, device, tier, limit, used, peak);
}
hp_status hp_tier_reset_peak(hp_device *device, hp_tier tier) {
  return HP_FORWARD(device, tier_reset_peak, device, tier);
}
hp_status hp_alloc(hp_device *device, hp_tier tier, int64_t bytes,
                   hp_stream *stream, void **out) {
  return HP_FORWARD(device, alloc, device, tier, bytes, stream, out);
}
hp_status hp_free(hp_device *device, void *pointer, hp_stream *stream) {
  return HP_FORWARD(device, free, device, pointer, stream);
}

hp_status hp_stream_create(hp_device *device, hp_stream_role role,
                           hp_stream **out) {
  return HP_FORWARD(device, stream_create, device, role, out);
}
hp_status hp_stream_sync(hp_stream *stream) {
  return HP_FORWARD(stream, stream_sync, stream);
}
hp_status hp_stream_destroy(hp_stream *stream) {
  return HP_FORWARD(stream, stream_destroy, stream);
}
hp_status hp_event_create(hp_device *device, hp_event **out) {
  return HP_FORWARD(device, event_create, device, out);
}
hp_status hp_event_record(hp_event *event, hp_stream *stream) {
  return HP_FORWARD(event, event_record, event, stream);
}
hp_status hp_stream_wait(hp_stream *stream, hp_event *event) {
  return HP_FORWARD(stream, stream_wait, stream, event);
}
hp_status hp_event_query(hp_event *event, int32_t *done) {
  return HP_FORWARD(event, event_query, event, done);
}
hp_status hp_event_sync(hp_event *event) {
  return HP_FORWARD(event, event_sync, event);
}
hp_status hp_event_elapsed(hp_event *start, hp_event *end,
                           double *milliseconds) {
  return HP_FORWARD(start, event_elapsed, start, end, milliseconds);
}
hp_status hp_event_destroy(hp_event *event) {
  return HP_FORWARD(event, event_destroy, event);
}
hp_status hp_copy(void *dst, const void *src, int64_t bytes,
                  hp_stream *stream) {
  return HP_FORWARD(stream, copy, dst, src, bytes, stream);
}
hp_status hp_copy_2d(void *dst, int64_t dstPitch, const void *src,
                     int64_t srcPitch, int64_t width, int64_t rows,
                     hp_stream *stream) {
  return HP_FORWARD(stream, copy_2d, dst, dstPitch, src, srcPitch, width, rows,
                    stream);
}
hp_status hp_fill(void *dst, const void *pattern, int64_t patternBytes,
                  int64_t bytes, hp_stream *stream) {
  return HP_FORWARD(stream, fill, dst, pattern, patternBytes, bytes, stream);
}
hp_status hp_host_task(hp_stream *stream, hp_host_task_fn fn, void *arg) {
  return HP_FORWARD(stream, host_task, stream, fn, arg);
}

hp_status hp_kernel_get(hp_program *program, const char *name,
                        hp_kernel **out) {
  return HP_FORWARD(program, kernel_get, program, name, out);
}
hp_status hp_kernel_launch(hp_kernel *kernel, const int64_t grid[3],
                           const int64_t block[3], int64_t sharedBytes,
                           void **args, int64_t numArgs, hp_stream *stream) {
  return HP_FORWARD(kernel, kernel_launch, kernel, grid, block, sharedBytes,
                    args, numArgs, stream);
}
hp_status hp_matmul(const hp_matmul_desc *desc, hp_stream *stream) {
  return HP_FORWARD(stream, matmul, desc, stream);
}
hp_status hp_op_call(const char *name, const void *desc, hp_stream *stream) {
  return HP_FORWARD(stream, op_call, name, desc, stream);
}

hp_status hp_comm_create(hp_context *context, const char *name,
                         const int64_t *ranks, int64_t numRanks,
                         hp_device *device, hp_comm **out) {
  return HP_FORWARD(context, comm_create, context, name, ranks, numRanks,
                    device, out);
}
hp_status hp_comm_destroy(hp_comm *comm) {
  return HP_FORWARD(comm, comm_destroy, comm);
}
hp_status hp_all_gather(const void *in, void *out, int64_t count,
                        hp_dtype dtype, hp_comm *comm, hp_stream *stream) {
  return HP_FORWARD(comm, all_gather, in, out, count, dtype, comm, stream);
}
hp_status hp_all_reduce(const void *in, void *out, int64_t count,
                        hp_dtype dtype, hp_reduction op, hp_comm *comm,
                        hp_stream *stream) {
  return HP_FORWARD(comm, all_reduce, in, out, count, dtype, op, comm, stream);
}
hp_status hp_reduce_scatter(const void *in, void *out, int64_t count,
                            hp_dtype dtype, hp_reduction op, hp_comm *comm,
                            hp_stream *stream) {
  return HP_FORWARD(comm, reduce_scatter, in, out, count, dtype, op, comm,
                    stream);
}
hp_status hp_all_to_all(const void *in, void *out, int64_t count,
                        hp_dtype dtype, hp_comm *comm, hp_stream *stream) {
  return HP_FORWARD(comm, all_to_all, in, out, count, dtype, comm, stream);
}
hp_status hp_broadcast(void *buffer, int64_t count, hp_dtype dtype,
                       int64_t root, hp_comm *comm, hp_stream *stream) {
  return HP_FORWARD(comm, broadcast, buffer, count, dtype, root, comm, stream);
}
hp_status hp_barrier(hp_comm *comm, hp_stream *stream) {
  return HP_FORWARD(comm, barrier, comm, stream);
}
hp_status hp_send(const void *buffer, int64_t count, hp_dtype dtype,
                  int64_t peer, int64_t tag, hp_comm *comm, hp_stream *stream) {
  return HP_FORWARD(comm, send, buffer, count, dtype, peer, tag, comm, stream);
}
hp_status hp_recv(void *buffer, int64_t count, hp_dtype dtype, int64_t peer,
                  int64_t tag, hp_comm *comm, hp_stream *stream) {
  return HP_FORWARD(comm, recv, buffer, count, dtype, peer, tag, comm, stream);
}

hp_status hp_group_begin(hp_context *context) {
  return HP_FORWARD(context, group_begin, context);
}
hp_status hp_group_end(hp_context *context) {
  return HP_FORWARD(context, group_end, context);
}

hp_status hp_program_load(hp_context *context, const char *path,
                          hp_program **out) {
  return HP_FORWARD(context, program_load, context, path, out);
}
hp_status hp_program_has_entry(hp_program *program, const char *entry) {
  return HP_FORWARD(program, program_has_entry, program, entry);
}
hp_status hp_program_unload(hp_program *program) {
  return HP_FORWARD(program, program_unload, program);
}
hp_status hp_run_start(hp_context *context, const hp_launch *launches,
                       int64_t numLaunches) {
  return HP_FORWARD(context, run_start, context, launches, numLaunches);
}
hp_status hp_run_wait(hp_context *context, int64_t timeoutMs, int32_t *done,
                      hp_run_stats *stats) {
  return HP_FORWARD(context, run_wait, context, timeoutMs, done, stats);
}
hp_status hp_program_run(hp_context *context, const hp_launch *launches,
                         int64_t numLaunches, hp_run_stats *stats) {
  hp_status status = hp_run_start(context, launches, numLaunches);
  int32_t done = 0;
  return status == HP_OK ? hp_run_wait(context, -1, &done, stats) : status;
}
hp_status hp_run_cancel(hp_context *context, const char *reason) {
  return HP_FORWARD(context, run_cancel, context, reason);
}

hp_status hp_process_info(const hp_context *context, int64_t *process,
                          int64_t *numProcesses) {
  return HP_FORWARD(context, process_info, context, process, numProcesses);
}
hp_status hp_process_of(const hp_context *context, int64_t ordinal,
                        int64_t *process) {
  return HP_FORWARD(context, process_of, context, ordinal, process);
}
hp_status hp_process_meet(hp_context *context) {
  return HP_FORWARD(context, process_meet, context);
}
hp_status hp_process_finish(hp_context *context) {
  return HP_FORWARD(context, process_finish, context);
}

hp_status hp_trace_begin(hp_context *context, const char *path) {
  return HP_FORWARD(context, trace_begin, context, path);
}
hp_status hp_trace_end(hp_context *context) {
  return HP_FORWARD(context, trace_end, context);
}

} // extern "C"
