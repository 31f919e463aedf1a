//===- TimelineJSON.cpp - what came of a simulation -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The reported step is a window of time: all of it where one step was
// simulated, else from the end of the step before to its own. What lies across
// an edge is cut there, so that in a steady state everything is in the window
// once. That is the second step if the third takes as long; else more steps are
// simulated until two of them do.
//
// Exposed seconds are differences of unions of spans: of communication beyond
// kernels, of copies beyond both, and what is left of the window is bubble.
// Masked communication is the rest of communication, over all of it.
//
// Cost: O(n log n) in tasks, for each group its own.
//===----------------------------------------------------------------------===//
#include "dialects/HyperShard/HyperShard.h"
#include "lib/Analysis/CollectiveOps.h"
#include "lib/Simulator/Program.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace mlir;
using namespace mlir::hyperparallel;
using mlir::hyperparallel::simulator::Level;
using mlir::hyperparallel::simulator::Result;
using mlir::hyperparallel::simulator::Span;
using mlir::hyperparallel::simulator::Task;

/// Steps to simulate, of programs whose steps overlap.
static constexpr unsigned kFewestSteps = 4, kMostSteps = 32;
/// The part by which the times of steps in a steady state may differ.
static constexpr double kSteady = 1e-3;

static StringRef stringifyStreamKind(StreamKind kind) {
  switch (kind) {
  case StreamKind::Compute:
    return "compute";
  case StreamKind::Communication:
    return "communication";
  case StreamKind::H2D:
    return "h2d";
  case StreamKind::D2H:
    return "d2h";
  case StreamKind::Network:
    return "network";
  }
  llvm_unreachable("all kinds are listed");
}

static StringRef stringifyLinkKind(LinkKind kind) {
  switch (kind) {
  case LinkKind::Level:
    return "level";
  case LinkKind::Link:
    return "link";
  case LinkKind::Segment:
    return "segment";
  }
  llvm_unreachable("all kinds are listed");
}

namespace {
struct Exposed {
  double communication = 0;
  double transfer = 0;
  double bubble = 0;
};

struct CollectiveTotal {
  int64_t count = 0;
  double bytes = 0;
  double seconds = 0;
  double exposed = 0;
};

/// The spans of a group in the window, of kernels, of communication and of
/// copies.
struct GroupSpans {
  std::vector<Span> kernels, communication, copies;
};

class TimelineWriter {
public:
  TimelineWriter(ModuleOp module, StringRef entry, const ProgramTasks &program,
                 const Result &simulated, llvm::json::OStream &json)
      : module(module), entry(entry), program(program), simulated(simulated),
        json(json), machine(getMachineOrDefault(module)) {}

  void write();

private:
  void findWindow();
  void collect();
  const ProgramTask &taskOf(size_t index) const {
    return program.tasks[index % program.tasks.size()];
  }
  double seconds() const { return window.end - window.start; }
  double meanOverDevices(ArrayRef<double> values) const;
  void writeHead();
  void writeExposed(const Exposed &exposed);
  void writeGroups();
  void writeTiers();
  void writeLinks();
  void writeCollectives();
  void writeTensors();
  void writeTasks();

  ModuleOp module;
  StringRef entry;
  const ProgramTasks &program;
  const Result &simulated;
  llvm::json::OStream &json;
  supernode::MachineAttr machine;
  Span window;
  double firstStep = 0;
  /// Of each task, step after step: the part in the window.
  std::vector<std::optional<Span>> spans;
  std::vector<double> busy;
  std::vector<GroupSpans> ofGroup;
  std::vector<Exposed> exposed;
  std::vector<double> kernelSeconds, talkSeconds, flops, peakSeconds;
};
} // namespace

/// Seconds that the spans cover together.
static double coveredSeconds(std::vector<Span> spans) {
  llvm::sort(spans, [](Span a, Span b) {
    return std::pair(a.start, a.end) < std::pair(b.start, b.end);
  });
  double covered = 0, end = 0;
  for (Span span : spans) {
    covered += std::max(0.0, span.end - std::max(span.start, end));
    end = std::max(end, span.end);
  }
  return covered;
}

static std::vector<Span> joined(std::vector<Span> a, ArrayRef<Span> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// When all tasks of a step have ended.
static double endOfStep(const ProgramTasks &program, const Result &simulated,
                        size_t step) {
  size_t count = program.tasks.size();
  double end = 0;
  for (size_t i = step * count; i < (step + 1) * count; ++i)
    end = std::max(end, simulated.spans[i].end);
  return end;
}

void TimelineWriter::findWindow() {
  firstStep = endOfStep(program, simulated, 0);
  unsigned step = program.reported;
  window.start = step ? endOfStep(program, simulated, step - 1) : 0;
  window.end = endOfStep(program, simulated, step);
}

void TimelineWriter::collect() {
  size_t numGroups = program.groups.size();
  busy.assign(program.streams.size(), 0);
  ofGroup.resize(numGroups);
  exposed.resize(numGroups);
  kernelSeconds.assign(numGroups, 0);
  talkSeconds.assign(numGroups, 0);
  flops.assign(numGroups, 0);
  peakSeconds.assign(numGroups, 0);
  spans.resize(simulated.spans.size());
  for (auto [index, whole] : llvm::enumerate(simulated.spans)) {
    Span span = {std::max(whole.start, window.start) - window.start,
                 std::min(whole.end, window.end) - window.start};
    bool isPoint = whole.start == whole.end && program.steps == 1;
    if (span.end < span.start || (span.end == span.start && !isPoint))
      continue;
    spans[index] = span;
    uint32_t id = program.problem.tasks[index].stream;
    const ProgramStream &stream = program.streams[id];
    busy[id] += span.end - span.start;
    GroupSpans &group = ofGroup[stream.group];
    if (stream.kind == StreamKind::Compute)
      group.kernels.push_back(span);
    else if (stream.kind == StreamKind::H2D || stream.kind == StreamKind::D2H)
      group.copies.push_back(span);
    else
      group.communication.push_back(span);
  }
  for (auto [task, planned] : llvm::zip(program.tasks, program.problem.tasks)) {
    unsigned group = program.streams[planned.stream].group;
    flops[group] += task.cost.work.flops;
    peakSeconds[group] += task.cost.peakSeconds;
  }
  for (unsigned group = 0; group < numGroups; ++group) {
    const GroupSpans &all = ofGroup[group];
    std::vector<Span> both = joined(all.kernels, all.communication);
    double kernels = coveredSeconds(all.kernels);
    double communication = coveredSeconds(both);
    double covered = coveredSeconds(joined(both, all.copies));
    kernelSeconds[group] = kernels;
    talkSeconds[group] = coveredSeconds(all.communication);
    exposed[group] = {communication - kernels, covered - communication,
                      std::max(0.0, seconds() - covered)};
  }
}

double TimelineWriter::meanOverDevices(ArrayRef<double> values) const {
  double sum = 0, devices = 0;
  for (auto [value, group] : llvm::zip_equal(values, program.groups)) {
    sum += value * group.devices.count;
    devices += group.devices.count;
  }
  return sum / devices;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

void TimelineWriter::writeExposed(const Exposed &one) {
  json.attributeObject("exposed", [&] {
    json.attribute("communication", one.communication);
    json.attribute("transfer", one.transfer);
    json.attribute("bubble", one.bubble);
  });
}

void TimelineWriter::writeHead() {
  auto part = [&](double value) {
    return seconds() > 0 ? value / seconds() : 0.0;
  };
  int64_t devices = 0;
  for (const GroupProgram &group : program.groups)
    devices += group.devices.count;
  json.attribute("format", "hyperparallel-timeline");
  json.attribute("version", 1);
  json.attribute("kind", "simulated");
  json.attribute("name", module.getSymName().value_or(entry));
  json.attribute("machine", machine.getName());
  json.attributeObject("mesh", [&] {
    for (auto mesh : module.getOps<hypershard::MeshOp>()) {
      for (hypershard::MeshAxisAttr axis : mesh.getMesh().getAxes())
        json.attribute(axis.getName(), axis.getSize());
      break;
    }
  });
  json.attribute("devices", devices);
  json.attribute("seconds", seconds());
  json.attribute("first_step_seconds", firstStep);
  // Tasks may not say: without a flop there is no telling.
  double meanFlops = meanOverDevices(flops);
  bool isKnown = meanFlops > 0;
  json.attribute("flops", isKnown ? llvm::json::Value(meanFlops) : nullptr);
  json.attribute("mfu",
                 isKnown ? llvm::json::Value(part(meanOverDevices(peakSeconds)))
                         : nullptr);
  json.attribute("utilisation", part(meanOverDevices(kernelSeconds)));
  double talking = 0, beside = 0;
  for (size_t group = 0; group < program.groups.size(); ++group) {
    int64_t devices = program.groups[group].devices.count;
    talking += devices * talkSeconds[group];
    beside += devices * (talkSeconds[group] - exposed[group].communication);
  }
  json.attribute("masked_communication",
                 talking > 0
                     ? llvm::json::Value(std::max(0.0, beside / talking))
                     : nullptr);
  auto mean = [&](double Exposed::*member) {
    SmallVector<double> values;
    for (const Exposed &one : exposed)
      values.push_back(one.*member);
    return meanOverDevices(values);
  };
  writeExposed({mean(&Exposed::communication), mean(&Exposed::transfer),
                mean(&Exposed::bubble)});
}

void TimelineWriter::writeGroups() {
  auto writeStreams = [&](size_t group) {
    for (auto [stream, seconds] : llvm::zip_equal(program.streams, busy))
      if (stream.group == group)
        json.object([&, &stream = stream, seconds = seconds] {
          json.attribute("name", stream.name);
          json.attribute("kind", stringifyStreamKind(stream.kind));
          json.attribute("busy", seconds);
        });
  };
  for (auto [index, group] : llvm::enumerate(program.groups))
    json.object([&, index = index, &group = group] {
      json.attribute("name", group.name);
      json.attribute("devices", group.devices.count);
      json.attributeArray("streams", [&] { writeStreams(index); });
      writeExposed(exposed[index]);
    });
}

void TimelineWriter::writeTiers() {
  for (auto [tier, levels, highest] :
       llvm::zip_equal(program.tiers, simulated.residency, simulated.peak)) {
    // The level at the beginning of the window, then the changes within.
    std::vector<Level> seen;
    for (Level level : levels) {
      Level shown = {level.time - window.start, level.bytes};
      if (level.time <= window.start)
        seen.assign(1, {0, level.bytes});
      else if (level.time <= window.end)
        seen.push_back(shown);
    }
    // What came and went at one moment is in no level.
    double peak = program.steps == 1 ? highest : 0;
    for (Level level : seen)
      peak = std::max(peak, level.bytes);
    json.object([&, &tier = tier] {
      json.attribute("name", tier.tier.getName());
      json.attribute("group", tier.group);
      json.attribute("capacity", tier.capacity);
      json.attribute("peak", peak);
      json.attributeArray("timeline", [&] {
        for (Level level : seen)
          json.array([&] {
            json.value(level.time);
            json.value(level.bytes);
          });
      });
    });
  }
}

/// Of links of one name (each in its unit), the one that carries most.
void TimelineWriter::writeLinks() {
  llvm::MapVector<std::pair<int, StringRef>, std::pair<double, double>> most;
  for (auto [link, moved] : llvm::zip_equal(program.links, simulated.moved)) {
    auto &[bytes, bandwidth] = most[{static_cast<int>(link.kind), link.name}];
    if (bandwidth == 0 || moved / program.steps > bytes) {
      bytes = moved / program.steps;
      bandwidth = link.bandwidth;
    }
  }
  for (auto &[key, use] : most)
    json.object([&, &key = key, &use = use] {
      json.attribute("name", key.second);
      json.attribute("kind",
                     stringifyLinkKind(static_cast<LinkKind>(key.first)));
      json.attribute("bandwidth", use.second);
      json.attribute("bytes", use.first);
      json.attribute("utilisation", seconds() > 0
                                        ? use.first / (use.second * seconds())
                                        : 0.0);
    });
}

/// Of one group's devices, those of the first that has any.
void TimelineWriter::writeCollectives() {
  llvm::MapVector<StringRef, CollectiveTotal> totals;
  // Kernels of a group run one after the other: one sweep is enough.
  std::vector<size_t> next(program.groups.size(), 0);
  for (auto [index, span] : llvm::enumerate(spans)) {
    const ProgramStream &stream =
        program.streams[program.problem.tasks[index].stream];
    if (!span || stream.kind != StreamKind::Communication)
      continue;
    const std::vector<Span> &kernels = ofGroup[stream.group].kernels;
    size_t &first = next[stream.group];
    while (first < kernels.size() && kernels[first].end <= span->start)
      ++first;
    double hidden = 0;
    for (size_t i = first; i < kernels.size() && kernels[i].start < span->end;
         ++i)
      hidden += std::min(span->end, kernels[i].end) -
                std::max(span->start, kernels[i].start);
    double part =
        static_cast<double>(program.groups[stream.group].devices.count);
    const ProgramTask &task = taskOf(index);
    CollectiveTotal &total = totals[task.op->getName().getStringRef()];
    // One that lies across an edge of the window is there twice, cut.
    bool isCounted = simulated.spans[index].end <= window.end;
    total.count += isCounted;
    total.bytes += isCounted ? task.cost.work.bytesReceived * part : 0;
    total.seconds += (span->end - span->start) * part;
    total.exposed += (span->end - span->start - hidden) * part;
  }
  double devices = 0;
  for (const GroupProgram &group : program.groups)
    devices += group.devices.count;
  for (auto &[op, total] : totals)
    json.object([&, op = op, &total = total] {
      json.attribute("op", op);
      json.attribute("count", total.count);
      json.attribute("bytes_received", total.bytes / devices);
      json.attribute("seconds", total.seconds / devices);
      json.attribute("exposed_seconds", total.exposed / devices);
    });
}

static std::string dtypeOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Arguments, as one device has them.
void TimelineWriter::writeTensors() {
  for (const GroupProgram &group : program.groups) {
    FunctionOpInterface function = group.function;
    for (BlockArgument argument : function.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      unsigned number = argument.getArgNumber();
      auto text = [&](StringRef attribute) {
        auto value = function.getArgAttrOfType<StringAttr>(number, attribute);
        return value ? value.getValue() : StringRef();
      };
      if (!type || !type.hasStaticShape())
        continue;
      json.object([&] {
        json.attribute("name", text("hp.name"));
        json.attribute("role", text("hp.role"));
        json.attributeArray("shape", [&] {
          for (int64_t size : type.getShape())
            json.value(size);
        });
        json.attribute("dtype", dtypeOf(type.getElementType()));
        json.attribute("sharding", text("hp.sharding"));
        json.attribute("local_bytes", byteSize(type));
      });
    }
  }
}

void TimelineWriter::writeTasks() {
  // Streams of a group are numbered from its first.
  std::vector<uint32_t> first(program.groups.size(), ~0u);
  for (auto [id, stream] : llvm::enumerate(program.streams))
    first[stream.group] = std::min<uint32_t>(first[stream.group], id);
  for (auto [index, span] : llvm::enumerate(spans)) {
    if (!span)
      continue;
    const ProgramTask &task = taskOf(index);
    const Task &planned = program.problem.tasks[index];
    unsigned group = program.streams[planned.stream].group;
    bool isMessage =
        task.movement && task.movement->kind == Movement::Kind::Receive;
    json.object([&, &span = span] {
      auto label = task.op->getAttrOfType<StringAttr>("label");
      json.attribute("op", label && !label.empty()
                               ? label.getValue()
                               : task.op->getName().getStringRef());
      json.attribute("path", task.path);
      json.attribute("group", group);
      json.attribute("stream", planned.stream - first[group]);
      json.attribute("start", span->start);
      json.attribute("end", span->end);
      json.attribute("flops", task.cost.work.flops);
      json.attribute("bytes", task.movement ? task.movement->bytes
                                            : task.cost.work.bytesRead +
                                                  task.cost.work.bytesWritten);
      json.attribute("bytes_received", isMessage
                                           ? task.movement->bytes
                                           : task.cost.work.bytesReceived);
      json.attribute("bound", task.movement ? StringRef("communication")
                                            : stringifyBound(task.cost.bound));
      json.attribute("reason", task.reason);
    });
  }
}

void TimelineWriter::write() {
  findWindow();
  collect();
  json.object([&] {
    writeHead();
    json.attributeArray("groups", [&] { writeGroups(); });
    json.attributeArray("tiers", [&] { writeTiers(); });
    json.attributeArray("links", [&] { writeLinks(); });
    json.attributeArray("collectives", [&] { writeCollectives(); });
    json.attributeArray("tensors", [&] { writeTensors(); });
    json.attributeArray("tasks", [&] { writeTasks(); });
  });
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// A deadlock is told where its ops are.
static LogicalResult reportError(ModuleOp module, const ProgramTasks &program,
                                 const Result &simulated) {
  if (simulated.stuck.empty())
    return emitError(module.getLoc()) << simulated.error;
  auto opOf = [&](simulator::TaskId task) {
    return program.tasks[task % program.tasks.size()].op;
  };
  auto [task, before] = simulated.stuck.front();
  InFlightDiagnostic error =
      opOf(task)->emitError()
      << "expected programs that can end but this waits for ever";
  for (auto [waiting, other] : simulated.stuck) {
    error.attachNote(opOf(waiting)->getLoc())
        << '`' << opOf(waiting)->getName() << "` waits for `"
        << opOf(other)->getName() << '`';
    error.attachNote(opOf(other)->getLoc()) << "which is here";
  }
  return failure();
}

/// Do the last steps that have one after them take equally long?
static bool isSteady(const ProgramTasks &program, const Result &simulated) {
  auto end = [&](unsigned step) { return endOfStep(program, simulated, step); };
  unsigned last = program.steps - 2;
  double period = end(last) - end(last - 1);
  double before = end(last - 1) - end(last - 2);
  return std::abs(period - before) <= kSteady * period;
}

LogicalResult hyperparallel::simulateProgram(ModuleOp module, StringRef entry,
                                             SimulationOptions options,
                                             raw_ostream &os) {
  FailureOr<SmallVector<GroupProgram>> programs = findPrograms(module, entry);
  if (failed(programs))
    return failure();
  FailureOr<ProgramTasks> program;
  Result simulated;
  for (unsigned steps = kFewestSteps; steps <= kMostSteps; steps *= 2) {
    program = makeProgramTasks(module, *programs, steps);
    if (failed(program))
      return failure();
    program->problem.noise = options.noise;
    program->problem.seed = options.seed;
    simulated = simulator::simulate(program->problem);
    if (!simulated.error.empty())
      return reportError(module, *program, simulated);
    if (program->steps == 1)
      break;
    program->reported = steps == kFewestSteps ? 1 : steps - 2;
    if (options.noise > 0 || isSteady(*program, simulated))
      break;
  }
  llvm::json::OStream json(os);
  TimelineWriter(module, entry, *program, simulated, json).write();
  return success();
}
