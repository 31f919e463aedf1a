// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CUDA/StepGraphs.h"
#include "lib/Runtime/CUDA/Collectives.h"

#include <algorithm>

namespace hyperparallel::runtime::cuda {

/// Steps that a device remembers.
static constexpr size_t MostSteps = 8;

bool StepKey::operator==(const StepKey &other) const {
  return program == other.program && entry == other.entry &&
         group == other.group && rank == other.rank &&
         placement == other.placement && generation == other.generation &&
         buffers == other.buffers;
}

static StepKey keyOf(const Device &device) {
  const hp_launch &launch = device.launch;
  StepKey key;
  key.program = reinterpret_cast<const Program *>(launch.program);
  key.entry = device.entry;
  key.group = launch.group;
  key.rank = launch.rank;
  key.placement = device.context->placement;
  key.generation = device.context->generation;
  key.buffers.assign(launch.args, launch.args + launch.num_args);
  key.buffers.insert(key.buffers.end(), launch.results,
                     launch.results + launch.num_results);
  return key;
}

static void releaseBlocks(Device &device, Step &step) {
  for (StepBlock &block : step.blocks) {
    if (block.address)
      freeMemory(device, block.address, nullptr);
    block.address = nullptr;
  }
}

static void forget(Device &device, Step &step) {
  if (step.graph)
    device.context->driver.graphExecDestroy(step.graph);
  releaseBlocks(device, step);
}

void forgetSteps(Device &device, const Program *program) {
  auto &steps = device.graphs.steps;
  steps.erase(std::remove_if(steps.begin(), steps.end(),
                             [&](const std::unique_ptr<Step> &step) {
                               if (program && step->key.program != program)
                                 return false;
                               forget(device, *step);
                               return true;
                             }),
              steps.end());
}

/// The step of the current run. Where a device has too many, the one that was
/// run longest ago makes room.
static Step &findStep(Device &device) {
  StepGraphs &graphs = device.graphs;
  StepKey key = keyOf(device);
  for (std::unique_ptr<Step> &step : graphs.steps)
    if (step->key == key)
      return *step;
  if (graphs.steps.size() == MostSteps) {
    auto oldest = std::min_element(
        graphs.steps.begin(), graphs.steps.end(),
        [](const auto &a, const auto &b) { return a->lastRun < b->lastRun; });
    forget(device, **oldest);
    graphs.steps.erase(oldest);
  }
  graphs.steps.push_back(std::make_unique<Step>());
  graphs.steps.back()->key = std::move(key);
  return *graphs.steps.back();
}

void noteHostPart(Device &device, const char *what) {
  if (Step *step = device.graphs.current; step && step->hostPart.empty())
    step->hostPart = what;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static void noteAllocation(Step &step, int tier, int64_t bytes,
                           StreamHandle stream, void *pointer) {
  auto &blocks = step.blocks;
  auto fits = [&](const StepBlock &block) {
    return block.isFree && block.tier == tier && block.bytes == bytes &&
           block.stream == stream;
  };
  size_t number =
      std::find_if(blocks.begin(), blocks.end(), fits) - blocks.begin();
  if (number == blocks.size())
    blocks.push_back({tier, bytes, stream, false, nullptr});
  blocks[number].isFree = false;
  step.allocations.push_back(number);
  step.live[pointer] = number;
}

/// The block that stood for this allocation when the step was noted.
static hp_status takeBlock(StepGraphs &graphs, int tier, int64_t bytes,
                           void **out) {
  const Step &step = *graphs.current;
  size_t number = graphs.nextAllocation++;
  const StepBlock *block = number < step.allocations.size()
                               ? &step.blocks[step.allocations[number]]
                               : nullptr;
  if (!block || block->tier != tier || block->bytes != bytes)
    return fail(HP_UNIMPLEMENTED, "it allocates other memory than before");
  *out = block->address;
  return HP_OK;
}

hp_status takeRunMemory(Device &device, int tier, int64_t bytes,
                        StreamHandle stream, void **out) {
  StepGraphs &graphs = device.graphs;
  if (graphs.isCapturing)
    return takeBlock(graphs, tier, bytes, out);
  hp_status status =
      allocateMemory(device, tier, bytes, /*ofRun=*/true, stream, out);
  if (status == HP_OK && graphs.current)
    noteAllocation(*graphs.current, tier, bytes, stream, *out);
  return status;
}

hp_status giveRunMemory(Device &device, void *pointer, StreamHandle stream) {
  StepGraphs &graphs = device.graphs;
  if (graphs.isCapturing)
    return HP_OK;
  if (Step *step = graphs.current)
    if (auto found = step->live.find(pointer); found != step->live.end()) {
      StepBlock &block = step->blocks[found->second];
      block.isFree = block.stream == stream;
      step->live.erase(found);
    }
  return freeMemory(device, pointer, stream);
}

static hp_status takeBlocks(Device &device, Step &step) {
  for (StepBlock &block : step.blocks)
    if (hp_status status =
            allocateMemory(device, block.tier, block.bytes, /*ofRun=*/false,
                           nullptr, &block.address);
        status != HP_OK)
      return status;
  return HP_OK;
}

//===----------------------------------------------------------------------===//
// Capturing
//===----------------------------------------------------------------------===//

/// Enters the program while the compute stream, and all that follow it, are
/// captured.
static hp_status captureInto(Device &device, Step &step) {
  StepGraphs &graphs = device.graphs;
  Driver &driver = device.context->driver;
  StreamHandle compute = device.streams[HP_STREAM_COMPUTE];
  hp_status status = takeBlocks(device, step);
  if (status == HP_OK)
    status = driver.check(driver.captureBegin(compute, CaptureThreadLocal),
                          "beginning to capture");
  if (status != HP_OK)
    return status;
  graphs.current = &step;
  graphs.isCapturing = true;
  graphs.nextAllocation = 0;
  status = enterProgram(device);
  graphs.isCapturing = false;
  graphs.current = nullptr;
  std::string words = status == HP_OK ? "" : hp_last_error();
  endMarks(device);
  GraphHandle graph = nullptr;
  Result result = driver.captureEnd(compute, &graph);
  if (status == HP_OK && result == Success)
    result = driver.graphInstantiate(&step.graph, graph, 0);
  if (graph)
    driver.graphDestroy(graph);
  return status == HP_OK ? driver.check(result, "capturing")
                         : fail(status, "%s", words.c_str());
}

static void capture(Device &device, Step &step) {
  hp_device_stats before = device.stats;
  hp_status status = captureInto(device, step);
  if (status == HP_OK) {
    step.stats = device.stats;
    return;
  }
  step.graph = nullptr;
  step.hostPart = std::string("it cannot be captured: ") + hp_last_error();
  releaseBlocks(device, step);
  device.stats = before;
}

/// Empty, or why no step of this run is captured.
static std::string findObstacle(const Device &device) {
  const hp_launch &launch = device.launch;
  if (!device.context->driver.graphLaunch)
    return std::string("back end '") + vendor().name + "' captures no steps";
  if (!device.context->capturesSteps)
    return "the option 'graphs' is off";
  if (device.tracer.isOn())
    return "a trace is recorded";
  if (launch.num_args + launch.num_results == 0)
    return "the caller does not say how many buffers there are";
  return "";
}

bool replayStep(Device &device, hp_status *status) {
  StepGraphs &graphs = device.graphs;
  graphs.current = nullptr;
  graphs.replayed = false;
  graphs.notCaptured = findObstacle(device);
  if (!graphs.notCaptured.empty())
    return false;
  Step &step = findStep(device);
  step.lastRun = ++graphs.runs;
  if (!step.hasRun) {
    graphs.current = &step;
    return false;
  }
  if (!step.graph && step.hostPart.empty())
    capture(device, step);
  graphs.notCaptured = step.hostPart;
  if (!step.graph)
    return false;
  device.stats = step.stats;
  Driver &driver = device.context->driver;
  *status = driver.check(
      driver.graphLaunch(step.graph, device.streams[HP_STREAM_COMPUTE]),
      "launching a captured step");
  graphs.replayed = true;
  return true;
}

void endStep(Device &device, bool succeeded) {
  StepGraphs &graphs = device.graphs;
  Step *step = graphs.current;
  graphs.current = nullptr;
  if (!step)
    return;
  if (!succeeded) {
    graphs.steps.pop_back(); // it was the newest
    return;
  }
  step->hasRun = true;
  step->live.clear();
  graphs.notCaptured = step->hostPart.empty()
                           ? "it runs for the first time with these buffers"
                           : step->hostPart;
}

} // namespace hyperparallel::runtime::cuda
