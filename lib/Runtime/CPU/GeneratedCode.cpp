// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- GeneratedCode.cpp - Memory, loops and products of programs --------===//
//
// The hp_rt_* calls that concern one device alone. Follows the rules of
// GeneratedCode.h.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/GeneratedCode.h"
#include "lib/Runtime/CPU/FunctionNames.h"
#include "lib/Runtime/Status.h"

#include <cstdio>
#include <cstdlib>

using namespace hyperparallel::runtime;

namespace hyperparallel::runtime {

Device &currentDevice(const char *function) {
  ThreadState &state = threadState();
  if (Device *device = state.device) {
    if (!state.inBody) {
      device->numCalls.fetch_add(1, std::memory_order_relaxed);
      device->lastCall.store(function, std::memory_order_relaxed);
    }
    return *device;
  }
  std::fprintf(stderr,
               "%s was called outside of hp_program_run; compiled programs "
               "must be run through it\n",
               function);
  std::abort();
}

void leaveProgram(Device &device, hp_status status) {
  recordFailure(device, status);
  std::longjmp(*threadState().exit, 1);
}

hp_status refuseInBody(const char *what) {
  if (!threadState().inBody)
    return HP_OK;
  return fail(HP_INVALID_ARGUMENT,
              "%s inside the body of a hp_rt_parallel_for is not allowed",
              what);
}

hp_status mayCall(Device &device, const char *what) {
  hp_status status = checkStopping(device);
  return status == HP_OK ? refuseInBody(what) : status;
}

} // namespace hyperparallel::runtime

//===----------------------------------------------------------------------===//
// Parallel loops
//===----------------------------------------------------------------------===//

namespace {
struct Loop {
  Device *device;
  hp_body_fn fn;
  void *context;
  const char *label;
};
} // namespace

/// Runs one piece. An assertion that fails inside comes back here, so that the
/// loop's owner never unwinds while helpers still use its stack.
static bool runPiece(void *context, int64_t begin, int64_t end) {
  Loop *loop = static_cast<Loop *>(context);
  if (loop->device->context->run.stopping.load(std::memory_order_relaxed))
    return false;
  ThreadState &state = threadState();
  const ThreadState saved = state;
  std::jmp_buf exit;
  state = {loop->device, &exit, true, loop->label};
  bool completed = false;
  if (_setjmp(exit) == 0) {
    loop->fn(loop->context, begin, end);
    completed = true;
  }
  threadState() = saved;
  return completed;
}

static hp_status parallelFor(Device &device, hp_body_fn fn, void *context,
                             int64_t n, int64_t grain) {
  ThreadState &state = threadState();
  if (state.inBody) {
    fn(context, 0, n);
    return HP_OK;
  }
  Loop loop = {&device, fn, context, state.label};
  int64_t begin = nowNs();
  bool completed = device.context->workers->run(
      device.ordinal, device.context->run.threadsPerDevice, runPiece, &loop, n,
      grain);
  if (device.context->trace.enabled() && device.lane) {
    std::string name = loop.label
                           ? loop.label
                           : functionName(reinterpret_cast<const void *>(fn));
    device.lane->spans.push_back({"parallel_for",
                                  name.empty() ? "parallel_for" : name, begin,
                                  nowNs(), -1});
  }
  return completed ? HP_OK : fail(HP_CANCELLED, "the run was stopped");
}

static hp_status multiply(Device &device, const hp_matmul_desc *desc) {
  hp_status status = checkStopping(device);
  if (status == HP_OK && !desc)
    status = fail(HP_INVALID_ARGUMENT, "matmul: expected a description");
  if (status == HP_OK)
    status = checkMatmul(*desc);
  if (status == HP_OK)
    status = device.context->blas.load();
  if (status != HP_OK)
    return status;
  bool inBody = threadState().inBody;
  int64_t begin = nowNs();
  if (!inBody)
    device.isMultiplying = true;
  runMatmul(device.context->blas, *desc,
            inBody ? nullptr : device.context->workers.get(), device.ordinal,
            inBody ? 1 : device.context->run.threadsPerDevice);
  if (inBody)
    return HP_OK;
  device.isMultiplying = false;
  ++device.numCalls;
  int64_t end = nowNs();
  ++device.stats.matmuls;
  device.stats.matmul_ns += end - begin;
  device.stats.matmul_flops += matmulFlops(*desc);
  if (device.context->trace.enabled() && device.lane) {
    const char *label = threadState().label;
    device.lane->spans.push_back(
        {"matmul",
         std::string(label ? label : "matmul") + " " + std::to_string(desc->m) +
             "x" + std::to_string(desc->n) + "x" + std::to_string(desc->k),
         begin, end, -1});
  }
  return HP_OK;
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

static void beginRange(Device &device, const char *name) {
  if (device.context->trace.enabled() && !threadState().inBody)
    device.openRanges.push_back(
        {"range", name ? name : "range", nowNs(), 0, -1});
}

static void endRange(Device &device) {
  if (threadState().inBody || device.openRanges.empty())
    return;
  Span span = std::move(device.openRanges.back());
  device.openRanges.pop_back();
  span.end = nowNs();
  if (device.context->trace.enabled() && device.lane)
    device.lane->spans.push_back(std::move(span));
}

extern "C" {

//===----------------------------------------------------------------------===//
// The ABI
//===----------------------------------------------------------------------===//

void *hp_rt_alloc(int64_t bytes, int32_t tier) {
  Device &device = currentDevice("hp_rt_alloc");
  void *pointer = nullptr;
  hp_status status = mayCall(device, "allocation");
  if (status == HP_OK)
    status = device.pool.allocate(bytes, tier, BlockOwner::Run, &pointer);
  if (status != HP_OK)
    leaveProgram(device, status);
  return pointer;
}

void hp_rt_free(void *pointer) {
  Device &device = currentDevice("hp_rt_free");
  hp_status status = refuseInBody("freeing memory");
  if (status == HP_OK)
    status = device.pool.release(pointer);
  if (status != HP_OK)
    leaveProgram(device, status);
}

int64_t hp_rt_device_id(void) {
  return currentDevice("hp_rt_device_id").launch.rank;
}

void hp_rt_assert_fail(const char *msg) {
  Device &device = currentDevice("hp_rt_assert_fail");
  leaveProgram(device, fail(HP_PROGRAM_ERROR, "assertion failed: %s",
                            msg ? msg : "(no message)"));
}

void hp_rt_label(const char *label) { threadState().label = label; }

void hp_rt_range_begin(const char *name) {
  beginRange(currentDevice("hp_rt_range_begin"), name);
}

void hp_rt_range_end(void) { endRange(currentDevice("hp_rt_range_end")); }

void hp_rt_parallel_for(hp_body_fn fn, void *ctx, int64_t n, int64_t grain) {
  Device &device = currentDevice("hp_rt_parallel_for");
  hp_status status = checkStopping(device);
  if (status == HP_OK && n > 0)
    status = parallelFor(device, fn, ctx, n, grain);
  if (status != HP_OK)
    leaveProgram(device, status);
}

void hp_rt_matmul(const hp_matmul_desc *desc) {
  Device &device = currentDevice("hp_rt_matmul");
  hp_status status = multiply(device, desc);
  if (status != HP_OK)
    leaveProgram(device, status);
}

} // extern "C"
