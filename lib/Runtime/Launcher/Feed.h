// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Feed.h - Inputs that have other values in every step --------------===//
//
// A file of data holds, for each input of shape [rows, ...], the rows of many
// steps, one after the other: step s takes `rows` of them from row s * rows on.
// Of an input that is a single number it holds an element for each step.
// Somebody's data begin again at their end; a file that was written of a feed
// says in its metadata for which steps it is (first_step, steps), and has
// nothing for others. hyperparallel.feed writes and reads the same.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_FEED_H
#define HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_FEED_H

#include "lib/Runtime/Launcher/Manifest.h"
#include "lib/Runtime/Launcher/TensorFiles.h"

namespace hyperparallel::launcher {

class Feed {
public:
  /// Reads a file, which must hold inputs of the programs and nothing else.
  static Feed open(const std::string &path, const Manifest &manifest);

  bool has(const std::string &name) const { return tensors.count(name) != 0; }
  /// The block of what an input is in a step.
  void read(const Tensor &tensor, const Block &block, int64_t step,
            char *out) const;

private:
  std::string path;
  StoredTensors tensors;
  int64_t firstStep = 0, steps = -1; ///< -1: begins again at its end
};

} // namespace hyperparallel::launcher

#endif // HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_FEED_H
