// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Launcher/DeviceCopies.h"
#include "lib/Runtime/Launcher/Fault.h"

namespace hyperparallel::launcher {

void *DeviceCopies::place(const HostTensor &tensor) {
  void *memory = nullptr;
  require(hp_alloc(device, tensor.tier, tensor.bytes, nullptr, &memory));
  return memory;
}

void DeviceCopies::copy(void *to, const void *from, int64_t bytes) {
  require(hp_copy(to, from, bytes, stream));
}

void DeviceCopies::make(hp_device *on, const std::vector<HostTensor> &arguments,
                        const std::vector<HostTensor> &results) {
  device = on;
  hostArguments = arguments;
  hostResults = results;
  require(hp_stream_create(device, HP_STREAM_COMPUTE, &stream));
  for (const HostTensor &argument : arguments) {
    argumentPlaces.push_back(place(argument));
    copy(argumentPlaces.back(), argument.memory, argument.bytes);
  }
  for (const HostTensor &result : results)
    resultPlaces.push_back(place(result));
  require(hp_stream_sync(stream));
}

void DeviceCopies::fetchResult(size_t number) {
  const HostTensor &result = hostResults[number];
  copy(result.memory, resultPlaces[number], result.bytes);
  require(hp_stream_sync(stream));
}

void DeviceCopies::fetchArgument(size_t number) {
  const HostTensor &argument = hostArguments[number];
  copy(argument.memory, argumentPlaces[number], argument.bytes);
  require(hp_stream_sync(stream));
}

void DeviceCopies::sendArgument(size_t number) {
  const HostTensor &argument = hostArguments[number];
  copy(argumentPlaces[number], argument.memory, argument.bytes);
  require(hp_stream_sync(stream));
}

void DeviceCopies::free() {
  for (const std::vector<void *> *places : {&argumentPlaces, &resultPlaces})
    for (void *memory : *places)
      require(hp_free(device, memory, nullptr));
  argumentPlaces.clear();
  resultPlaces.clear();
  require(hp_stream_destroy(stream));
}

} // namespace hyperparallel::launcher
