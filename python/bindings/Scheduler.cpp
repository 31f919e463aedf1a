//===- Scheduler.cpp - the order of work of device groups -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/Scheduler.h"
#include "python/bindings/Module.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <string>
#include <tuple>
#include <vector>

namespace nb = nanobind;

static void append(MlirStringRef part, void *data) {
  static_cast<std::string *>(data)->append(part.data, part.length);
}
static void collect(MlirStringRef part, void *data) {
  static_cast<std::vector<std::string> *>(data)->emplace_back(part.data,
                                                              part.length);
}
static MlirStringRef refer(const std::string &text) {
  return mlirStringRefCreate(text.data(), text.size());
}

namespace {

/// Owns a problem and the schedule for it.
class Scheduler {
public:
  Scheduler(uint32_t numStages, uint32_t numMicrobatches)
      : self(hpSchedulerCreate(numStages, numMicrobatches)) {}
  Scheduler(const Scheduler &) = delete;
  ~Scheduler() { hpSchedulerDestroy(self); }

  void addGroup(const std::string &name, int64_t limit) {
    hpSchedulerAddGroup(self, refer(name), limit);
    ++numGroups;
  }
  void addTask(uint32_t group, uint32_t kind, uint32_t stage,
               uint32_t microbatch, double seconds, int64_t startBytes,
               int64_t endBytes) {
    hpSchedulerAddTask(
        self, {group, kind, stage, microbatch, seconds, startBytes, endBytes});
  }
  void addEdge(uint32_t from, uint32_t to, double seconds) {
    hpSchedulerAddEdge(self, from, to, seconds);
  }

  void make(const std::string &name) {
    std::string fault;
    {
      nb::gil_scoped_release release;
      hpSchedulerMake(self, refer(name), append, &fault);
    }
    finish(fault);
  }
  void take(const std::vector<std::vector<uint32_t>> &order) {
    std::vector<intptr_t> sizes;
    std::vector<uint32_t> tasks;
    for (const std::vector<uint32_t> &group : order) {
      sizes.push_back(group.size());
      tasks.insert(tasks.end(), group.begin(), group.end());
    }
    std::string fault;
    hpSchedulerTake(self, sizes.size(), sizes.data(), tasks.data(), append,
                    &fault);
    finish(fault);
  }

  double seconds() const { return hpSchedulerGetSeconds(self); }
  double bubble() const { return hpSchedulerGetBubble(self); }
  std::string method() const {
    std::string text;
    hpSchedulerGetMethod(self, append, &text);
    return text;
  }
  std::vector<std::string> declined() const {
    std::vector<std::string> result;
    hpSchedulerGetDeclined(self, collect, &result);
    return result;
  }
  std::vector<uint32_t> peakLive() const {
    intptr_t count = 0;
    const uint32_t *live = hpSchedulerGetPeakLive(self, &count);
    return std::vector<uint32_t>(live, live + count);
  }
  std::vector<double> times(bool ends) const {
    intptr_t count = 0;
    const double *times = hpSchedulerGetTimes(self, ends, &count);
    return std::vector<double>(times, times + count);
  }
  std::tuple<double, double, int64_t> group(uint32_t group) const {
    checkGroup(group);
    HpSchedulerGroup it = hpSchedulerGetGroup(self, group);
    return {it.busySeconds, it.bubble, it.peakBytes};
  }
  std::vector<std::tuple<uint32_t, uint32_t>> steps(uint32_t group) const {
    checkGroup(group);
    intptr_t count = 0;
    const HpSchedulerStep *steps = hpSchedulerGetSteps(self, group, &count);
    std::vector<std::tuple<uint32_t, uint32_t>> result;
    for (intptr_t i = 0; i < count; ++i)
      result.emplace_back(steps[i].what, steps[i].index);
    return result;
  }

private:
  void finish(const std::string &fault) {
    isMade = fault.empty();
    if (!isMade)
      throw nb::value_error(fault.c_str());
  }
  void checkGroup(uint32_t group) const {
    if (!isMade || group >= numGroups)
      throw nb::index_error("no such group");
  }

  HpScheduler self;
  uint32_t numGroups = 0;
  bool isMade = false;
};

} // namespace

/// By process: what, peer, tag, bytes, label.
using ActionTuple =
    std::tuple<uint32_t, uint32_t, int64_t, int64_t, std::string>;

static std::string
findDeadlock(const std::vector<std::string> &names,
             const std::vector<std::vector<ActionTuple>> &actions,
             const std::vector<std::vector<uint32_t>> &circles, bool buffered) {
  if (actions.size() != names.size())
    throw nb::value_error("expected a name for each process");
  std::vector<MlirStringRef> nameRefs;
  for (const std::string &name : names)
    nameRefs.push_back(refer(name));
  std::vector<HpProcessAction> all;
  for (uint32_t process = 0; process < actions.size(); ++process)
    for (const auto &[what, peer, tag, bytes, label] : actions[process])
      all.push_back({process, what, peer, tag, bytes, refer(label)});
  std::vector<intptr_t> sizes;
  std::vector<uint32_t> members;
  for (const std::vector<uint32_t> &circle : circles) {
    sizes.push_back(circle.size());
    members.insert(members.end(), circle.begin(), circle.end());
  }
  std::string fault;
  hpFindDeadlock(nameRefs.size(), nameRefs.data(), all.size(), all.data(),
                 sizes.size(), sizes.data(), members.data(), buffered, append,
                 &fault);
  return fault;
}

void hyperparallel::bindScheduler(nb::module_ &m) {
  nb::class_<Scheduler>(m, "Scheduler", "See hyperparallel.schedules.")
      .def(nb::init<uint32_t, uint32_t>(), nb::arg("num_stages"),
           nb::arg("num_microbatches"))
      .def("add_group", &Scheduler::addGroup, nb::arg("name"), nb::arg("limit"))
      .def("add_task", &Scheduler::addTask, nb::arg("group"), nb::arg("kind"),
           nb::arg("stage"), nb::arg("microbatch"), nb::arg("seconds"),
           nb::arg("start_bytes"), nb::arg("end_bytes"))
      .def("add_edge", &Scheduler::addEdge, nb::arg("from_"), nb::arg("to"),
           nb::arg("seconds"))
      .def("make", &Scheduler::make, nb::arg("name"))
      .def("take", &Scheduler::take, nb::arg("order"))
      .def_prop_ro("seconds", &Scheduler::seconds)
      .def_prop_ro("bubble", &Scheduler::bubble)
      .def_prop_ro("method", &Scheduler::method)
      .def_prop_ro("declined", &Scheduler::declined)
      .def_prop_ro("peak_live", &Scheduler::peakLive)
      .def("times", &Scheduler::times, nb::arg("ends"))
      .def("group", &Scheduler::group, nb::arg("group"))
      .def("steps", &Scheduler::steps, nb::arg("group"));
  m.def("find_deadlock", &findDeadlock, nb::arg("names"), nb::arg("actions"),
        nb::arg("circles"), nb::arg("buffered"));
}
