// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Launcher/State.h"
#include "lib/Runtime/Launcher/Fault.h"
#include "lib/Runtime/Launcher/Json.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace hyperparallel::launcher {

int64_t copyShared(const Block &from, const char *in, const Block &to,
                   char *out, int64_t elementBytes) {
  size_t rank = to.size.size();
  std::vector<int64_t> first(rank), extent(rank);
  int64_t elements = 1;
  for (size_t dim = 0; dim < rank; ++dim) {
    first[dim] = std::max(from.begin[dim], to.begin[dim]);
    extent[dim] = std::min(from.begin[dim] + from.size[dim],
                           to.begin[dim] + to.size[dim]) -
                  first[dim];
    if (extent[dim] <= 0)
      return 0;
    elements *= extent[dim];
  }
  int64_t run = rank ? extent[rank - 1] : 1;
  for (int64_t row = 0; row < elements / run; ++row) {
    int64_t rest = row, source = 0, target = 0;
    int64_t sourceStride = 1, targetStride = 1;
    for (size_t dim = rank; dim-- > 0;) {
      int64_t at = first[dim];
      if (dim + 1 < rank) {
        at += rest % extent[dim];
        rest /= extent[dim];
      }
      source += (at - from.begin[dim]) * sourceStride;
      target += (at - to.begin[dim]) * targetStride;
      sourceStride *= from.size[dim];
      targetStride *= to.size[dim];
    }
    std::memcpy(out + target * elementBytes, in + source * elementBytes,
                static_cast<size_t>(run * elementBytes));
  }
  return elements;
}

/// Without what lies beyond the tensor.
static Block withoutPadding(Block block, const Tensor &tensor) {
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim)
    block.size[dim] = std::max<int64_t>(
        0, std::min(block.size[dim], tensor.shape[dim] - block.begin[dim]));
  return block;
}

static std::string fileOf(int64_t device) {
  char name[64];
  std::snprintf(name, sizeof(name), "device-%05lld.safetensors",
                static_cast<long long>(device));
  return name;
}

static std::string listText(const std::vector<int64_t> &values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

/// Tensors by name; where several programs hold one, the first writes it.
std::vector<const Held *> withoutTwins(const std::vector<Held> &tensors) {
  std::set<std::string> seen;
  std::vector<const Held *> result;
  for (const Held &held : tensors)
    if (seen.insert(held.tensor->name).second)
      result.push_back(&held);
  return result;
}

void writeDevices(const std::string &directory,
                  const std::vector<const Held *> &tensors) {
  std::map<int64_t, std::vector<NamedTensor>> byDevice;
  std::vector<std::vector<char>> packed; // keeps what is not held as a whole
  for (const Held *held : tensors)
    for (size_t position = 0; position < held->parts.size(); ++position) {
      const Tensor &tensor = *held->tensor;
      const char *part = held->parts[position];
      Block whole = tensor.blockOf(position);
      Block block = withoutPadding(whole, tensor);
      if (!part || !block.elements() ||
          tensor.ownerOf(position) != static_cast<int64_t>(position))
        continue;
      if (!(block == whole)) {
        packed.emplace_back(block.elements() * tensor.elementBytes());
        copyShared(whole, part, block, packed.back().data(),
                   tensor.elementBytes());
        part = packed.back().data();
      }
      byDevice[held->program->devices[position]].push_back(
          {tensor.name, tensor.dtype, block.size, part});
    }
  for (const auto &[device, parts] : byDevice)
    writeSafetensors(directory + "/" + fileOf(device), parts);
}

std::string indexText(int64_t step, const std::vector<const Held *> &tensors) {
  std::string text = "{\"format\": \"hyperparallel-state\", \"version\": 1, "
                     "\"step\": " +
                     std::to_string(step) + ",\n \"tensors\": {";
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor &tensor = *tensors[i]->tensor;
    text += (i ? ",\n  " : "\n  ") + quoteJson(tensor.name) +
            ": {\"dtype\": " + quoteJson(tensor.dtype) +
            ", \"shape\": " + listText(tensor.shape) + ", \"blocks\": [";
    bool isFirst = true;
    for (int64_t position = 0; position < tensors[i]->program->numDevices;
         ++position) {
      Block block = withoutPadding(tensor.blockOf(position), tensor);
      if (tensor.ownerOf(position) != position || !block.elements())
        continue;
      text += (isFirst ? "{\"file\": " : ", {\"file\": ") +
              quoteJson(fileOf(tensors[i]->program->devices[position])) +
              ", \"begin\": " + listText(block.begin) +
              ", \"size\": " + listText(block.size) + "}";
      isFirst = false;
    }
    text += "]}";
  }
  return text + "}}\n";
}

[[noreturn]] void cannot(const char *what, const std::string &path) {
  endWith(std::string("cannot ") + what + " " + path + ": " +
          std::strerror(errno));
}

void syncDirectory(const std::string &path) {
  int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0 || fsync(file) != 0)
    cannot("write", path);
  close(file);
}

std::vector<std::string> entriesOf(const std::string &path) {
  std::vector<std::string> names;
  DIR *directory = opendir(path.c_str());
  if (!directory)
    return names;
  while (const dirent *entry = readdir(directory))
    if (std::strcmp(entry->d_name, ".") && std::strcmp(entry->d_name, ".."))
      names.push_back(entry->d_name);
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

/// A directory of files that this tool wrote; first what makes it a state.
void removeState(const std::string &path) {
  unlink((path + "/index.json").c_str());
  for (const std::string &name : entriesOf(path))
    unlink((path + "/" + name).c_str());
  rmdir(path.c_str());
}

/// The directory that is being written.
std::string unfinished;
void removeUnfinished() { removeState(unfinished); }

/// Gives a finished directory its name; one that has it goes.
void putInPlace(const std::string &made, const std::string &path) {
  // At no moment is there none: the two change places.
  if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(),
                RENAME_EXCHANGE) == 0) {
    removeState(made);
    return;
  }
  if (errno != ENOENT) // the file system cannot exchange
    removeState(path);
  if (rename(made.c_str(), path.c_str()) != 0)
    cannot("make", path);
}

void makeDirectories(const std::string &path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST)
      cannot("make", part);
    if (slash == std::string::npos)
      return;
  }
}

void writeText(const std::string &path, const std::string &text) {
  FILE *file = std::fopen(path.c_str(), "wb");
  if (!file || std::fwrite(text.data(), text.size(), 1, file) != 1 ||
      std::fflush(file) != 0 || fsync(fileno(file)) != 0)
    cannot("write", path);
  std::fclose(file);
}

} // namespace

void writeState(const std::string &path, int64_t step,
                const std::vector<Held> &tensors, hp_context *context) {
  int64_t rank = 0;
  require(hp_process_info(context, &rank, nullptr));
  size_t slash = path.rfind('/');
  std::string parent =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  std::string hidden =
      (slash == std::string::npos ? "" : parent) + "." +
      (slash == std::string::npos ? path : path.substr(slash + 1)) + ".new";
  unfinished = hidden;
  whenEnding(removeUnfinished);
  if (rank == 0) {
    makeDirectories(parent);
    removeState(hidden);
    if (mkdir(hidden.c_str(), 0777) != 0)
      cannot("make", hidden);
  }
  require(hp_process_meet(context));
  std::vector<const Held *> written = withoutTwins(tensors);
  writeDevices(hidden, written);
  require(hp_process_meet(context));
  if (rank == 0) {
    writeText(hidden + "/index.json", indexText(step, written));
    syncDirectory(hidden);
    putInPlace(hidden, path);
    syncDirectory(parent);
  }
  whenEnding(nullptr);
  require(hp_process_meet(context));
}

/// The number of a directory step-00000005; -1 for others.
static int64_t stepOf(const std::string &name) {
  if (name.compare(0, 5, "step-") != 0 || name.size() < 6 || name.size() > 23 ||
      name.find_first_not_of("0123456789", 5) != std::string::npos)
    return -1;
  return std::stoll(name.substr(5));
}

/// The steps in a directory by number, with their names.
static std::map<int64_t, std::string> stepsIn(const std::string &directory) {
  std::map<int64_t, std::string> steps;
  for (const std::string &name : entriesOf(directory))
    if (int64_t step = stepOf(name); step >= 0)
      steps[step] = directory + "/" + name;
  return steps;
}

void checkIsFree(const std::string &directory) {
  if (!fileExists(directory + "/index.json") && !entriesOf(directory).empty())
    endWith("expected " + directory +
            " to be a state, or not there, but it has other files in it; name "
            "another directory");
}

void checkCanSave(const std::string &directory, int64_t firstStep) {
  std::string there = directory;
  struct stat found = {};
  while (stat(there.c_str(), &found) != 0 && there != "/" && there != ".") {
    size_t slash = there.find_last_of('/');
    there = slash == std::string::npos ? "." : there.substr(0, slash);
    if (there.empty())
      there = "/";
  }
  if (!S_ISDIR(found.st_mode) || access(there.c_str(), W_OK) != 0)
    endWith("cannot save the state to " + directory + ": " + there +
            (S_ISDIR(found.st_mode) ? " cannot be written to"
                                    : " is no directory") +
            "; name another directory");
  std::map<int64_t, std::string> steps = stepsIn(directory);
  for (auto it = steps.rbegin(); it != steps.rend(); ++it)
    if (const auto &[step, path] = *it;
        step > firstStep && fileExists(path + "/index.json"))
      endWith(directory + " has the state of step " + std::to_string(step) +
              " of another training, and this one begins with step " +
              std::to_string(firstStep) +
              "; go on from it with --resume, or save to another directory");
}

void saveStep(const std::string &directory, int64_t step,
              const std::vector<Held> &tensors, hp_context *context) {
  char name[64];
  std::snprintf(name, sizeof(name), "/step-%08lld",
                static_cast<long long>(step));
  writeState(directory + name, step, tensors, context);
  int64_t rank = 0;
  require(hp_process_info(context, &rank, nullptr));
  if (rank != 0)
    return;
  // What is later is not of this training; what is older than two goes.
  std::map<int64_t, std::string> steps = stepsIn(directory);
  steps.erase(steps.upper_bound(step), steps.end());
  for (; steps.size() > 2; steps.erase(steps.begin()))
    removeState(steps.begin()->second);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

State State::open(const std::string &path) {
  State state;
  state.directory = path;
  if (!fileExists(path + "/index.json"))
    for (const auto &[step, entry] : stepsIn(path))
      if (fileExists(entry + "/index.json"))
        state.directory = entry; // the last one stays
  std::string index = state.directory + "/index.json";
  if (!fileExists(index))
    endWith("no state at " + path +
            ": it has no index.json, and no step-* "
            "that has one");
  Json json = Json::readFile(index);
  if (!json.has("format") || json["format"].text() != "hyperparallel-state" ||
      json["version"].integer() != 1)
    endWith(index + " describes no state of this version");
  state.step = json["step"].integer();
  std::map<std::string, StoredTensors> files;
  for (const auto &[name, entry] : json["tensors"].object()) {
    Entry &tensor = state.tensors[name];
    tensor.dtype = entry["dtype"].text();
    tensor.shape = entry["shape"].integers();
    for (const Json &block : entry["blocks"].list()) {
      const std::string &file = block["file"].text();
      auto [found, isNew] = files.try_emplace(file);
      if (isNew)
        found->second = readTensors(state.directory + "/" + file);
      auto stored = found->second.find(name);
      Block where = {block["begin"].integers(), block["size"].integers()};
      if (stored == found->second.end() || stored->second.shape != where.size)
        endWith(index + " and " + file + " do not agree on " + name +
                "; the state is damaged");
      tensor.pieces.push_back({where, stored->second});
    }
  }
  return state;
}

void State::read(const Tensor &tensor, const Block &block, char *out) const {
  const Entry &entry = tensors.at(tensor.name);
  if (entry.dtype != tensor.dtype || entry.shape != tensor.shape)
    endWith(directory + ": expected " + tensor.name + " of " + tensor.dtype +
            " and shape " + listText(tensor.shape) + " but got " + entry.dtype +
            " and " + listText(entry.shape));
  int64_t copied = 0;
  for (const Piece &piece : entry.pieces)
    copied += copyShared(piece.block, piece.stored.data, block, out,
                         tensor.elementBytes());
  if (copied != withoutPadding(block, tensor).elements())
    endWith(directory + ": " + tensor.name +
            " is not whole; the state is damaged");
}

} // namespace hyperparallel::launcher
