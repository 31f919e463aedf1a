//===- PhaseContracts.cpp - what holds after each phase -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Each check is linear in the program. A check that fails after a pass of ours
// is a bug of ours, and its message says what is wrong where; after import it
// is the input that is at fault, and the note says what to do.
//===----------------------------------------------------------------------===//
#include "lib/Pipelines/PhaseContracts.h"

#include "dialects/HyperShard/HyperShard.h"
#include "lib/Analysis/FactorSharding.h"
#include "lib/Analysis/ProgramLayouts.h"
#include "lib/Analysis/StateUpdates.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_VERIFYIMPORTEDPASS
#define GEN_PASS_DEF_VERIFYPROPAGATEDPASS
#define GEN_PASS_DEF_VERIFYRESHARDEDPASS
#define GEN_PASS_DEF_VERIFYPARTITIONEDPASS
#include "lib/Pipelines/PhaseContracts.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

//===----------------------------------------------------------------------===//
// After import
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kRoles[] = {"input", "parameter", "buffer",
                                           "optimizer", "cache"};
static constexpr StringLiteral kDialects[] = {
    "builtin", "func", "linalg",     "tensor",   "arith",    "math",
    "scf",     "cf",   "hypershard", "indexing", "supernode"};

static LogicalResult verifyArgument(func::FuncOp entry, unsigned index,
                                    llvm::StringSet<> &names) {
  auto name = entry.getArgAttrOfType<StringAttr>(index, "hp.name");
  if (Attribute attr = entry.getArgAttr(index, "hp.role")) {
    auto role = dyn_cast<StringAttr>(attr);
    if (!role || !llvm::is_contained(kRoles, role.getValue()))
      return entry.emitError("expected hp.role of argument ")
             << index
             << " to be input, parameter, buffer, optimizer or cache but got "
             << attr;
    if (!name)
      return entry.emitError("expected argument ")
             << index << " with hp.role " << role << " to have an hp.name";
  }
  if (name && !names.insert(name.getValue()).second)
    return entry.emitError("expected arguments of different names but got ")
           << name << " twice";
  return success();
}

/// Results that are next values of arguments.
static LogicalResult verifyUpdates(func::FuncOp entry) {
  llvm::StringSet<> updated;
  SmallVector<std::optional<unsigned>> arguments = getUpdatedArguments(entry);
  for (unsigned i = 0; i < entry.getNumResults(); ++i) {
    auto name = entry.getResultAttrOfType<StringAttr>(i, kUpdatesAttrName);
    if (!name)
      continue;
    if (!arguments[i])
      return entry.emitError("expected hp.updates of result ")
             << i << " to be the hp.name of an argument but got " << name;
    Type type = entry.getArgumentTypes()[*arguments[i]];
    if (type != entry.getResultTypes()[i])
      return entry.emitError("expected result ")
             << i << " to have the type of the argument " << name
             << " that it updates, " << type << ", but got "
             << entry.getResultTypes()[i];
    if (!updated.insert(name.getValue()).second)
      return entry.emitError("expected one next value of the argument ")
             << name << " but got two";
  }
  return success();
}

/// Sizes in bytes, and sums of some, are counted in 64 bits.
static bool isTooLarge(RankedTensorType type) {
  double elements = 1;
  for (int64_t size : type.getShape())
    elements *= size;
  return elements >= 0x1p53;
}

static LogicalResult verifyTypes(Operation *op) {
  auto isDynamic = [](Type type) {
    auto tensor = dyn_cast<TensorType>(type);
    return tensor && !(tensor.hasRank() && tensor.hasStaticShape());
  };
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (isDynamic(type)) {
        InFlightDiagnostic error =
            op->emitError("expected tensors of static shape but got ") << type;
        error.attachNote() << "import the model with fixed example shapes";
        return error;
      } else if (auto tensor = dyn_cast<RankedTensorType>(type);
                 tensor && isTooLarge(tensor)) {
        return op->emitError("expected tensors of less than 2^53 elements but "
                             "got ")
               << type;
      } else if (auto tensor = dyn_cast<RankedTensorType>(type);
                 tensor && !tensor.getElementType().isIntOrIndexOrFloat()) {
        InFlightDiagnostic error =
            op->emitError("expected tensors of numbers but got ") << type;
        error.attachNote()
            << "write real and imaginary parts as tensors of their own";
        return error;
      }
  return success();
}

static LogicalResult verifyOp(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (!op->isRegistered() || !llvm::is_contained(kDialects, dialect)) {
    InFlightDiagnostic error =
        op->emitError("expected a program of func, linalg, tensor, arith, math "
                      "and scf but got `")
        << op->getName() << '`';
    error.attachNote() << "lower it to linalg on tensors first";
    return error;
  }
  if (dialect == "cf" && !isa<cf::AssertOp>(op)) {
    InFlightDiagnostic error = op->emitError("expected structured control flow "
                                             "but got `")
                               << op->getName() << '`';
    error.attachNote() << "lift it with --lift-cf-to-scf";
    return error;
  }
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    for (int64_t size :
         llvm::concat<const int64_t>(pad.getStaticLow(), pad.getStaticHigh()))
      if (size < 0 && !ShapedType::isDynamic(size)) {
        InFlightDiagnostic error =
            op->emitError("expected padding of at least 0 but got ") << size;
        error.attachNote() << "cut with tensor.extract_slice instead";
        return error;
      }
  return verifyTypes(op);
}

/// An argument that is k steps old takes the next value of one that is k - 1
/// steps old, or, for k = 1, what this step makes.
static LogicalResult verifyStaleness(func::FuncOp main) {
  if (main.isExternal())
    return success();
  auto staleness = [&](Value value) -> std::optional<int64_t> {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &main.getBody().front())
      return std::nullopt;
    auto age = main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                  "hp.staleness");
    return age ? std::optional(age.getInt()) : std::nullopt;
  };
  std::vector<Value> next(main.getNumArguments());
  auto end = dyn_cast<func::ReturnOp>(main.getBody().back().getTerminator());
  for (auto [index, updated] : llvm::enumerate(getUpdatedArguments(main)))
    if (end && updated)
      next[*updated] = end.getOperand(index);
  for (BlockArgument argument : main.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!main.getArgAttr(index, "hp.staleness"))
      continue;
    auto name = main.getArgAttrOfType<StringAttr>(index, "hp.name");
    std::optional<int64_t> age = staleness(argument);
    if (!name || !age || *age < 1)
      return main.emitError("expected hp.staleness of argument ")
             << index << " to be a number of steps of at least 1, on an "
             << "argument with hp.name";
    if (!next[index])
      return main.emitError("expected a result to update the argument ")
             << name << ", which is to be " << *age << " steps old";
    int64_t given = staleness(next[index]).value_or(0);
    if (given != *age - 1)
      return main.emitError("expected the argument ")
             << name << ", which is to be " << *age
             << " steps old, to take a value that is " << *age - 1
             << " steps old but got one of " << given;
  }
  return success();
}

namespace {
struct VerifyImportedPass final
    : mlir::hyperparallel::impl::VerifyImportedPassBase<VerifyImportedPass> {
  using Base::Base;

  LogicalResult verify() {
    auto main = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!main)
      return getOperation().emitError("expected a function @") << entry;
    llvm::StringSet<> names;
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (failed(verifyArgument(main, i, names)))
        return failure();
    if (failed(verifyUpdates(main)) || failed(verifyStaleness(main)))
      return failure();
    WalkResult result = getOperation().walk([](Operation *op) {
      return failed(verifyOp(op)) ? WalkResult::interrupt()
                                  : WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  void runOnOperation() override {
    if (failed(verify()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// After propagation
//===----------------------------------------------------------------------===//

static LogicalResult verifyClosed(Operation *op, Attribute attr,
                                  const Twine &what) {
  auto sharding = dyn_cast_or_null<ShardingAttr>(attr);
  if (!sharding)
    return op->emitError() << what << " has no sharding";
  for (DimShardingAttr dim : sharding.getDims())
    if (dim.getIsOpen() || dim.getPriority() != 0)
      return op->emitError()
             << what << " has a sharding that is not closed: " << sharding;
  return success();
}

static LogicalResult verifyFunctionShardings(FunctionOpInterface function) {
  StringRef name = HyperShardDialect::kShardingAttrName;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (isa<RankedTensorType>(type) && !function.isExternal() &&
        failed(verifyClosed(function, function.getArgAttr(index, name),
                            "argument " + Twine(index))))
      return failure();
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (isa<RankedTensorType>(type) && !function.isExternal() &&
        failed(verifyClosed(function, function.getResultAttr(index, name),
                            "result " + Twine(index))))
      return failure();
  return success();
}

namespace {
struct VerifyPropagatedPass final
    : mlir::hyperparallel::impl::VerifyPropagatedPassBase<
          VerifyPropagatedPass> {
  void runOnOperation() override {
    bool isValid = true;
    walkTensorOps(getOperation(), [&](Operation *op) {
      if (auto function = dyn_cast<FunctionOpInterface>(op))
        isValid &= succeeded(verifyFunctionShardings(function));
      for (OpResult result : op->getResults())
        if (isa<RankedTensorType>(result.getType()))
          isValid &= succeeded(
              verifyClosed(op, hypershard::getSharding(result),
                           "result " + Twine(result.getResultNumber())));
    });
    if (!isValid)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// After resharding
//===----------------------------------------------------------------------===//

/// Ops whose tensors are tied by edges or by their own verifier.
static bool hasNoRule(Operation *op) {
  return isa<RegionBranchOpInterface, CallOpInterface, FunctionOpInterface,
             ModuleOp, ManualOp>(op) ||
         op->hasTrait<OpTrait::IsTerminator>() ||
         isa_and_nonnull<HyperShardDialect>(op->getDialect());
}

static LogicalResult verifyRule(Operation *op, const ProgramLayouts &layouts) {
  if (isa<ConstraintOp, BarrierOp, ReshardOp>(op))
    return op->emitError("expected no annotation to be left after resharding");
  if (hasNoRule(op))
    return success();
  ShardingRule rule = getShardingRule(op);
  if (inferFactorAxes(rule,
                      [&](Value value) { return layouts.layoutOf(value); }))
    return success();
  InFlightDiagnostic error =
      op->emitError("the shardings of its operands and results do not fit its "
                    "sharding rule: ");
  std::string text;
  llvm::raw_string_ostream os(text);
  rule.print(os);
  error << text;
  return error;
}

static LogicalResult verifyEdge(const DataFlowEdge &edge,
                                const ProgramLayouts &layouts) {
  ShardingAttr sharding = layouts.shardingOf(edge);
  if (!sharding)
    return success();
  TensorLayout expected = TensorLayout::fromAttr(sharding, layouts.mesh());
  for (OpOperand *source : edge.sources)
    if (layouts.layoutOf(source->get()) != expected)
      return source->getOwner()->emitError("operand ")
             << source->getOperandNumber() << " is to become " << sharding
             << " but is " << layouts.shardingOf(source->get());
  return success();
}

namespace {
struct VerifyReshardedPass final
    : mlir::hyperparallel::impl::VerifyReshardedPassBase<VerifyReshardedPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<MeshOp> mesh = getOnlyMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    ProgramLayouts layouts(getOperation(), MeshAxes(mesh->getMesh()));
    bool isValid = true;
    walkTensorOps(getOperation(), [&](Operation *op) {
      isValid &= succeeded(verifyRule(op, layouts));
    });
    for (const DataFlowEdge &edge : layouts.edges())
      isValid &= succeeded(verifyEdge(edge, layouts));
    if (!isValid)
      signalPassFailure();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// After partition
//===----------------------------------------------------------------------===//

static LogicalResult verifyLocal(Operation *op) {
  StringRef name = HyperShardDialect::kShardingAttrName;
  if (op->hasAttr(name))
    return op->emitError("expected no sharding to be left after partition");
  if (isa<ConstraintOp, BarrierOp, ReshardOp, ManualOp>(op))
    return op->emitError("expected a local program");
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (function.getArgAttr(i, name))
      return op->emitError("expected no sharding to be left on argument ") << i;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (function.getResultAttr(i, name))
      return op->emitError("expected no sharding to be left on result ") << i;
  return success();
}

namespace {
struct VerifyPartitionedPass final
    : mlir::hyperparallel::impl::VerifyPartitionedPassBase<
          VerifyPartitionedPass> {
  void runOnOperation() override {
    bool isValid = true;
    getOperation().walk(
        [&](Operation *op) { isValid &= succeeded(verifyLocal(op)); });
    if (!isValid)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
