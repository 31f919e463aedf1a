// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- BlockMessages.cpp - Messages that are blocks of a tensor ----------===//
//
// Each device walks over its own entries of a table (TensorBlocks.h), and sends
// or receives one message for each: straight from or to the tensor where the
// block is contiguous, else packed. Follows the rules of GeneratedCode.h.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/GeneratedCode.h"
#include "lib/Runtime/TensorBlocks.h"

#include <cstring>
#include <vector>

using namespace hyperparallel::runtime;

static Call makeMessage(hp_collective kind, const TensorBlock &block,
                        int64_t peer, int64_t tag) {
  Call call;
  call.kind = kind;
  call.inBytes = block.bytes();
  call.peer = peer;
  call.tag = tag;
  call.label = threadState().label;
  return call;
}

static void copyBlock(const TensorBlock &block, char *message,
                      bool isToMessage) {
  block.forEachRows([&](char *there, int64_t here) {
    for (int64_t row = 0; row < block.numRows(); ++row) {
      char *inTensor = there + row * block.pitchBytes();
      char *packed = message + here + row * block.runBytes();
      std::memcpy(isToMessage ? packed : inTensor,
                  isToMessage ? inTensor : packed,
                  static_cast<size_t>(block.runBytes()));
    }
  });
}

static hp_status sendBlock(Device &device, const TensorBlock &block,
                           int64_t peer, int64_t tag) {
  Call call = makeMessage(HP_SEND, block, peer, tag);
  std::vector<char> packed;
  call.in = block.first();
  if (!block.isContiguous()) {
    packed.resize(block.bytes());
    copyBlock(block, packed.data(), /*isToMessage=*/true);
    call.in = packed.data();
  }
  return sendMessage(device, call);
}

static hp_status receiveBlock(Device &device, const TensorBlock &block,
                              int64_t peer, int64_t tag) {
  Call call = makeMessage(HP_RECV, block, peer, tag);
  std::vector<char> packed;
  call.out = block.first();
  if (!block.isContiguous()) {
    packed.resize(block.bytes());
    call.out = packed.data();
  }
  hp_status status = receiveMessage(device, call);
  if (status == HP_OK && !block.isContiguous())
    copyBlock(block, packed.data(), /*isToMessage=*/false);
  return status;
}

/// What `move` does to each of the device's own blocks.
template <typename Move>
static void moveBlocks(const char *what, const TensorBlocks &blocks,
                       Move move) {
  Device &device = currentDevice(what);
  hp_status status = mayCall(device, what);
  if (status == HP_OK)
    status = blocks.forOwn(what, hp_rt_device_id(),
                           [&](const TensorBlock &block, int64_t peer) {
                             return move(device, block, peer, blocks.tag);
                           });
  if (status != HP_OK)
    leaveProgram(device, status);
}

extern "C" {

void hp_rt_send_blocks(const void *buffer, int64_t rank, const int64_t *shape,
                       int64_t element_bytes, const int64_t *blocks,
                       int64_t num_blocks, int64_t tag) {
  moveBlocks("hp_rt_send_blocks",
             {const_cast<char *>(static_cast<const char *>(buffer)), rank,
              shape, element_bytes, blocks, num_blocks, tag},
             sendBlock);
}

void hp_rt_recv_blocks(void *buffer, int64_t rank, const int64_t *shape,
                       int64_t element_bytes, const int64_t *blocks,
                       int64_t num_blocks, int64_t tag) {
  moveBlocks("hp_rt_recv_blocks",
             {static_cast<char *>(buffer), rank, shape, element_bytes, blocks,
              num_blocks, tag},
             receiveBlock);
}

} // extern "C"
