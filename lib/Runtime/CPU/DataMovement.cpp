// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- DataMovement.cpp - What each collective copies and reduces --------===//
//
// Which rows of whose buffer go where is said once (findRows), for members that
// read each other's memory and for those that send messages. Nothing here
// waits: moveData runs on one member after all have arrived, reads the members'
// published buffers and writes the caller's own.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/Collectives.h"
#include "lib/Runtime/CPU/Reduce.h"

#include <algorithm>
#include <cstring>

namespace hyperparallel::runtime {

void copyRows(char *out, const char *in, const Rows &rows) {
  if (rows.width <= 0 || rows.count <= 0)
    return;
  out += rows.out;
  in += rows.in;
  if (rows.width == rows.outPitch && rows.width == rows.inPitch) {
    std::memcpy(out, in, static_cast<size_t>(rows.width * rows.count));
    return;
  }
  for (int64_t row = 0; row < rows.count; ++row)
    std::memcpy(out + row * rows.outPitch, in + row * rows.inPitch,
                static_cast<size_t>(rows.width));
}

using Visit = std::function<void(const Rows &)>;

/// Names as in the header of hp_rt_all_to_all; s and c are the local extents
/// of the dimension that is split, after the split, and of the other one.
static void findAllToAll(const Call &call, int64_t from, int64_t to,
                         int64_t size, const Visit &visit) {
  int64_t before = call.shape[0], between = call.shape[2];
  int64_t after = call.shape[4] * call.elementBytes;
  if (call.order < 0) {
    int64_t s = call.shape[1] / size, c = call.shape[3];
    int64_t run = c * after, middle = between * run;
    for (int64_t i = 0; i < before; ++i)
      visit({i * s * size * middle + from * run, size * run,
             (i * size + to) * s * middle, run, run, s * between});
  } else if (call.order > 0) {
    int64_t c = call.shape[1], s = call.shape[3] / size;
    int64_t run = s * after;
    for (int64_t i = 0; i < before; ++i)
      visit({(i * size + from) * c * between * run, run,
             i * c * between * size * run + to * run, size * run, run,
             c * between});
  } else {
    int64_t run = call.shape[1] / size * after;
    visit({from * run, size * run, to * run, size * run, run, before});
  }
}

/// The window of rank `to` in a halo_exchange: it begins at `begin` of the
/// whole dimension, and [first, last) of the dimension is there to be had.
namespace {
struct Window {
  Window(const Call &call, int64_t to)
      : begin(to * call.shape[4] + call.shape[5]), length(call.shape[6]),
        first(std::max<int64_t>(begin, 0)),
        last(std::max(std::min(call.shape[3], begin + length), first)) {}
  int64_t begin, length, first, last;
};
} // namespace

static void findHalo(const Call &call, int64_t from, int64_t to,
                     const Visit &visit) {
  int64_t outer = call.shape[0], inDim = call.shape[1], inner = call.shape[2];
  Window window(call, to);
  int64_t first = std::max(window.first, from * inDim);
  int64_t last = std::min(window.last, (from + 1) * inDim);
  if (first < last)
    visit({(first - window.begin) * inner, window.length * inner,
           (first - from * inDim) * inner, inDim * inner,
           (last - first) * inner, outer});
}

void clearOutside(const Call &call) {
  if (call.kind != HP_HALO_EXCHANGE)
    return;
  Window window(call, call.rank);
  int64_t inner = call.shape[2], pitch = window.length * inner;
  int64_t first = std::min(window.first - window.begin, window.length);
  int64_t last =
      std::max(std::min(window.last - window.begin, window.length), first);
  for (int64_t row = 0; row < call.shape[0]; ++row) {
    std::memset(call.out + row * pitch, 0, static_cast<size_t>(first * inner));
    std::memset(call.out + row * pitch + last * inner, 0,
                static_cast<size_t>((window.length - last) * inner));
  }
}

void sourcesOf(const Call &call, int64_t to, int64_t size, int64_t &begin,
               int64_t &end) {
  begin = 0;
  end = size;
  if (call.kind == HP_PERMUTE) {
    begin = call.source;
    end = begin + 1;
  } else if (call.kind == HP_HALO_EXCHANGE) {
    Window window(call, to);
    int64_t inDim = std::max<int64_t>(call.shape[1], 1);
    begin = window.first / inDim;
    end = window.first < window.last
              ? std::min(size, (window.last - 1) / inDim + 1)
              : begin;
  }
}

void findRows(const Call &call, int64_t from, int64_t to, int64_t size,
              const Visit &visit) {
  int64_t width = call.shape[1] * call.shape[2] * call.elementBytes;
  switch (call.kind) {
  case HP_ALL_GATHER:
    return visit({from * width, size * width, 0, width, width, call.shape[0]});
  case HP_REDUCE_SCATTER: // what is to be reduced, without gaps
    return visit({0, width, to * width, size * width, width, call.shape[0]});
  case HP_ALL_TO_ALL:
    return findAllToAll(call, from, to, size, visit);
  case HP_PERMUTE:
    return visit({0, call.inBytes, 0, call.inBytes, call.inBytes, 1});
  case HP_HALO_EXCHANGE:
    return findHalo(call, from, to, visit);
  default:
    return;
  }
}

static int64_t reduceScatter(const Call &call, const Call *const *members,
                             int64_t size) {
  int64_t outer = call.shape[0];
  int64_t count = call.shape[1] * call.shape[2];
  int64_t width = count * call.elementBytes;
  std::vector<const char *> sources(size);
  for (int64_t row = 0; row < outer; ++row) {
    for (int64_t rank = 0; rank < size; ++rank)
      sources[rank] = members[rank]->in + (row * size + call.rank) * width;
    reduceBuffers(call.dtype, call.op, sources.data(), size,
                  call.out + row * width, count);
  }
  return (size - 1) * outer * width;
}

int64_t moveData(const Call &call, const Call *const *members, int64_t size) {
  if (call.kind == HP_REDUCE_SCATTER)
    return reduceScatter(call, members, size);
  clearOutside(call);
  int64_t moved = 0, begin, end;
  sourcesOf(call, call.rank, size, begin, end);
  for (int64_t from = begin; from < end; ++from)
    findRows(call, from, call.rank, size, [&](const Rows &rows) {
      copyRows(call.out, members[from]->in, rows);
      if (from != call.rank)
        moved += rows.width * rows.count;
    });
  return moved;
}

void reducedPart(int64_t count, int64_t rank, int64_t size, int64_t &begin,
                 int64_t &end) {
  int64_t part = (count + size - 1) / size;
  begin = std::min(rank * part, count);
  end = std::min(begin + part, count);
}

} // namespace hyperparallel::runtime
