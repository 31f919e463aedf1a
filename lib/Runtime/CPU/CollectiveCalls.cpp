// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- CollectiveCalls.cpp - The collectives that compiled programs call -===//
//
// Brings every hp_rt_* collective and message into the form of `Call`, having
// checked what can be checked by one member alone, and performs it. Follows the
// rules of GeneratedCode.h.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/GeneratedCode.h"
#include "lib/Runtime/CPU/Reduce.h"
#include "lib/Runtime/CPU/SideStream.h"
#include "lib/Runtime/StreamNumbers.h"

#include <algorithm>

using namespace hyperparallel::runtime;

//===----------------------------------------------------------------------===//
// Checked and brought into the form of `Call`
//===----------------------------------------------------------------------===//

static hp_status checkSizes(const char *what, const int64_t *sizes, int count) {
  for (int i = 0; i < count; ++i)
    if (sizes[i] < 0)
      return fail(HP_INVALID_ARGUMENT, "%s: expected sizes >= 0 but got %lld",
                  what, static_cast<long long>(sizes[i]));
  return HP_OK;
}

static hp_status checkElements(const char *what, int64_t dtype, int64_t op,
                               bool reduces) {
  if (dtypeBytes(dtype) == 0)
    return fail(HP_INVALID_ARGUMENT, "%s: expected a dtype but got %lld", what,
                static_cast<long long>(dtype));
  if (reduces && !canReduce(dtype, op))
    return fail(HP_INVALID_ARGUMENT, "%s: %s of %s elements is not defined",
                what, reductionName(op), dtypeName(dtype));
  return HP_OK;
}

static Call makeCall(hp_collective kind, const void *in, void *out) {
  Call call;
  call.kind = kind;
  call.in = static_cast<const char *>(in);
  call.out = static_cast<char *>(out);
  call.label = threadState().label;
  return call;
}

static hp_status gatherCall(Device &device, const void *in, void *out,
                            int64_t outer, int64_t dim, int64_t inner,
                            int64_t dtype, const hp_axis *axes, int64_t naxes,
                            Call &call, GroupRef *&ref) {
  const int64_t sizes[] = {outer, dim, inner};
  call = makeCall(HP_ALL_GATHER, in, out);
  hp_status status = mayCall(device, "all_gather");
  if (status == HP_OK)
    status = checkSizes("all_gather", sizes, 3);
  if (status == HP_OK)
    status = checkElements("all_gather", dtype, -1, false);
  if (status != HP_OK)
    return status;
  call.dtype = dtype;
  call.elementBytes = dtypeBytes(dtype);
  call.inBytes = outer * dim * inner * call.elementBytes;
  std::copy_n(sizes, 3, call.shape);
  return findGroup(currentLane(device), axes, naxes, &ref);
}

static hp_status reduceCall(Device &device, const void *in, void *out,
                            int64_t count, int64_t dtype, int64_t op,
                            const hp_axis *axes, int64_t naxes, Call &call,
                            GroupRef *&ref) {
  call = makeCall(HP_ALL_REDUCE, in, out);
  hp_status status = mayCall(device, "all_reduce");
  if (status == HP_OK)
    status = checkSizes("all_reduce", &count, 1);
  if (status == HP_OK)
    status = checkElements("all_reduce", dtype, op, true);
  if (status != HP_OK)
    return status;
  call.dtype = dtype;
  call.op = op;
  call.elementBytes = dtypeBytes(dtype);
  call.inBytes = count * call.elementBytes;
  call.shape[0] = count;
  return findGroup(currentLane(device), axes, naxes, &ref);
}

static int64_t groupSize(const GroupRef *ref) {
  return ref->group ? ref->group->size() : 1;
}

static hp_status scatterCall(Device &device, const void *in, void *out,
                             int64_t outer, int64_t dim, int64_t inner,
                             int64_t dtype, int64_t op, const hp_axis *axes,
                             int64_t naxes, Call &call, GroupRef *&ref) {
  const int64_t sizes[] = {outer, dim, inner};
  call = makeCall(HP_REDUCE_SCATTER, in, out);
  hp_status status = mayCall(device, "reduce_scatter");
  if (status == HP_OK)
    status = checkSizes("reduce_scatter", sizes, 3);
  if (status == HP_OK)
    status = checkElements("reduce_scatter", dtype, op, true);
  if (status == HP_OK)
    status = findGroup(currentLane(device), axes, naxes, &ref);
  if (status != HP_OK)
    return status;
  call.dtype = dtype;
  call.op = op;
  call.elementBytes = dtypeBytes(dtype);
  call.inBytes = outer * dim * inner * groupSize(ref) * call.elementBytes;
  std::copy_n(sizes, 3, call.shape);
  return HP_OK;
}

static int64_t product(const int64_t *shape, int64_t begin, int64_t end) {
  int64_t result = 1;
  for (int64_t i = begin; i < end; ++i)
    result *= shape[i];
  return result;
}

static hp_status toAllCall(Device &device, const void *in, void *out,
                           int64_t rank, const int64_t *shape, int64_t splitDim,
                           int64_t concatDim, int64_t elementBytes,
                           const hp_axis *axes, int64_t naxes, Call &call,
                           GroupRef *&ref) {
  call = makeCall(HP_ALL_TO_ALL, in, out);
  hp_status status = mayCall(device, "all_to_all");
  if (status == HP_OK && (splitDim < 0 || splitDim >= rank || concatDim < 0 ||
                          concatDim >= rank || elementBytes < 1))
    status =
        fail(HP_INVALID_ARGUMENT,
             "all_to_all: expected dimensions below %lld but got %lld and "
             "%lld",
             static_cast<long long>(rank), static_cast<long long>(splitDim),
             static_cast<long long>(concatDim));
  if (status == HP_OK)
    status = checkSizes("all_to_all", shape, static_cast<int>(rank));
  if (status == HP_OK)
    status = findGroup(currentLane(device), axes, naxes, &ref);
  if (status != HP_OK)
    return status;
  if (shape[splitDim] % groupSize(ref) != 0)
    return fail(HP_INVALID_ARGUMENT,
                "all_to_all: dimension %lld of size %lld cannot be split over "
                "%lld devices",
                static_cast<long long>(splitDim),
                static_cast<long long>(shape[splitDim]),
                static_cast<long long>(groupSize(ref)));
  int64_t first = std::min(splitDim, concatDim);
  int64_t second = std::max(splitDim, concatDim);
  call.order = splitDim < concatDim ? -1 : splitDim > concatDim ? 1 : 0;
  call.elementBytes = elementBytes;
  call.inBytes = product(shape, 0, rank) * elementBytes;
  call.shape[0] = product(shape, 0, first);
  call.shape[1] = shape[first];
  call.shape[2] = product(shape, first + 1, second);
  call.shape[3] = call.order == 0 ? 1 : shape[second];
  call.shape[4] = product(shape, second + 1, rank);
  return HP_OK;
}

static hp_status permuteCall(Device &device, const void *in, void *out,
                             int64_t bytes, const hp_axis *from,
                             int64_t numFrom, const hp_axis *to, int64_t numTo,
                             Call &call, GroupRef *&ref) {
  call = makeCall(HP_PERMUTE, in, out);
  hp_status status = mayCall(device, "permute");
  if (status == HP_OK)
    status = checkSizes("permute", &bytes, 1);
  if (status != HP_OK)
    return status;
  call.inBytes = bytes;
  return findPermuteGroup(currentLane(device), from, numFrom, to, numTo, &ref,
                          call);
}

/// Does a collective, or queues it.
static void perform(Device &device, hp_status status, const Call &call,
                    GroupRef *ref) {
  if (status == HP_OK)
    status = perform(device, [own = call, ref](Lane &lane) mutable {
      hp_status status = startCollective(lane, *ref, own);
      return status == HP_OK ? finishCollective(lane, own) : status;
    });
  if (status != HP_OK)
    leaveProgram(device, status);
}

/// The asynchronous form; the device owns the call until hp_rt_wait.
static void *begin(Device &device, hp_status status, const Call &described,
                   GroupRef *ref) {
  if (status == HP_OK && device.current)
    status = fail(HP_INVALID_ARGUMENT,
                  "expected a collective with a future to be on no stream, but "
                  "calls go to the stream %s",
                  streamName(device.current->stream).c_str());
  if (status != HP_OK)
    leaveProgram(device, status);
  Call *call = new Call(described);
  device.futures.push_back(call);
  status = startCollective(device, *ref, *call);
  if (status != HP_OK)
    leaveProgram(device, status);
  return call;
}

static hp_status finishFuture(Device &device, void *future) {
  auto found = std::find(device.futures.begin(), device.futures.end(), future);
  if (found == device.futures.end())
    return fail(HP_INVALID_ARGUMENT,
                "hp_rt_wait: expected a future that was not waited for but got "
                "%p",
                future);
  Call *call = *found;
  hp_status status = finishCollective(device, *call);
  if (status != HP_OK)
    return status; // the end of the run frees it
  device.futures.erase(
      std::find(device.futures.begin(), device.futures.end(), call));
  delete call;
  return HP_OK;
}

//===----------------------------------------------------------------------===//
// The ABI
//===----------------------------------------------------------------------===//

extern "C" {

void hp_rt_all_gather(const void *in, void *out, int64_t outer, int64_t dim,
                      int64_t inner, int32_t dtype, const hp_axis *axes,
                      int64_t naxes) {
  Device &device = currentDevice("hp_rt_all_gather");
  Call call;
  GroupRef *ref = nullptr;
  hp_status status = gatherCall(device, in, out, outer, dim, inner, dtype, axes,
                                naxes, call, ref);
  perform(device, status, call, ref);
}

void hp_rt_all_reduce(const void *in, void *out, int64_t count, int32_t dtype,
                      int32_t op, const hp_axis *axes, int64_t naxes) {
  Device &device = currentDevice("hp_rt_all_reduce");
  Call call;
  GroupRef *ref = nullptr;
  hp_status status =
      reduceCall(device, in, out, count, dtype, op, axes, naxes, call, ref);
  perform(device, status, call, ref);
}

void hp_rt_reduce_scatter(const void *in, void *out, int64_t outer, int64_t dim,
                          int64_t inner, int32_t dtype, int32_t op,
                          const hp_axis *axes, int64_t naxes) {
  Device &device = currentDevice("hp_rt_reduce_scatter");
  Call call;
  GroupRef *ref = nullptr;
  hp_status status = scatterCall(device, in, out, outer, dim, inner, dtype, op,
                                 axes, naxes, call, ref);
  perform(device, status, call, ref);
}

void hp_rt_all_to_all(const void *in, void *out, int64_t rank,
                      const int64_t *shape, int64_t split_dim,
                      int64_t concat_dim, int64_t elem_bytes,
                      const hp_axis *axes, int64_t naxes) {
  Device &device = currentDevice("hp_rt_all_to_all");
  Call call;
  GroupRef *ref = nullptr;
  hp_status status = toAllCall(device, in, out, rank, shape, split_dim,
                               concat_dim, elem_bytes, axes, naxes, call, ref);
  perform(device, status, call, ref);
}

void hp_rt_permute(const void *in, void *out, int64_t bytes,
                   const hp_axis *from_axes, int64_t num_from,
                   const hp_axis *to_axes, int64_t num_to) {
  Device &device = currentDevice("hp_rt_permute");
  Call call;
  GroupRef *ref = nullptr;
  hp_status status = permuteCall(device, in, out, bytes, from_axes, num_from,
                                 to_axes, num_to, call, ref);
  perform(device, status, call, ref);
}

void hp_rt_halo_exchange(const void *in, void *out, int64_t outer,
                         int64_t in_dim, int64_t inner_bytes,
                         int64_t global_size, int64_t stride, int64_t lo,
                         int64_t size, const hp_axis *axes, int64_t naxes) {
  Device &device = currentDevice("hp_rt_halo_exchange");
  const int64_t sizes[] = {outer, in_dim, inner_bytes, global_size, size};
  Call call = makeCall(HP_HALO_EXCHANGE, in, out);
  GroupRef *ref = nullptr;
  hp_status status = mayCall(device, "halo_exchange");
  if (status == HP_OK)
    status = checkSizes("halo_exchange", sizes, 5);
  if (status == HP_OK)
    status = findGroup(currentLane(device), axes, naxes, &ref);
  if (status == HP_OK && in_dim * groupSize(ref) < global_size)
    status = fail(HP_INVALID_ARGUMENT,
                  "halo_exchange: %lld blocks of %lld do not hold %lld",
                  static_cast<long long>(groupSize(ref)),
                  static_cast<long long>(in_dim),
                  static_cast<long long>(global_size));
  call.inBytes = outer * in_dim * inner_bytes;
  const int64_t shape[] = {outer,  in_dim, inner_bytes, global_size,
                           stride, lo,     size};
  std::copy_n(shape, 7, call.shape);
  perform(device, status, call, ref);
}

void *hp_rt_all_gather_start(const void *in, void *out, int64_t outer,
                             int64_t dim, int64_t inner, int32_t dtype,
                             const hp_axis *axes, int64_t naxes) {
  Device &device = currentDevice("hp_rt_all_gather_start");
  Call call;
  GroupRef *ref = nullptr;
  hp_status status = gatherCall(device, in, out, outer, dim, inner, dtype, axes,
                                naxes, call, ref);
  return begin(device, status, call, ref);
}

void *hp_rt_all_reduce_start(const void *in, void *out, int64_t count,
                             int32_t dtype, int32_t op, const hp_axis *axes,
                             int64_t naxes) {
  Device &device = currentDevice("hp_rt_all_reduce_start");
  Call call;
  GroupRef *ref = nullptr;
  hp_status status =
      reduceCall(device, in, out, count, dtype, op, axes, naxes, call, ref);
  return begin(device, status, call, ref);
}

void *hp_rt_reduce_scatter_start(const void *in, void *out, int64_t outer,
                                 int64_t dim, int64_t inner, int32_t dtype,
                                 int32_t op, const hp_axis *axes,
                                 int64_t naxes) {
  Device &device = currentDevice("hp_rt_reduce_scatter_start");
  Call call;
  GroupRef *ref = nullptr;
  hp_status status = scatterCall(device, in, out, outer, dim, inner, dtype, op,
                                 axes, naxes, call, ref);
  return begin(device, status, call, ref);
}

void *hp_rt_all_to_all_start(const void *in, void *out, int64_t rank,
                             const int64_t *shape, int64_t split_dim,
                             int64_t concat_dim, int64_t elem_bytes,
                             const hp_axis *axes, int64_t naxes) {
  Device &device = currentDevice("hp_rt_all_to_all_start");
  Call call;
  GroupRef *ref = nullptr;
  hp_status status = toAllCall(device, in, out, rank, shape, split_dim,
                               concat_dim, elem_bytes, axes, naxes, call, ref);
  return begin(device, status, call, ref);
}

void *hp_rt_permute_start(const void *in, void *out, int64_t bytes,
                          const hp_axis *from_axes, int64_t num_from,
                          const hp_axis *to_axes, int64_t num_to) {
  Device &device = currentDevice("hp_rt_permute_start");
  Call call;
  GroupRef *ref = nullptr;
  hp_status status = permuteCall(device, in, out, bytes, from_axes, num_from,
                                 to_axes, num_to, call, ref);
  return begin(device, status, call, ref);
}

void hp_rt_wait(void *future) {
  Device &device = currentDevice("hp_rt_wait");
  hp_status status = mayCall(device, "hp_rt_wait");
  if (status == HP_OK)
    status = finishFuture(device, future);
  if (status != HP_OK)
    leaveProgram(device, status);
}

void hp_rt_send(const void *buffer, int64_t bytes, int64_t peer, int64_t tag) {
  Device &device = currentDevice("hp_rt_send");
  Call call = makeCall(HP_SEND, buffer, nullptr);
  call.inBytes = bytes;
  call.peer = peer;
  call.tag = tag;
  hp_status status = mayCall(device, "hp_rt_send");
  if (status == HP_OK)
    status = checkSizes("send", &bytes, 1);
  if (status == HP_OK)
    status = perform(device, [own = call](Lane &lane) mutable {
      return sendMessage(lane, own);
    });
  if (status != HP_OK)
    leaveProgram(device, status);
}

void hp_rt_recv(void *buffer, int64_t bytes, int64_t peer, int64_t tag) {
  Device &device = currentDevice("hp_rt_recv");
  Call call = makeCall(HP_RECV, nullptr, buffer);
  call.inBytes = bytes;
  call.peer = peer;
  call.tag = tag;
  hp_status status = mayCall(device, "hp_rt_recv");
  if (status == HP_OK)
    status = checkSizes("recv", &bytes, 1);
  if (status == HP_OK)
    status = perform(device, [own = call](Lane &lane) mutable {
      return receiveMessage(lane, own);
    });
  if (status != HP_OK)
    leaveProgram(device, status);
}

} // extern "C"
