//===- StagePlan.cpp - reads plans, balances stages -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Balancing: the paths of the calls of @main, in the order in which they are
// first met, are cut into as many stages as the plan has, so that the dearest
// costs least. The cost of a path is that of all its calls, forward, backward
// and update; ops between calls count for the last path that they depend on,
// or else for the first that depends on them.
//   1. seconds of each path, by the cost model, in one sweep each way;
//   2. bisect the bound: a bound is enough if filling stages greedily takes no
//      more of them than there are;
//   3. fill with the bound, leaving a path for every stage to come.
// Cost: O(ops + paths * 64).
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperMPMD/StagePlan.h"

#include "lib/Analysis/CostModel.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;
using hypershard::MeshAttr;
using hypershard::MeshAxisAttr;

namespace {
class Reader {
public:
  Reader(func::FuncOp main) : main(main), context(main.getContext()) {}

  FailureOr<StagePlan> read(StringRef json);

private:
  FailureOr<GroupAttr> readGroup(const llvm::json::Value &value);
  LogicalResult readStage(const llvm::json::Value &value, StagePlan &plan);
  InFlightDiagnostic error() { return main.emitError("plan: "); }

  func::FuncOp main;
  MLIRContext *context;
  bool namesBlocks = false;
};
} // namespace

FailureOr<GroupAttr> Reader::readGroup(const llvm::json::Value &value) {
  const llvm::json::Object *object = value.getAsObject();
  std::optional<StringRef> name =
      object ? object->getString("name") : std::nullopt;
  const llvm::json::Array *axes = object ? object->getArray("axes") : nullptr;
  if (!name || !axes)
    return error() << "expected a group such as {\"name\": \"g0\", \"axes\": "
                      "[[\"tp\", 2]]}";
  auto emit = [&] { return error() << "group \"" << *name << "\": "; };
  SmallVector<MeshAxisAttr> parts;
  for (const llvm::json::Value &entry : *axes) {
    const llvm::json::Array *pair = entry.getAsArray();
    auto axis = pair && pair->size() == 2 ? (*pair)[0].getAsString()
                                          : std::optional<StringRef>();
    auto size = axis ? (*pair)[1].getAsInteger() : std::optional<int64_t>();
    if (!size)
      return emit() << "expected an axis such as [\"tp\", 2]";
    auto part =
        hypershard::getVerified<MeshAxisAttr>(emit, context, *axis, *size);
    if (!part)
      return failure();
    parts.push_back(part);
  }
  SmallVector<int64_t> ids;
  if (const llvm::json::Array *array = object->getArray("device_ids"))
    for (const llvm::json::Value &id : *array) {
      if (!id.getAsInteger())
        return emit() << "expected device ids to be whole numbers";
      ids.push_back(*id.getAsInteger());
    }
  auto mesh = hypershard::getVerified<MeshAttr>(emit, context, ArrayRef(parts),
                                                ArrayRef(ids));
  if (!mesh)
    return failure();
  return GroupAttr::get(context, *name, mesh);
}

LogicalResult Reader::readStage(const llvm::json::Value &value,
                                StagePlan &plan) {
  const llvm::json::Object *object = value.getAsObject();
  std::optional<StringRef> group =
      object ? object->getString("group") : std::nullopt;
  if (!group || !plan.topology.getGroup(*group))
    return error() << "expected each stage to name one of the groups, such as "
                      "{\"group\": \"g0\", \"blocks\": [\"h.0\"]}";
  int64_t stage = plan.groups.size();
  plan.groups.push_back(StringAttr::get(context, *group));
  const llvm::json::Array *blocks = object->getArray("blocks");
  namesBlocks |= blocks != nullptr;
  if (!blocks)
    return success();
  for (const llvm::json::Value &block : *blocks) {
    std::optional<StringRef> path = block.getAsString();
    if (!path)
      return error() << "expected the blocks of a stage to be paths";
    auto [it, isNew] = plan.stageOfPath.try_emplace(*path, stage);
    if (!isNew)
      return error() << "block `" << *path << "` is in stage " << it->second
                     << " and in stage " << stage;
  }
  return success();
}

FailureOr<StagePlan> Reader::read(StringRef text) {
  std::unique_ptr<llvm::MemoryBuffer> file;
  if (text.consume_front("@")) {
    auto buffer = llvm::MemoryBuffer::getFile(text);
    if (!buffer)
      return error() << "cannot read file `" << text
                     << "`: " << buffer.getError().message();
    file = std::move(*buffer);
    text = file->getBuffer();
  }
  if (text.trim().empty())
    return error() << "expected JSON but got nothing; give the option plan";
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  if (!parsed)
    return error() << "malformed JSON: " << toString(parsed.takeError());
  const llvm::json::Object *root = parsed->getAsObject();
  const llvm::json::Array *groups = root ? root->getArray("groups") : nullptr;
  const llvm::json::Array *stages = root ? root->getArray("stages") : nullptr;
  if (!groups || !stages)
    return error() << "expected an object with groups and stages";

  StagePlan plan;
  SmallVector<GroupAttr> parts;
  for (const llvm::json::Value &value : *groups) {
    FailureOr<GroupAttr> group = readGroup(value);
    if (failed(group))
      return failure();
    parts.push_back(*group);
  }
  auto emit = [&] { return error(); };
  plan.topology =
      hypershard::getVerified<TopologyAttr>(emit, context, ArrayRef(parts));
  if (!plan.topology)
    return failure();
  for (const llvm::json::Value &value : *stages)
    if (failed(readStage(value, plan)))
      return failure();
  if (plan.groups.empty())
    return error() << "expected at least one stage";
  if (namesBlocks) {
    llvm::StringMap<int64_t> missing = plan.stageOfPath;
    main.walk([&](func::CallOp call) {
      if (auto path = call->getAttrOfType<StringAttr>("hp.path"))
        missing.erase(path.getValue());
    });
    if (missing.empty())
      return plan;
    SmallVector<StringRef> names(missing.keys());
    llvm::sort(names);
    return error() << "the program has no block named `" << names.front()
                   << "`";
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// Balance
//===----------------------------------------------------------------------===//

namespace {
/// Paths in order of first call, each with its seconds.
struct PathCosts {
  SmallVector<StringRef> paths;
  SmallVector<double> seconds;
};
} // namespace

/// Paths that forward calls once for each microbatch. What is called before and
/// behind other modules (a model's own ops) goes where it is used instead.
static llvm::StringSet<> pathsCalledOnce(func::FuncOp main) {
  llvm::StringMap<int64_t> counts;
  for (Operation &op : main.getBody().front()) {
    auto path = op.getAttrOfType<StringAttr>("hp.path");
    auto phase = op.getAttrOfType<StringAttr>("hp.phase");
    auto microbatch =
        op.getAttrOfType<IntegerAttr>(HyperMPMDDialect::kMicrobatchAttrName);
    if (path && (!phase || phase.getValue() == "forward") &&
        (!microbatch || microbatch.getInt() == 0))
      ++counts[path.getValue()];
  }
  llvm::StringSet<> once;
  for (auto &[path, count] : counts)
    if (count == 1)
      once.insert(path);
  return once;
}

static PathCosts costPaths(func::FuncOp main) {
  PathCosts costs;
  llvm::StringSet<> once = pathsCalledOnce(main);
  CostModel model(main->getParentOfType<ModuleOp>());
  llvm::StringMap<unsigned> numbers;
  constexpr unsigned kNone = ~0u;
  Block &body = main.getBody().front();
  DenseMap<Operation *, unsigned> home;
  auto pathOf = [&](Operation *op) {
    auto path = op->getAttrOfType<StringAttr>("hp.path");
    return path && once.contains(path.getValue()) ? path : StringAttr();
  };
  auto add = [&](Operation *op, unsigned number) {
    home[op] = number;
    if (number != kNone)
      costs.seconds[number] += model.getCost(op).seconds;
  };
  SmallVector<Operation *> early;
  for (Operation &it : body.without_terminator()) {
    Operation *op = &it;
    unsigned number = kNone;
    if (StringAttr path = pathOf(op)) {
      auto [known, isNew] =
          numbers.try_emplace(path.getValue(), costs.paths.size());
      if (isNew) {
        costs.paths.push_back(path.getValue());
        costs.seconds.push_back(0);
      }
      number = known->second;
    } else {
      for (Value operand : op->getOperands())
        if (Operation *maker = operand.getDefiningOp()) {
          unsigned made = home.lookup_or(maker, kNone);
          if (made != kNone)
            number = number == kNone ? made : std::max(number, made);
        }
    }
    add(op, number);
    if (number == kNone)
      early.push_back(op);
  }
  for (Operation *op : llvm::reverse(early)) {
    unsigned number = kNone;
    for (Operation *user : op->getUsers())
      number = std::min(number, home.lookup_or(user, kNone));
    add(op, number);
  }
  return costs;
}

/// The stage of each path, if no stage takes more than `bound`; empty if that
/// takes more stages than there are.
static SmallVector<int64_t> fill(ArrayRef<double> seconds, int64_t stages,
                                 double bound) {
  SmallVector<int64_t> result;
  int64_t stage = 0;
  double sum = 0;
  for (auto [index, cost] : llvm::enumerate(seconds)) {
    int64_t left = seconds.size() - index;
    bool mustOpen = left <= stages - 1 - stage;
    if (index > 0 && (sum + cost > bound || mustOpen)) {
      ++stage;
      sum = 0;
    }
    sum += cost;
    if (stage >= stages || sum > bound)
      return {};
    result.push_back(stage);
  }
  return result;
}

static SmallVector<int64_t> balance(ArrayRef<double> seconds, int64_t stages) {
  double low = 0, high = 0;
  for (double cost : seconds) {
    low = std::max(low, cost);
    high += cost;
  }
  for (int step = 0; step < 64; ++step) {
    double middle = (low + high) / 2;
    (fill(seconds, stages, middle).empty() ? low : high) = middle;
  }
  return fill(seconds, stages, high);
}

FailureOr<StagePlan> StagePlan::read(StringRef text, func::FuncOp main) {
  FailureOr<StagePlan> plan = Reader(main).read(text);
  if (failed(plan) || !plan->stageOfPath.empty())
    return plan;
  PathCosts costs = costPaths(main);
  int64_t stages = plan->groups.size();
  if (int64_t(costs.paths.size()) < stages)
    return main.emitError() << "plan: expected at least " << stages
                            << " blocks to cut into as many stages but the "
                               "program calls "
                            << costs.paths.size();
  SmallVector<int64_t> chosen = balance(costs.seconds, stages);
  for (auto [path, stage] : llvm::zip_equal(costs.paths, chosen))
    plan->stageOfPath[path] = stage;
  return plan;
}
