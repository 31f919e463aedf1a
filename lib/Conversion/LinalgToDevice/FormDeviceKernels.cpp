//===- FormDeviceKernels.cpp - Linalg on buffers to kernels of a device ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  linalg, memref, scf, func and arith on buffers; static loops.
// Contract out: no linalg but contractions. Every group of `formKernelGroups`
//   is a call of a private function @kernel(buffers…, scalars…) that carries
//   `hp.kernel` and `hp.geometry = [blocks, threads]`, and means what all
//   threads of all blocks do together.
//
//   1. A constant that something other than a kernel reads is copied to a
//      buffer of the device.
//   2. How a group runs is decided by its loops:
//        elements   every loop of every member is parallel and shared: a thread
//                   does 16 bytes' worth of neighbours, so that the accesses of
//                   a warp are contiguous and vectors;
//        columns    one op that reduces along other than the contiguous loop: a
//                   thread does one result;
//        rows       a block does one iteration of the outer loops, and its
//                   threads share the innermost loop of each member (LoopNest);
//        serial     a thread does one iteration of the outer loops. For what
//                   has no single combiner, such as argmax.
//   3. A buffer that only the group touches, within one iteration of the outer
//      loops, becomes registers, or in rows shared memory. So does what several
//      members of a row read: it is fetched once.
//   4. Equal kernels are written once.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToDevice/DeviceThreads.h"
#include "lib/Conversion/LinalgToKernels/KernelCaptures.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_FORMDEVICEKERNELS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

static constexpr int64_t kThreadsOfElements = 256;
static constexpr int64_t kMostThreads = 1024;
/// Elements of a row that a thread should have, before a block has more
/// threads.
static constexpr int64_t kElementsOfRow = 4;
static constexpr int64_t kVectorBytes = 16;
/// Bytes of one iteration's buffers that a thread keeps to itself.
static constexpr int64_t kMostPrivateBytes = 1024;

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

namespace {
enum class Manner { Elements, Columns, Rows, Serial };

struct DevicePlan {
  Manner manner = Manner::Serial;
  int64_t iterations = 1; ///< of the outer loops
  int64_t vector = 1; ///< elements of the last outer loop that a thread does
  int64_t blocks = 1, threads = 1;
};
} // namespace

static bool isElementwise(const KernelMember &member) {
  LinalgOp op = member.op;
  return op.getNumLoops() == member.outer.size();
}

/// The loop that a row's threads share, if it is not among the outer ones.
static std::optional<unsigned> getSharedLoop(const KernelMember &member) {
  LinalgOp op = member.op;
  if (op.getNumLoops() == member.outer.size())
    return std::nullopt;
  unsigned innermost = getInnermostLoop(op);
  if (llvm::is_contained(member.outer, innermost))
    return std::nullopt;
  return innermost;
}

static bool canShareRow(const KernelMember &member) {
  std::optional<unsigned> loop = getSharedLoop(member);
  LinalgOp op = member.op;
  if (!loop || linalg::isParallelIterator(op.getIteratorTypesArray()[*loop]))
    return true;
  for (unsigned result = 0; result < op.getNumDpsInits(); ++result)
    if (!getCombiner(op, result))
      return false;
  return true;
}

/// The elements a thread takes at once: as many as make a vector of the
/// smallest type, if the last outer loop is the contiguous one and divides.
static int64_t getVectorLength(const KernelGroup &group) {
  int64_t bytes = kVectorBytes, extent = 0;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    if (member.outer.empty() || getInnermostLoop(op) != member.outer.back())
      return 1;
    extent = op.getStaticLoopRanges()[member.outer.back()];
    for (Value operand : op->getOperands())
      if (auto type = dyn_cast<MemRefType>(operand.getType()))
        bytes = std::min(bytes, getElementBytes(type.getElementType()));
  }
  int64_t length = std::min<int64_t>(kVectorBytes / bytes, 8);
  while (length > 1 && extent % length != 0)
    length /= 2;
  return length;
}

/// Gives a lone op that reduces along other than the contiguous loop all its
/// parallel loops as outer ones.
static bool spreadColumns(KernelGroup &group) {
  if (group.members.size() != 1)
    return false;
  KernelMember &member = group.members.front();
  LinalgOp op = member.op;
  auto iterators = op.getIteratorTypesArray();
  if (op.getNumReductionLoops() == 0 ||
      !linalg::isParallelIterator(iterators[getInnermostLoop(op)]))
    return false;
  SmallVector<unsigned> outer;
  for (unsigned loop = 0; loop < iterators.size(); ++loop)
    if (linalg::isParallelIterator(iterators[loop]))
      outer.push_back(loop);
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    for (unsigned loop : outer)
      if (!llvm::is_contained(map.getResults(),
                              getAffineDimExpr(loop, map.getContext())))
        return false;
  }
  member.outer = std::move(outer);
  return true;
}

static DevicePlan decide(KernelGroup &group) {
  DevicePlan plan;
  if (llvm::all_of(group.members, isElementwise)) {
    plan.manner = Manner::Elements;
    plan.vector = getVectorLength(group);
  } else if (spreadColumns(group)) {
    plan.manner = Manner::Columns;
  } else if (llvm::all_of(group.members, canShareRow)) {
    plan.manner = Manner::Rows;
  }
  const KernelMember &first = group.members.front();
  LinalgOp firstOp = first.op;
  SmallVector<int64_t> extents = firstOp.getStaticLoopRanges();
  for (unsigned loop : first.outer)
    plan.iterations *= extents[loop];
  if (plan.manner == Manner::Rows) {
    int64_t widest = 1;
    for (const KernelMember &member : group.members)
      if (std::optional<unsigned> loop = getSharedLoop(member)) {
        LinalgOp op = member.op;
        widest = std::max(widest, op.getStaticLoopRanges()[*loop]);
      }
    plan.threads = kWarp;
    while (plan.threads < kMostThreads &&
           plan.threads * kElementsOfRow < widest)
      plan.threads *= 2;
    plan.blocks = plan.iterations;
    return plan;
  }
  int64_t needed = plan.iterations / plan.vector;
  plan.threads =
      plan.manner == Manner::Elements ? kThreadsOfElements : 4 * kWarp;
  while (plan.threads > kWarp && plan.threads / 2 >= needed)
    plan.threads /= 2;
  plan.blocks = (needed + plan.threads - 1) / plan.threads;
  return plan;
}

/// The loops of all members must be known, and small enough to count in 32
/// bits.
static LogicalResult checkLoops(const KernelGroup &group) {
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    int64_t outer = 1;
    for (auto [loop, extent] : llvm::enumerate(op.getStaticLoopRanges())) {
      if (ShapedType::isDynamic(extent))
        return op.emitError("expected loops of static extent for a kernel of "
                            "the device but got one of unknown extent");
      if (llvm::is_contained(member.outer, loop))
        outer *= extent;
      if (outer > std::numeric_limits<int32_t>::max())
        return op.emitError("expected at most 2147483647 iterations for a "
                            "kernel of the device but got more");
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Writing one kernel
//===----------------------------------------------------------------------===//

namespace {
class DeviceKernelWriter {
public:
  DeviceKernelWriter(ModuleOp module, KernelGroup &group,
                     const DevicePlan &plan, StringRef name)
      : group(group), plan(plan), name(name), builder(module.getContext()),
        loc(group.members.back().op.getLoc()),
        callSite(group.members.back().op), threads(module, loc, plan.threads) {}

  func::FuncOp write();
  ArrayRef<Value> getCaptures() const { return captures->getValues(); }
  ArrayRef<memref::AllocOp> getLocalBuffers() const { return localBuffers; }

private:
  void placeLocalBuffers();
  BufferAccess getBuffer(Value outside);
  SmallVector<Value> splitNumber(Value number);
  void writeMembers(ArrayRef<Value> variables);
  void writeElements();
  void writeRow();
  void unmarkExchanged();
  Value toIndex(Value number) {
    return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                        number);
  }
  Value i32(int64_t value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getI32IntegerAttr(value));
  }

  KernelGroup &group;
  const DevicePlan &plan;
  StringRef name;
  OpBuilder builder;
  Location loc;
  OpBuilder callSite;
  DeviceThreads threads;
  func::FuncOp function;
  std::optional<KernelCaptures> captures;
  SmallVector<memref::AllocOp> localBuffers;
  DenseMap<Value, BufferAccess> local;
};
} // namespace

static int64_t getBytes(MemRefType type) {
  return type.getNumElements() * getElementBytes(type.getElementType());
}

void DeviceKernelWriter::placeLocalBuffers() {
  bool isRow = plan.manner == Manner::Rows;
  int64_t most = isRow ? kSharedBytes - 1024 : kMostPrivateBytes, used = 0;
  SetVector<Value> candidates;
  for (const KernelMember &member : group.members)
    for (Value operand : member.op->getOperands())
      if (operand.getDefiningOp<memref::AllocOp>())
        candidates.insert(operand);
  for (Value candidate : candidates) {
    auto alloc = candidate.getDefiningOp<memref::AllocOp>();
    auto fixed = getFixedPositions(alloc, group);
    MemRefType type = alloc.getType();
    if (!fixed || !type.getElementType().isIntOrIndexOrFloat())
      continue;
    SmallVector<int64_t> shape;
    for (auto [size, isFixed] : llvm::zip_equal(type.getShape(), *fixed))
      if (!isFixed)
        shape.push_back(size);
    auto localType = MemRefType::get(shape, type.getElementType());
    int64_t bytes = (getBytes(localType) + 15) / 16 * 16;
    if (used + bytes > most)
      continue;
    Value buffer;
    if (isRow) {
      // Kernels of one program take the same memory, each in its turn.
      std::string shared = "hp_shared_" + std::to_string(used) + "_";
      llvm::raw_string_ostream stream(shared);
      stream << type.getElementType();
      for (int64_t size : shape)
        stream << "x" << size;
      buffer = threads.sharedBuffer(builder, shared, localType);
    } else {
      buffer = memref::AllocaOp::create(builder, loc, localType,
                                        builder.getI64IntegerAttr(16));
    }
    used += bytes;
    local[candidate] = {buffer, *fixed};
    localBuffers.push_back(alloc);
  }
}

BufferAccess DeviceKernelWriter::getBuffer(Value outside) {
  if (auto it = local.find(outside); it != local.end())
    return it->second;
  return {captures->getMapping().lookup(outside), {}};
}

/// The outer loops' variables of iteration `number` (i32), of which the last
/// loop is divided by the vector's length.
SmallVector<Value> DeviceKernelWriter::splitNumber(Value number) {
  const KernelMember &first = group.members.front();
  LinalgOp op = first.op;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<Value> variables(first.outer.size());
  for (size_t t = first.outer.size(); t-- > 0;) {
    int64_t extent = extents[first.outer[t]];
    if (t + 1 == first.outer.size())
      extent /= plan.vector;
    if (t == 0) {
      variables[t] = toIndex(number);
      break;
    }
    variables[t] =
        toIndex(arith::RemUIOp::create(builder, loc, number, i32(extent)));
    number = arith::DivUIOp::create(builder, loc, number, i32(extent));
  }
  return variables;
}

void DeviceKernelWriter::writeMembers(ArrayRef<Value> variables) {
  bool isRow = plan.manner == Manner::Rows;
  LoopDistribution distribution;
  auto reduce = [&](OpBuilder &at, Operation *combiner, Value partial) {
    return threads.reduce(at, combiner, partial);
  };
  distribution.reduce = reduce;
  distribution.numThreads = plan.threads;
  if (isRow)
    distribution.thread = toIndex(threads.threadNumber(builder));
  for (auto [number, member] : llvm::enumerate(group.members)) {
    if (isRow && number > 0)
      threads.barrier(builder);
    LinalgOp op = member.op;
    LoopNestContext nest;
    nest.outerVariables.resize(op.getNumLoops());
    for (auto [loop, variable] : llvm::zip_equal(member.outer, variables))
      nest.outerVariables[loop] = variable;
    nest.mapping = &captures->getMapping();
    auto lookup = [&](Value value) { return getBuffer(value); };
    nest.getBuffer = lookup;
    if (isRow)
      nest.distribution = &distribution;
    buildLoopNest(builder, op, nest);
  }
}

void DeviceKernelWriter::writeRow() {
  writeMembers(splitNumber(threads.blockNumber(builder)));
}

/// One iteration a thread, or a vector of them.
void DeviceKernelWriter::writeElements() {
  Value block = threads.blockNumber(builder);
  Value thread = threads.threadNumber(builder);
  Value number = arith::AddIOp::create(
      builder, loc,
      arith::MulIOp::create(builder, loc, block, i32(plan.threads)), thread);
  int64_t needed = plan.iterations / plan.vector;
  OpBuilder::InsertionGuard guard(builder);
  if (needed % plan.threads != 0) {
    Value isInside = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, number, i32(needed));
    auto branch = scf::IfOp::create(builder, loc, isInside);
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  }
  SmallVector<Value> variables = splitNumber(number);
  if (plan.vector == 1)
    return writeMembers(variables);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto noWrap = arith::IntegerOverflowFlagsAttr::get(
      builder.getContext(),
      arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw);
  Value first = arith::MulIOp::create(builder, loc, variables.back(),
                                      constant(plan.vector), noWrap);
  auto loop = scf::ForOp::create(builder, loc, constant(0),
                                 constant(plan.vector), constant(1));
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  variables.back() = arith::AddIOp::create(builder, loc, first,
                                           loop.getInductionVar(), noWrap);
  writeMembers(variables);
}

func::FuncOp DeviceKernelWriter::write() {
  function = func::FuncOp::create(loc, name, builder.getFunctionType({}, {}));
  function.setPrivate();
  builder.setInsertionPointToStart(function.addEntryBlock());
  captures.emplace(function, builder, callSite, loc);
  placeLocalBuffers();
  captures->captureOperands(group,
                            [&](Value value) { return local.contains(value); });
  if (plan.manner == Manner::Rows)
    writeRow();
  else
    writeElements();
  func::ReturnOp::create(builder, loc);
  function.setType(
      builder.getFunctionType(function.front().getArgumentTypes(), {}));
  function->setAttr("hp.kernel", builder.getUnitAttr());
  function->setAttr("hp.geometry",
                    builder.getDenseI64ArrayAttr({plan.blocks, plan.threads}));
  captures->markDistinctBuffers();
  if (plan.manner == Manner::Rows)
    unmarkExchanged();
  return function;
}

/// What one thread of a row writes, another reads: to LLVM, such a buffer must
/// not be one that nobody else touches, or it would carry loads over barriers.
void DeviceKernelWriter::unmarkExchanged() {
  SmallVector<Value> written;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    for (Value init : op.getDpsInits())
      written.push_back(getBufferRoot(init));
  }
  for (auto [number, captured] : llvm::enumerate(captures->getValues()))
    if (isa<MemRefType>(captured.getType()) &&
        llvm::is_contained(written, getBufferRoot(captured)))
      function.removeArgAttr(number, LLVM::LLVMDialect::getNoAliasAttrName());
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct FormDeviceKernelsPass
    : impl::FormDeviceKernelsBase<FormDeviceKernelsPass> {
  void runOnOperation() override;
  LogicalResult rewriteGroup(KernelGroup &group, StringRef parentName,
                             SymbolTable &symbols);

  /// Printed kernel (without its name) to the function that holds it.
  llvm::StringMap<func::FuncOp> known;
};
} // namespace

static std::string printWithoutName(func::FuncOp function) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  Attribute name = function.getSymNameAttr();
  function.setSymName("kernel");
  function->print(stream, OpPrintingFlags().useLocalScope());
  function.setSymNameAttr(cast<StringAttr>(name));
  return text;
}

LogicalResult FormDeviceKernelsPass::rewriteGroup(KernelGroup &group,
                                                  StringRef parentName,
                                                  SymbolTable &symbols) {
  if (failed(checkLoops(group)))
    return failure();
  DevicePlan plan = decide(group);
  std::string name = (parentName + "_kernel").str();
  DeviceKernelWriter writer(getOperation(), group, plan, name);
  func::FuncOp kernel = writer.write();
  auto [entry, isNew] = known.try_emplace(printWithoutName(kernel), kernel);
  if (isNew) {
    symbols.insert(kernel);
    ++numKernels;
    (plan.manner == Manner::Elements  ? numElements
     : plan.manner == Manner::Columns ? numColumns
     : plan.manner == Manner::Rows    ? numRows
                                      : numSerial) += 1;
  } else {
    kernel->destroy();
    kernel = entry->second;
    ++numShared;
  }
  LinalgOp last = group.members.back().op;
  OpBuilder builder(last);
  if (plan.iterations > 0)
    func::CallOp::create(builder, last.getLoc(), kernel, writer.getCaptures());
  for (KernelMember &member : group.members)
    member.op->erase();
  for (memref::AllocOp alloc : writer.getLocalBuffers())
    alloc->erase();
  return success();
}

/// Gives what is no kernel (matmuls, calls, returns) a copy of the constant
/// that is in the device's memory.
static void copyConstants(func::FuncOp function) {
  SmallVector<memref::GetGlobalOp> constants;
  function.walk([&](memref::GetGlobalOp op) { constants.push_back(op); });
  auto readsInKernel = [](Operation *user) {
    while (user && !isa<LinalgOp>(user))
      user = user->getParentOp();
    return user && !isRuntimeContraction(user);
  };
  for (memref::GetGlobalOp constant : constants) {
    if (llvm::all_of(constant->getUsers(), readsInKernel))
      continue;
    OpBuilder builder(constant->getBlock(), ++constant->getIterator());
    auto type = cast<MemRefType>(constant.getType());
    Value buffer = memref::AllocOp::create(builder, constant.getLoc(), type,
                                           builder.getI64IntegerAttr(64));
    auto copy = linalg::CopyOp::create(builder, constant.getLoc(),
                                       constant.getResult(), buffer);
    constant.getResult().replaceUsesWithIf(buffer, [&](OpOperand &use) {
      return use.getOwner() != copy && !readsInKernel(use.getOwner());
    });
  }
}

void FormDeviceKernelsPass::runOnOperation() {
  SymbolTable symbols(getOperation());
  known.clear();
  SmallVector<func::FuncOp> functions;
  for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
    if (!function.isExternal() && !function->hasAttr("hp.kernel"))
      functions.push_back(function);
  for (func::FuncOp function : functions) {
    function.walk([](memref::CopyOp copy) {
      OpBuilder builder(copy);
      linalg::CopyOp::create(builder, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
      copy->erase();
    });
    copyConstants(function);
    SmallVector<Block *> blocks;
    function.walk([&](Block *block) {
      if (!isa<LinalgOp>(block->getParentOp()) &&
          !block->getParentOp()->getParentOfType<LinalgOp>())
        blocks.push_back(block);
    });
    for (Block *block : blocks)
      for (KernelGroup &group : formKernelGroups(*block))
        if (failed(rewriteGroup(group, function.getSymName(), symbols)))
          return signalPassFailure();
  }
}

} // namespace mlir::hyperparallel
