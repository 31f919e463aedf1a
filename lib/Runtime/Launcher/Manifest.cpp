// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Launcher/Manifest.h"
#include "lib/Runtime/Launcher/Fault.h"
#include "lib/Runtime/Launcher/Json.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace hyperparallel::launcher {

int64_t bytesOfType(const std::string &dtype) {
  static const std::map<std::string, int64_t> bytes = {
      {"i1", 1},   {"i8", 1},  {"ui8", 1}, {"i16", 2}, {"f16", 2},
      {"bf16", 2}, {"i32", 4}, {"f32", 4}, {"i64", 8}, {"f64", 8}};
  auto found = bytes.find(dtype);
  return found == bytes.end() ? 0 : found->second;
}

int64_t Block::elements() const {
  int64_t count = 1;
  for (int64_t extent : size)
    count *= extent;
  return count;
}

int64_t Tensor::elementBytes() const { return bytesOfType(dtype); }

Block Tensor::blockOf(int64_t position) const {
  Block block;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t parts = 1, index = 0;
    for (const hp_axis &axis : split[dim]) {
      parts *= axis.size;
      index = index * axis.size + position / axis.stride % axis.size;
    }
    int64_t extent = (shape[dim] + parts - 1) / parts;
    block.begin.push_back(index * extent);
    block.size.push_back(extent);
  }
  return block;
}

int64_t Tensor::ownerOf(int64_t position) const {
  // The same coordinates along the axes that split it, and zero along others.
  int64_t owner = 0;
  for (const std::vector<hp_axis> &axes : split)
    for (const hp_axis &axis : axes)
      owner += position / axis.stride % axis.size * axis.stride;
  return owner;
}

namespace {

/// An axis of the mesh by name.
struct Axes {
  std::map<std::string, hp_axis> byName;
  int64_t numDevices = 1;
};

Axes readMesh(const Json &mesh) {
  Axes axes;
  const std::vector<Json> &list = mesh["axes"].list();
  for (size_t i = list.size(); i-- > 0;) {
    int64_t size = list[i].list()[1].integer();
    axes.byName[list[i].list()[0].text()] = {axes.numDevices, size};
    axes.numDevices *= size;
  }
  return axes;
}

/// Reads `[{"dp"}, {"tp":(2)2, ?}], replicated={"pp"}`: what splits which
/// dimension. What comes behind the dimensions does not.
class ShardingReader {
public:
  ShardingReader(const std::string &text, const Axes &axes,
                 const std::string &where)
      : text(text), axes(axes), where(where) {}

  std::vector<std::vector<hp_axis>> read() {
    std::vector<std::vector<hp_axis>> split;
    expect('[');
    while (!take(']')) {
      split.emplace_back();
      expect('{');
      while (!take('}')) {
        if (take('?') || take(','))
          continue;
        split.back().push_back(readAxis());
      }
      while (at < text.size() && text[at] != ',' && text[at] != ']')
        ++at; // a priority
      take(',');
    }
    return split;
  }

private:
  [[noreturn]] void refuse() {
    endWith(where + ": expected a sharding but got '" + text +
            "'; the file is damaged");
  }
  bool take(char wanted) {
    while (at < text.size() && text[at] == ' ')
      ++at;
    if (at == text.size())
      refuse();
    if (text[at] != wanted)
      return false;
    ++at;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted))
      refuse();
  }
  int64_t readNumber() {
    char *end = nullptr;
    int64_t number = std::strtoll(text.c_str() + at, &end, 10);
    at = end - text.c_str();
    return number;
  }
  hp_axis readAxis() {
    expect('"');
    size_t close = text.find('"', at);
    if (close == std::string::npos)
      refuse();
    auto found = axes.byName.find(text.substr(at, close - at));
    if (found == axes.byName.end())
      refuse();
    at = close + 1;
    hp_axis axis = found->second;
    if (!take(':'))
      return axis;
    // The axis seen as (pre, size, rest), of which this is the middle.
    expect('(');
    int64_t pre = readNumber();
    expect(')');
    int64_t size = readNumber();
    if (pre < 1 || size < 1 || axis.size % (pre * size) != 0)
      refuse();
    return {axis.stride * (axis.size / (pre * size)), size};
  }

  const std::string &text;
  const Axes &axes;
  const std::string &where;
  size_t at = 0;
};

Tensor readTensor(const Json &entry, const Axes &axes,
                  const std::string &where) {
  Tensor tensor;
  tensor.name = entry["name"].text();
  tensor.dtype = entry["dtype"].text();
  tensor.shape = entry["shape"].integers();
  tensor.split = ShardingReader(entry["sharding"].text(), axes, where).read();
  if (tensor.split.size() != tensor.shape.size() || !tensor.elementBytes())
    endWith(where + ": expected a sharding and a type that fit " + tensor.name +
            "; the file is damaged");
  if (entry.has("role"))
    tensor.role = entry["role"].text();
  tensor.isOnDevice = !entry.has("tier");
  if (entry.has("updates"))
    tensor.updates = entry["updates"].text();
  return tensor;
}

void readProgram(const std::string &directory, const Json &json,
                 const std::string &where, Manifest &manifest) {
  Program program;
  program.directory = directory;
  program.entry = json["entry"].text();
  Axes axes = readMesh(json["mesh"]);
  program.numDevices = axes.numDevices;
  int64_t first = json.has("first_device") ? json["first_device"].integer() : 0;
  program.devices = json["mesh"]["device_ids"].integers();
  if (program.devices.empty())
    for (int64_t i = 0; i < program.numDevices; ++i)
      program.devices.push_back(i);
  for (int64_t &device : program.devices)
    device += first;
  for (const Json &entry : json["arguments"].list())
    program.arguments.push_back(readTensor(entry, axes, where));
  for (const Json &entry : json["results"].list())
    program.results.push_back(readTensor(entry, axes, where));
  if (json.has("device_memory") && !json["device_memory"].isNull())
    program.deviceMemory = json["device_memory"].integer();
  std::string target = json.has("target") ? json["target"].text() : "cpu";
  if (target == "none")
    endWith(directory + " has no code to run: it was compiled with the target "
                        "none; compile it again without");
  if (!manifest.backend.empty() && manifest.backend != target)
    endWith(where + ": expected a program for " + manifest.backend +
            ", as the others, but got one for " + target);
  manifest.backend = target;
  for (int64_t device : program.devices)
    manifest.numDevices = std::max(manifest.numDevices, device + 1);
  manifest.programs.push_back(std::move(program));
}

Json readManifest(const std::string &path) {
  Json json = Json::readFile(path);
  if (!json.has("format") || json["format"].text() != "hyperparallel-program" ||
      json["version"].integer() != 1)
    endWith(path + " does not describe a program of this version; compile the "
                   "program again");
  return json;
}

} // namespace

Manifest Manifest::read(const std::string &directory) {
  Manifest manifest;
  manifest.directory = directory;
  std::string path = directory + "/manifest.json";
  Json json = readManifest(path);
  if (json.has("source") && json["source"].has("fed"))
    for (const Json &name : json["source"]["fed"].list())
      manifest.fed.push_back(name.text());
  if (!json.has("programs")) {
    readProgram(directory, json, path, manifest);
    return manifest;
  }
  for (const Json &group : json["programs"].list()) {
    std::string own = directory + "/" + group.text();
    std::string where = own + "/manifest.json";
    readProgram(own, readManifest(where), where, manifest);
  }
  return manifest;
}

} // namespace hyperparallel::launcher
