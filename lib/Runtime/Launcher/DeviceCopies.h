// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- DeviceCopies.h - Tensors in the memory of a device ----------------===//
//
// Devices of "cpu" use the host's memory as it is. Those of other back ends get
// copies of a launch's tensors in their own memory, which live from step to
// step; what is looked at on the host is fetched first.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_DEVICECOPIES_H
#define HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_DEVICECOPIES_H

#include "lib/Runtime/hp_runtime.h"

#include <cstddef>
#include <vector>

namespace hyperparallel::launcher {

/// A tensor of a launch on the host.
struct HostTensor {
  void *memory;
  int64_t bytes;
  hp_tier tier;
};

class DeviceCopies {
public:
  /// Copies the arguments to the device, and makes room for the results.
  void make(hp_device *device, const std::vector<HostTensor> &arguments,
            const std::vector<HostTensor> &results);
  /// Addresses for the launch.
  void **arguments() { return argumentPlaces.data(); }
  void **results() { return resultPlaces.data(); }
  /// Copies back one result, or one argument that a step updates.
  void fetchResult(size_t number);
  void fetchArgument(size_t number);
  /// Copies an argument to the device again.
  void sendArgument(size_t number);
  void free();

private:
  void *place(const HostTensor &tensor);
  void copy(void *to, const void *from, int64_t bytes);

  hp_device *device = nullptr;
  hp_stream *stream = nullptr;
  std::vector<HostTensor> hostArguments, hostResults;
  std::vector<void *> argumentPlaces, resultPlaces;
};

} // namespace hyperparallel::launcher

#endif // HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_DEVICECOPIES_H
