// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- MessageCalls.cpp - Messages of programs on GPUs -------------------===//
//
// Sends and receives are on the stream where the program puts them, or else on
// the compute stream (Messages.h).
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CUDA/Collectives.h"
#include "lib/Runtime/TensorBlocks.h"

#include <algorithm>

namespace hyperparallel::runtime::cuda {

namespace {

constexpr char MessagesNeedTheHost[] =
    "the host waits for messages of other devices";

hp_status checkPeer(const Device &device, const char *what, int64_t peer) {
  for (const Device *other : device.context->launched)
    if (other->ordinal == peer && other != &device)
      return HP_OK;
  return fail(HP_INVALID_ARGUMENT,
              "%s: expected another device of this run as peer but got %lld",
              what, static_cast<long long>(peer));
}

hp_status sendBlocks(Device &device, const std::vector<TensorBlock> &blocks,
                     int64_t peer, int64_t tag) {
  hp_status status = checkPeer(device, "send", peer);
  noteHostPart(device, MessagesNeedTheHost);
  if (status == HP_OK)
    status = device.sent.send(device, streamOf(device, device.current),
                              {0, device.ordinal, peer, tag}, blocks);
  device.stats.collectives[HP_SEND] += status == HP_OK;
  return status;
}

hp_status receiveBlocks(Device &device, const std::vector<TensorBlock> &blocks,
                        int64_t peer, int64_t tag) {
  hp_status status = checkPeer(device, "recv", peer);
  noteHostPart(device, MessagesNeedTheHost);
  auto check = [&] {
    return device.context->stopping ? fail(HP_CANCELLED, "the run was stopped")
                                    : HP_OK;
  };
  int64_t begin = nowNs(), bytes = 0;
  for (const TensorBlock &block : blocks)
    bytes += block.bytes();
  if (status == HP_OK)
    status = traced(
        device, device.current, "message", bytes,
        [&] { return "recv from device " + std::to_string(peer); },
        [&] {
          return receiveMessage(device, streamOf(device, device.current),
                                {0, peer, device.ordinal, tag}, blocks, check);
        });
  device.stats.wait_ns += nowNs() - begin;
  device.stats.collectives[HP_RECV] += status == HP_OK;
  device.stats.moved[HP_RECV] += bytes;
  return status;
}

//===----------------------------------------------------------------------===//
// What programs call
//===----------------------------------------------------------------------===//

using Move = hp_status (*)(Device &, const std::vector<TensorBlock> &, int64_t,
                           int64_t);

/// A message for each of the device's own blocks.
hp_status moveEach(Device &device, const char *what, Move move,
                   const TensorBlocks &blocks) {
  return blocks.forOwn(what, device.launch.rank,
                       [&](const TensorBlock &block, int64_t peer) {
                         return move(device, {block}, peer, blocks.tag);
                       });
}

void moveBlocks(const char *what, Move move, const TensorBlocks &blocks) {
  Device &device = currentDevice();
  proceed(device, HP_OK);
  proceed(device, moveEach(device, what, move, blocks));
}

/// A buffer as a tensor of bytes, all of it one block.
hp_status moveWhole(Device &device, Move move, void *buffer, int64_t bytes,
                    int64_t peer, int64_t tag) {
  const int64_t offset = 0;
  TensorBlocks whole = {
      static_cast<char *>(buffer), 1, &bytes, 1, nullptr, 0, tag};
  return move(device, {TensorBlock(whole, &offset, &bytes)}, peer, tag);
}

void moveBuffer(const char *what, Move move, void *buffer, int64_t bytes,
                int64_t peer, int64_t tag) {
  Device &device = currentDevice();
  if (bytes < 0)
    proceed(device,
            fail(HP_INVALID_ARGUMENT, "%s: expected a size but got %lld", what,
                 static_cast<long long>(bytes)));
  proceed(device, moveWhole(device, move, buffer, bytes, peer, tag));
}

/// A message for each peer, of the blocks of all tensors; peers are in the
/// order of their first blocks.
hp_status moveByPeer(Device &device, const char *what, Move move,
                     char *const *buffers, const int64_t *words, int64_t tag) {
  int64_t count = *words++;
  std::vector<TensorBlocks> tensors;
  tensors.reserve(count); // blocks point into it
  std::vector<std::pair<int64_t, std::vector<TensorBlock>>> packets;
  hp_status status = HP_OK;
  for (int64_t number = 0; status == HP_OK && number < count; ++number) {
    int64_t rank = words[0];
    tensors.push_back({buffers[number], rank, words + 3, words[1],
                       words + 3 + rank, words[2], tag});
    const TensorBlocks &tensor = tensors.back();
    status = tensor.forOwn(
        what, device.launch.rank, [&](const TensorBlock &block, int64_t peer) {
          auto known = std::find_if(
              packets.begin(), packets.end(),
              [&](const auto &packet) { return packet.first == peer; });
          if (known == packets.end())
            known = packets.insert(known, {peer, {}});
          known->second.push_back(block);
          return HP_OK;
        });
    words = tensor.table + tensor.count * tensor.stride();
  }
  for (const auto &packet : packets)
    if (status == HP_OK)
      status = move(device, packet.second, packet.first, tag);
  return status;
}

void movePackets(const char *what, Move move, char *const *buffers,
                 const int64_t *words, int64_t tag) {
  Device &device = currentDevice();
  proceed(device, HP_OK);
  proceed(device, moveByPeer(device, what, move, buffers, words, tag));
}

void rtSend(const void *buffer, int64_t bytes, int64_t peer, int64_t tag) {
  moveBuffer("hp_rt_send", sendBlocks, const_cast<void *>(buffer), bytes, peer,
             tag);
}
void rtReceive(void *buffer, int64_t bytes, int64_t peer, int64_t tag) {
  moveBuffer("hp_rt_recv", receiveBlocks, buffer, bytes, peer, tag);
}
void rtSendBlocks(const void *buffer, int64_t rank, const int64_t *shape,
                  int64_t elementBytes, const int64_t *blocks, int64_t count,
                  int64_t tag) {
  moveBlocks("hp_rt_send_blocks", sendBlocks,
             {const_cast<char *>(static_cast<const char *>(buffer)), rank,
              shape, elementBytes, blocks, count, tag});
}
void rtReceiveBlocks(void *buffer, int64_t rank, const int64_t *shape,
                     int64_t elementBytes, const int64_t *blocks, int64_t count,
                     int64_t tag) {
  moveBlocks("hp_rt_recv_blocks", receiveBlocks,
             {static_cast<char *>(buffer), rank, shape, elementBytes, blocks,
              count, tag});
}

void rtSendPacket(const void *const *buffers, const int64_t *words,
                  int64_t tag) {
  movePackets("hp_rt_send_packet", sendBlocks,
              reinterpret_cast<char *const *>(const_cast<void *const *>(
                  reinterpret_cast<const void *const *>(buffers))),
              words, tag);
}
void rtReceivePacket(void *const *buffers, const int64_t *words, int64_t tag) {
  movePackets("hp_rt_recv_packet", receiveBlocks,
              reinterpret_cast<char *const *>(buffers), words, tag);
}

} // namespace

void *findMessage(const char *name) {
  static const Import imports[] = {
      makeImport("hp_rt_send", rtSend),
      makeImport("hp_rt_recv", rtReceive),
      makeImport("hp_rt_send_blocks", rtSendBlocks),
      makeImport("hp_rt_recv_blocks", rtReceiveBlocks),
      makeImport("hp_rt_send_packet", rtSendPacket),
      makeImport("hp_rt_recv_packet", rtReceivePacket),
  };
  return findIn(imports, sizeof(imports) / sizeof(*imports), name);
}

} // namespace hyperparallel::runtime::cuda
