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
//        tiles      the same, but an input is contiguous along another loop
//        than
//                   the results: a block does a square of the two loops. It
//                   fetches the input to shared memory along the one, and
//                   computes along the other, both in vectors;
//        columns    one op that reduces along other than the contiguous loop: a
//                   thread does one result;
//        rows       a block does one iteration of the outer loops, and its
//                   threads share the innermost loop of each member (LoopNest),
//                   16 bytes' worth of neighbours at a time;
//        serial     a thread does one iteration of the outer loops. For what
//                   has no single combiner, such as argmax.
//   3. A buffer that only the group touches, within one iteration of the outer
//      loops, becomes registers, or in rows shared memory. So does what several
//      members of a row read: it is fetched once.
//   4. A loop that looks up in the device's memory where it goes on is a kernel
//      (SerialLoops.h).
//   5. Equal kernels are written once.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToDevice/DevicePlan.h"
#include "lib/Conversion/LinalgToDevice/DeviceThreads.h"
#include "lib/Conversion/LinalgToDevice/SerialLoops.h"
#include "lib/Conversion/LinalgToKernels/KernelCaptures.h"
#include "lib/Conversion/LinalgToKernels/KernelTable.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_FORMDEVICEKERNELS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// Bytes of one iteration's buffers that a thread keeps to itself.
static constexpr int64_t kMostPrivateBytes = 1024;
/// Of shared memory for buffers; the rest is for combining partial results.
static constexpr int64_t kMostShared = kSharedBytes - 1024;

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
  Value takeShared(MemRefType type);
  void placeLocalBuffers();
  void chooseFetched();
  void fetch(ArrayRef<Value> variables);
  void placeTiles();
  void overTile(int64_t neighbours, int64_t along, int64_t across,
                ValueRange origin, llvm::function_ref<void(Value, Value)> body);
  void writeTile();
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

  /// Of indices, which do not overflow.
  Value times(Value left, int64_t right) {
    Value factor = arith::ConstantIndexOp::create(builder, loc, right);
    return arith::MulIOp::create(builder, loc, left, factor, noWrap());
  }
  Value plus(Value left, Value right) {
    return arith::AddIOp::create(builder, loc, left, right, noWrap());
  }
  arith::IntegerOverflowFlagsAttr noWrap() {
    return arith::IntegerOverflowFlagsAttr::get(
        builder.getContext(),
        arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw);
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
  /// What is fetched to shared memory, with the outer loop at each position.
  SmallVector<std::pair<Value, SmallVector<std::optional<size_t>>>> fetched;
  int64_t usedBytes = 0;
  /// Of each input of a tile: its square, and an element of a thread.
  SmallVector<std::pair<Value, Value>> squares;
};
} // namespace

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
  for (Value input : inputs) {
    auto type = cast<MemRefType>(input.getType());
    if (!type.hasStaticShape() || !type.getElementType().isIntOrIndexOrFloat())
      continue;
    auto places = getRowPlaces(input, group);
    if (!places || llvm::count(*places, std::nullopt) != 1)
      continue;
    SmallVector<bool> fixed;
    SmallVector<int64_t> shape;
    for (auto [size, place] : llvm::zip_equal(type.getShape(), *places)) {
      fixed.push_back(place.has_value());
      if (!place)
        shape.push_back(size);
    }
    auto rowType = MemRefType::get(shape, type.getElementType());
    if (usedBytes + getRoundedBytes(rowType) > kMostShared)
      continue;
    captures->capture(input);
    local[input] = {takeShared(rowType), fixed};
    fetched.push_back({input, *places});
  }
}

/// The threads of the block copy the row together.
void DeviceKernelWriter::fetch(ArrayRef<Value> variables) {
  if (fetched.empty())
    return;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value thread = toIndex(threads.threadNumber(builder));
  for (const auto &[input, places] : fetched) {
    Value row = local[input].buffer;
    int64_t extent = cast<MemRefType>(row.getType()).getDimSize(0);
    int64_t vector = extent % plan.neighbours == 0 ? plan.neighbours : 1;
    OpBuilder::InsertionGuard guard(builder);
    auto loop =
        scf::ForOp::create(builder, loc, times(thread, vector),
                           constant(extent), constant(plan.threads * vector));
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    auto lanes = scf::ForOp::create(builder, loc, constant(0), constant(vector),
                                    constant(1));
    builder.setInsertionPoint(lanes.getBody()->getTerminator());
    Value place = plus(loop.getInductionVar(), lanes.getInductionVar());
    SmallVector<Value> indices;
    for (std::optional<size_t> outer : places)
      indices.push_back(outer ? variables[*outer] : place);
    Value element = memref::LoadOp::create(
        builder, loc, captures->getMapping().lookup(input), indices);
    memref::StoreOp::create(builder, loc, element, row, place);
  }
  threads.barrier(builder);
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
  distribution.vector = plan.neighbours;
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
  SmallVector<Value> variables = splitNumber(threads.blockNumber(builder));
  fetch(variables);
  writeMembers(variables);
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
  Value first = times(variables.back(), plan.vector);
  auto loop = scf::ForOp::create(builder, loc, constant(0),
                                 constant(plan.vector), constant(1));
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  variables.back() = plus(first, loop.getInductionVar());
  writeMembers(variables);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Members read an element of a tile's input from a place of the thread's own.
void DeviceKernelWriter::placeTiles() {
  const DeviceTile &tile = plan.tile;
  for (const auto &[input, places] : tile.inputs) {
    Type element = cast<MemRefType>(input.getType()).getElementType();
    captures->capture(input);
    Value square = takeShared(MemRefType::get(
        {tile.edge, getTilePitch(tile.edge, element)}, element));
    Value own =
        memref::AllocaOp::create(builder, loc, MemRefType::get({}, element),
                                 builder.getI64IntegerAttr(16));
    local[input] = {own, SmallVector<bool>(places.size(), true)};
    squares.emplace_back(square, own);
  }
}

/// Lets the threads of the block do a square together, each `neighbours` along
/// the first dimension at once; `body` gets a thread's place along and across.
/// `along` and `across` are how many there are from `origin` on.
void DeviceKernelWriter::overTile(int64_t neighbours, int64_t along,
                                  int64_t across, ValueRange origin,
                                  llvm::function_ref<void(Value, Value)> body) {
  int64_t edge = plan.tile.edge;
  int64_t ofLine = edge / neighbours, lines = plan.threads / ofLine;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value thread = threads.threadNumber(builder);
  Value first =
      times(toIndex(arith::RemUIOp::create(builder, loc, thread, i32(ofLine))),
            neighbours);
  Value line =
      toIndex(arith::DivUIOp::create(builder, loc, thread, i32(ofLine)));
  OpBuilder::InsertionGuard guard(builder);
  auto loop = scf::ForOp::create(builder, loc, constant(0), constant(edge),
                                 constant(lines));
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  Value over = plus(loop.getInductionVar(), line);
  auto enterIfBelow = [&](Value number, int64_t extent) {
    if (extent % edge == 0)
      return;
    Value isInside = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, number, constant(extent));
    auto branch = scf::IfOp::create(builder, loc, isInside);
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  };
  enterIfBelow(plus(origin[1], over), across);
  enterIfBelow(plus(origin[0], first), along);
  auto lanes = scf::ForOp::create(builder, loc, constant(0),
                                  constant(neighbours), constant(1));
  builder.setInsertionPoint(lanes.getBody()->getTerminator());
  body(plus(first, lanes.getInductionVar()), over);
}

void DeviceKernelWriter::writeTile() {
  const DeviceTile &tile = plan.tile;
  Value number = threads.blockNumber(builder);
  auto takeDigit = [&](int64_t extent) {
    Value digit =
        toIndex(arith::RemUIOp::create(builder, loc, number, i32(extent)));
    number = arith::DivUIOp::create(builder, loc, number, i32(extent));
    return digit;
  };
  Value column =
      times(takeDigit(llvm::divideCeil(tile.columns, tile.edge)), tile.edge);
  Value row =
      times(takeDigit(llvm::divideCeil(tile.rows, tile.edge)), tile.edge);
  const KernelMember &first = group.members.front();
  LinalgOp op = first.op;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<Value> variables(first.outer.size());
  for (size_t t = variables.size(); t-- > 0;)
    if (t != tile.row && t != tile.column)
      variables[t] = takeDigit(extents[first.outer[t]]);
  overTile(tile.neighbours, tile.rows, tile.columns, {row, column},
           [&](Value along, Value across) {
             variables[tile.row] = plus(row, along);
             variables[tile.column] = plus(column, across);
             for (auto [input, square] :
                  llvm::zip_equal(tile.inputs, squares)) {
               SmallVector<Value> indices;
               for (std::optional<size_t> outer : input.second)
                 indices.push_back(variables[*outer]);
               Value element = memref::LoadOp::create(
                   builder, loc, captures->getMapping().lookup(input.first),
                   indices);
               memref::StoreOp::create(builder, loc, element, square.first,
                                       ValueRange{across, along});
             }
           });
  threads.barrier(builder);
  overTile(plan.vector, tile.columns, tile.rows, {column, row},
           [&](Value along, Value across) {
             variables[tile.column] = plus(column, along);
             variables[tile.row] = plus(row, across);
             for (auto [square, own] : squares) {
               Value element = memref::LoadOp::create(
                   builder, loc, square, ValueRange{along, across});
               memref::StoreOp::create(builder, loc, element, own);
             }
             writeMembers(variables);
           });
}

func::FuncOp DeviceKernelWriter::write() {
  function = func::FuncOp::create(loc, name, builder.getFunctionType({}, {}));
  function.setPrivate();
  builder.setInsertionPointToStart(function.addEntryBlock());
  captures.emplace(function, builder, callSite, loc);
  placeLocalBuffers();
  if (plan.manner == Manner::Rows)
    chooseFetched();
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

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct FormDeviceKernelsPass
    : impl::FormDeviceKernelsBase<FormDeviceKernelsPass> {
  void runOnOperation() override;
  LogicalResult rewriteGroup(KernelGroup &group, StringRef parentName,
                             KernelTable &kernels);
  void rewriteLoop(const SerialLoop &serial, StringRef parentName,
                   KernelTable &kernels);
};
} // namespace

LogicalResult FormDeviceKernelsPass::rewriteGroup(KernelGroup &group,
                                                  StringRef parentName,
                                                  KernelTable &kernels) {
  if (failed(checkDeviceLoops(group)))
    return failure();
  DevicePlan plan = decideDevicePlan(group);
  std::string name = (parentName + "_kernel").str();
  DeviceKernelWriter writer(getOperation(), group, plan, name);
  auto [kernel, isNew] = kernels.insert(writer.write());
  (isNew ? numKernels : numShared) += 1;
  if (isNew)
    (plan.manner == Manner::Elements  ? numElements
     : plan.manner == Manner::Tiles   ? numTiles
     : plan.manner == Manner::Columns ? numColumns
     : plan.manner == Manner::Rows    ? numRows
                                      : numSerial) += 1;
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

void FormDeviceKernelsPass::rewriteLoop(const SerialLoop &serial,
                                        StringRef parentName,
                                        KernelTable &kernels) {
  SmallVector<Value> arguments;
  std::string name = (parentName + "_loop").str();
  auto [kernel, isNew] =
      kernels.insert(writeSerialLoop(getOperation(), serial, name, arguments));
  (isNew ? numKernels : numShared) += 1;
  numLoops += isNew;
  scf::ForOp loop = serial.loop;
  OpBuilder builder(loop);
  func::CallOp::create(builder, loop.getLoc(), kernel, arguments);
  loop->erase();
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
  KernelTable kernels(getOperation());
  for (func::FuncOp function : getProgramFunctions(getOperation())) {
    writeCopiesAsLinalg(function);
    copyConstants(function);
    for (const SerialLoop &serial : findSerialLoops(function))
      rewriteLoop(serial, function.getSymName(), kernels);
    for (Block *block : getKernelBlocks(function))
      for (KernelGroup &group : formKernelGroups(*block))
        if (failed(rewriteGroup(group, function.getSymName(), kernels)))
          return signalPassFailure();
  }
}

} // namespace mlir::hyperparallel
