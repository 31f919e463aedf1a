// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- BlockMessages.cpp - Messages that are blocks of a tensor ----------===//
//
// A value that goes from one group to another is split differently on both
// sides. Each device walks over its own entries of a table, and sends or
// receives one message for each: straight from or to the tensor where the block
// is contiguous, else packed. A packet is blocks of several tensors in one
// message. Follows the rules of GeneratedCode.h.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/GeneratedCode.h"
#include "lib/Runtime/CPU/SideStream.h"
#include "lib/Runtime/Status.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace hyperparallel::runtime;

namespace {
/// The tensor that a device holds, and the table of all devices of its group.
struct Blocks {
  char *buffer;
  int64_t rank;
  const int64_t *shape;
  int64_t elementBytes;
  const int64_t *table;
  int64_t count;
  int64_t tag;
  const char *label = threadState().label;

  int64_t stride() const { return 2 + 2 * rank; }
};

/// One block in a tensor: equal runs of bytes.
class Block {
public:
  Block(const Blocks &blocks, const int64_t *offsets, const int64_t *sizes)
      : blocks(blocks), sizes(sizes) {
    // Dimensions from `inner` on are whole, so that runs reach over them.
    inner = blocks.rank;
    run = blocks.elementBytes;
    int64_t bytes = blocks.elementBytes;
    for (int64_t dim = blocks.rank - 1; dim >= 0; --dim) {
      begin += offsets[dim] * bytes;
      if (inner == dim + 1 &&
          (dim + 1 == blocks.rank || sizes[dim + 1] == blocks.shape[dim + 1])) {
        run *= sizes[dim];
        inner = dim;
      }
      count *= sizes[dim];
      bytes *= blocks.shape[dim];
    }
  }

  int64_t bytes() const { return count * blocks.elementBytes; }
  bool isContiguous() const { return run == bytes(); }
  char *first() const { return blocks.buffer + begin; }

  /// Calls `move` with the place in the tensor, and that in the message, of
  /// every run.
  template <typename Move>
  void forEachRun(Move move) const {
    int64_t runs = bytes() / run;
    for (int64_t index = 0; index < runs; ++index) {
      int64_t rest = index, stride = blocks.elementBytes, at = begin;
      for (int64_t dim = blocks.rank - 1; dim >= 0; --dim) {
        if (dim < inner) {
          at += rest % sizes[dim] * stride;
          rest /= sizes[dim];
        }
        stride *= blocks.shape[dim];
      }
      move(blocks.buffer + at, index * run, run);
    }
  }

private:
  const Blocks &blocks;
  const int64_t *sizes;
  int64_t inner, run, begin = 0, count = 1;
};
} // namespace

static hp_status checkBlocks(const char *what, const Blocks &blocks) {
  if (blocks.rank < 0 || blocks.elementBytes < 1 || blocks.count < 0)
    return fail(HP_INVALID_ARGUMENT,
                "%s: expected dimensions, bytes and blocks but got %lld, %lld "
                "and %lld",
                what, static_cast<long long>(blocks.rank),
                static_cast<long long>(blocks.elementBytes),
                static_cast<long long>(blocks.count));
  const int64_t *entry = blocks.table;
  for (int64_t number = 0; number < blocks.count;
       ++number, entry += blocks.stride())
    for (int64_t dim = 0; dim < blocks.rank; ++dim) {
      int64_t offset = entry[2 + dim], size = entry[2 + blocks.rank + dim];
      if (offset < 0 || size < 1 || offset + size > blocks.shape[dim])
        return fail(HP_INVALID_ARGUMENT,
                    "%s: block %lld: expected a part of the %lld elements of "
                    "dimension %lld but got %lld from %lld on",
                    what, static_cast<long long>(number),
                    static_cast<long long>(blocks.shape[dim]),
                    static_cast<long long>(dim), static_cast<long long>(size),
                    static_cast<long long>(offset));
    }
  return HP_OK;
}

static Call makeMessage(hp_collective kind, const Blocks &blocks,
                        const Block &block, int64_t peer) {
  Call call;
  call.kind = kind;
  call.inBytes = block.bytes();
  call.peer = peer;
  call.tag = blocks.tag;
  call.label = blocks.label;
  return call;
}

static hp_status sendBlock(Lane &lane, const Blocks &blocks, const Block &block,
                           int64_t peer) {
  Call call = makeMessage(HP_SEND, blocks, block, peer);
  std::vector<char> packed;
  call.in = block.first();
  if (!block.isContiguous()) {
    packed.resize(block.bytes());
    block.forEachRun([&](char *there, int64_t here, int64_t bytes) {
      std::memcpy(packed.data() + here, there, bytes);
    });
    call.in = packed.data();
  }
  return sendMessage(lane, call);
}

static hp_status receiveBlock(Lane &lane, const Blocks &blocks,
                              const Block &block, int64_t peer) {
  Call call = makeMessage(HP_RECV, blocks, block, peer);
  std::vector<char> packed;
  call.out = block.first();
  if (!block.isContiguous()) {
    packed.resize(block.bytes());
    call.out = packed.data();
  }
  hp_status status = receiveMessage(lane, call);
  if (status == HP_OK && !block.isContiguous())
    block.forEachRun([&](char *there, int64_t here, int64_t bytes) {
      std::memcpy(there, packed.data() + here, bytes);
    });
  return status;
}

/// Calls `move(lane, blocks, block, peer)` for each of the device's blocks, on
/// the stream that calls go to.
template <typename Move>
static hp_status forOwnBlocks(Device &device, const char *what,
                              const Blocks &all, Move move) {
  hp_status status = mayCall(device, what);
  if (status == HP_OK)
    status = checkBlocks(what, all);
  if (status != HP_OK)
    return status;
  return perform(device, [blocks = all, move](Lane &lane) {
    const int64_t *entry = blocks.table;
    hp_status status = HP_OK;
    for (int64_t number = 0; status == HP_OK && number < blocks.count;
         ++number, entry += blocks.stride())
      if (entry[0] == lane.owner->launch.rank)
        status =
            move(lane, blocks,
                 Block(blocks, entry + 2, entry + 2 + blocks.rank), entry[1]);
    return status;
  });
}

//===----------------------------------------------------------------------===//
// Blocks of several tensors in one message
//===----------------------------------------------------------------------===//

namespace {
/// One block of a packet.
struct PackedBlock {
  Blocks blocks;
  const int64_t *entry;

  Block block() const {
    return Block(blocks, entry + 2, entry + 2 + blocks.rank);
  }
};

/// What goes to, or comes from, one peer.
struct Packet {
  int64_t peer;
  std::vector<PackedBlock> blocks;
  int64_t bytes = 0;
};
} // namespace

/// The calling device's packets, by peer in order of their first blocks.
static hp_status readPackets(Device &device, const char *what,
                             char *const *buffers, const int64_t *words,
                             int64_t tag, std::vector<Packet> &packets) {
  hp_status status = mayCall(device, what);
  int64_t count = *words++;
  for (int64_t number = 0; status == HP_OK && number < count; ++number) {
    Blocks blocks = {buffers[number],      words[0], words + 3, words[1],
                     words + 3 + words[0], words[2], tag};
    status = checkBlocks(what, blocks);
    const int64_t *entry = blocks.table;
    for (int64_t at = 0; status == HP_OK && at < blocks.count;
         ++at, entry += blocks.stride()) {
      if (entry[0] != device.launch.rank)
        continue;
      auto known = std::find_if(
          packets.begin(), packets.end(),
          [&](const Packet &packet) { return packet.peer == entry[1]; });
      if (known == packets.end())
        known = packets.insert(known, Packet{entry[1], {}, 0});
      known->blocks.push_back({blocks, entry});
      known->bytes += known->blocks.back().block().bytes();
    }
    words = entry;
  }
  return status;
}

static hp_status sendPacket(Lane &lane, const Packet &packet) {
  std::vector<char> packed(packet.bytes);
  char *next = packed.data();
  for (const PackedBlock &one : packet.blocks) {
    Block block = one.block();
    block.forEachRun([&](char *there, int64_t here, int64_t bytes) {
      std::memcpy(next + here, there, bytes);
    });
    next += block.bytes();
  }
  const Blocks &first = packet.blocks.front().blocks;
  Call call;
  call.kind = HP_SEND;
  call.in = packed.data();
  call.inBytes = packet.bytes;
  call.peer = packet.peer;
  call.tag = first.tag;
  call.label = first.label;
  return sendMessage(lane, call);
}

static hp_status receivePacket(Lane &lane, const Packet &packet) {
  std::vector<char> packed(packet.bytes);
  const Blocks &first = packet.blocks.front().blocks;
  Call call;
  call.kind = HP_RECV;
  call.out = packed.data();
  call.inBytes = packet.bytes;
  call.peer = packet.peer;
  call.tag = first.tag;
  call.label = first.label;
  hp_status status = receiveMessage(lane, call);
  const char *next = packed.data();
  for (const PackedBlock &one : packet.blocks) {
    if (status != HP_OK)
      return status;
    Block block = one.block();
    block.forEachRun([&](char *there, int64_t here, int64_t bytes) {
      std::memcpy(there, next + here, bytes);
    });
    next += block.bytes();
  }
  return status;
}

static hp_status movePackets(Device &device, const char *what,
                             char *const *buffers, const int64_t *words,
                             int64_t tag,
                             hp_status (*move)(Lane &, const Packet &)) {
  std::vector<Packet> packets;
  hp_status status = readPackets(device, what, buffers, words, tag, packets);
  if (status != HP_OK)
    return status;
  return perform(device, [packets = std::move(packets), move](Lane &lane) {
    hp_status status = HP_OK;
    for (const Packet &packet : packets)
      if (status == HP_OK)
        status = move(lane, packet);
    return status;
  });
}

extern "C" {

void hp_rt_send_blocks(const void *buffer, int64_t rank, const int64_t *shape,
                       int64_t element_bytes, const int64_t *blocks,
                       int64_t num_blocks, int64_t tag) {
  Device &device = currentDevice("hp_rt_send_blocks");
  Blocks all = {const_cast<char *>(static_cast<const char *>(buffer)),
                rank,
                shape,
                element_bytes,
                blocks,
                num_blocks,
                tag};
  hp_status status = forOwnBlocks(device, "hp_rt_send_blocks", all, sendBlock);
  if (status != HP_OK)
    leaveProgram(device, status);
}

void hp_rt_recv_blocks(void *buffer, int64_t rank, const int64_t *shape,
                       int64_t element_bytes, const int64_t *blocks,
                       int64_t num_blocks, int64_t tag) {
  Device &device = currentDevice("hp_rt_recv_blocks");
  Blocks all = {static_cast<char *>(buffer),
                rank,
                shape,
                element_bytes,
                blocks,
                num_blocks,
                tag};
  hp_status status =
      forOwnBlocks(device, "hp_rt_recv_blocks", all, receiveBlock);
  if (status != HP_OK)
    leaveProgram(device, status);
}

void hp_rt_send_packet(const void *const *buffers, const int64_t *words,
                       int64_t tag) {
  Device &device = currentDevice("hp_rt_send_packet");
  hp_status status = movePackets(
      device, "hp_rt_send_packet",
      const_cast<char *const *>(reinterpret_cast<const char *const *>(buffers)),
      words, tag, sendPacket);
  if (status != HP_OK)
    leaveProgram(device, status);
}

void hp_rt_recv_packet(void *const *buffers, const int64_t *words,
                       int64_t tag) {
  Device &device = currentDevice("hp_rt_recv_packet");
  hp_status status = movePackets(device, "hp_rt_recv_packet",
                                 reinterpret_cast<char *const *>(buffers),
                                 words, tag, receivePacket);
  if (status != HP_OK)
    leaveProgram(device, status);
}

} // extern "C"
