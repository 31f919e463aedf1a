// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- TensorFiles.h - safetensors and .npz files ------------------------===//
//
// Files are mapped, not read: a rank touches only what it needs of them.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_TENSORFILES_H
#define HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_TENSORFILES_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hyperparallel::launcher {

/// A tensor in a mapped file: row-major.
struct StoredTensor {
  std::vector<int64_t> shape;
  int64_t elementBytes = 0;
  const char *data = nullptr;
};

using StoredTensors = std::map<std::string, StoredTensor>;

/// The tensors of a file by name; safetensors, or .npz as numpy.savez writes
/// it. The mapping stays until the process ends. `metadata` gets what a
/// safetensors file says beside them.
StoredTensors
readTensors(const std::string &path,
            std::map<std::string, std::string> *metadata = nullptr);

/// A tensor to be written.
struct NamedTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  const char *data;
};

/// Writes a safetensors file, and has it on the disk when it returns.
void writeSafetensors(const std::string &path,
                      const std::vector<NamedTensor> &tensors);

bool fileExists(const std::string &path);

} // namespace hyperparallel::launcher

#endif // HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_TENSORFILES_H
