//===- FormKernels.cpp - Linalg on buffers to kernel functions ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  linalg, memref, scf, func and arith on buffers.
// Contract out: no linalg but contractions for the runtime. Every group of
//   `formKernelGroups` is a call of a private function
//     @kernel(buffers…, scalars…, %begin: index, %end: index)
//   which runs the iterations [begin, end) of the group's outer loops,
//   flattened. A call with `hp.parallel_grain = g` may be cut in pieces of at
//   least g iterations that run at the same time; the program means the same
//   without.
//
//   1. Form groups. Where all members are exhausted by the outer loops, the
//      contiguous one becomes an inner loop, for the vectoriser.
//   2. A buffer that only one group touches, and only at the place of the outer
//      iteration, shrinks to the part of one iteration, on the stack.
//   3. Write the function: arguments are the roots of the buffers; views are
//      made anew inside. Equal kernels are written once.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToKernels/KernelCaptures.h"
#include "lib/Conversion/LinalgToKernels/KernelTable.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_FORMKERNELS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// Stack space of one kernel. Worker threads have the system's default stack.
static constexpr int64_t kMaxStackBytes = 256 * 1024;
/// Estimated nanoseconds of work worth handing to another core.
static constexpr double kGrainNanoseconds = 20000;

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// Estimated nanoseconds of one iteration of the op's body, vectorised.
static double getBodyCost(LinalgOp op) {
  double cost = 0.1;
  op.getBlock()->walk([&](Operation *nested) {
    StringRef name = nested->getName().getStringRef();
    if (isa<memref::LoadOp>(nested))
      cost += 1.0;
    else if (name.starts_with("math."))
      cost += 1.5;
    else if (name == "arith.divf")
      cost += 0.5;
    else
      cost += 0.1;
  });
  return cost;
}

static double getIterationCost(const KernelGroup &group) {
  double cost = 5;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    double iterations = 1;
    for (auto [loop, extent] : llvm::enumerate(op.getStaticLoopRanges()))
      if (!llvm::is_contained(member.outer, loop))
        iterations *= ShapedType::isDynamic(extent) ? 1024 : extent;
    cost += iterations * getBodyCost(op);
  }
  return cost;
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

/// Leaves an inner loop for the vectoriser where the outer loops take all.
static void demoteContiguousLoop(KernelGroup &group) {
  if (group.getNumOuterLoops() < 2)
    return;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    if (op.getNumLoops() != member.outer.size())
      return;
  }
  const KernelMember &last = group.members.back();
  unsigned contiguous = getInnermostLoop(last.op);
  size_t position = llvm::find(last.outer, contiguous) - last.outer.begin();
  for (KernelMember &member : group.members)
    member.outer.erase(member.outer.begin() + position);
}

//===----------------------------------------------------------------------===//
// Writing one kernel
//===----------------------------------------------------------------------===//

namespace {
class KernelWriter {
public:
  KernelWriter(ModuleOp module, KernelGroup &group, StringRef name)
      : group(group), name(name), context(module.getContext()),
        builder(context), loc(group.members.back().op.getLoc()),
        callSite(group.members.back().op) {}

  func::FuncOp write();
  /// Arguments of the call, without begin and end.
  ArrayRef<Value> getCaptures() const { return captures->getValues(); }
  /// Flat number of outer iterations, at the call site.
  Value getIterationCount();
  ArrayRef<memref::AllocOp> getLocalBuffers() const { return localBuffers; }

private:
  void placeLocalBuffers();
  BufferAccess getBuffer(Value outside);
  Value outerExtent(size_t t, OpBuilder &at);
  void writeLoops(Value begin, Value end);

  KernelGroup &group;
  StringRef name;
  MLIRContext *context;
  OpBuilder builder;
  Location loc;
  OpBuilder callSite;
  func::FuncOp function;
  std::optional<KernelCaptures> captures;
  SmallVector<memref::AllocOp> localBuffers;
  DenseMap<Value, BufferAccess> local;
};
} // namespace

void KernelWriter::placeLocalBuffers() {
  int64_t used = 0;
  SmallVector<LocalBuffer> found = findLocalBuffers(group);
  for (LocalBuffer &buffer : found) {
    if (used + buffer.bytes > kMaxStackBytes)
      continue;
    used += buffer.bytes;
    Value place = memref::AllocaOp::create(builder, loc, buffer.type,
                                           builder.getI64IntegerAttr(64));
    local[buffer.alloc.getResult()] = {place, buffer.fixed};
    localBuffers.push_back(buffer.alloc);
  }
}

BufferAccess KernelWriter::getBuffer(Value outside) {
  if (auto it = local.find(outside); it != local.end())
    return it->second;
  return {captures->getMapping().lookup(outside), {}};
}

/// Extent of the t-th outer loop; `at` is the kernel or the call site.
Value KernelWriter::outerExtent(size_t t, OpBuilder &at) {
  const KernelMember &member = group.members.front();
  LinalgOp op = member.op;
  unsigned loop = member.outer[t];
  int64_t extent = op.getStaticLoopRanges()[loop];
  if (!ShapedType::isDynamic(extent))
    return arith::ConstantIndexOp::create(at, loc, extent);
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (expr == getAffineDimExpr(loop, context))
        return memref::DimOp::create(
            at, loc,
            &at == &builder ? captures->getMapping().lookup(operand.get())
                            : operand.get(),
            position);
  }
  llvm_unreachable("linalg verifies that every loop bounds some operand");
}

Value KernelWriter::getIterationCount() {
  Value count = arith::ConstantIndexOp::create(callSite, loc, 1);
  for (size_t t = 0; t < group.getNumOuterLoops(); ++t)
    count = callSite.createOrFold<arith::MulIOp>(loc, count,
                                                 outerExtent(t, callSite));
  return count;
}

void KernelWriter::writeLoops(Value begin, Value end) {
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  size_t numOuter = group.getNumOuterLoops();
  SmallVector<Value> extents;
  for (size_t t = 0; t < numOuter; ++t)
    extents.push_back(outerExtent(t, builder));
  auto loop = scf::ForOp::create(builder, loc, begin, end, one);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  SmallVector<Value> variables(numOuter);
  Value rest = loop.getInductionVar();
  for (size_t t = numOuter; t-- > 0;) {
    if (t == 0) {
      variables[t] = rest;
      break;
    }
    variables[t] = arith::RemUIOp::create(builder, loc, rest, extents[t]);
    rest = arith::DivUIOp::create(builder, loc, rest, extents[t]);
  }
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    LoopNestContext nest;
    nest.outerVariables.resize(op.getNumLoops());
    for (auto [loopNumber, variable] : llvm::zip_equal(member.outer, variables))
      nest.outerVariables[loopNumber] = variable;
    nest.mapping = &captures->getMapping();
    auto lookup = [&](Value value) { return getBuffer(value); };
    nest.getBuffer = lookup;
    buildLoopNest(builder, op, nest);
  }
}

func::FuncOp KernelWriter::write() {
  function = func::FuncOp::create(loc, name, builder.getFunctionType({}, {}));
  function.setPrivate();
  builder.setInsertionPointToStart(function.addEntryBlock());
  captures.emplace(function, builder, callSite, loc);
  placeLocalBuffers();
  captures->captureOperands(group,
                            [&](Value value) { return local.contains(value); });
  Block &entry = function.front();
  Value begin = entry.addArgument(builder.getIndexType(), loc);
  Value end = entry.addArgument(builder.getIndexType(), loc);
  writeLoops(begin, end);
  func::ReturnOp::create(builder, loc);
  function.setType(builder.getFunctionType(entry.getArgumentTypes(), {}));
  function->setAttr("hp.kernel", builder.getUnitAttr());

  captures->markDistinctBuffers();
  return function;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct FormKernelsPass : impl::FormKernelsBase<FormKernelsPass> {
  void runOnOperation() override;
  void rewriteGroup(KernelGroup &group, StringRef parentName,
                    KernelTable &kernels);
};
} // namespace

void FormKernelsPass::rewriteGroup(KernelGroup &group, StringRef parentName,
                                   KernelTable &kernels) {
  demoteContiguousLoop(group);
  std::string name = (parentName + "_kernel").str();
  KernelWriter writer(getOperation(), group, name);
  auto [kernel, isNew] = kernels.insert(writer.write());
  (isNew ? numKernels : numShared) += 1;

  LinalgOp last = group.members.back().op;
  OpBuilder builder(last);
  Location loc = last.getLoc();
  Value count = writer.getIterationCount();
  SmallVector<Value> arguments = llvm::to_vector(writer.getCaptures());
  arguments.push_back(arith::ConstantIndexOp::create(builder, loc, 0));
  arguments.push_back(count);
  auto call = func::CallOp::create(builder, loc, kernel, arguments);

  int64_t grain = std::max<int64_t>(
      1, int64_t(kGrainNanoseconds / getIterationCost(group)));
  IntegerAttr constant;
  bool isSmall =
      matchPattern(count, m_Constant(&constant)) && constant.getInt() <= grain;
  if (!isSmall)
    call->setAttr("hp.parallel_grain", builder.getI64IntegerAttr(grain));

  numFused += group.members.size() - 1;
  for (KernelMember &member : group.members)
    member.op->erase();
  for (memref::AllocOp alloc : writer.getLocalBuffers()) {
    alloc->erase();
    ++numLocalBuffers;
  }
}

void FormKernelsPass::runOnOperation() {
  if (failed(verifyOnBuffers(getOperation())))
    return signalPassFailure();
  KernelTable kernels(getOperation());
  for (func::FuncOp function : getProgramFunctions(getOperation())) {
    writeCopiesAsLinalg(function);
    for (Block *block : getKernelBlocks(function))
      for (KernelGroup &group : formKernelGroups(*block))
        rewriteGroup(group, function.getSymName(), kernels);
  }
}

} // namespace mlir::hyperparallel
