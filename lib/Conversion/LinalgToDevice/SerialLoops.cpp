//===- SerialLoops.cpp - Loops that read the device, as kernels -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop that looks up in the device's memory where it goes on, such as that of
// scatter_add, would make the host wait in every iteration. Where all its
// structured ops do the same elements, and an element of one iteration only
// meets the same element of the others, a thread runs the whole loop for one
// element:
//
//   for n: i = at[n]; if i < rows: table[i, :] += updates[n, :]
//
//   thread (part p, element c):
//     for n: i = at[n]; if i < rows and i % parts == p:
//       table[i, c] += updates[n, c]
//
// Neighbouring threads do neighbouring elements. Rows are dealt out to several
// threads where elements are few; every row is still added to in the order of
// the loop, by one thread, so that sums have the same bits in every run.
//
// Cost: each thread runs all iterations; of those that are another part's it
// reads the index only.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToDevice/SerialLoops.h"
#include "lib/Conversion/LinalgToDevice/DeviceThreads.h"
#include "lib/Conversion/LinalgToKernels/KernelCaptures.h"
#include "lib/Conversion/LinalgToKernels/LoopNest.h"
#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

static constexpr int64_t kThreads = 128;
static constexpr int64_t kMostParts = 64;
/// Threads beyond which rows are not dealt out any further.
static constexpr int64_t kEnoughThreads = 32 * 1024;

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

/// The subview by which an op writes whole elements of a buffer: leading
/// dimensions at one place each, the others from their beginning to their end.
static memref::SubViewOp getRowView(Value view, ArrayRef<int64_t> extents) {
  auto row = view.getDefiningOp<memref::SubViewOp>();
  if (!row || row.getSource().getDefiningOp<memref::SubViewOp>())
    return {};
  ArrayRef<int64_t> whole = row.getSourceType().getShape();
  int64_t leading =
      static_cast<int64_t>(whole.size()) - static_cast<int64_t>(extents.size());
  if (leading < 0)
    return {};
  for (auto [dim, size] : llvm::enumerate(row.getStaticSizes())) {
    bool isLeading = static_cast<int64_t>(dim) < leading;
    if (row.getStaticStrides()[dim] != 1 ||
        size != (isLeading ? 1 : extents[dim - leading]) ||
        (!isLeading &&
         (row.getStaticOffsets()[dim] != 0 || size != whole[dim])))
      return {};
  }
  return row;
}

/// Whether a thread can do one element of the op.
static bool isOfElements(LinalgOp op) {
  if (isRuntimeContraction(op) || op.getNumReductionLoops() != 0 ||
      !op.hasPureBufferSemantics() ||
      llvm::is_contained(op.getStaticLoopRanges(), ShapedType::kDynamic))
    return false;
  WalkResult walked = op.getBlock()->walk([](Operation *nested) {
    return isPure(nested) || nested->hasTrait<OpTrait::IsTerminator>()
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return !walked.wasInterrupted() &&
         llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
           return op.getMatchingIndexingMap(&init).isIdentity();
         });
}

namespace {
/// What a loop reads and writes.
struct LoopBody {
  SmallVector<LinalgOp> ops;
  SmallVector<Value> loaded; ///< roots of what decides
};
} // namespace

/// Nothing if the loop holds what a kernel cannot.
static std::optional<LoopBody> readBody(scf::ForOp loop) {
  LoopBody body;
  WalkResult walked =
      loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (auto structured = dyn_cast<LinalgOp>(op)) {
          if (!isOfElements(structured))
            return WalkResult::interrupt();
          body.ops.push_back(structured);
          return WalkResult::skip();
        }
        if (auto load = dyn_cast<memref::LoadOp>(op)) {
          body.loaded.push_back(getBufferRoot(load.getMemRef()));
          return WalkResult::advance();
        }
        if (isa<scf::ForOp, scf::IfOp>(op))
          return op->getNumResults() == 0 ? WalkResult::advance()
                                          : WalkResult::interrupt();
        return isa<scf::YieldOp>(op) || (isPure(op) && op->getNumRegions() == 0)
                   ? WalkResult::advance()
                   : WalkResult::interrupt();
      });
  if (walked.wasInterrupted() || body.ops.empty() || body.loaded.empty())
    return std::nullopt;
  return body;
}

static std::optional<SerialLoop> readLoop(scf::ForOp loop) {
  std::optional<LoopBody> body;
  if (loop.getNumResults() == 0)
    body = readBody(loop);
  if (!body)
    return std::nullopt;
  SerialLoop serial;
  serial.loop = loop;
  serial.extents = body->ops.front().getStaticLoopRanges();
  SmallVector<Value> written;
  bool hasOneRow = true;
  for (LinalgOp op : body->ops) {
    if (op.getStaticLoopRanges() != serial.extents)
      return std::nullopt;
    for (Value init : op.getDpsInits()) {
      memref::SubViewOp view = getRowView(init, serial.extents);
      if (!view)
        return std::nullopt;
      Value row = view.getOffsets().empty() ? Value() : view.getOffsets()[0];
      hasOneRow &= row && view.getOffsets().size() == 1 &&
                   ShapedType::isDynamic(view.getStaticOffsets()[0]) &&
                   (!serial.row || serial.row == row);
      serial.row = row;
      written.push_back(getBufferRoot(init));
    }
  }
  auto isWritten = [&](Value root) {
    return llvm::any_of(written,
                        [&](Value other) { return mayAlias(root, other); });
  };
  if (llvm::any_of(body->loaded, isWritten))
    return std::nullopt;
  for (LinalgOp op : body->ops)
    for (Value input : op.getDpsInputs())
      if (isa<MemRefType>(input.getType()) && isWritten(getBufferRoot(input)))
        return std::nullopt;
  int64_t elements = 1;
  for (int64_t extent : serial.extents)
    elements *= extent;
  if (elements < 1 || elements > std::numeric_limits<int32_t>::max() / 64)
    return std::nullopt;
  if (!hasOneRow)
    serial.row = Value();
  while (serial.row && serial.parts < kMostParts &&
         elements * serial.parts * 2 <= kEnoughThreads)
    serial.parts *= 2;
  int64_t needed = elements * serial.parts;
  serial.threads = std::min<int64_t>(kThreads, (needed + 31) / 32 * 32);
  serial.blocks = (needed + serial.threads - 1) / serial.threads;
  return serial;
}

SmallVector<SerialLoop> findSerialLoops(func::FuncOp function) {
  SmallVector<SerialLoop> found;
  function.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
    std::optional<SerialLoop> serial = readLoop(loop);
    if (!serial)
      return WalkResult::advance();
    found.push_back(std::move(*serial));
    return WalkResult::skip();
  });
  return found;
}

//===----------------------------------------------------------------------===//
// Writing the kernel
//===----------------------------------------------------------------------===//

namespace {
class SerialLoopWriter {
public:
  SerialLoopWriter(ModuleOp module, const SerialLoop &serial, StringRef name)
      : serial(serial), loop(serial.loop), builder(module.getContext()),
        loc(loop.getLoc()), callSite(loop),
        threads(module, loc, serial.threads),
        function(
            func::FuncOp::create(loc, name, builder.getFunctionType({}, {}))),
        captures(function, builder, callSite, loc),
        mapping(captures.getMapping()) {
    function.setPrivate();
    builder.setInsertionPointToStart(function.addEntryBlock());
  }

  func::FuncOp write();
  ArrayRef<Value> getArguments() const { return captures.getValues(); }

private:
  void captureOutside();
  void splitNumber();
  void cloneLoop(scf::ForOp original);
  void cloneBlock(Block &block);
  void writeElement(LinalgOp op);
  Value i32(int64_t value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getI32IntegerAttr(value));
  }
  Value toIndex(Value number) {
    return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                        number);
  }

  const SerialLoop &serial;
  scf::ForOp loop;
  OpBuilder builder;
  Location loc;
  OpBuilder callSite;
  DeviceThreads threads;
  func::FuncOp function;
  KernelCaptures captures;
  IRMapping &mapping;
  SmallVector<Value> element; ///< the thread's place in each dimension
  Value part;
};
} // namespace

void SerialLoopWriter::captureOutside() {
  Region &inside = loop.getRegion();
  auto captureOperands = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (!inside.isAncestor(operand.getParentRegion()))
        captures.capture(operand);
  };
  captureOperands(loop);
  loop.walk(captureOperands);
}

/// The thread's number as part and element; the last dimension is the fastest.
/// Threads beyond the last one do nothing.
void SerialLoopWriter::splitNumber() {
  Value number = arith::AddIOp::create(
      builder, loc,
      arith::MulIOp::create(builder, loc, threads.blockNumber(builder),
                            i32(serial.threads)),
      threads.threadNumber(builder));
  int64_t needed = serial.parts;
  for (int64_t extent : serial.extents)
    needed *= extent;
  if (needed != serial.blocks * serial.threads) {
    Value isInside = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, number, i32(needed));
    auto branch = scf::IfOp::create(builder, loc, isInside);
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  }
  element.resize(serial.extents.size());
  for (size_t dim = serial.extents.size(); dim-- > 0;) {
    Value extent = i32(serial.extents[dim]);
    element[dim] =
        toIndex(arith::RemUIOp::create(builder, loc, number, extent));
    number = arith::DivUIOp::create(builder, loc, number, extent);
  }
  part = toIndex(number);
}

void SerialLoopWriter::cloneLoop(scf::ForOp original) {
  auto copy =
      scf::ForOp::create(builder, loc, mapping.lookup(original.getLowerBound()),
                         mapping.lookup(original.getUpperBound()),
                         mapping.lookup(original.getStep()));
  mapping.map(original.getInductionVar(), copy.getInductionVar());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(copy.getBody()->getTerminator());
  cloneBlock(*original.getBody());
}

void SerialLoopWriter::cloneBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (auto structured = dyn_cast<LinalgOp>(&op)) {
      writeElement(structured);
    } else if (auto inner = dyn_cast<scf::ForOp>(&op)) {
      cloneLoop(inner);
    } else if (auto branch = dyn_cast<scf::IfOp>(&op)) {
      auto copy =
          scf::IfOp::create(builder, loc, mapping.lookup(branch.getCondition()),
                            /*withElseRegion=*/branch.elseBlock() != nullptr);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(copy.thenBlock()->getTerminator());
      cloneBlock(*branch.thenBlock());
      if (!branch.elseBlock())
        continue;
      builder.setInsertionPoint(copy.elseBlock()->getTerminator());
      cloneBlock(*branch.elseBlock());
    } else {
      builder.clone(op, mapping);
    }
  }
}

void SerialLoopWriter::writeElement(LinalgOp op) {
  OpBuilder::InsertionGuard guard(builder);
  if (serial.parts > 1) {
    Value parts = arith::ConstantIndexOp::create(builder, loc, serial.parts);
    Value whose =
        arith::RemUIOp::create(builder, loc, mapping.lookup(serial.row), parts);
    Value isOwn = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        whose, part);
    auto branch = scf::IfOp::create(builder, loc, isOwn);
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  }
  LoopNestContext nest;
  nest.outerVariables = element;
  nest.mapping = &mapping;
  auto lookup = [&](Value value) -> BufferAccess {
    return {mapping.lookup(value), {}};
  };
  nest.getBuffer = lookup;
  buildLoopNest(builder, op, nest);
}

func::FuncOp SerialLoopWriter::write() {
  captureOutside();
  splitNumber();
  cloneLoop(loop);
  builder.setInsertionPointToEnd(&function.front());
  func::ReturnOp::create(builder, loc);
  function.setType(
      builder.getFunctionType(function.front().getArgumentTypes(), {}));
  function->setAttr("hp.kernel", builder.getUnitAttr());
  function->setAttr("hp.geometry", builder.getDenseI64ArrayAttr(
                                       {serial.blocks, serial.threads}));
  captures.markDistinctBuffers();
  return function;
}

func::FuncOp writeSerialLoop(ModuleOp module, const SerialLoop &serial,
                             StringRef name, SmallVector<Value> &arguments) {
  SerialLoopWriter writer(module, serial, name);
  func::FuncOp kernel = writer.write();
  arguments = llvm::to_vector(writer.getArguments());
  return kernel;
}

} // namespace mlir::hyperparallel
