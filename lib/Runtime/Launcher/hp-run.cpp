// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- hp-run.cpp - Runs what hp compile made, without Python or MLIR ----===//
//
//   hp-run DIR                  all devices in this process
//   mpiexec -n N hp-run DIR     spread over N processes, in order
//
//   1. The manifest says which device runs which program on which blocks.
//   2. Each process fills the blocks of its devices: from a state (--resume),
//      from the inputs, or from the weights beside the program.
//   3. Steps are run one after the other; what a step updates stays where it
//      is, and what it is fed (--data) is filled in before it. Every so many
//      steps the state is saved.
//   4. Results are written like a state, and the process that holds the first
//      scalar result (a loss) reports, in JSON on stdout.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Launcher/DeviceCopies.h"
#include "lib/Runtime/Launcher/Fault.h"
#include "lib/Runtime/Launcher/Feed.h"
#include "lib/Runtime/Launcher/Options.h"
#include "lib/Runtime/Launcher/RandomTensors.h"
#include "lib/Runtime/Launcher/State.h"
#include "lib/Runtime/Launcher/Supervisor.h"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace hyperparallel::launcher {
namespace {

/// What a device runs, with its tensors.
struct DeviceLaunch {
  const Program *program;
  int64_t position, device;
  bool isHere;
  std::vector<void *> arguments, results; ///< in the host's memory
  DeviceCopies copies;                    ///< where that is not the device's
};

class Runner {
public:
  explicit Runner(const Options &options)
      : options(options), manifest(Manifest::read(options.directory)) {}

  void run();

private:
  void connect();
  void placeDevices();
  void fillArguments();
  void fill(DeviceLaunch &launch, const Tensor &tensor, char *out);
  bool hasCopies() const { return manifest.backend != "cpu"; }
  void makeCopies();
  void fetch(bool areResults);
  bool isFed(const std::string &name) const;
  void checkFeed() const;
  void feedStep(int64_t step);
  std::vector<Held> hold(bool areResults);
  void runStep();
  void readLoss();
  void writeStatistics() const;
  void report() const;

  const Options &options;
  Manifest manifest;
  hp_context *context = nullptr;
  int64_t rank = 0, numProcesses = 1, firstStep = 0;
  std::vector<DeviceLaunch> devices;
  std::vector<hp_launch> launches;
  StoredTensors inputs, weights;
  Feed feed;
  State state;
  std::vector<double> seconds, losses;
  std::vector<hp_device_stats> statistics; ///< of the last step
};

void Runner::connect() {
  std::vector<const char *> pairs;
  std::string lost = std::to_string(options.lostMs);
  std::string stuck = std::to_string(options.stuckMs);
  const std::string mpi = "mpi";
  // What it is given must outlive the call below.
  auto option = [&](const char *key, const std::string &value) {
    if (!value.empty())
      pairs.insert(pairs.end(), {key, value.c_str()});
  };
  if (!hasCopies()) {
    option("threads", options.threads);
    option("openblas", options.openblas);
  }
  if (launchedRank() >= 0) {
    if (hasCopies())
      endWith("a program for " + manifest.backend +
              " runs all its devices in one process; start hp-run without "
              "mpiexec");
    option("processes", mpi);
    option("mpi", options.mpi);
    option("lost_ms", lost);
    option("stuck_ms", stuck);
  }
  hp_context_desc desc = {sizeof(desc), manifest.backend.c_str(),
                          manifest.numDevices, pairs.data(),
                          static_cast<int64_t>(pairs.size() / 2)};
  require(hp_context_create(&desc, &context));
  require(hp_process_info(context, &rank, &numProcesses));
  if (numProcesses > 1)
    nameFaults("rank " + std::to_string(rank) + ": ", context);
}

void *allocate(int64_t bytes) {
  void *memory = nullptr;
  if (posix_memalign(&memory, 64, bytes > 0 ? bytes : 64) != 0)
    endWith("out of memory: cannot have " + std::to_string(bytes) + " bytes");
  std::memset(memory, 0, bytes > 0 ? bytes : 64);
  return memory;
}

int64_t bytesOf(const Tensor &tensor, int64_t position) {
  return tensor.blockOf(position).elements() * tensor.elementBytes();
}

void Runner::placeDevices() {
  for (size_t group = 0; group < manifest.programs.size(); ++group) {
    const Program &program = manifest.programs[group];
    hp_program *loaded = nullptr;
    for (int64_t position = 0; position < program.numDevices; ++position) {
      DeviceLaunch launch = {};
      launch.program = &program;
      launch.position = position;
      launch.device = program.devices[position];
      int64_t process = 0;
      require(hp_process_of(context, launch.device, &process));
      launch.isHere = process == rank;
      hp_launch desc = {};
      desc.struct_size = sizeof(desc);
      desc.device = launch.device;
      desc.group = static_cast<int64_t>(group);
      desc.rank = position;
      if (launch.isHere) {
        if (!loaded)
          require(hp_program_load(
              context, (program.directory + "/program.so").c_str(), &loaded));
        desc.program = loaded;
        desc.entry = program.entry.c_str();
        auto make = [&](const Tensor &tensor, bool isOnDevice) {
          int64_t bytes = bytesOf(tensor, position);
          // Copies are in the books of the device as they are.
          if (!hasCopies())
            desc.resident[isOnDevice ? HP_TIER_DEVICE : HP_TIER_HOST] +=
                (bytes + 63) / 64 * 64;
          return allocate(bytes);
        };
        for (const Tensor &argument : program.arguments)
          launch.arguments.push_back(make(argument, argument.isOnDevice));
        for (const Tensor &result : program.results)
          if (result.updates.empty())
            launch.results.push_back(make(result, true));
        if (program.deviceMemory >= 0) {
          hp_device *device = nullptr;
          require(hp_device_get(context, launch.device, &device));
          require(
              hp_tier_set_limit(device, HP_TIER_DEVICE, program.deviceMemory));
        }
      }
      devices.push_back(std::move(launch));
      launches.push_back(desc);
    }
  }
  // Pointers into the launches' vectors, which move no more.
  for (size_t i = 0; i < devices.size(); ++i) {
    launches[i].args = devices[i].arguments.data();
    launches[i].results = devices[i].results.data();
    launches[i].num_args = static_cast<int64_t>(devices[i].arguments.size());
    launches[i].num_results = static_cast<int64_t>(devices[i].results.size());
  }
}

void Runner::fill(DeviceLaunch &launch, const Tensor &tensor, char *out) {
  Block block = tensor.blockOf(launch.position);
  if (tensor.role != "input" && !options.resume.empty()) {
    if (!state.has(tensor.name))
      endWith(state.directory + " has no " + tensor.name +
              ": it was not saved from a training of this program");
    return state.read(tensor, block, out);
  }
  if (isFed(tensor.name))
    return feed.read(tensor, block, firstStep, out);
  const StoredTensors &source = inputs.count(tensor.name) ? inputs : weights;
  auto found = source.find(tensor.name);
  if (found == source.end() && options.random > 0)
    return drawBlock(tensor, block, options.random, out);
  if (found == source.end())
    endWith("the " + tensor.role + " " + tensor.name +
            " has no value; give one with --inputs or --weights");
  const StoredTensor &stored = found->second;
  if (stored.shape != tensor.shape ||
      stored.elementBytes != tensor.elementBytes())
    endWith("the " + tensor.role + " " + tensor.name +
            " has another shape or type than the program was compiled for");
  Block whole = {std::vector<int64_t>(tensor.shape.size()), tensor.shape};
  copyShared(whole, stored.data, block, out, tensor.elementBytes());
}

void Runner::fillArguments() {
  if (fileExists(options.inputs))
    inputs = readTensors(options.inputs);
  if (fileExists(options.weights))
    weights = readTensors(options.weights);
  if (!options.data.empty())
    feed = Feed::open(options.data, manifest);
  if (!options.resume.empty()) {
    state = State::open(options.resume);
    firstStep = state.step;
  }
  checkFeed();
  for (DeviceLaunch &launch : devices)
    for (size_t i = 0; launch.isHere && i < launch.arguments.size(); ++i)
      fill(launch, launch.program->arguments[i],
           static_cast<char *>(launch.arguments[i]));
}

/// Gives devices that have their own memory copies of everything.
void Runner::makeCopies() {
  for (size_t i = 0; hasCopies() && i < devices.size(); ++i) {
    DeviceLaunch &launch = devices[i];
    if (!launch.isHere)
      continue;
    std::vector<HostTensor> arguments, results;
    for (size_t at = 0; at < launch.arguments.size(); ++at) {
      const Tensor &tensor = launch.program->arguments[at];
      arguments.push_back({launch.arguments[at],
                           bytesOf(tensor, launch.position),
                           tensor.isOnDevice ? HP_TIER_DEVICE : HP_TIER_HOST});
    }
    for (const Tensor &tensor : launch.program->results)
      if (tensor.updates.empty())
        results.push_back({launch.results[results.size()],
                           bytesOf(tensor, launch.position), HP_TIER_DEVICE});
    hp_device *device = nullptr;
    require(hp_device_get(context, launch.device, &device));
    launch.copies.make(device, arguments, results);
    launches[i].args = launch.copies.arguments();
    launches[i].results = launch.copies.results();
  }
}

/// Brings what devices have of results, or of arguments, to the host.
void Runner::fetch(bool areResults) {
  for (DeviceLaunch &launch : devices) {
    if (!hasCopies() || !launch.isHere)
      continue;
    if (areResults)
      for (size_t at = 0; at < launch.results.size(); ++at)
        launch.copies.fetchResult(at);
    for (size_t at = 0; at < launch.arguments.size(); ++at)
      if (launch.program->arguments[at].role != "input")
        launch.copies.fetchArgument(at);
  }
}

/// Data that were asked for come first, then inputs that were, then what lies
/// beside the program.
bool Runner::isFed(const std::string &name) const {
  return feed.has(name) &&
         (options.givesData || !options.givesInputs || !inputs.count(name));
}

/// Refuses a second step with what was for the first.
void Runner::checkFeed() const {
  for (const std::string &name : manifest.fed)
    if (firstStep + options.steps > 1 && !isFed(name) &&
        !(options.givesInputs && inputs.count(name)))
      endWith("the input " + name +
              " has other values in every step; give them with --data, or "
              "compile the program with --steps");
}

void Runner::feedStep(int64_t step) {
  for (DeviceLaunch &launch : devices)
    for (size_t i = 0; launch.isHere && i < launch.arguments.size(); ++i)
      if (const Tensor &tensor = launch.program->arguments[i];
          isFed(tensor.name)) {
        feed.read(tensor, tensor.blockOf(launch.position), step,
                  static_cast<char *>(launch.arguments[i]));
        if (hasCopies())
          launch.copies.sendArgument(i);
      }
}

/// The results of all programs, or the arguments that are state.
std::vector<Held> Runner::hold(bool areResults) {
  std::vector<Held> held;
  for (const Program &program : manifest.programs) {
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < program.arguments.size(); ++i)
      places[program.arguments[i].name] = i;
    size_t made = 0;
    for (const Tensor &tensor :
         areResults ? program.results : program.arguments) {
      if (!areResults && tensor.role == "input")
        continue;
      bool isMade = areResults && tensor.updates.empty();
      size_t place =
          isMade ? made++ : places[areResults ? tensor.updates : tensor.name];
      Held one = {&program, &tensor, {}};
      for (const DeviceLaunch &launch : devices)
        if (launch.program == &program) {
          const void *part = nullptr;
          if (launch.isHere)
            part = isMade ? launch.results[place] : launch.arguments[place];
          one.parts.push_back(static_cast<const char *>(part));
        }
      held.push_back(std::move(one));
    }
  }
  return held;
}

void Runner::runStep() {
  auto begin = std::chrono::steady_clock::now();
  require(hp_run_start(context, launches.data(),
                       static_cast<int64_t>(launches.size())));
  int32_t isDone = 0;
  statistics.resize(devices.size());
  hp_run_stats stats = {
      sizeof(stats),     0, static_cast<int64_t>(statistics.size()),
      statistics.data(), 0, nullptr};
  while (!isDone) {
    require(hp_run_wait(context, 50, &isDone, &stats));
    if (isAskedToEnd())
      endWith("ended by a signal in step " +
              std::to_string(firstStep + static_cast<int64_t>(seconds.size())));
  }
  std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - begin;
  seconds.push_back(taken.count());
  statistics.resize(stats.num_devices);
  readLoss();
}

/// The first scalar result that is no update, if a device here is the first
/// to hold it.
void Runner::readLoss() {
  for (const Held &held : hold(/*areResults=*/true)) {
    const Tensor &tensor = *held.tensor;
    if (!tensor.updates.empty() || !tensor.shape.empty())
      continue;
    const char *part = held.parts.front();
    if (!part)
      return;
    for (DeviceLaunch &launch : devices)
      for (size_t at = 0; hasCopies() && at < launch.results.size(); ++at)
        if (launch.results[at] == part)
          launch.copies.fetchResult(at);
    if (tensor.dtype == "f32") {
      float value;
      std::memcpy(&value, part, sizeof(value));
      losses.push_back(value);
    } else if (tensor.dtype == "f64") {
      double value;
      std::memcpy(&value, part, sizeof(value));
      losses.push_back(value);
    } else if (tensor.dtype == "bf16") {
      uint16_t bits;
      std::memcpy(&bits, part, sizeof(bits));
      uint32_t wide = uint32_t(bits) << 16;
      float value;
      std::memcpy(&value, &wide, sizeof(value));
      losses.push_back(value);
    }
    return;
  }
}

std::string numbers(const std::vector<double> &values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.9g", values[i]);
    // JSON knows no infinities.
    text += (i ? ", " : "") +
            (std::isfinite(values[i]) ? std::string(number) : "null");
  }
  return text + "]";
}

void Runner::writeStatistics() const {
  std::string path = options.statistics + "." + std::to_string(rank);
  FILE *file = std::fopen(path.c_str(), "wb");
  bool isWritten =
      file && std::fwrite(statistics.data(), sizeof(hp_device_stats),
                          statistics.size(), file) == statistics.size();
  if (!isWritten || std::fclose(file) != 0)
    endWith("cannot write " + path + ": " + std::strerror(errno));
}

void Runner::report() const {
  bool hasLoss = false;
  for (const Program &program : manifest.programs)
    for (const Tensor &result : program.results)
      hasLoss |= result.updates.empty() && result.shape.empty();
  if (hasLoss ? losses.empty() : rank != 0)
    return;
  std::printf("{\"devices\": %lld, \"processes\": %lld, \"first_step\": %lld, "
              "\"seconds\": %s, \"losses\": %s}\n",
              static_cast<long long>(manifest.numDevices),
              static_cast<long long>(numProcesses),
              static_cast<long long>(firstStep), numbers(seconds).c_str(),
              numbers(losses).c_str());
  std::fflush(stdout);
}

void Runner::run() {
  connect();
  placeDevices();
  fillArguments();
  if (rank == 0 && !options.results.empty())
    checkIsFree(options.results);
  if (rank == 0 && !options.save.empty())
    checkCanSave(options.save, firstStep);
  makeCopies();
  require(hp_process_meet(context));
  for (int64_t turn = 1; turn <= options.steps; ++turn) {
    if (turn > 1)
      feedStep(firstStep + turn - 1);
    runStep();
    bool isDue = turn == options.steps ||
                 (options.saveEvery > 0 && turn % options.saveEvery == 0);
    if (options.save.empty() || !isDue)
      continue;
    fetch(/*areResults=*/false);
    saveStep(options.save, firstStep + turn, hold(/*areResults=*/false),
             context);
  }
  if (!options.results.empty()) {
    fetch(/*areResults=*/true);
    writeState(options.results, firstStep + options.steps,
               hold(/*areResults=*/true), context);
  }
  if (!options.statistics.empty())
    writeStatistics();
  for (DeviceLaunch &launch : devices)
    if (hasCopies() && launch.isHere)
      launch.copies.free();
  require(hp_process_finish(context));
  report();
  hp_context_destroy(context);
}

} // namespace
} // namespace hyperparallel::launcher

int main(int argc, char **argv) {
  using namespace hyperparallel::launcher;
  Options options = Options::read(argc, argv);
  if (int64_t rank = launchedRank(); rank >= 0) {
    nameFaults("rank " + std::to_string(rank) + ": ", nullptr);
    becomeWorker(rank, options.lostMs);
  }
  Runner(options).run();
  return 0;
}
