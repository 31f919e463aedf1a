// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeGraphs.cpp - Captured work of the fake driver -----------------===//
//
// See FakeCuda.h. A capture keeps calls instead of doing them. It begins on one
// stream, and goes over to others by events. When its graph is launched, each
// of these streams is a timeline of its own, which knows of the others what
// events said during the capture: a wait that is missing there is a race here.
//
// As in CUDA, while a thread captures, nothing may wait for the device, and an
// event from outside cannot be waited for; all streams have to come back to the
// first one. Stricter than CUDA: no memory may be allocated or freed.
//
//===----------------------------------------------------------------------===//

#include "test/Runtime/fakes/FakeCuda.h"
#include "test/Runtime/fakes/FakeDriver.h"

using namespace fake;

namespace fake {

/// Calls of the streams 0, 1, … of a capture; 0 is where it began.
struct FakeGraph {
  struct Node {
    enum Kind { Work, Record, Wait } kind;
    size_t stream;
    Captured work;
    size_t event = 0;
  };
  uint64_t number = 0;
  int device = 0;
  std::vector<FakeStream *> streams; ///< null once captured
  std::vector<Node> nodes;
  /// By stream, and by event: of which calls of each stream it comes after.
  std::vector<Clock> clocks, events;

  size_t numberOf(FakeStream *stream) {
    for (size_t i = 0; i < streams.size(); ++i)
      if (streams[i] == stream)
        return i;
    streams.push_back(stream);
    clocks.emplace_back();
    return streams.size() - 1;
  }
  void add(size_t stream, Node node) {
    Clock &own = clocks[stream];
    if (own.size() <= stream)
      own.resize(stream + 1, 0);
    ++own[stream];
    node.stream = stream;
    nodes.push_back(std::move(node));
  }
};

/// Launched graphs: streams with timelines of their own.
struct FakeExec {
  FakeGraph graph;
  std::vector<FakeStream *> streams;
  std::vector<Clock> events;
};

static thread_local int capturing = 0;

int addToCapture(FakeStream *stream, Captured work) {
  FakeGraph &graph = *stream->capture;
  graph.add(graph.numberOf(stream),
            {FakeGraph::Node::Work, 0, std::move(work), 0});
  return Success;
}

bool isCapturing(Driver &, int) { return capturing > 0; }

int refuseInCapture(Driver &d, const char *what) {
  return d.refuse(std::string(what) + " while a stream is captured");
}

int recordInCapture(FakeEvent *event, FakeStream *stream) {
  FakeGraph &graph = *stream->capture;
  size_t number = graph.numberOf(stream);
  graph.add(number, {FakeGraph::Node::Record, 0, {}, graph.events.size()});
  event->capture = graph.number;
  event->place = graph.events.size();
  graph.events.push_back(graph.clocks[number]);
  return Success;
}

/// Where the event or the stream is captured.
int waitInCapture(Driver &d, FakeStream *stream, FakeEvent *event) {
  FakeGraph *graph = stream->capture;
  if (event->capture == 0 && !event->recorded)
    return Success;
  for (FakeGraph *known : d.graphs)
    if (known->number == event->capture && event->capture && !graph)
      graph = stream->capture = known; // the stream joins
  if (!graph || graph->number != event->capture)
    return d.refuse("a wait for an event that was not recorded in the capture "
                    "of the stream");
  size_t number = graph->numberOf(stream);
  graph->add(number, {FakeGraph::Node::Wait, 0, {}, event->place});
  learn(graph->clocks[number], graph->events[event->place]);
  return Success;
}

} // namespace fake

FAKE bool hp_fake_cuda_defer(void *handle,
                             const std::function<int(void *)> *work) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FakeStream *stream = streamOf(d, handle);
  if (!stream || !stream->capture)
    return false;
  addToCapture(stream, *work);
  return true;
}

FAKE int cuStreamBeginCapture_v2(void *handle, int mode) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, handle);
  if (stream->capture || mode != 1)
    return d.refuse("a capture of a stream that is captured, or in a mode that "
                    "the fake does not know");
  auto *graph = new FakeGraph();
  graph->number = ++d.captures;
  graph->device = stream->device;
  graph->numberOf(stream);
  stream->capture = graph;
  d.graphs.insert(graph);
  ++capturing;
  return Success;
}

FAKE int cuStreamEndCapture(void *handle, void **out) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  *out = nullptr;
  FAKE_STREAM(stream, handle);
  FakeGraph *graph = stream->capture;
  if (!graph || graph->streams[0] != stream)
    return d.refuse("an end of a capture where none began");
  --capturing;
  for (FakeStream *one : graph->streams)
    one->capture = nullptr;
  for (size_t i = 1; i < graph->streams.size(); ++i) {
    const Clock &own = graph->clocks[i], &first = graph->clocks[0];
    if (i < own.size() && (i >= first.size() || first[i] < own[i])) {
      d.graphs.erase(graph);
      delete graph;
      return d.refuse("a capture ends with work of a stream that the first one "
                      "did not wait for");
    }
  }
  *out = graph;
  return Success;
}

FAKE int cuGraphInstantiateWithFlags(void **out, void *handle,
                                     unsigned long long flags) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *graph = static_cast<FakeGraph *>(handle);
  if (!d.graphs.count(graph) || flags != 0)
    return InvalidValue;
  auto *exec = new FakeExec{*graph, {}, {}};
  exec->events.resize(graph->events.size());
  for (size_t i = 0; i < graph->streams.size(); ++i) {
    auto *stream = new FakeStream();
    stream->timeline =
        d.timelines.add("stream " + std::to_string(i) + " of a graph on GPU " +
                        std::to_string(graph->device));
    stream->device = graph->device;
    d.streams.insert(stream);
    exec->streams.push_back(stream);
  }
  *out = exec;
  return Success;
}

FAKE int cuGraphLaunch(void *handle, void *streamHandle) {
  Driver &d = driver();
  auto &exec = *static_cast<FakeExec *>(handle);
  {
    std::lock_guard<std::mutex> lock(d.mutex);
    FAKE_STREAM(stream, streamHandle);
    Action action = beginOn(d, stream, "a graph");
    learn(d.timelines.clock(exec.streams[0]->timeline), action.known);
    ++d.graphLaunches;
  }
  for (const FakeGraph::Node &node : exec.graph.nodes) {
    FakeStream *stream = exec.streams[node.stream];
    if (node.kind == FakeGraph::Node::Work) {
      if (int fault = node.work(stream))
        return fault;
      continue;
    }
    std::lock_guard<std::mutex> lock(d.mutex);
    Clock &clock = d.timelines.clock(stream->timeline);
    if (node.kind == FakeGraph::Node::Record)
      exec.events[node.event] = clock;
    else
      learn(clock, exec.events[node.event]);
  }
  std::lock_guard<std::mutex> lock(d.mutex);
  FAKE_STREAM(stream, streamHandle);
  learn(d.timelines.clock(stream->timeline),
        d.timelines.clock(exec.streams[0]->timeline));
  return Success;
}

FAKE int cuGraphDestroy(void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *graph = static_cast<FakeGraph *>(handle);
  if (!d.graphs.erase(graph))
    return InvalidHandle;
  delete graph;
  return Success;
}

FAKE int cuGraphExecDestroy(void *handle) {
  Driver &d = driver();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *exec = static_cast<FakeExec *>(handle);
  for (FakeStream *stream : exec->streams) {
    d.streams.erase(stream);
    delete stream;
  }
  delete exec;
  return Success;
}
