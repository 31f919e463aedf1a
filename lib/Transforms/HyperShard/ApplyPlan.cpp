//===- ApplyPlan.cpp - put a plan on a program ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In: an imported program, and a plan with exact names (globs were matched by
// whoever wrote it). Out: the mesh; shardings on the arguments and results of
// @main; a constraint behind every call of a block that the plan names; and,
// for an argument that is used in another layout than it is stored in, one
// constraint where it is used. It is placed in the innermost function that uses
// the argument for more than handing it on, before its first use there: so that
// parameters of a block are gathered when the block runs, not before.
//
//   1. read the plan; find what it names; check every sharding against the
//   mesh;
//   2. decide instances: starting from @main, follow the arguments that need a
//      constraint into the callees. A (function, layouts of its arguments) pair
//      is one instance; calls that agree share it;
//   3. clone functions that have several instances, then annotate each and
//      point its calls at their instances.
//
// Cost: O(ops + names + calls * instances of the callee).
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_APPLYPLANPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel::hypershard;

static constexpr StringLiteral kName = "hp.name";
static constexpr StringLiteral kPath = "hp.path";
static constexpr StringLiteral kPhase = "hp.phase";
static constexpr StringLiteral kSharding = HyperShardDialect::kShardingAttrName;

/// The part of a training step that a call belongs to; empty: no training.
static StringRef getPhase(func::CallOp call) {
  auto phase = call->getAttrOfType<StringAttr>(kPhase);
  return phase ? phase.getValue() : StringRef();
}

namespace {

/// How an argument is kept, and how it is laid out where it is computed with.
/// Both null: the plan does not speak of it.
struct Placement {
  ShardingAttr store, use;
  bool operator==(const Placement &o) const {
    return store == o.store && use == o.use;
  }
  bool isMoved() const { return store != use; }
};

using Placements = SmallVector<Placement>;

/// A function for one combination of argument placements.
struct Instance {
  func::FuncOp original, function;
  Placements placements;
  /// The instances that its calls call, in walk order.
  SmallVector<unsigned> callees;
};

/// The plan's text, structured but not yet checked against the program.
class PlanReader {
public:
  PlanReader(ModuleOp module, StringRef text) : module(module), text(text) {}

  LogicalResult read();

  /// A sharding over the plan's mesh for a value of that type, or null with an
  /// error that begins with `what`.
  ShardingAttr sharding(const llvm::json::Value *value, Type type,
                        Operation *blame, const Twine &what) const;
  /// The object of that key; an empty one if it is absent.
  const llvm::json::Object &section(StringRef key) const {
    const llvm::json::Object *object = root->getAsObject()->getObject(key);
    return object ? *object : empty;
  }

  StringRef meshName() const { return name; }
  MeshAttr mesh() const { return meshAttr; }

private:
  LogicalResult readMesh();
  InFlightDiagnostic error() const { return module->emitError("plan: "); }

  Operation *module;
  StringRef text;
  std::unique_ptr<llvm::MemoryBuffer> file;
  std::optional<llvm::json::Value> root;
  llvm::json::Object empty;
  std::string name;
  MeshAttr meshAttr;
};

LogicalResult PlanReader::read() {
  StringRef json = text;
  if (json.consume_front("@")) {
    auto buffer = llvm::MemoryBuffer::getFile(json);
    if (!buffer)
      return error() << "cannot read file `" << json
                     << "`: " << buffer.getError().message();
    file = std::move(*buffer);
    json = file->getBuffer();
  }
  if (json.trim().empty())
    return error() << "expected JSON but got nothing; give the option plan";
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(json);
  if (!parsed)
    return error() << "malformed JSON: " << toString(parsed.takeError());
  root = std::move(*parsed);
  const llvm::json::Object *object = root->getAsObject();
  if (!object)
    return error() << "expected a JSON object";
  for (const auto &[key, value] : *object) {
    StringRef keyText = key;
    if (!llvm::is_contained({"mesh", "arguments", "results", "blocks"},
                            keyText))
      return error() << "unknown key `" << keyText
                     << "`; expected mesh, arguments, results or blocks";
    if (!value.getAsObject())
      return error() << "expected an object for `" << keyText << "`";
  }
  return readMesh();
}

LogicalResult PlanReader::readMesh() {
  const llvm::json::Object &object = section("mesh");
  name = object.getString("name").value_or("mesh").str();
  const llvm::json::Array *axes = object.getArray("axes");
  if (!axes)
    return error() << "expected a mesh such as {\"axes\": [[\"dp\", 2]]}";
  MLIRContext *context = module->getContext();
  auto emit = [&] { return error() << "mesh: "; };
  SmallVector<MeshAxisAttr> parts;
  for (const llvm::json::Value &value : *axes) {
    const llvm::json::Array *pair = value.getAsArray();
    auto axis = pair && pair->size() == 2 ? (*pair)[0].getAsString()
                                          : std::optional<StringRef>();
    auto size = axis ? (*pair)[1].getAsInteger() : std::optional<int64_t>();
    if (!size)
      return emit() << "expected an axis such as [\"dp\", 2]";
    auto part = getVerified<MeshAxisAttr>(emit, context, *axis, *size);
    if (!part)
      return failure();
    parts.push_back(part);
  }
  SmallVector<int64_t> ids;
  if (const llvm::json::Array *array = object.getArray("device_ids"))
    for (const llvm::json::Value &value : *array) {
      std::optional<int64_t> id = value.getAsInteger();
      if (!id)
        return emit() << "expected device ids to be whole numbers";
      ids.push_back(*id);
    }
  meshAttr =
      getVerified<MeshAttr>(emit, context, ArrayRef(parts), ArrayRef(ids));
  return success(bool(meshAttr));
}

ShardingAttr PlanReader::sharding(const llvm::json::Value *value, Type type,
                                  Operation *blame, const Twine &what) const {
  std::optional<StringRef> dims =
      value ? value->getAsString() : std::optional<StringRef>();
  if (!dims) {
    blame->emitError() << "plan: " << what
                       << ": expected the text of a sharding";
    return {};
  }
  std::string attrText =
      ("#hypershard.sharding<@" + name + ", " + *dims + ">").str();
  std::string problem;
  Attribute attr;
  {
    // The parser's message has a position in this text, which nobody sees.
    ScopedDiagnosticHandler capture(module->getContext(), [&](Diagnostic &d) {
      if (problem.empty())
        problem = d.str();
      return success();
    });
    attr = parseAttribute(attrText, module->getContext());
  }
  auto sharding = dyn_cast_or_null<ShardingAttr>(attr);
  if (!sharding) {
    blame->emitError() << "plan: " << what << ": `" << *dims
                       << "` is no sharding: " << problem;
    return {};
  }
  auto emit = [&] { return blame->emitError() << "plan: " << what << ": "; };
  if (failed(sharding.verifyAgainst(meshAttr, type, emit)))
    return {};
  return sharding;
}

struct ApplyPlan
    : hyperparallel::hypershard::impl::ApplyPlanPassBase<ApplyPlan> {
  using ApplyPlanPassBase::ApplyPlanPassBase;

  LogicalResult declareMesh(const PlanReader &plan);
  FailureOr<Placements> argumentPlacements(const PlanReader &plan,
                                           func::FuncOp main);
  LogicalResult annotateResults(const PlanReader &plan, func::FuncOp main);
  LogicalResult constrainBlocks(const PlanReader &plan);
  FailureOr<SmallVector<Instance>> decideInstances(func::FuncOp main,
                                                   Placements placements);
  void cloneInstances(MutableArrayRef<Instance> instances);
  void annotate(Instance &instance, ArrayRef<Instance> all);
  void constrainUses(BlockArgument argument, ShardingAttr use);

  void runOnOperation() override;
};

} // namespace

//===----------------------------------------------------------------------===//
// What the plan names
//===----------------------------------------------------------------------===//

LogicalResult ApplyPlan::declareMesh(const PlanReader &plan) {
  ModuleOp module = getOperation();
  if (Operation *old = SymbolTable::lookupSymbolIn(module, plan.meshName())) {
    auto mesh = dyn_cast<MeshOp>(old);
    if (mesh && mesh.getMesh() == plan.mesh())
      return success();
    return old->emitError() << "the plan's mesh @" << plan.meshName()
                            << " has the name of this, which is something else";
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  MeshOp::create(builder, module.getLoc(), plan.meshName(), plan.mesh());
  return success();
}

/// Names that the plan has and the program has not.
static LogicalResult refuseUnknown(const llvm::json::Object &section,
                                   const llvm::StringSet<> &known,
                                   Operation *blame, StringRef what) {
  SmallVector<StringRef> unknown;
  for (const auto &entry : section)
    if (!known.contains(StringRef(entry.first)))
      unknown.push_back(entry.first);
  if (unknown.empty())
    return success();
  llvm::sort(unknown);
  return blame->emitError() << "plan: the program has no " << what << " named `"
                            << unknown.front() << "`";
}

FailureOr<Placements> ApplyPlan::argumentPlacements(const PlanReader &plan,
                                                    func::FuncOp main) {
  const llvm::json::Object &section = plan.section("arguments");
  llvm::StringSet<> known;
  Placements placements(main.getNumArguments());
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto name = main.getArgAttrOfType<StringAttr>(i, kName);
    if (!name)
      continue;
    known.insert(name.getValue());
    const llvm::json::Value *value = section.get(name.getValue());
    if (!value)
      continue;
    const llvm::json::Object *object = value->getAsObject();
    Type type = main.getArgumentTypes()[i];
    std::string what = ("argument `" + name.getValue() + "`").str();
    const llvm::json::Value *store = object ? object->get("store") : nullptr;
    placements[i].store = plan.sharding(store, type, main, what);
    if (!placements[i].store)
      return failure();
    placements[i].use = placements[i].store;
    if (const llvm::json::Value *use = object->get("use"))
      placements[i].use = plan.sharding(use, type, main, what + " in use");
    if (!placements[i].use)
      return failure();
  }
  if (failed(refuseUnknown(section, known, main, "argument")))
    return failure();
  return placements;
}

LogicalResult ApplyPlan::annotateResults(const PlanReader &plan,
                                         func::FuncOp main) {
  const llvm::json::Object &section = plan.section("results");
  llvm::StringSet<> known;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    auto name = main.getResultAttrOfType<StringAttr>(i, kName);
    if (!name)
      continue;
    known.insert(name.getValue());
    const llvm::json::Value *value = section.get(name.getValue());
    if (!value)
      continue;
    ShardingAttr sharding = plan.sharding(value, main.getResultTypes()[i], main,
                                          "result `" + name.getValue() + "`");
    if (!sharding)
      return failure();
    main.setResultAttr(i, kSharding, sharding);
  }
  return refuseUnknown(section, known, main, "result");
}

LogicalResult ApplyPlan::constrainBlocks(const PlanReader &plan) {
  const llvm::json::Object &section = plan.section("blocks");
  llvm::StringSet<> known;
  auto constrain = [&](func::CallOp call) -> LogicalResult {
    auto path = call->getAttrOfType<StringAttr>(kPath);
    const llvm::json::Value *value =
        path ? section.get(path.getValue()) : nullptr;
    if (path)
      known.insert(path.getValue());
    // A plan names what blocks make going forward.
    if (!value || (!getPhase(call).empty() && getPhase(call) != "forward"))
      return success();
    std::string what = ("block `" + path.getValue() + "`").str();
    const llvm::json::Object *results = value->getAsObject();
    if (!results)
      return call.emitError() << "plan: " << what
                              << ": expected an object: result number and "
                                 "sharding";
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(call);
    unsigned numFound = 0;
    for (OpResult result : call.getResults()) {
      const llvm::json::Value *text =
          results->get(std::to_string(result.getResultNumber()));
      if (!text)
        continue;
      ++numFound;
      ShardingAttr sharding = plan.sharding(text, result.getType(), call, what);
      if (!sharding)
        return failure();
      auto constraint = ConstraintOp::create(
          builder, call.getLoc(), result.getType(), result, sharding);
      result.replaceAllUsesExcept(constraint, constraint);
      ++numConstraints;
    }
    if (numFound != results->size())
      return call.emitError()
             << "plan: " << what << ": names a result that the block lacks; it "
             << "has " << call.getNumResults();
    return success();
  };
  WalkResult walked = getOperation().walk([&](func::CallOp call) {
    return failed(constrain(call)) ? WalkResult::interrupt()
                                   : WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return refuseUnknown(section, known, getOperation(), "block");
}

//===----------------------------------------------------------------------===//
// Instances of functions
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Instance>>
ApplyPlan::decideInstances(func::FuncOp main, Placements placements) {
  SymbolTable symbols(getOperation());
  SmallVector<Instance> instances;
  llvm::DenseMap<Operation *, SmallVector<unsigned>> byFunction;
  auto find = [&](func::FuncOp function, Placements &&wanted) -> unsigned {
    SmallVector<unsigned> &known = byFunction[function];
    for (unsigned index : known)
      if (instances[index].placements == wanted)
        return index;
    known.push_back(instances.size());
    instances.push_back({function, function, std::move(wanted), {}});
    return instances.size() - 1;
  };
  find(main, std::move(placements));
  for (unsigned next = 0; next < instances.size(); ++next) {
    func::FuncOp caller = instances[next].original;
    SmallVector<unsigned> callees;
    WalkResult walked = caller.walk([&](func::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee) {
        call.emitError() << "expected a function of the module but got "
                         << call.getCalleeAttr();
        return WalkResult::interrupt();
      }
      Placements wanted(call.getNumOperands());
      for (auto [index, operand] : llvm::enumerate(call.getOperands())) {
        auto argument = dyn_cast<BlockArgument>(operand);
        if (!argument || argument.getOwner() != &caller.getBody().front())
          continue;
        const Placement &mine =
            instances[next].placements[argument.getArgNumber()];
        if (mine.isMoved() && getPhase(call) != "update")
          wanted[index] = mine;
      }
      callees.push_back(find(callee, std::move(wanted)));
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    instances[next].callees = std::move(callees);
  }
  return instances;
}

void ApplyPlan::cloneInstances(MutableArrayRef<Instance> instances) {
  SymbolTable symbols(getOperation());
  llvm::DenseSet<Operation *> taken;
  for (Instance &instance : instances) {
    if (taken.insert(instance.original).second)
      continue;
    func::FuncOp clone = instance.original.clone();
    symbols.insert(clone, std::next(Block::iterator(instance.original)));
    instance.function = clone;
    ++numSpecialised;
  }
}

void ApplyPlan::constrainUses(BlockArgument argument, ShardingAttr use) {
  Block *entry = argument.getOwner();
  SmallVector<OpOperand *> uses;
  Operation *first = nullptr;
  for (OpOperand &operand : argument.getUses()) {
    // A call hands the argument on: the callee has a constraint of its own.
    if (isa<func::CallOp>(operand.getOwner()))
      continue;
    uses.push_back(&operand);
    Operation *ancestor = entry->findAncestorOpInBlock(*operand.getOwner());
    if (!first || ancestor->isBeforeInBlock(first))
      first = ancestor;
  }
  if (uses.empty())
    return;
  OpBuilder builder(first);
  auto constraint = ConstraintOp::create(builder, argument.getLoc(),
                                         argument.getType(), argument, use);
  for (OpOperand *operand : uses)
    operand->set(constraint);
  ++numConstraints;
}

void ApplyPlan::annotate(Instance &instance, ArrayRef<Instance> all) {
  func::FuncOp function = instance.function;
  unsigned next = 0;
  function.walk([&](func::CallOp call) {
    func::FuncOp callee = all[instance.callees[next++]].function;
    call.setCallee(callee.getSymName());
  });
  if (function.isExternal())
    return;
  SmallVector<DictionaryAttr> attrs; // set at once (see withSharding)
  for (BlockArgument argument : function.getArguments()) {
    const Placement &placement = instance.placements[argument.getArgNumber()];
    attrs.push_back(function.getArgAttrDict(argument.getArgNumber()));
    if (!placement.store)
      continue;
    attrs.back() = withSharding(attrs.back(), placement.store);
    if (placement.isMoved())
      constrainUses(argument, placement.use);
  }
  if (!attrs.empty())
    function.setAllArgAttrs(attrs);
}

void ApplyPlan::runOnOperation() {
  ModuleOp module = getOperation();
  PlanReader reader(module, plan);
  if (failed(reader.read()))
    return signalPassFailure();
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal()) {
    module.emitError("expected a function @main with a body");
    return signalPassFailure();
  }
  if (failed(declareMesh(reader)))
    return signalPassFailure();
  FailureOr<Placements> placements = argumentPlacements(reader, main);
  if (failed(placements) || failed(annotateResults(reader, main)) ||
      failed(constrainBlocks(reader)))
    return signalPassFailure();
  FailureOr<SmallVector<Instance>> instances =
      decideInstances(main, std::move(*placements));
  if (failed(instances))
    return signalPassFailure();
  cloneInstances(*instances);
  for (Instance &instance : *instances)
    annotate(instance, *instances);
}
