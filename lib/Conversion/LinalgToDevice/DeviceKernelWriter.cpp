//===- DeviceKernelWriter.cpp - Writes one kernel of a device -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neighbours that a thread does at once are written one after the other, all
// loads before the stores, with the alignment of the first: so they are
// vectors.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToDevice/DeviceKernelWriter.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// Bytes of one iteration's buffers that a thread keeps to itself.
static constexpr int64_t kMostPrivateBytes = 1024;
/// Of shared memory for buffers; the rest is for combining partial results.
static constexpr int64_t kMostShared = kSharedBytes - 1024;

static int64_t getRoundedBytes(MemRefType type) {
  int64_t bytes =
      type.getNumElements() * getElementBytes(type.getElementType());
  return (bytes + 15) / 16 * 16;
}

/// A buffer in memory that the block shares. Kernels of one program take the
/// same memory, each in its turn.
Value DeviceKernelWriter::takeShared(MemRefType type) {
  std::string name = "hp_shared_" + std::to_string(usedBytes) + "_";
  llvm::raw_string_ostream stream(name);
  stream << type.getElementType();
  for (int64_t size : type.getShape())
    stream << "x" << size;
  usedBytes += getRoundedBytes(type);
  return threads.sharedBuffer(builder, name, type);
}

void DeviceKernelWriter::placeLocalBuffers() {
  bool isRow = plan.manner == Manner::Rows;
  int64_t most = isRow ? kMostShared : kMostPrivateBytes;
  SmallVector<LocalBuffer> found = findLocalBuffers(group);
  for (LocalBuffer &buffer : found) {
    if (usedBytes + getRoundedBytes(buffer.type) > most)
      continue;
    Value place;
    if (isRow) {
      place = takeShared(buffer.type);
    } else {
      place = memref::AllocaOp::create(builder, loc, buffer.type,
                                       builder.getI64IntegerAttr(16));
      usedBytes += getRoundedBytes(buffer.type);
    }
    local[buffer.alloc.getResult()] = {place, buffer.fixed};
    localBuffers.push_back(buffer.alloc);
  }
}

/// What several members of a row read is fetched once: rows of one dimension
/// that fit.
void DeviceKernelWriter::chooseFetched() {
  SetVector<Value> inputs;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    for (Value input : op.getDpsInputs())
      if (isa<MemRefType>(input.getType()) && !local.contains(input))
        inputs.insert(input);
  }
  for (Value input : inputs)
    if (auto places = getRowPlaces(input, group); holdRow(input, places))
      fetched.push_back({input, *places});
}

/// What members write for others outside, and read again: from shared memory.
void DeviceKernelWriter::chooseKept() {
  SetVector<Value> results;
  for (const KernelMember &member : group.members) {
    LinalgOp op = member.op;
    for (Value init : op.getDpsInits())
      if (!local.contains(init))
        results.insert(init);
  }
  for (Value result : results)
    if (auto places = getKeptPlaces(result, group); holdRow(result, places))
      kept.push_back({result, *places});
}

/// Gives a row of one dimension a place in shared memory, if it fits.
bool DeviceKernelWriter::holdRow(Value outside,
                                 const std::optional<Places> &places) {
  auto type = cast<MemRefType>(outside.getType());
  if (!places || llvm::count(*places, std::nullopt) != 1 ||
      !type.hasStaticShape() || !type.getElementType().isIntOrIndexOrFloat())
    return false;
  SmallVector<bool> fixed;
  SmallVector<int64_t> shape;
  for (auto [size, place] : llvm::zip_equal(type.getShape(), *places)) {
    fixed.push_back(place.has_value());
    if (!place)
      shape.push_back(size);
  }
  auto rowType = MemRefType::get(shape, type.getElementType());
  if (usedBytes + getRoundedBytes(rowType) > kMostShared)
    return false;
  captures->capture(outside);
  local[outside] = {takeShared(rowType), fixed};
  return true;
}

/// The indices of an element of a row.
SmallVector<Value>
DeviceKernelWriter::getLane(ArrayRef<std::optional<size_t>> places,
                            size_t along, Value place,
                            ArrayRef<Value> variables) {
  SmallVector<Value> indices;
  for (auto [position, outer] : llvm::enumerate(places))
    indices.push_back(position == along ? place : variables[*outer]);
  return indices;
}

llvm::MaybeAlign DeviceKernelWriter::getLaneAlignmentOf(Value outside,
                                                        size_t along,
                                                        int64_t length,
                                                        int64_t lane) {
  auto type = cast<MemRefType>(outside.getType());
  SmallVector<AffineExpr> exprs;
  for (int64_t position = 0; position < type.getRank(); ++position)
    exprs.push_back(getAffineDimExpr(position, builder.getContext()));
  return isAlignedVector(type, exprs, along, length)
             ? getLaneAlignment(type, length, lane)
             : llvm::MaybeAlign();
}

/// Element `place` along one dimension of an input, which is a lane of a
/// vector; the outer loops say where it is along the others.
Value DeviceKernelWriter::loadLane(Value input,
                                   ArrayRef<std::optional<size_t>> places,
                                   size_t along, Value place,
                                   ArrayRef<Value> variables, int64_t length,
                                   int64_t lane) {
  return memref::LoadOp::create(
      builder, loc, captures->getMapping().lookup(input),
      getLane(places, along, place, variables),
      /*nontemporal=*/false, getLaneAlignmentOf(input, along, length, lane));
}

/// The threads of the block copy a row together, to shared memory or from it.
void DeviceKernelWriter::overRow(Value outside, const Places &places,
                                 ArrayRef<Value> variables, bool isFetched) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value row = local[outside].buffer;
  int64_t extent = cast<MemRefType>(row.getType()).getDimSize(0);
  int64_t vector = extent % plan.neighbours == 0 ? plan.neighbours : 1;
  Value thread = toIndex(threads.threadNumber(builder));
  OpBuilder::InsertionGuard guard(builder);
  auto loop =
      scf::ForOp::create(builder, loc, times(thread, vector), constant(extent),
                         constant(plan.threads * vector));
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  SmallVector<Value> lanes = {loop.getInductionVar()}, elements;
  for (int64_t lane = 1; lane < vector; ++lane)
    lanes.push_back(plus(lanes[0], constant(lane)));
  size_t along = llvm::find(places, std::nullopt) - places.begin();
  for (auto [lane, place] : llvm::enumerate(lanes))
    elements.push_back(isFetched
                           ? loadLane(outside, places, along, place, variables,
                                      vector, static_cast<int64_t>(lane))
                           : memref::LoadOp::create(builder, loc, row, place));
  for (auto [lane, pair] : llvm::enumerate(llvm::zip_equal(elements, lanes))) {
    auto [element, place] = pair;
    if (isFetched)
      memref::StoreOp::create(builder, loc, element, row, place);
    else
      memref::StoreOp::create(
          builder, loc, element, captures->getMapping().lookup(outside),
          getLane(places, along, place, variables), /*nontemporal=*/false,
          getLaneAlignmentOf(outside, along, vector,
                             static_cast<int64_t>(lane)));
  }
}

void DeviceKernelWriter::fetch(ArrayRef<Value> variables) {
  if (fetched.empty())
    return;
  for (const auto &[input, places] : fetched)
    overRow(input, places, variables, /*isFetched=*/true);
  threads.barrier(builder);
}

void DeviceKernelWriter::writeKept(ArrayRef<Value> variables) {
  if (kept.empty())
    return;
  threads.barrier(builder);
  for (const auto &[result, places] : kept)
    overRow(result, places, variables, /*isFetched=*/false);
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

/// Whether a member behind the given one reads what it writes.
bool DeviceKernelWriter::isReadLater(Value buffer, size_t member) {
  Value root = getBufferRoot(buffer);
  for (const KernelMember &later :
       ArrayRef(group.members).drop_front(member + 1)) {
    LinalgOp op = later.op;
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType()) &&
          mayAlias(getBufferRoot(operand), root))
        return true;
  }
  return false;
}

/// The members for neighbouring iterations of an outer loop: lane by lane, but
/// that stores wait until all have loaded. `prepare` gets a lane's iteration.
void DeviceKernelWriter::writeLanes(ArrayRef<Value> variables, size_t outer,
                                    Value first,
                                    llvm::function_ref<void(Value)> prepare) {
  auto lookup = [&](Value value) { return getBuffer(value); };
  const KernelMember &only = group.members.front();
  if (group.members.size() == 1 && plan.manner == Manner::Elements) {
    // What all lanes have in common (rows by number, their checks) comes first.
    LoopNestContext nest = getNest(only, variables);
    nest.outerVariables[only.outer[outer]] = Value();
    nest.lanes = {only.outer[outer], first, plan.vector};
    nest.getBuffer = lookup;
    return buildLoopNest(builder, only.op, nest);
  }
  SmallVector<Value> ofLane(variables);
  SmallVector<SmallVector<PendingStore>> pending(group.members.size());
  for (int64_t number = 0; number < plan.vector; ++number) {
    ofLane[outer] =
        number == 0
            ? first
            : plus(first, arith::ConstantIndexOp::create(builder, loc, number));
    prepare(ofLane[outer]);
    for (auto [position, member] : llvm::enumerate(group.members)) {
      auto getPending = [&](Value buffer) -> SmallVectorImpl<PendingStore> * {
        return local.contains(buffer) || isReadLater(buffer, position)
                   ? nullptr
                   : &pending[position];
      };
      LoopNestContext nest = getNest(member, ofLane);
      nest.lane =
          VectorLane{member.outer[outer], plan.vector, number, getPending};
      nest.getBuffer = lookup;
      buildLoopNest(builder, member.op, nest);
    }
  }
  for (ArrayRef<PendingStore> stores : pending)
    writePending(builder, loc, stores);
}

LoopNestContext DeviceKernelWriter::getNest(const KernelMember &member,
                                            ArrayRef<Value> variables) {
  LoopNestContext nest;
  LinalgOp op = member.op;
  nest.outerVariables.resize(op.getNumLoops());
  for (auto [loop, variable] : llvm::zip_equal(member.outer, variables))
    nest.outerVariables[loop] = variable;
  nest.mapping = &captures->getMapping();
  return nest;
}

void DeviceKernelWriter::writeMembers(ArrayRef<Value> variables) {
  bool isRow = plan.manner == Manner::Rows;
  LoopDistribution distribution;
  auto reduce = [&](OpBuilder &at, Operation *combiner, Value partial) {
    return threads.reduce(at, combiner, partial);
  };
  distribution.reduce = reduce;
  distribution.numThreads = plan.threads;
  distribution.vector = plan.neighbours;
  if (isRow)
    distribution.thread = toIndex(threads.threadNumber(builder));
  for (auto [number, member] : llvm::enumerate(group.members)) {
    if (isRow && number > 0)
      threads.barrier(builder);
    LoopNestContext nest = getNest(member, variables);
    auto lookup = [&](Value value) { return getBuffer(value); };
    nest.getBuffer = lookup;
    if (isRow)
      nest.distribution = &distribution;
    buildLoopNest(builder, member.op, nest);
  }
}

void DeviceKernelWriter::writeRow() {
  SmallVector<Value> variables = splitNumber(threads.blockNumber(builder));
  fetch(variables);
  writeMembers(variables);
  writeKept(variables);
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
  writeLanes(variables, variables.size() - 1,
             times(variables.back(), plan.vector), [](Value) {});
}

func::FuncOp DeviceKernelWriter::write() {
  function = func::FuncOp::create(loc, name, builder.getFunctionType({}, {}));
  function.setPrivate();
  builder.setInsertionPointToStart(function.addEntryBlock());
  captures.emplace(function, builder, callSite, loc);
  placeLocalBuffers();
  if (plan.manner == Manner::Rows) {
    chooseFetched();
    chooseKept();
  }
  if (plan.manner == Manner::Tiles)
    placeTiles();
  captures->captureOperands(group,
                            [&](Value value) { return local.contains(value); });
  if (plan.manner == Manner::Rows)
    writeRow();
  else if (plan.manner == Manner::Tiles)
    writeTile();
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

} // namespace mlir::hyperparallel
