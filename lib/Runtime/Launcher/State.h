// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- State.h - Sharded tensors on disk ---------------------------------===//
//
// A state is a directory: a safetensors file for each device, with the blocks
// that it is the first to hold, and index.json, which says for each tensor its
// shape, and which blocks of it are where:
//
//   {"format": "hyperparallel-state", "version": 1, "step": 5,
//    "tensors": {"fc.weight": {"dtype": "f32", "shape": [256, 64],
//       "blocks": [{"file": "device-00000.safetensors",
//                   "begin": [0, 0], "size": [128, 64]}, ...]}}}
//
// Every element is in exactly one block, without padding; so any layout can be
// read into any other. hyperparallel.state reads and writes the same.
//
// Writing is atomic: all ranks write into a hidden directory, meet, and the
// first one renames it when everything is on the disk; a state that is there
// changes places with the new one. Whenever the lights go out, the last state
// that was whole is still there. A write that fails leaves nothing behind.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_STATE_H
#define HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_STATE_H

#include "lib/Runtime/Launcher/Manifest.h"
#include "lib/Runtime/Launcher/TensorFiles.h"

namespace hyperparallel::launcher {

/// A tensor of a program, with what this process's devices hold of it.
struct Held {
  const Program *program;
  const Tensor *tensor;
  /// By position in the program's mesh; null for devices of others.
  std::vector<const char *> parts;
};

/// Refuses a directory that holds anything but a state, which would be lost.
void checkIsFree(const std::string &directory);
/// Refuses, before a training begins, a DIR that cannot be written to, and one
/// with later steps than the training begins with: they are of another one, and
/// --resume would go on from them.
void checkCanSave(const std::string &directory, int64_t firstStep);
/// Writes `directory`; every rank calls it with the same tensors.
void writeState(const std::string &directory, int64_t step,
                const std::vector<Held> &tensors, hp_context *context);
/// Writes DIR/step-00000005, and drops all but the last two of them.
void saveStep(const std::string &directory, int64_t step,
              const std::vector<Held> &tensors, hp_context *context);

/// A state that was written.
class State {
public:
  /// The directory itself, or the last step in it.
  static State open(const std::string &directory);

  bool has(const std::string &name) const { return tensors.count(name) != 0; }
  /// Fills a device's block of a tensor.
  void read(const Tensor &tensor, const Block &block, char *out) const;

  std::string directory;
  int64_t step = 0;

private:
  struct Piece {
    Block block;
    StoredTensor stored;
  };
  struct Entry {
    std::string dtype;
    std::vector<int64_t> shape;
    std::vector<Piece> pieces;
  };
  std::map<std::string, Entry> tensors;
};

/// Copies what two blocks of one tensor share; returns the elements.
int64_t copyShared(const Block &from, const char *in, const Block &to,
                   char *out, int64_t elementBytes);

} // namespace hyperparallel::launcher

#endif // HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_STATE_H
