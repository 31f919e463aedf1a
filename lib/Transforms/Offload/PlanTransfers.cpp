//===- PlanTransfers.cpp - decide what leaves the device ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In:  a local program; the machine, or the cost model's default.
// Out: `offload.moves` on the entry function, one remark for each value that
//   moves and one for the plan; nothing where the program fits.
//
//   1. The entry becomes a problem of storages and operations
//      (TransferProblem.h), which lib/Planner solves.
//   2. The caller owns the memory of arguments, so that one that leaves during
//      the step has to live below between steps, too; and so has one that a
//      person placed there. It is fetched as early as the memory allows, at
//      most as early as its copy needs. Where the step gives it another value,
//      that is stored after the last use, and waited for as late as it fits.
//   3. Spills become moves of values.
//
// Cost: that of the planner, O((n + gaps) log n).
//===----------------------------------------------------------------------===//
#include "lib/Transforms/Offload/Passes.h"

#include "lib/Planner/Explain.h"
#include "lib/Transforms/Offload/TransferProblem.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace mlir::hyperparallel::offload {
#define GEN_PASS_DEF_PLANTRANSFERSPASS
#include "lib/Transforms/Offload/Passes.h.inc"
} // namespace mlir::hyperparallel::offload

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;
using planner::Plan;
using planner::PlanStatus;
using planner::Spill;

namespace {
struct PlanTransfersPass final
    : offload::impl::PlanTransfersPassBase<PlanTransfersPass> {
  using PlanTransfersPassBase::PlanTransfersPassBase;

  void runOnOperation() override;

private:
  LogicalResult refuse(const TransferProblem &problem, const Plan &plan);
  void hang(const TransferProblem &problem, const Plan &plan);
  void remark(const TransferProblem &problem, const Plan &plan);
  LogicalResult writeReport(const TransferProblem &problem, const Plan &plan);
};
} // namespace

static std::string bytes(int64_t value) {
  if (value >= (int64_t(1) << 30))
    return llvm::formatv("{0:f2} GiB", double(value) / (1 << 30)).str();
  if (value >= (1 << 20))
    return llvm::formatv("{0:f2} MiB", double(value) / (1 << 20)).str();
  return llvm::formatv("{0} B", value).str();
}

static std::string seconds(double value) {
  if (value >= 1)
    return llvm::formatv("{0:f3} s", value).str();
  if (value >= 1e-3)
    return llvm::formatv("{0:f3} ms", value * 1e3).str();
  return llvm::formatv("{0:f3} us", value * 1e6).str();
}

//===----------------------------------------------------------------------===//
// Arguments live below between steps
//===----------------------------------------------------------------------===//

static bool goesAround(const Spill &spill, const TransferProblem &problem) {
  return spill.before > int64_t(problem.problem.operations.size());
}

/// The spill that keeps an argument below from its last use in a step to its
/// first in the next. How early it is fetched: as long as its copy takes if
/// nothing else is under way, and not where it would not fit. Its memory is
/// given back accordingly late, if it has to be stored.
static Spill aroundTheEnd(const TransferProblem &problem, uint32_t storage,
                          uint32_t tier, std::vector<int64_t> &resident) {
  int32_t count = problem.problem.operations.size();
  ArrayRef<StorageUse> uses = problem.storages.getStorages()[storage].uses;
  int32_t first = uses.empty() ? 0 : uses.front().op;
  int32_t last = uses.empty() ? 0 : uses.back().op;
  int64_t size = problem.problem.alignedBytes(storage);
  double wanted = problem.problem.seconds(problem.problem.tiers[tier].in, size);
  int32_t fetched = first;
  // Resident until now at every slot: away from the end to the first use.
  for (int32_t slot = last + 1; slot <= count; ++slot)
    resident[slot] -= size;
  for (int32_t slot = 0; slot < first; ++slot)
    resident[slot] -= size;
  while (fetched > 0 && wanted > 0 &&
         resident[fetched - 1] + size <= problem.problem.capacity) {
    --fetched;
    resident[fetched] += size;
    wanted -= problem.problem.operations[fetched].seconds;
  }
  int32_t freed = last + 1;
  bool isWritten =
      llvm::any_of(uses, [](StorageUse use) { return use.writes; });
  double storing =
      isWritten ? problem.problem.seconds(problem.problem.tiers[tier].out, size)
                : 0;
  while (freed < count && storing > 0 &&
         resident[freed] + size <= problem.problem.capacity) {
    resident[freed] += size;
    storing -= problem.problem.operations[freed].seconds;
    ++freed;
  }
  Spill spill;
  spill.storage = storage;
  spill.after = last;
  spill.freed = freed;
  spill.before = count + 1 + first;
  spill.fetched = count + 1 + fetched;
  spill.tier = tier;
  return spill;
}

/// An argument that lives below is fetched from there, and goes there whenever
/// it leaves; what was not written since then need not be copied.
static void settleCopies(const TransferProblem &problem,
                         std::vector<Spill> &spills) {
  SmallVector<SmallVector<Spill *, 2>> spillsOf(
      problem.storages.getStorages().size());
  SmallVector<std::optional<uint32_t>> home(spillsOf.size());
  for (Spill &spill : spills) {
    if (spill.storage >= spillsOf.size())
      continue;
    spillsOf[spill.storage].push_back(&spill);
    if (goesAround(spill, problem))
      home[spill.storage] = spill.tier;
  }
  for (auto [storage, list] : llvm::enumerate(spillsOf)) {
    if (!home[storage])
      continue;
    llvm::sort(list, [](Spill *a, Spill *b) { return a->after < b->after; });
    ArrayRef<StorageUse> uses = problem.storages.getStorages()[storage].uses;
    const StorageUse *use = uses.begin();
    for (Spill *spill : list) {
      spill->tier = *home[storage];
      spill->isClean = true;
      for (; use != uses.end() && int64_t(use->op) <= spill->after; ++use)
        spill->isClean &= !use->writes;
    }
  }
  // What has a copy below need not be copied there early.
  llvm::erase_if(spills, [](const Spill &spill) {
    return !spill.copiesIn() && spill.isClean;
  });
}

/// Adds what the caller's ownership of arguments asks for; true if it added
/// anything.
static bool settleArguments(const TransferProblem &problem, Plan &plan) {
  ArrayRef<Storage> storages = problem.storages.getStorages();
  SmallVector<std::optional<uint32_t>> wanted(problem.places);
  for (const Spill &spill : plan.spills)
    if (spill.storage < storages.size() &&
        (storages[spill.storage].argument ||
         storages[spill.storage].streamedBy) &&
        !wanted[spill.storage])
      wanted[spill.storage] = spill.tier;
  for (const Spill &spill : plan.spills)
    if (goesAround(spill, problem))
      wanted[spill.storage] = std::nullopt;
  std::vector<int64_t> resident;
  bool changed = false;
  for (auto [storage, tier] : llvm::enumerate(wanted)) {
    if (!tier)
      continue;
    if (!changed)
      resident = planner::residentBytes(problem.problem, plan.spills);
    plan.spills.push_back(aroundTheEnd(problem, storage, *tier, resident));
    changed = true;
  }
  if (changed)
    settleCopies(problem, plan.spills);
  return changed;
}

//===----------------------------------------------------------------------===//
// What is said
//===----------------------------------------------------------------------===//

LogicalResult PlanTransfersPass::refuse(const TransferProblem &problem,
                                        const Plan &plan) {
  StringRef memory = problem.model.getGroup().getMemory();
  if (plan.status == PlanStatus::TiersTooSmall) {
    InFlightDiagnostic diagnostic =
        FunctionOpInterface(problem.function)
            .emitError("expected the tiers below ")
        << memory << " to hold " << bytes(plan.tierNeededBytes)
        << " at the same time but they have " << bytes(plan.tierCapacityBytes);
    diagnostic.attachNote()
        << "the device has " << bytes(problem.problem.capacity)
        << "; with all of " << bytes(plan.maxLiveBytes)
        << " nothing would have to move";
    return diagnostic;
  }
  ArrayRef<Operation *> ops = problem.storages.getOps();
  bool isAtEnd = plan.tightestSlot >= int64_t(ops.size());
  Operation *op = isAtEnd ? FunctionOpInterface(problem.function).getOperation()
                          : ops[plan.tightestSlot];
  InFlightDiagnostic diagnostic = op->emitError("expected tier ") << memory;
  diagnostic << " to have at least " << bytes(plan.tightestBytes) << " ("
             << plan.tightestBytes << " bytes) for "
             << (isAtEnd ? StringRef("the results of the step")
                         : op->getName().getStringRef())
             << " but got " << bytes(problem.problem.capacity) << " ("
             << problem.problem.capacity << " bytes)";
  diagnostic.attachNote() << "no op needs more: " << plan.tightestBytes
                          << " bytes is the smallest capacity that can work; "
                             "split the tensors over "
                             "more devices, or make the batch smaller";
  return diagnostic;
}

void PlanTransfersPass::remark(const TransferProblem &problem,
                               const Plan &plan) {
  FunctionOpInterface function = problem.function;
  Location loc = function.getLoc();
  int64_t count = problem.problem.operations.size();
  if (plan.spills.empty()) {
    emitRemark(loc, "offload: nothing moves: ")
        << bytes(plan.maxLiveBytes) << " at the peak fit in "
        << bytes(problem.problem.capacity);
    return;
  }
  std::vector<planner::GapReport> reports =
      planner::explainSpills(problem.problem, plan);
  for (auto [number, spill] : llvm::enumerate(plan.spills)) {
    int64_t size = problem.problem.alignedBytes(spill.storage);
    const planner::Execution &run = plan.execution;
    const planner::GapReport &report = reports[number];
    bool around = goesAround(spill, problem);
    if (spill.recomputed) {
      emitRemark(loc, "offload: ")
          << problem.getName(spill.storage) << " (" << bytes(size)
          << ") is dropped before op " << spill.freed
          << " and computed again before op " << spill.before << " in "
          << seconds(problem.problem.storages[spill.storage].recomputeSeconds)
          << ": a copy would take longer";
      continue;
    }
    if (!spill.copiesIn()) {
      emitRemark(loc, "offload: ")
          << problem.getName(spill.storage) << " (" << bytes(size)
          << ") is stored to " << problem.tiers[spill.tier].getName().getValue()
          << " from op " << spill.issued()
          << " on, and dropped later without a copy";
      continue;
    }
    emitRemark(loc, "offload: ")
        << problem.getName(spill.storage) << " (" << bytes(size) << ") is in "
        << problem.tiers[spill.tier].getName().getValue() << " from op "
        << std::min<int64_t>(spill.freed, count) << " to op "
        << (around ? std::max<int64_t>(spill.fetched - count - 1, 0)
                   : spill.fetched)
        << (around ? " of the next step" : "") << ": "
        << (spill.isClean ? "dropped" : "stored") << ", fetched in "
        << seconds(run.inEnd[number] - run.inStart[number]) << "; "
        << seconds(report.gapSeconds) << " without a use, of its copies "
        << seconds(report.hiddenSeconds) << " hidden, "
        << seconds(report.exposedSeconds) << " waited for; "
        << (report.breakEvenBandwidth > 0
                ? "hidden alone from " +
                      bytes(int64_t(report.breakEvenBandwidth)) + "/s on"
                : std::string("hidden at no bandwidth"));
  }
  emitRemark(loc, "offload: step ")
      << seconds(plan.execution.seconds) << ", compute "
      << seconds(plan.computeSeconds) << ", no plan is faster than "
      << seconds(plan.boundSeconds) << "; waits for copies in "
      << seconds(plan.execution.waitsIn) << ", out "
      << seconds(plan.execution.waitsOut) << "; peak " << bytes(plan.peakBytes)
      << " of " << bytes(problem.problem.capacity) << ", "
      << bytes(plan.maxLiveBytes) << " if nothing moved; " << plan.method;
}

static StringRef nameOf(planner::Fate fate) {
  switch (fate) {
  case planner::Fate::Kept:
    return "kept";
  case planner::Fate::Moved:
    return "moved";
  case planner::Fate::Recomputed:
    return "recomputed";
  }
  llvm_unreachable("no other fate");
}

static void writeGap(llvm::json::OStream &json,
                     const planner::GapReport &report) {
  json.attribute("gap_s", report.gapSeconds);
  json.attribute("hidden_s", report.hiddenSeconds);
  json.attribute("exposed_s", report.exposedSeconds);
  json.attribute("break_even_bandwidth", report.breakEvenBandwidth);
}

LogicalResult PlanTransfersPass::writeReport(const TransferProblem &problem,
                                             const Plan &plan) {
  if (report.empty())
    return success();
  std::error_code error;
  llvm::raw_fd_ostream stream(report, error);
  if (error)
    return FunctionOpInterface(problem.function).emitError("cannot write ")
           << report << ": " << error.message();
  llvm::json::OStream json(stream, 1);
  const planner::Execution &run = plan.execution;
  std::vector<planner::GapReport> reports =
      planner::explainSpills(problem.problem, plan);
  json.object([&] {
    json.attribute("capacity", problem.problem.capacity);
    json.attribute("peak_bytes", plan.peakBytes);
    json.attribute("max_live_bytes", plan.maxLiveBytes);
    json.attribute("step_s", run.seconds);
    json.attribute("compute_s", plan.computeSeconds);
    json.attribute("lower_bound_s", plan.boundSeconds);
    json.attribute("over_bound", plan.boundSeconds > 0
                                     ? run.seconds / plan.boundSeconds - 1
                                     : 0.0);
    json.attribute("wait_in_s", run.waitsIn);
    json.attribute("wait_out_s", run.waitsOut);
    json.attribute("slowed_down_s", run.slowedDown);
    json.attribute("bytes_in", plan.bytesIn);
    json.attribute("bytes_out", plan.bytesOut);
    json.attribute("tightest_op", plan.tightestSlot);
    json.attribute("tightest_op_name", problem.getOpName(plan.tightestSlot));
    json.attribute("tightest_bytes", plan.tightestBytes);
    json.attribute("method", plan.method);
    json.attributeArray("moves", [&] {
      for (auto [number, spill] : llvm::enumerate(plan.spills))
        json.object([&, number = number, spill = spill] {
          json.attribute("tensor", problem.getName(spill.storage));
          json.attribute("bytes", problem.problem.alignedBytes(spill.storage));
          json.attribute("tier",
                         problem.tiers[spill.tier].getName().getValue());
          json.attribute("evict_after", spill.issued() - 1);
          json.attribute("free_before", spill.freed);
          json.attribute("prefetch_before", spill.fetched);
          json.attribute("use", spill.before);
          json.attribute("clean", spill.isClean);
          json.attribute("recomputed", spill.recomputed);
          json.attribute("store_s", run.outEnd[number] - run.outStart[number]);
          json.attribute("fetch_s", run.inEnd[number] - run.inStart[number]);
          writeGap(json, reports[number]);
        });
    });
    json.attributeArray("tensors", [&] {
      for (const planner::StorageReport &tensor :
           planner::explainStorages(problem.problem, plan))
        json.object([&] {
          uint32_t storage = tensor.gap.storage;
          json.attribute("tensor", problem.getName(storage));
          json.attribute("fate", nameOf(tensor.fate));
          json.attribute("bytes", problem.problem.alignedBytes(storage));
          if (tensor.fate == planner::Fate::Moved)
            json.attribute("tier",
                           problem.tiers[tensor.tier].getName().getValue());
          json.attribute("after", tensor.gap.after);
          json.attribute("use", tensor.gap.before);
          json.attribute("copy_s", tensor.gap.copySeconds);
          writeGap(json, tensor.gap);
        });
    });
  });
  return success();
}

//===----------------------------------------------------------------------===//
// What is decided
//===----------------------------------------------------------------------===//

void PlanTransfersPass::hang(const TransferProblem &problem, const Plan &plan) {
  FunctionOpInterface function = problem.function;
  MLIRContext *context = function.getContext();
  DenseMap<Value, int64_t> numbers;
  auto number = [&](ValueRange values) {
    for (Value value : values)
      numbers.try_emplace(value, int64_t(numbers.size()));
  };
  number(function.getFunctionBody().front().getArguments());
  for (Operation *op : problem.storages.getOps())
    number(op->getResults());
  int64_t count = problem.problem.operations.size();
  SmallVector<Attribute> moves;
  llvm::SmallDenseSet<uint32_t> moved;
  for (const Spill &spill : plan.spills) {
    bool around = goesAround(spill, problem);
    Value value = problem.getValueAt(spill.storage, spill.after);
    moves.push_back(
        MoveAttr::get(context, numbers.lookup(value), problem.tiers[spill.tier],
                      spill.issued() - 1, std::min<int64_t>(spill.freed, count),
                      around ? std::max<int64_t>(spill.fetched - count - 1, 0)
                             : spill.fetched,
                      spill.isClean, spill.recomputed));
    numRecomputed += spill.recomputed;
    moved.insert(spill.storage);
  }
  if (!moves.empty())
    function->setAttr(OffloadDialect::kMovesAttrName,
                      ArrayAttr::get(context, moves));
  numMoved += moved.size();
  for (const planner::Storage &storage : problem.problem.storages)
    numKept += !storage.pinned;
  numKept -= moved.size();
}

void PlanTransfersPass::runOnOperation() {
  auto function = dyn_cast_or_null<FunctionOpInterface>(
      SymbolTable::lookupSymbolIn(getOperation(), entry));
  if (!function || function.isExternal() ||
      !function.getFunctionBody().hasOneBlock()) {
    getOperation().emitError("expected a function @")
        << entry << " with one block to plan";
    return signalPassFailure();
  }
  CostModel model(getOperation());
  int64_t room = capacity;
  if (room <= 0)
    room =
        model.getMachine().getTier(model.getGroup().getMemory()).getCapacity();
  TransferProblem problem(function, model, room);
  if (failed(problem.build()))
    return signalPassFailure();
  if (!recompute)
    for (planner::Storage &storage : problem.problem.storages)
      storage.recomputeSeconds = planner::Storage().recomputeSeconds;
  Plan plan = planner::makePlan(problem.problem);
  if (plan.status != PlanStatus::Planned) {
    (void)refuse(problem, plan);
    return signalPassFailure();
  }
  if (settleArguments(problem, plan)) {
    std::string method = plan.method;
    plan = planner::describePlan(problem.problem, std::move(plan.spills));
    plan.method = method;
  }
  std::string fault = planner::findFault(problem.problem, plan.spills);
  if (!fault.empty()) {
    function.emitError("the planner made a plan that is not safe: ")
        << fault << "; please report this as a defect";
    return signalPassFailure();
  }
  hang(problem, plan);
  remark(problem, plan);
  if (failed(writeReport(problem, plan)))
    signalPassFailure();
}
