// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- BlockMessages.cpp - Messages that are blocks of a tensor ----------===//
//
// Each device walks over its own entries of a table (TensorBlocks.h), and sends
// or receives one message for each: straight from or to the tensor where the
// block is contiguous, else packed. A packet is blocks of several tensors in
// one message. Follows the rules of GeneratedCode.h.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/GeneratedCode.h"
#include "lib/Runtime/CPU/SideStream.h"
#include "lib/Runtime/Status.h"
#include "lib/Runtime/TensorBlocks.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace hyperparallel::runtime;

namespace {
/// The tensor that a device holds, as a call of the program names it.
struct Blocks : TensorBlocks {
  const char *label = threadState().label;
};
using Block = TensorBlock;
} // namespace

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
    status = all.check(what);
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
    status = blocks.check(what);
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
