//===- Planner.cpp - placing storages in memory tiers ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/CAPI/Planner.h"
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

namespace {

using Link = std::tuple<double, double, int32_t, int64_t>;
using SpillTuple = std::tuple<uint32_t, int32_t, int32_t, int32_t, int32_t,
                              uint32_t, bool, bool, int32_t>;

using ReportTuple = std::tuple<uint32_t, int, uint32_t, int32_t, int32_t,
                               double, double, double, double, double>;

/// Owns a problem and the plan for it.
class Planner {
public:
  Planner(int64_t capacity, int64_t alignment, int64_t minimumBytes,
          double memoryBandwidth)
      : self(hpPlannerCreate(capacity, alignment, minimumBytes,
                             memoryBandwidth)) {}
  Planner(const Planner &) = delete;
  ~Planner() { hpPlannerDestroy(self); }

  void addSegment(double bandwidth) { hpPlannerAddSegment(self, bandwidth); }
  void addTier(int64_t capacity, const Link &out, const Link &in) {
    auto link = [](const Link &link) {
      return HpPlannerLink{std::get<0>(link), std::get<1>(link),
                           std::get<2>(link), std::get<3>(link)};
    };
    hpPlannerAddTier(self, capacity, link(out), link(in));
    ++numTiers;
  }
  void addOperation(double seconds, int64_t workspace, int64_t memoryBytes,
                    const std::vector<uint32_t> &reads,
                    const std::vector<uint32_t> &writes) {
    hpPlannerAddOperation(self, {seconds, workspace, memoryBytes});
    for (uint32_t storage : reads)
      hpPlannerAddUse(self, {numOperations, storage, true, false});
    for (uint32_t storage : writes)
      hpPlannerAddUse(self, {numOperations, storage, false, true});
    ++numOperations;
  }
  void addStorage(int64_t bytes, bool persistent, bool mayStartBelow,
                  bool clean, bool pinned, uint32_t homeTier,
                  double recomputeSeconds,
                  const std::vector<uint32_t> &recomputeFrom) {
    hpPlannerAddStorage(self,
                        {bytes, persistent, mayStartBelow, clean, pinned,
                         homeTier, recomputeSeconds},
                        recomputeFrom.size(), recomputeFrom.data());
  }

  void plan() {
    check();
    nb::gil_scoped_release release;
    hpPlannerPlan(self);
    isPlanned = true;
  }
  void take(const std::vector<SpillTuple> &spills) {
    check();
    std::vector<HpPlannerSpill> taken;
    for (auto [storage, after, before, freed, fetched, tier, isClean,
               recomputed, delay] : spills)
      taken.push_back({storage, after, before, freed, fetched, tier, isClean,
                       recomputed, delay});
    std::string fault;
    hpPlannerTake(self, taken.size(), taken.data(), append, &fault);
    if (!fault.empty())
      throw nb::value_error(fault.c_str());
    isPlanned = true;
  }

  nb::dict summary() const {
    HpPlannerSummary s = hpPlannerGetSummary(self);
    nb::dict result;
    result["status"] = static_cast<int>(s.status);
    result["seconds"] = s.seconds;
    result["bound_seconds"] = s.boundSeconds;
    result["compute_seconds"] = s.computeSeconds;
    result["waits_out"] = s.waitsOut;
    result["waits_in"] = s.waitsIn;
    result["slowed_down"] = s.slowedDown;
    result["peak_bytes"] = s.peakBytes;
    result["bytes_out"] = s.bytesOut;
    result["bytes_in"] = s.bytesIn;
    result["tightest_slot"] = s.tightestSlot;
    result["max_live_slot"] = s.maxLiveSlot;
    result["tightest_bytes"] = s.tightestBytes;
    result["max_live_bytes"] = s.maxLiveBytes;
    result["tier_needed_bytes"] = s.tierNeededBytes;
    result["tier_capacity_bytes"] = s.tierCapacityBytes;
    MlirStringRef method = hpPlannerGetMethod(self);
    result["method"] = std::string(method.data, method.length);
    return result;
  }
  std::vector<SpillTuple> spills() const {
    std::vector<SpillTuple> result;
    for (intptr_t i = 0, e = hpPlannerGetNumSpills(self); i < e; ++i) {
      HpPlannerSpill s = hpPlannerGetSpill(self, i);
      result.emplace_back(s.storage, s.after, s.before, s.freed, s.fetched,
                          s.tier, s.isClean, s.recomputed, s.delay);
    }
    return result;
  }
  std::vector<double> times(uint32_t which) const {
    if (which > HpPlannerSpillInEnd)
      throw nb::index_error("no such times");
    intptr_t count = 0;
    const double *times =
        hpPlannerGetTimes(self, static_cast<HpPlannerTimes>(which), &count);
    return std::vector<double>(times, times + count);
  }
  std::vector<int64_t> bytes(int32_t tier) const {
    if (!isPlanned || tier >= numTiers)
      throw nb::index_error("no such tier");
    intptr_t count = 0;
    const int64_t *bytes = hpPlannerGetBytes(self, tier, &count);
    return std::vector<int64_t>(bytes, bytes + count);
  }

  std::vector<ReportTuple> explain() const {
    if (!isPlanned)
      throw nb::value_error("there is no plan yet");
    std::vector<ReportTuple> result;
    hpPlannerExplain(
        self,
        [](HpPlannerStorageReport r, void *data) {
          static_cast<std::vector<ReportTuple> *>(data)->emplace_back(
              r.storage, static_cast<int>(r.fate), r.tier, r.after, r.before,
              r.gapSeconds, r.copySeconds, r.hiddenSeconds, r.exposedSeconds,
              r.breakEvenBandwidth);
        },
        &result);
    return result;
  }

private:
  void check() const {
    std::string fault;
    hpPlannerFindFault(self, append, &fault);
    if (!fault.empty())
      throw nb::value_error(fault.c_str());
  }

  HpPlanner self;
  uint32_t numOperations = 0;
  int32_t numTiers = 0;
  bool isPlanned = false;
};

} // namespace

using BufferTuple = std::tuple<int64_t, int64_t, int64_t>;

static std::vector<HpArenaBuffer>
unwrap(const std::vector<BufferTuple> &buffers) {
  std::vector<HpArenaBuffer> result;
  for (auto [lower, upper, size] : buffers)
    result.push_back({lower, upper, size});
  return result;
}

/// Offsets, the height, the most that is live, and how they were found.
static std::tuple<std::vector<int64_t>, int64_t, int64_t, std::string>
assignOffsets(const std::vector<BufferTuple> &buffers, int64_t alignment,
              int64_t goal, bool exact) {
  std::vector<HpArenaBuffer> arena = unwrap(buffers);
  std::vector<int64_t> offsets(arena.size());
  std::string method;
  HpArenaSummary summary;
  {
    nb::gil_scoped_release release;
    summary = hpArenaAssign(arena.size(), arena.data(), alignment, goal, exact,
                            offsets.data(), append, &method);
  }
  return {offsets, summary.height, summary.maxLive, method};
}

static std::string findOverlap(const std::vector<BufferTuple> &buffers,
                               const std::vector<int64_t> &offsets,
                               int64_t alignment) {
  if (offsets.size() != buffers.size())
    throw nb::value_error("expected an offset for each buffer");
  std::vector<HpArenaBuffer> arena = unwrap(buffers);
  std::string fault;
  hpArenaFindOverlap(arena.size(), arena.data(), offsets.data(), alignment,
                     append, &fault);
  return fault;
}

void hyperparallel::bindPlanner(nb::module_ &m) {
  nb::class_<Planner>(m, "Planner", "See hyperparallel.offload.")
      .def(nb::init<int64_t, int64_t, int64_t, double>(), nb::arg("capacity"),
           nb::arg("alignment"), nb::arg("minimum_bytes"),
           nb::arg("memory_bandwidth"))
      .def("add_segment", &Planner::addSegment, nb::arg("bandwidth"))
      .def("add_tier", &Planner::addTier, nb::arg("capacity"), nb::arg("out"),
           nb::arg("in_"))
      .def("add_operation", &Planner::addOperation, nb::arg("seconds"),
           nb::arg("workspace"), nb::arg("memory_bytes"), nb::arg("reads"),
           nb::arg("writes"))
      .def("add_storage", &Planner::addStorage, nb::arg("bytes"),
           nb::arg("persistent"), nb::arg("may_start_below"), nb::arg("clean"),
           nb::arg("pinned"), nb::arg("home_tier"),
           nb::arg("recompute_seconds"), nb::arg("recompute_from"))
      .def("plan", &Planner::plan)
      .def("take", &Planner::take, nb::arg("spills"))
      .def_prop_ro("summary", &Planner::summary)
      .def_prop_ro("spills", &Planner::spills)
      .def("times", &Planner::times, nb::arg("which"))
      .def("bytes", &Planner::bytes, nb::arg("tier"))
      .def("explain", &Planner::explain);
  m.def("assign_offsets", &assignOffsets, nb::arg("buffers"),
        nb::arg("alignment"), nb::arg("goal"), nb::arg("exact"));
  m.def("find_overlap", &findOverlap, nb::arg("buffers"), nb::arg("offsets"),
        nb::arg("alignment"));
}
