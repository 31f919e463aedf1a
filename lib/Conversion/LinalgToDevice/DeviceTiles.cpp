//===- DeviceTiles.cpp - Squares by way of shared memory ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   thread: for lines of the square: square[column, row…] = input[row…, column]
//   barrier
//   thread: for lines of the square: result[row, column…] =
//                                        f(square[column…, row], …)
//
// Both loops access the device's memory along what is contiguous there, in
// vectors, and a warp at neighbouring places. A row of the square in shared
// memory is a word longer than the square, so that a column lies in 32 banks.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToDevice/DeviceKernelWriter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

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
/// the first dimension at once; `body` gets the place of the first of them, and
/// that across.
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
  body(first, over);
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
  overTile(
      tile.neighbours, tile.rows, tile.columns, {row, column},
      [&](Value along, Value across) {
        variables[tile.column] = plus(column, across);
        for (auto [input, square] : llvm::zip_equal(tile.inputs, squares)) {
          const auto &places = input.second;
          size_t position =
              llvm::find(places, std::optional<size_t>(tile.row)) -
              places.begin();
          SmallVector<Value> lanes, elements;
          for (int64_t lane = 0; lane < tile.neighbours; ++lane) {
            lanes.push_back(plus(
                along, arith::ConstantIndexOp::create(builder, loc, lane)));
            elements.push_back(loadLane(input.first, places, position,
                                        plus(row, lanes.back()), variables,
                                        tile.neighbours, lane));
          }
          for (auto [element, lane] : llvm::zip_equal(elements, lanes))
            memref::StoreOp::create(builder, loc, element, square.first,
                                    ValueRange{across, lane});
        }
      });
  threads.barrier(builder);
  overTile(
      plan.vector, tile.columns, tile.rows, {column, row},
      [&](Value along, Value across) {
        variables[tile.row] = plus(row, across);
        auto takeElements = [&](Value place) {
          Value inTile = arith::SubIOp::create(builder, loc, place, column);
          for (auto [square, own] : squares) {
            Value element = memref::LoadOp::create(builder, loc, square,
                                                   ValueRange{inTile, across});
            memref::StoreOp::create(builder, loc, element, own);
          }
        };
        writeLanes(variables, tile.column, plus(column, along), takeElements);
      });
}

} // namespace mlir::hyperparallel
