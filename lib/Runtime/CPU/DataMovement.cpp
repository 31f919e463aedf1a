// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- DataMovement.cpp - What each collective copies and reduces --------===//
//
// Every function here runs on one member after all have arrived, reads the
// members' published buffers and writes the caller's own. None of them waits.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/Collectives.h"
#include "lib/Runtime/CPU/Reduce.h"

#include <algorithm>
#include <cstring>

namespace hyperparallel::runtime {

/// Copies `rows` runs of `width` bytes between buffers with different pitches.
static void copyRows(char *dst, int64_t dstPitch, const char *src,
                     int64_t srcPitch, int64_t width, int64_t rows) {
  if (width <= 0 || rows <= 0)
    return;
  if (width == dstPitch && width == srcPitch) {
    std::memcpy(dst, src, static_cast<size_t>(width * rows));
    return;
  }
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(dst + row * dstPitch, src + row * srcPitch,
                static_cast<size_t>(width));
}

static int64_t allGather(const Call &call, const Call *const *members,
                         int64_t size) {
  int64_t outer = call.shape[0];
  int64_t width = call.shape[1] * call.shape[2] * call.elementBytes;
  for (int64_t rank = 0; rank < size; ++rank)
    copyRows(call.out + rank * width, size * width, members[rank]->in, width,
             width, outer);
  return (size - 1) * outer * width;
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

/// Names as in the header of hp_rt_all_to_all; s and c are the local extents
/// of the dimension that is split, after the split, and of the other one.
static int64_t allToAll(const Call &call, const Call *const *members,
                        int64_t size) {
  int64_t before = call.shape[0], between = call.shape[2];
  int64_t after = call.shape[4] * call.elementBytes;
  int64_t block = 0; // bytes from each member
  for (int64_t rank = 0; rank < size; ++rank) {
    const char *in = members[rank]->in;
    if (call.order < 0) {
      int64_t s = call.shape[1] / size, c = call.shape[3];
      int64_t run = c * after, middle = between * run;
      block = before * s * middle;
      for (int64_t i = 0; i < before; ++i)
        copyRows(call.out + i * s * size * middle + rank * run, size * run,
                 in + (i * size + call.rank) * s * middle, run, run,
                 s * between);
    } else if (call.order > 0) {
      int64_t c = call.shape[1], s = call.shape[3] / size;
      int64_t run = s * after;
      block = before * c * between * run;
      for (int64_t i = 0; i < before; ++i)
        copyRows(call.out + (i * size + rank) * c * between * run, run,
                 in + i * c * between * size * run + call.rank * run,
                 size * run, run, c * between);
    } else {
      int64_t run = call.shape[1] / size * after;
      block = before * run;
      copyRows(call.out + rank * run, size * run, in + call.rank * run,
               size * run, run, before);
    }
  }
  return (size - 1) * block;
}

static int64_t permute(const Call &call, const Call *const *members) {
  std::memcpy(call.out, members[call.source]->in,
              static_cast<size_t>(call.inBytes));
  return call.source == call.rank ? 0 : call.inBytes;
}

static int64_t haloExchange(const Call &call, const Call *const *members,
                            int64_t size) {
  int64_t outer = call.shape[0], inDim = call.shape[1], inner = call.shape[2];
  int64_t global = call.shape[3], length = call.shape[6];
  int64_t begin = call.rank * call.shape[4] + call.shape[5];
  int64_t pitch = length * inner, moved = 0;
  // Positions of the window that lie in [0, global).
  int64_t first = std::min(std::max<int64_t>(-begin, 0), length);
  int64_t last = std::max(std::min(global - begin, length), first);
  for (int64_t row = 0; row < outer; ++row) {
    std::memset(call.out + row * pitch, 0, static_cast<size_t>(first * inner));
    std::memset(call.out + row * pitch + last * inner, 0,
                static_cast<size_t>((length - last) * inner));
  }
  while (first < last) {
    int64_t rank = (begin + first) / inDim;
    if (rank >= size)
      break;
    int64_t local = (begin + first) % inDim;
    int64_t count = std::min(inDim - local, last - first);
    copyRows(call.out + first * inner, pitch, members[rank]->in + local * inner,
             inDim * inner, count * inner, outer);
    if (rank != call.rank)
      moved += outer * count * inner;
    first += count;
  }
  return moved;
}

int64_t moveData(const Call &call, const Call *const *members, int64_t size) {
  switch (call.kind) {
  case HP_ALL_GATHER:
    return allGather(call, members, size);
  case HP_REDUCE_SCATTER:
    return reduceScatter(call, members, size);
  case HP_ALL_TO_ALL:
    return allToAll(call, members, size);
  case HP_PERMUTE:
    return permute(call, members);
  case HP_HALO_EXCHANGE:
    return haloExchange(call, members, size);
  default:
    return 0;
  }
}

void reducedPart(int64_t count, int64_t rank, int64_t size, int64_t &begin,
                 int64_t &end) {
  int64_t part = (count + size - 1) / size;
  begin = std::min(rank * part, count);
  end = std::min(begin + part, count);
}

} // namespace hyperparallel::runtime
