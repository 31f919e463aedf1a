// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- MessageCalls.cpp - Messages of programs on GPUs -------------------===//
//
// Sends and receives are on the compute stream (Messages.h).
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CUDA/Collectives.h"
#include "lib/Runtime/TensorBlocks.h"

namespace hyperparallel::runtime::cuda {

namespace {

hp_status checkPeer(const Device &device, const char *what, int64_t peer) {
  for (const Device *other : device.context->launched)
    if (other->ordinal == peer && other != &device)
      return HP_OK;
  return fail(HP_INVALID_ARGUMENT,
              "%s: expected another device of this run as peer but got %lld",
              what, static_cast<long long>(peer));
}

hp_status sendBlock(Device &device, const TensorBlock &block, int64_t peer,
                    int64_t tag) {
  hp_status status = checkPeer(device, "send", peer);
  if (status == HP_OK)
    status = device.sent.send(device, device.streams[HP_STREAM_COMPUTE],
                              {0, device.ordinal, peer, tag}, block);
  device.stats.collectives[HP_SEND] += status == HP_OK;
  return status;
}

hp_status receiveBlock(Device &device, const TensorBlock &block, int64_t peer,
                       int64_t tag) {
  hp_status status = checkPeer(device, "recv", peer);
  auto check = [&] {
    return device.context->stopping ? fail(HP_CANCELLED, "the run was stopped")
                                    : HP_OK;
  };
  int64_t begin = nowNs();
  if (status == HP_OK)
    status = traced(
        device, HP_STREAM_COMPUTE, "message", block.bytes(),
        [&] { return "recv from device " + std::to_string(peer); },
        [&] {
          return receiveMessage(device, device.streams[HP_STREAM_COMPUTE],
                                {0, peer, device.ordinal, tag}, block, check);
        });
  device.stats.wait_ns += nowNs() - begin;
  device.stats.collectives[HP_RECV] += status == HP_OK;
  device.stats.moved[HP_RECV] += block.bytes();
  return status;
}

//===----------------------------------------------------------------------===//
// What programs call
//===----------------------------------------------------------------------===//

using MoveBlock = hp_status (*)(Device &, const TensorBlock &, int64_t,
                                int64_t);

void moveBlocks(const char *what, MoveBlock move, const TensorBlocks &blocks) {
  Device &device = currentDevice();
  proceed(device, HP_OK);
  proceed(device, blocks.forOwn(what, device.launch.rank,
                                [&](const TensorBlock &block, int64_t peer) {
                                  return move(device, block, peer, blocks.tag);
                                }));
}

/// A buffer as a tensor of bytes, all of it one block.
void moveBuffer(const char *what, MoveBlock move, void *buffer, int64_t bytes,
                int64_t peer, int64_t tag) {
  Device &device = currentDevice();
  if (bytes < 0)
    proceed(device, fail(HP_INVALID_ARGUMENT,
                         "%s: expected a size but got "
                         "%lld",
                         what, static_cast<long long>(bytes)));
  const int64_t offset = 0;
  TensorBlocks whole = {
      static_cast<char *>(buffer), 1, &bytes, 1, nullptr, 0, tag};
  proceed(device, move(device, TensorBlock(whole, &offset, &bytes), peer, tag));
}

void rtSend(const void *buffer, int64_t bytes, int64_t peer, int64_t tag) {
  moveBuffer("hp_rt_send", sendBlock, const_cast<void *>(buffer), bytes, peer,
             tag);
}
void rtReceive(void *buffer, int64_t bytes, int64_t peer, int64_t tag) {
  moveBuffer("hp_rt_recv", receiveBlock, buffer, bytes, peer, tag);
}
void rtSendBlocks(const void *buffer, int64_t rank, const int64_t *shape,
                  int64_t elementBytes, const int64_t *blocks, int64_t count,
                  int64_t tag) {
  moveBlocks("hp_rt_send_blocks", sendBlock,
             {const_cast<char *>(static_cast<const char *>(buffer)), rank,
              shape, elementBytes, blocks, count, tag});
}
void rtReceiveBlocks(void *buffer, int64_t rank, const int64_t *shape,
                     int64_t elementBytes, const int64_t *blocks, int64_t count,
                     int64_t tag) {
  moveBlocks("hp_rt_recv_blocks", receiveBlock,
             {static_cast<char *>(buffer), rank, shape, elementBytes, blocks,
              count, tag});
}

} // namespace

void *findMessage(const char *name) {
  static const Import imports[] = {
      makeImport("hp_rt_send", rtSend),
      makeImport("hp_rt_recv", rtReceive),
      makeImport("hp_rt_send_blocks", rtSendBlocks),
      makeImport("hp_rt_recv_blocks", rtReceiveBlocks),
  };
  return findIn(imports, sizeof(imports) / sizeof(*imports), name);
}

} // namespace hyperparallel::runtime::cuda
