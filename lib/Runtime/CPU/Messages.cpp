// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Messages.cpp - From one device to another -------------------------===//
//
// A message is copied when it is sent, and waits in its channel until the
// receiver takes it. If the receiver is another process's, the transport
// carries it to that process's channel of the same key.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CPU/Device.h"
#include "lib/Runtime/Status.h"

#include <cstring>

namespace hyperparallel::runtime {

bool isRemote(const Device &device) {
  Transport *transport = device.context->transport.get();
  return transport && device.process != transport->process();
}

static void deliver(Collectives &collectives, const ChannelKey &key,
                    std::vector<char> data) {
  // The reader may drop the channel as soon as it has the message.
  std::shared_ptr<Channel> channel = collectives.channel(key);
  {
    std::lock_guard<std::mutex> lock(channel->mutex);
    channel->messages.push_back(std::move(data));
  }
  channel->sent.add();
}

void putMessage(Device &reader, const ChannelKey &key, std::vector<char> data) {
  Context &context = *reader.context;
  if (isRemote(reader))
    context.transport->send(reader.process, key, std::move(data));
  else
    deliver(context.collectives, key, std::move(data));
}

hp_status takeMessage(Lane &lane, const ChannelKey &key, const Call &call,
                      std::vector<char> &message) {
  std::shared_ptr<Channel> channel =
      lane.owner->context->collectives.channel(key);
  hp_status status = waitFor(lane, channel->sent, channel->received + 1, call);
  if (status != HP_OK)
    return status;
  ++channel->received;
  std::lock_guard<std::mutex> lock(channel->mutex);
  message = std::move(channel->messages.front());
  channel->messages.pop_front();
  return HP_OK;
}

static hp_status findPeer(Device &device, const Call &call, Device **out) {
  for (Device *peer : device.context->run.places)
    if (peer->ordinal == call.peer && peer != &device) {
      *out = peer;
      return HP_OK;
    }
  return fail(HP_INVALID_ARGUMENT,
              "%s: expected another device of this run as peer but got %lld",
              call.kind == HP_SEND ? "send" : "recv",
              static_cast<long long>(call.peer));
}

static ChannelKey keyOf(const Device &device, int64_t from, int64_t to,
                        int64_t tag) {
  return {static_cast<int64_t>(device.context->run.number), from, to, tag};
}

hp_status sendMessage(Lane &lane, Call &call) {
  Device &device = *lane.owner;
  Device *peer = nullptr;
  hp_status status = findPeer(device, call, &peer);
  if (status != HP_OK)
    return status;
  putMessage(*peer, keyOf(device, device.ordinal, call.peer, call.tag),
             std::vector<char>(call.in, call.in + call.inBytes));
  ++lane.stats.collectives[HP_SEND];
  return HP_OK;
}

hp_status receiveMessage(Lane &lane, Call &call) {
  Device &device = *lane.owner;
  Device *peer = nullptr;
  hp_status status = findPeer(device, call, &peer);
  if (status != HP_OK)
    return status;
  int64_t begin = nowNs();
  std::vector<char> message;
  status = takeMessage(lane, keyOf(device, call.peer, device.ordinal, call.tag),
                       call, message);
  if (status != HP_OK)
    return status;
  if (static_cast<int64_t>(message.size()) != call.inBytes)
    return fail(HP_MISMATCH, "%s: but the message has %zu bytes",
                describe(call).c_str(), message.size());
  if (!message.empty())
    std::memcpy(call.out, message.data(), message.size());
  ++lane.stats.collectives[HP_RECV];
  lane.stats.moved[HP_RECV] += call.inBytes;
  if (device.context->trace.enabled() && lane.lane)
    lane.lane->spans.push_back(
        {"message", describe(call), begin, nowNs(), call.inBytes});
  return HP_OK;
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

hp_status connectProcesses(Context &context,
                           const Transport::Options &options) {
  hp_status status = Transport::create(options, &context.transport);
  if (status != HP_OK)
    return status;
  Transport &transport = *context.transport;
  int64_t processes = transport.processes();
  int64_t devices = static_cast<int64_t>(context.devices.size());
  if (processes > devices)
    return fail(HP_INVALID_ARGUMENT,
                "expected a device for each of %lld processes but got %lld "
                "devices; start no more processes than devices",
                static_cast<long long>(processes),
                static_cast<long long>(devices));
  for (std::unique_ptr<Device> &device : context.devices)
    device->process = static_cast<int>(device->ordinal * processes / devices);
  transport.listen(
      [&context](const ChannelKey &key, std::vector<char> data) {
        deliver(context.collectives, key, std::move(data));
      },
      [&context](hp_status why, const std::string &text) {
        stopRun(context, why, text);
      });
  return HP_OK;
}

static Context &contextOf(const hp_context *context) {
  return *reinterpret_cast<Context *>(const_cast<hp_context *>(context));
}

static hp_status processInfo(const hp_context *handle, int64_t *process,
                             int64_t *numProcesses) {
  Transport *transport = contextOf(handle).transport.get();
  if (process)
    *process = transport ? transport->process() : 0;
  if (numProcesses)
    *numProcesses = transport ? transport->processes() : 1;
  return HP_OK;
}

static hp_status processOf(const hp_context *handle, int64_t ordinal,
                           int64_t *process) {
  Context &context = contextOf(handle);
  if (!process || ordinal < 0 ||
      ordinal >= static_cast<int64_t>(context.devices.size()))
    return fail(HP_INVALID_ARGUMENT,
                "hp_process_of: expected a device below %zu but got %lld",
                context.devices.size(), static_cast<long long>(ordinal));
  *process = context.devices[ordinal]->process;
  return HP_OK;
}

static hp_status processMeet(hp_context *handle) {
  Transport *transport = contextOf(handle).transport.get();
  return transport ? transport->meet() : HP_OK;
}

static hp_status processFinish(hp_context *handle) {
  Transport *transport = contextOf(handle).transport.get();
  return transport ? transport->finish() : HP_OK;
}

void addProcessEntries(hp_backend_v1 &table) {
  table.process_info = processInfo;
  table.process_of = processOf;
  table.process_meet = processMeet;
  table.process_finish = processFinish;
}

} // namespace hyperparallel::runtime
