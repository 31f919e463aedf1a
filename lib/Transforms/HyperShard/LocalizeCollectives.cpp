//===- LocalizeCollectives.cpp - collectives on the parts of tensors ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// In global form a collective says what happens to a layout, and both its types
// are the global one; in local form it works on one device's part.
//
// A dimension of size n over k devices is cut in blocks of ceil(n/k), and
// blocks of blocks need not be blocks: 5 over 2 is 3 + 2, each over 2 again 2 1
// 2 -, but 5 over 4 is 2 2 1 -. So gathering or slicing a proper part of a
// dimension's axes works on blocks only where they nest. Where all axes of a
// dimension are involved, the tail is cut off or zeros are added. Anything else
// goes through the whole dimension: gather all, trim, slice; more bytes, never
// wrong values. (The reshard planner avoids it.)
//===----------------------------------------------------------------------===//
#include "lib/ExternalModels/TensorEdits.h"
#include "lib/Transforms/HyperShard/LocalProgram.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

bool hypershard::isGlobalCollective(Operation *op) {
  return isa<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp, PermuteOp,
             SliceLocalOp>(op);
}

namespace {
/// One collective op: the local value on its way from one layout to the other.
class CollectiveLocalizer {
public:
  CollectiveLocalizer(Operation *op, LocalProgram &program)
      : op(op), program(program), b(program.builder), loc(op->getLoc()),
        global(cast<RankedTensorType>(op->getResult(0).getType())),
        from(program.layouts.of(op->getOperand(0))),
        to(program.layouts.of(op->getResult(0))),
        value(program.local(op->getOperand(0))) {}

  LogicalResult run();

private:
  AxisList axesOf(ArrayAttr attr) const {
    return program.layouts.mesh().fromAttrs(attr);
  }
  int64_t size(int64_t dim) const { return global.getDimSize(dim); }
  int64_t localSize(int64_t dim) const {
    return cast<RankedTensorType>(value.getType()).getDimSize(dim);
  }
  void gather(int64_t dim, ArrayRef<Axis> axes);
  void slice(int64_t dim, ArrayRef<Axis> axes);
  void reduce(Reduction kind, ArrayRef<Axis> axes);
  void gatherDim(int64_t dim, const AxisList &rest, ArrayRef<Axis> axes);
  void sliceDimOver(int64_t dim, const AxisList &before, ArrayRef<Axis> axes);
  LogicalResult allGather(AllGatherOp op);
  LogicalResult allReduce(AllReduceOp op);
  LogicalResult reduceScatter(ReduceScatterOp op);
  LogicalResult allToAll(AllToAllOp op);
  LogicalResult permute(PermuteOp op);
  LogicalResult sliceLocal(SliceLocalOp op);
  LogicalResult mismatch(const TensorLayout &expected);

  Operation *op;
  LocalProgram &program;
  OpBuilder &b;
  Location loc;
  RankedTensorType global;
  TensorLayout from, to;
  Value value;
};
} // namespace

static AxisList concatAxes(ArrayRef<Axis> head, ArrayRef<Axis> tail) {
  AxisList axes(head);
  axes.append(tail.begin(), tail.end());
  return mergeAxes(axes);
}

/// Blocks over `outer * inner` devices make up the blocks over `outer` devices.
static bool blocksNest(int64_t size, int64_t outer, int64_t inner) {
  return inner * blockSize(size, outer * inner) == blockSize(size, outer);
}

//===----------------------------------------------------------------------===//
// Plain local collectives
//===----------------------------------------------------------------------===//

void CollectiveLocalizer::gather(int64_t dim, ArrayRef<Axis> axes) {
  if (axes.empty())
    return;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] *= numShards(axes);
  value = AllGatherOp::create(b, loc, type.clone(shape), value,
                              program.layouts.meshName, program.axesAttr(axes),
                              b.getI64IntegerAttr(dim));
}

void CollectiveLocalizer::slice(int64_t dim, ArrayRef<Axis> axes) {
  if (axes.empty())
    return;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = blockSize(shape[dim], numShards(axes));
  value = SliceLocalOp::create(b, loc, type.clone(shape), value,
                               program.layouts.meshName, program.axesAttr(axes),
                               b.getI64IntegerAttr(dim));
}

void CollectiveLocalizer::reduce(Reduction kind, ArrayRef<Axis> axes) {
  if (axes.empty())
    return;
  value = AllReduceOp::create(b, loc, value.getType(), value,
                              program.layouts.meshName, program.axesAttr(axes),
                              ReductionAttr::get(b.getContext(), kind));
}

/// From the dimension split over rest ++ axes to split over rest.
void CollectiveLocalizer::gatherDim(int64_t dim, const AxisList &rest,
                                    ArrayRef<Axis> axes) {
  int64_t outer = numShards(rest);
  if (outer == 1 || blocksNest(size(dim), outer, numShards(axes))) {
    gather(dim, axes);
    value = resizeDim(b, loc, value, dim, blockSize(size(dim), outer));
    return;
  }
  gather(dim, concatAxes(rest, axes));
  value = resizeDim(b, loc, value, dim, size(dim));
  slice(dim, rest);
}

/// From the dimension split over before to split over before ++ axes.
void CollectiveLocalizer::sliceDimOver(int64_t dim, const AxisList &before,
                                       ArrayRef<Axis> axes) {
  int64_t outer = numShards(before);
  if (outer != 1 && !blocksNest(size(dim), outer, numShards(axes))) {
    gather(dim, before);
    value = resizeDim(b, loc, value, dim, size(dim));
    slice(dim, concatAxes(before, axes));
    return;
  }
  slice(dim, axes);
}

//===----------------------------------------------------------------------===//
// Each collective
//===----------------------------------------------------------------------===//

LogicalResult CollectiveLocalizer::mismatch(const TensorLayout &expected) {
  return op->emitOpError() << "expected its sharding to be "
                           << program.layouts.print(expected)
                           << ", which is what it makes of its operand's, but "
                              "got "
                           << program.layouts.print(to);
}

LogicalResult CollectiveLocalizer::allGather(AllGatherOp gatherOp) {
  int64_t dim = gatherOp.getDim();
  AxisList axes = axesOf(gatherOp.getAxes());
  TensorLayout expected = from;
  expected.dims[dim] = to.dims[dim];
  if (expected != to || concatAxes(to.dims[dim], axes) != from.dims[dim])
    return mismatch(expected);
  gatherDim(dim, to.dims[dim], axes);
  return success();
}

/// Removes `axes` from what a layout is partial over; false if they are not all
/// there.
static bool reducePartial(TensorLayout &layout, ArrayRef<Axis> axes,
                          const MeshAxes &mesh) {
  // Cut all to the finest parts in which both can be written.
  AxisList rest;
  for (Axis partial : layout.partial) {
    SmallVector<Axis> inside;
    for (Axis axis : axes)
      if (axis.overlaps(partial))
        inside.push_back(axis);
    llvm::sort(inside);
    int64_t pre = partial.pre;
    for (Axis axis : inside) {
      if (axis.pre < pre || axis.pre % pre != 0)
        return false;
      if (axis.pre > pre)
        rest.push_back({partial.axis, pre, axis.pre / pre});
      pre = axis.pre * axis.size;
    }
    int64_t end = partial.pre * partial.size;
    if (pre > end || end % pre != 0)
      return false;
    if (pre < end)
      rest.push_back({partial.axis, pre, end / pre});
  }
  if (numShards(rest) * numShards(axes) != numShards(layout.partial))
    return false;
  layout.setPartial(layout.kind, rest);
  return true;
}

LogicalResult CollectiveLocalizer::allReduce(AllReduceOp reduceOp) {
  AxisList axes = axesOf(reduceOp.getAxes());
  // Copies are terms of a maximum, or an average, of themselves: nothing moves.
  if (axes.empty()) {
    TensorLayout expected = from;
    expected.setPartial(to.kind, to.partial);
    bool isIdempotent = to.kind != Reduction::Sum && to.kind != Reduction::Prod;
    if (expected != to || (to.partial != from.partial && !isIdempotent))
      return mismatch(from);
    return success();
  }
  TensorLayout expected = from;
  if (from.kind != reduceOp.getKind() ||
      !reducePartial(expected, axes, program.layouts.mesh()))
    return op->emitOpError()
           << "expected an operand that is partial over its axes but got "
           << program.layouts.print(from);
  if (expected != to)
    return mismatch(expected);
  reduce(reduceOp.getKind(), axes);
  return success();
}

LogicalResult CollectiveLocalizer::reduceScatter(ReduceScatterOp scatterOp) {
  int64_t dim = scatterOp.getDim();
  AxisList axes = axesOf(scatterOp.getAxes());
  Reduction kind = scatterOp.getKind();
  TensorLayout expected = from;
  if (from.kind != kind ||
      !reducePartial(expected, axes, program.layouts.mesh()))
    return op->emitOpError()
           << "expected an operand that is partial over its axes but got "
           << program.layouts.print(from);
  expected.dims[dim] = concatAxes(from.dims[dim], axes);
  if (expected != to)
    return mismatch(expected);
  int64_t outer = numShards(from.dims[dim]), inner = numShards(axes);
  if (axes.empty())
    return success();
  if (outer != 1 && !blocksNest(size(dim), outer, inner)) {
    reduce(kind, axes);
    sliceDimOver(dim, from.dims[dim], axes);
    return success();
  }
  int64_t block = blockSize(size(dim), outer * inner);
  value = resizeDim(b, loc, value, dim, block * inner);
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = block;
  value = ReduceScatterOp::create(
      b, loc, type.clone(shape), value, program.layouts.meshName,
      program.axesAttr(axes), ReductionAttr::get(b.getContext(), kind),
      b.getI64IntegerAttr(dim));
  return success();
}

LogicalResult CollectiveLocalizer::allToAll(AllToAllOp moveOp) {
  int64_t split = moveOp.getSplitDim(), concat = moveOp.getConcatDim();
  AxisList axes = axesOf(moveOp.getAxes());
  TensorLayout expected = from;
  expected.dims[split] = concatAxes(from.dims[split], axes);
  expected.dims[concat] = to.dims[concat];
  if (expected != to || concatAxes(to.dims[concat], axes) != from.dims[concat])
    return mismatch(expected);
  if (axes.empty())
    return success();
  int64_t inner = numShards(axes);
  int64_t splitOuter = numShards(from.dims[split]);
  int64_t concatOuter = numShards(to.dims[concat]);
  bool isPlain =
      (splitOuter == 1 || blocksNest(size(split), splitOuter, inner)) &&
      (concatOuter == 1 || blocksNest(size(concat), concatOuter, inner));
  if (!isPlain) {
    gatherDim(concat, to.dims[concat], axes);
    sliceDimOver(split, from.dims[split], axes);
    return success();
  }
  value = resizeDim(b, loc, value, split,
                    inner * blockSize(size(split), splitOuter * inner));
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[split] /= inner;
  shape[concat] *= inner;
  value = AllToAllOp::create(b, loc, type.clone(shape), value,
                             program.layouts.meshName, program.axesAttr(axes),
                             b.getI64IntegerAttr(split),
                             b.getI64IntegerAttr(concat));
  value =
      resizeDim(b, loc, value, concat, blockSize(size(concat), concatOuter));
  return success();
}

/// The block of a tensor that a device holds under a layout, as a number.
static int64_t blockOf(const MeshAxes &mesh, int64_t device,
                       const TensorLayout &layout) {
  int64_t block = 0;
  for (ArrayRef<Axis> axes : layout.dims)
    block = block * numShards(axes) + mesh.linearIndex(device, axes);
  return block;
}

/// A permutation is what it claims to be if every device gets the block that it
/// needs: the device that sends it holds it. Linear in the devices.
static bool bringsBlocks(const MeshAxes &mesh, const TensorLayout &from,
                         const TensorLayout &to, ArrayRef<Axis> axes,
                         ArrayRef<Axis> toAxes) {
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    int64_t sender = device;
    for (Axis axis : axes)
      sender -= mesh.coordinate(device, axis) * mesh.stride(axis);
    int64_t number = mesh.linearIndex(device, toAxes);
    for (Axis axis : llvm::reverse(axes)) {
      sender += number % axis.size * mesh.stride(axis);
      number /= axis.size;
    }
    if (blockOf(mesh, device, to) != blockOf(mesh, sender, from))
      return false;
  }
  return true;
}

LogicalResult CollectiveLocalizer::permute(PermuteOp permuteOp) {
  AxisList axes = axesOf(permuteOp.getAxes());
  AxisList toAxes = axesOf(permuteOp.getToAxes());
  if (from.localType(global) != to.localType(global) ||
      from.partial != to.partial ||
      (!from.partial.empty() && from.kind != to.kind))
    return op->emitOpError()
           << "expected operand and result to be split into as many parts but "
              "got "
           << program.layouts.print(from) << " and "
           << program.layouts.print(to);
  for (auto [before, after] : llvm::zip_equal(from.dims, to.dims))
    if (numShards(before) != numShards(after))
      return op->emitOpError()
             << "expected operand and result to be split into as many parts "
                "but got "
             << program.layouts.print(from) << " and "
             << program.layouts.print(to);
  if (!bringsBlocks(program.layouts.mesh(), from, to, axes, toAxes))
    return op->emitOpError()
           << "does not bring the parts of " << program.layouts.print(from)
           << " to where " << program.layouts.print(to) << " needs them";
  if (!axes.empty())
    value = PermuteOp::create(b, loc, value.getType(), value,
                              program.layouts.meshName, program.axesAttr(axes),
                              program.axesAttr(toAxes));
  return success();
}

LogicalResult CollectiveLocalizer::sliceLocal(SliceLocalOp sliceOp) {
  int64_t dim = sliceOp.getDim();
  AxisList axes = axesOf(sliceOp.getAxes());
  TensorLayout expected = from;
  expected.dims[dim] = concatAxes(from.dims[dim], axes);
  if (expected != to)
    return mismatch(expected);
  sliceDimOver(dim, from.dims[dim], axes);
  return success();
}

LogicalResult CollectiveLocalizer::run() {
  LogicalResult result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case([&](AllGatherOp op) { return allGather(op); })
          .Case([&](AllReduceOp op) { return allReduce(op); })
          .Case([&](ReduceScatterOp op) { return reduceScatter(op); })
          .Case([&](AllToAllOp op) { return allToAll(op); })
          .Case([&](PermuteOp op) { return permute(op); })
          .Case([&](SliceLocalOp op) { return sliceLocal(op); })
          .Default([](Operation *op) {
            return op->emitOpError("expected a collective in global form");
          });
  if (failed(result))
    return failure();
  if (value.getType() != to.localType(global))
    return op->emitOpError()
           << "expected a local result of " << to.localType(global)
           << " but got " << value.getType();
  program.mapping.map(op->getResult(0), value);
  return success();
}

LogicalResult hypershard::localizeCollective(Operation *op,
                                             LocalProgram &program) {
  return CollectiveLocalizer(op, program).run();
}
