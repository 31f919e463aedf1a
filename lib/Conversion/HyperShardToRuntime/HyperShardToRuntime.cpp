//===- HyperShardToRuntime.cpp - Collectives to calls of the runtime ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contract in:  local collectives on tensors (after hypershard-partition).
// Contract out: no op of the dialect.
//
//   1. A collective becomes a call of a private function of two buffers, the
//      operand's and a fresh one for the result. The function takes the
//      pointers and calls hp_rt_*; equal collectives share it. Pointers thus
//      never escape the sight of bufferization and deallocation.
//   2. A started collective returns the runtime's future; `done` reads the
//      operand once more, so that nothing writes to it or frees it in between.
//      A collective's function says on which stream its calls may run: one for
//      each axis of the mesh that is the outermost of a group, since groups
//      along different axes use different parts of the network.
//   3. With `blocks-first` what a device gathers, scatters or exchanges is one
//      block for each member, one after the other, and transposes of the
//      program put them in place: no back end needs a buffer that no plan knows
//      of.
//   4. `axis_index` is arithmetic on the device id; `slice_local` a slice at a
//      computed offset, of the operand padded with zeros where it does not
//      divide.
//
//===----------------------------------------------------------------------===//

#include "dialects/HyperShard/HyperShard.h"
#include "dialects/HyperShard/MeshAxes.h"
#include "dialects/Stream/Stream.h"
#include "lib/Conversion/HyperShardToRuntime/MemberBlocks.h"
#include "lib/Conversion/Passes.h"
#include "lib/Conversion/RuntimeCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CONVERTHYPERSHARDTORUNTIME
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;

namespace mlir::hyperparallel {

using namespace hypershard;

namespace {
/// The devices of a call: axes as (stride, size) in device ids.
struct Group {
  SmallVector<int64_t> words;
  int64_t count() const { return words.size() / 2; }
  int64_t size() const {
    int64_t product = 1;
    for (size_t i = 1; i < words.size(); i += 2)
      product *= words[i];
    return product;
  }
};

/// A call of the runtime, but for its two pointers: name, and what follows
/// them.
struct RuntimeCollective {
  StringRef name;
  /// Writes the arguments behind the pointers.
  std::function<SmallVector<Value>(RuntimeCallBuilder &)> writeArguments;
  /// Tells calls of one name apart.
  std::string key;
};
} // namespace

static Group getGroup(Operation *op, FlatSymbolRefAttr meshName,
                      ArrayAttr axes) {
  MeshAxes mesh(lookupMesh(op, meshName).getMesh());
  Group group;
  for (Axis axis : mesh.fromAttrs(axes)) {
    group.words.push_back(mesh.stride(axis));
    group.words.push_back(axis.size);
  }
  return group;
}

/// The stream of a collective, by the outermost axis that it crosses.
static stream::IdAttr getStream(Operation *op) {
  MeshOp mesh = lookupMesh(op, op->getAttrOfType<FlatSymbolRefAttr>("mesh"));
  int64_t outermost = -1;
  for (StringRef name : {"axes", "to_axes"})
    if (auto axes = op->getAttrOfType<ArrayAttr>(name))
      for (Axis axis : MeshAxes(mesh.getMesh()).fromAttrs(axes))
        if (axis.size > 1 && (outermost < 0 || axis.axis < outermost))
          outermost = axis.axis;
  return stream::IdAttr::get(op->getContext(), stream::Role::Comm,
                             std::max<int64_t>(outermost, 0));
}

/// Elements before, along and behind a dimension.
static std::array<int64_t, 3> splitShape(RankedTensorType type, int64_t dim) {
  std::array<int64_t, 3> parts = {1, type.getDimSize(dim), 1};
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (i != dim)
      parts[i < dim ? 0 : 2] *= type.getDimSize(i);
  return parts;
}

static int64_t getBytes(RankedTensorType type) {
  return type.getNumElements() * getElementBytes(type.getElementType());
}

static std::string makeKey(StringRef name, ArrayRef<int64_t> numbers,
                           RankedTensorType in, RankedTensorType out) {
  std::string key = name.str();
  llvm::raw_string_ostream stream(key);
  for (int64_t number : numbers)
    stream << "," << number;
  stream << in << out;
  return key;
}

//===----------------------------------------------------------------------===//
// Arguments of each call
//===----------------------------------------------------------------------===//

/// Words that are plain numbers; `narrow` names those that are 32 bits wide.
static RuntimeCollective makeCall(StringRef name, ArrayRef<int64_t> numbers,
                                  ArrayRef<unsigned> narrow,
                                  ArrayRef<Group> groups, RankedTensorType in,
                                  RankedTensorType out) {
  RuntimeCollective call;
  call.name = name;
  SmallVector<int64_t> values(numbers), keyed(numbers);
  SmallVector<unsigned> narrowValues(narrow);
  SmallVector<Group> groupValues(groups);
  for (const Group &group : groups) {
    keyed.push_back(-1);
    llvm::append_range(keyed, group.words);
  }
  call.key = makeKey(name, keyed, in, out);
  call.writeArguments = [=](RuntimeCallBuilder &runtime) {
    SmallVector<Value> arguments;
    for (auto [number, value] : llvm::enumerate(values))
      arguments.push_back(llvm::is_contained(narrowValues, number)
                              ? runtime.i32(value)
                              : runtime.i64(value));
    for (const Group &group : groupValues) {
      arguments.push_back(runtime.constantWords(group.words));
      arguments.push_back(runtime.i64(group.count()));
    }
    return arguments;
  };
  return call;
}

static int64_t getReduction(Reduction kind) {
  switch (kind) {
  case Reduction::Sum:
    return 0;
  case Reduction::Max:
    return 1;
  case Reduction::Min:
    return 2;
  case Reduction::Prod:
    return 3;
  case Reduction::And:
    return 4;
  case Reduction::Or:
    return 5;
  case Reduction::Avg:
    return 6;
  }
  llvm_unreachable("unknown reduction");
}

/// The call for a collective; `out` is the result's type.
static RuntimeCollective getCall(Operation *op, RankedTensorType in,
                                 RankedTensorType out) {
  int64_t dtype = *getRuntimeDtype(in.getElementType());
  int64_t bytes = getElementBytes(in.getElementType());
  auto group = [&](auto collective) {
    return getGroup(op, collective.getMeshAttr(), collective.getAxesAttr());
  };
  auto gather = [&](auto collective, StringRef name) {
    auto [outer, size, inner] = splitShape(in, collective.getDim());
    return makeCall(name, {outer, size, inner, dtype}, {3}, {group(collective)},
                    in, out);
  };
  auto reduce = [&](auto collective, StringRef name) {
    return makeCall(
        name, {in.getNumElements(), dtype, getReduction(collective.getKind())},
        {1, 2}, {group(collective)}, in, out);
  };
  auto scatter = [&](auto collective, StringRef name) {
    auto [outer, size, inner] = splitShape(out, collective.getDim());
    return makeCall(
        name, {outer, size, inner, dtype, getReduction(collective.getKind())},
        {3, 4}, {group(collective)}, in, out);
  };
  auto exchange = [&](auto collective, StringRef name) {
    RuntimeCollective call =
        makeCall(name,
                 {int64_t(collective.getSplitDim()),
                  int64_t(collective.getConcatDim()), bytes},
                 {}, {group(collective)}, in, out);
    auto rest = call.writeArguments;
    SmallVector<int64_t> shape(in.getShape());
    call.writeArguments = [rest, shape](RuntimeCallBuilder &runtime) {
      SmallVector<Value> arguments = {runtime.i64(shape.size()),
                                      runtime.constantWords(shape)};
      llvm::append_range(arguments, rest(runtime));
      return arguments;
    };
    return call;
  };
  auto permute = [&](auto collective, StringRef name) {
    return makeCall(name, {getBytes(in)}, {},
                    {group(collective), getGroup(op, collective.getMeshAttr(),
                                                 collective.getToAxesAttr())},
                    in, out);
  };
  return llvm::TypeSwitch<Operation *, RuntimeCollective>(op)
      .Case([&](AllGatherOp c) { return gather(c, "hp_rt_all_gather"); })
      .Case([&](AllReduceOp c) { return reduce(c, "hp_rt_all_reduce"); })
      .Case(
          [&](ReduceScatterOp c) { return scatter(c, "hp_rt_reduce_scatter"); })
      .Case([&](AllToAllOp c) { return exchange(c, "hp_rt_all_to_all"); })
      .Case([&](PermuteOp c) { return permute(c, "hp_rt_permute"); })
      .Case([&](HaloExchangeOp c) {
        auto [outer, size, inner] = splitShape(in, c.getDim());
        return makeCall("hp_rt_halo_exchange",
                        {outer, size, inner * bytes, int64_t(c.getGlobalSize()),
                         int64_t(c.getStride()), int64_t(c.getLo()),
                         int64_t(c.getSize())},
                        {}, {group(c)}, in, out);
      });
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

static MemRefType getBufferType(RankedTensorType type) {
  return MemRefType::get(type.getShape(), type.getElementType());
}

namespace {
/// A collective on blocks that lie one after the other.
struct BlockCollective {
  RuntimeCollective call;
  Value source;         ///< what it is given
  RankedTensorType out; ///< what it gives: a block for each member, or one
  /// Makes the op's result of it; null if it is that.
  std::function<Value(Value)> finish;
};

class Rewriter {
public:
  Rewriter(ModuleOp module, bool blocksFirst)
      : module(module), symbols(module), blocksFirst(blocksFirst) {}

  void rewriteCollective(Operation *op);
  void rewriteAxisIndex(AxisIndexOp op);
  void rewriteSliceLocal(SliceLocalOp op);

private:
  func::FuncOp getFunction(Operation *op, const RuntimeCollective &call,
                           RankedTensorType in, RankedTensorType out);
  Value callRuntime(OpBuilder &builder, Operation *op,
                    const RuntimeCollective &call, Value operand,
                    RankedTensorType out);
  Value axisNumber(OpBuilder &builder, Location loc, const Group &group);

  ModuleOp module;
  SymbolTable symbols;
  llvm::StringMap<func::FuncOp> functions;
  bool blocksFirst;
};
} // namespace

static Value toBuffer(OpBuilder &builder, Location loc, Value tensor) {
  return bufferization::ToBufferOp::create(
      builder, loc, getBufferType(cast<RankedTensorType>(tensor.getType())),
      tensor, /*read_only=*/true);
}

static Value toTensor(OpBuilder &builder, Location loc, Value buffer,
                      RankedTensorType type) {
  return bufferization::ToTensorOp::create(builder, loc, type, buffer,
                                           /*restrict=*/true,
                                           /*writable=*/true);
}

static Value allocate(OpBuilder &builder, Location loc, RankedTensorType type) {
  return memref::AllocOp::create(builder, loc, getBufferType(type),
                                 builder.getI64IntegerAttr(64));
}

//===----------------------------------------------------------------------===//
// One block after the other
//===----------------------------------------------------------------------===//

/// The collective on blocks, if what it is given or gives is not so anyway.
static std::optional<BlockCollective> getBlockCollective(OpBuilder &builder,
                                                         Operation *op) {
  Location loc = op->getLoc();
  Value operand = op->getOperand(0);
  auto in = cast<RankedTensorType>(operand.getType());
  auto out = cast<RankedTensorType>(op->getResult(0).getType());
  Type element = in.getElementType();
  int64_t dtype = *getRuntimeDtype(element);
  auto withMembers = [&](RankedTensorType type, int64_t members) {
    SmallVector<int64_t> shape = {members};
    llvm::append_range(shape, type.getShape());
    return RankedTensorType::get(shape, element);
  };
  auto isOutermost = [](RankedTensorType type, int64_t dim) {
    return splitShape(type, dim)[0] == 1;
  };
  auto placedAt = [&builder, loc, out](int64_t dim) {
    return [&builder, loc, out, dim](Value blocks) {
      return placeMembers(builder, loc, blocks, dim, out);
    };
  };
  BlockCollective found;
  if (auto gather = dyn_cast<AllGatherOp>(op)) {
    Group group = getGroup(op, gather.getMeshAttr(), gather.getAxesAttr());
    if (isOutermost(in, gather.getDim()) || group.size() == 1)
      return std::nullopt;
    found.source = operand;
    found.finish = placedAt(gather.getDim());
    found.out = withMembers(in, group.size());
    found.call =
        makeCall("hp_rt_all_gather", {1, in.getNumElements(), 1, dtype}, {3},
                 {group}, in, found.out);
    return found;
  }
  if (auto halo = dyn_cast<HaloExchangeOp>(op)) {
    int64_t dim = halo.getDim();
    if (isOutermost(in, dim))
      return std::nullopt;
    found.source = moveDim(builder, loc, operand, dim, 0);
    auto moved = cast<RankedTensorType>(found.source.getType());
    SmallVector<int64_t> shape(moved.getShape());
    shape[0] = out.getDimSize(dim);
    found.out = RankedTensorType::get(shape, element);
    auto [outer, size, inner] = splitShape(moved, 0);
    found.call =
        makeCall("hp_rt_halo_exchange",
                 {outer, size, inner * getElementBytes(element),
                  int64_t(halo.getGlobalSize()), int64_t(halo.getStride()),
                  int64_t(halo.getLo()), int64_t(halo.getSize())},
                 {}, {getGroup(op, halo.getMeshAttr(), halo.getAxesAttr())},
                 moved, found.out);
    found.finish = [&builder, loc, dim](Value window) {
      return moveDim(builder, loc, window, 0, dim);
    };
    return found;
  }
  if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
    Group group = getGroup(op, scatter.getMeshAttr(), scatter.getAxesAttr());
    if (isOutermost(out, scatter.getDim()) || group.size() == 1)
      return std::nullopt;
    found.source =
        takeMembers(builder, loc, operand, scatter.getDim(), group.size());
    found.out = out;
    found.call = makeCall(
        "hp_rt_reduce_scatter",
        {1, out.getNumElements(), 1, dtype, getReduction(scatter.getKind())},
        {3, 4}, {group}, cast<RankedTensorType>(found.source.getType()), out);
    return found;
  }
  auto exchange = dyn_cast<AllToAllOp>(op);
  if (!exchange)
    return std::nullopt;
  Group group = getGroup(op, exchange.getMeshAttr(), exchange.getAxesAttr());
  if (group.size() == 1)
    return std::nullopt;
  found.source =
      takeMembers(builder, loc, operand, exchange.getSplitDim(), group.size());
  found.out = cast<RankedTensorType>(found.source.getType());
  found.finish = placedAt(exchange.getConcatDim());
  SmallVector<int64_t> shape = {group.size(),
                                in.getNumElements() / group.size()};
  found.call = makeCall("hp_rt_all_to_all", {0, 0, getElementBytes(element)},
                        {}, {group}, found.out, found.out);
  auto rest = found.call.writeArguments;
  found.call.writeArguments = [rest, shape](RuntimeCallBuilder &runtime) {
    SmallVector<Value> arguments = {runtime.i64(2),
                                    runtime.constantWords(shape)};
    llvm::append_range(arguments, rest(runtime));
    return arguments;
  };
  return found;
}

func::FuncOp Rewriter::getFunction(Operation *op, const RuntimeCollective &call,
                                   RankedTensorType in, RankedTensorType out) {
  func::FuncOp &known = functions[call.key];
  if (known)
    return known;
  Location loc = op->getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto function = func::FuncOp::create(
      builder, loc, op->getName().stripDialect(),
      builder.getFunctionType({getBufferType(in), getBufferType(out)}, {}));
  function.setPrivate();
  function->setAttr(stream::StreamDialect::kOfAttrName, getStream(op));
  function.setArgAttr(0, stream::StreamDialect::kAccessAttrName,
                      builder.getStringAttr("read"));
  function.setArgAttr(1, stream::StreamDialect::kAccessAttrName,
                      builder.getStringAttr("write"));
  builder.setInsertionPointToStart(function.addEntryBlock());
  RuntimeCallBuilder runtime(builder, loc);
  SmallVector<Value> arguments = {runtime.pointerTo(function.getArgument(0)),
                                  runtime.pointerTo(function.getArgument(1))};
  llvm::append_range(arguments, call.writeArguments(runtime));
  runtime.call(call.name, arguments);
  func::ReturnOp::create(builder, loc);
  function->remove();
  symbols.insert(function);
  return known = function;
}

Value Rewriter::callRuntime(OpBuilder &builder, Operation *op,
                            const RuntimeCollective &call, Value operand,
                            RankedTensorType out) {
  Location loc = op->getLoc();
  auto in = cast<RankedTensorType>(operand.getType());
  Value source = toBuffer(builder, loc, operand);
  Value target = allocate(builder, loc, out);
  func::CallOp::create(builder, loc, getFunction(op, call, in, out),
                       ValueRange{source, target});
  return toTensor(builder, loc, target, out);
}

void Rewriter::rewriteCollective(Operation *op) {
  OpBuilder builder(op);
  auto in = cast<RankedTensorType>(op->getOperand(0).getType());
  auto out = cast<RankedTensorType>(op->getResult(0).getType());
  std::optional<BlockCollective> blocks;
  if (blocksFirst)
    blocks = getBlockCollective(builder, op);
  Value result = blocks ? callRuntime(builder, op, blocks->call, blocks->source,
                                      blocks->out)
                        : callRuntime(builder, op, getCall(op, in, out),
                                      op->getOperand(0), out);
  if (blocks && blocks->finish)
    result = blocks->finish(result);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

/// This device's rank in the group.
Value Rewriter::axisNumber(OpBuilder &builder, Location loc,
                           const Group &group) {
  RuntimeCallBuilder runtime(builder, loc);
  Value rank = arith::ConstantIndexOp::create(builder, loc, 0);
  if (group.size() == 1)
    return rank;
  Value word = runtime.call("hp_rt_device_id", {}, builder.getI64Type());
  Value id =
      arith::IndexCastOp::create(builder, loc, builder.getIndexType(), word);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  for (int64_t i = 0; i < group.count(); ++i) {
    int64_t stride = group.words[2 * i], size = group.words[2 * i + 1];
    Value coordinate =
        arith::DivUIOp::create(builder, loc, id, constant(stride));
    coordinate =
        arith::RemUIOp::create(builder, loc, coordinate, constant(size));
    rank = arith::MulIOp::create(builder, loc, rank, constant(size));
    rank = arith::AddIOp::create(builder, loc, rank, coordinate);
  }
  return rank;
}

void Rewriter::rewriteAxisIndex(AxisIndexOp op) {
  OpBuilder builder(op);
  op.getResult().replaceAllUsesWith(axisNumber(
      builder, op.getLoc(), getGroup(op, op.getMeshAttr(), op.getAxesAttr())));
  op->erase();
}

void Rewriter::rewriteSliceLocal(SliceLocalOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Group group = getGroup(op, op.getMeshAttr(), op.getAxesAttr());
  auto in = cast<RankedTensorType>(op.getInput().getType());
  auto out = cast<RankedTensorType>(op.getResult().getType());
  int64_t dim = op.getDim();
  int64_t block = out.getDimSize(dim);
  Value source = op.getInput();
  int64_t missing = block * group.size() - in.getDimSize(dim);
  if (missing > 0) {
    SmallVector<OpFoldResult> low(in.getRank(), builder.getIndexAttr(0));
    SmallVector<OpFoldResult> high = low;
    high[dim] = builder.getIndexAttr(missing);
    SmallVector<int64_t> shape(in.getShape());
    shape[dim] += missing;
    Value zero = arith::ConstantOp::create(
        builder, loc, builder.getZeroAttr(in.getElementType()));
    source = tensor::PadOp::create(
        builder, loc, RankedTensorType::get(shape, in.getElementType()), source,
        low, high, zero);
  }
  Value offset = arith::MulIOp::create(
      builder, loc, axisNumber(builder, loc, group),
      arith::ConstantIndexOp::create(builder, loc, block));
  SmallVector<OpFoldResult> offsets(in.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(in.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t size : out.getShape())
    sizes.push_back(builder.getIndexAttr(size));
  offsets[dim] = offset;
  op.getResult().replaceAllUsesWith(tensor::ExtractSliceOp::create(
      builder, loc, out, source, offsets, sizes, strides));
  op->erase();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

static bool isCollective(Operation *op) {
  return isa<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp, PermuteOp,
             HaloExchangeOp>(op);
}

/// What the runtime needs: a known element type and static shapes.
static LogicalResult verifyCollective(Operation *op) {
  auto in = cast<RankedTensorType>(op->getOperand(0).getType());
  if (!in.hasStaticShape())
    return op->emitError("expected an operand of static shape but got ") << in;
  if (!getRuntimeDtype(in.getElementType()))
    return op->emitError("expected elements that the runtime has (i1, i8, i16, "
                         "i32, i64, f16, bf16, f32, f64) but got ")
           << in.getElementType();
  return success();
}

namespace {
struct ConvertHyperShardToRuntimePass
    : impl::ConvertHyperShardToRuntimeBase<ConvertHyperShardToRuntimePass> {
  using ConvertHyperShardToRuntimeBase::ConvertHyperShardToRuntimeBase;
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    WalkResult walked = getOperation().walk([&](Operation *op) {
      if (!isa<HyperShardDialect>(op->getDialect()) || isa<MeshOp>(op))
        return WalkResult::advance();
      if (!isCollective(op) && !isa<AxisIndexOp, SliceLocalOp>(op)) {
        op->emitError("expected the program of one device but got ")
            << op->getName() << "; run hypershard-partition-program first";
        return WalkResult::interrupt();
      }
      if (!isa<AxisIndexOp>(op) && failed(verifyCollective(op)))
        return WalkResult::interrupt();
      ops.push_back(op);
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    Rewriter rewriter(getOperation(), blocksFirst);
    for (Operation *op : ops) {
      if (auto index = dyn_cast<AxisIndexOp>(op))
        rewriter.rewriteAxisIndex(index);
      else if (auto slice = dyn_cast<SliceLocalOp>(op))
        rewriter.rewriteSliceLocal(slice);
      else
        rewriter.rewriteCollective(op);
      ++numConverted;
    }
    for (auto mesh :
         llvm::make_early_inc_range(getOperation().getOps<MeshOp>()))
      mesh->erase();
  }
};
} // namespace

} // namespace mlir::hyperparallel
