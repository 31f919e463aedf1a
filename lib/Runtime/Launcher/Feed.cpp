// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Launcher/Feed.h"
#include "lib/Runtime/Launcher/Fault.h"
#include "lib/Runtime/Launcher/State.h"

#include <algorithm>
#include <cstdlib>

namespace hyperparallel::launcher {

/// Rows that a step takes of an input; one of a single number.
static int64_t rowsOf(const Tensor &tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape.front();
}

static void check(const std::string &path, const std::string &name,
                  const StoredTensor &stored, const Tensor &tensor) {
  size_t rank = std::max<size_t>(1, tensor.shape.size());
  bool fits = stored.shape.size() == rank &&
              stored.elementBytes == tensor.elementBytes();
  for (size_t dim = 1; fits && dim < rank; ++dim)
    fits = stored.shape[dim] == tensor.shape[dim];
  if (!fits)
    endWith(path + ": " + name +
            " has another shape or type than the program was compiled for");
  if (stored.shape.front() < std::max<int64_t>(1, rowsOf(tensor)))
    endWith(path + " has " + std::to_string(stored.shape.front()) +
            " rows of " + name + ", and a step takes " +
            std::to_string(rowsOf(tensor)));
}

Feed Feed::open(const std::string &path, const Manifest &manifest) {
  Feed feed;
  feed.path = path;
  std::map<std::string, std::string> metadata;
  feed.tensors = readTensors(path, &metadata);
  for (const auto &[name, stored] : feed.tensors) {
    const Tensor *input = nullptr;
    for (const Program &program : manifest.programs)
      for (const Tensor &argument : program.arguments)
        if (argument.role == "input" && argument.name == name)
          input = &argument;
    if (!input)
      endWith(path + " holds " + name + ", which is no input of the program");
    check(path, name, stored, *input);
  }
  if (auto found = metadata.find("first_step"); found != metadata.end())
    feed.firstStep = std::atoll(found->second.c_str());
  if (auto found = metadata.find("steps"); found != metadata.end())
    feed.steps = std::atoll(found->second.c_str());
  return feed;
}

void Feed::read(const Tensor &tensor, const Block &block, int64_t step,
                char *out) const {
  int64_t index = step - firstStep;
  if (index < 0 || (steps >= 0 && index >= steps))
    endWith(path + " has data of the steps " + std::to_string(firstStep) +
            " to " + std::to_string(firstStep + steps - 1) + ", and step " +
            std::to_string(step) +
            " is wanted; write it for more steps (hp compile --steps), or "
            "give a file of data");
  const StoredTensor &stored = tensors.at(tensor.name);
  int64_t bytes = tensor.elementBytes(), rowBytes = bytes;
  for (size_t dim = 1; dim < tensor.shape.size(); ++dim)
    rowBytes *= tensor.shape[dim];
  int64_t count = stored.shape.front(), rows = rowsOf(tensor);
  // Runs of rows that are neighbours in the file.
  for (int64_t row = 0; row < rows;) {
    int64_t at = (index * rows + row) % count;
    int64_t run = std::min(rows - row, count - at);
    Block part = {std::vector<int64_t>(tensor.shape.size()), tensor.shape};
    if (!tensor.shape.empty()) {
      part.begin.front() = row;
      part.size.front() = run;
    }
    copyShared(part, stored.data + at * rowBytes, block, out, bytes);
    row += run;
  }
}

} // namespace hyperparallel::launcher
