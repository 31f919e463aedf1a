// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Manifest.h - What hp compile made, as hp-run sees it --------------===//
//
// DIR/manifest.json says what one program's arguments and results are, and how
// they are split over its mesh. Where groups of devices run different programs,
// DIR/manifest.json names them, and each is a directory of the same kind.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_MANIFEST_H
#define HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_MANIFEST_H

#include "lib/Runtime/hp_runtime.h"

#include <string>
#include <vector>

namespace hyperparallel::launcher {

/// The part of a tensor that a device holds: where it begins, and its size;
/// what lies beyond the tensor's own shape is padding.
struct Block {
  std::vector<int64_t> begin, size;

  int64_t elements() const;
  bool operator==(const Block &other) const {
    return begin == other.begin && size == other.size;
  }
};

struct Tensor {
  std::string name, role, dtype;
  std::vector<int64_t> shape;
  /// By dimension, the axes that split it, major to minor.
  std::vector<std::vector<hp_axis>> split;
  bool isOnDevice = true;
  /// The argument whose next value a result is; it is written in its place.
  std::string updates;

  int64_t elementBytes() const;
  /// Of the device at that position of the mesh.
  Block blockOf(int64_t position) const;
  /// The first position that holds the same block.
  int64_t ownerOf(int64_t position) const;
};

struct Program {
  std::string directory, entry;
  int64_t numDevices = 1;
  /// By position in the mesh, device ordinals.
  std::vector<int64_t> devices;
  std::vector<Tensor> arguments, results;
  int64_t deviceMemory = -1;
};

struct Manifest {
  std::string directory;
  std::vector<Program> programs;
  int64_t numDevices = 0;
  std::string backend; ///< of the runtime: what code was generated for
  /// Inputs that have other values in every step.
  std::vector<std::string> fed;

  static Manifest read(const std::string &directory);
};

/// Bytes of one element; 0 for an unknown type.
int64_t bytesOfType(const std::string &dtype);

} // namespace hyperparallel::launcher

#endif // HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_MANIFEST_H
