//===- SupernodeOps.cpp - verifiers and interfaces of the ops -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Supernode/Supernode.h"

#include <cmath>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;

#define GET_OP_CLASSES
#include "dialects/Supernode/SupernodeOps.cpp.inc"

// C2.
LogicalResult
TaskOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                         ValueRange operands, DictionaryAttr attributes,
                         OpaqueProperties properties, RegionRange regions,
                         SmallVectorImpl<Type> &types) {
  TaskOpAdaptor adaptor(operands, attributes, properties, regions);
  llvm::append_range(types, adaptor.getOutputs().getTypes());
  return success();
}

OpCost TaskOp::getCost() {
  OpCost cost;
  cost.seconds = getSeconds().convertToDouble();
  if (auto flops = getFlops())
    cost.flops = flops->convertToDouble();
  if (auto bytes = getBytes())
    cost.bytesRead = bytes->convertToDouble();
  return cost;
}

LogicalResult TaskOp::verify() {
  // C1.
  for (auto [name, attr] :
       {std::pair("seconds", getSecondsAttr()),
        std::pair("flops", getFlopsAttr()), std::pair("bytes", getBytesAttr())})
    if (attr && !(attr.getValueAsDouble() >= 0 &&
                  std::isfinite(attr.getValueAsDouble())))
      return emitOpError() << "expected `" << name
                           << "` to be a finite number of at least 0 but got "
                           << attr;
  return success();
}

//===----------------------------------------------------------------------===//
// Movements
//===----------------------------------------------------------------------===//

// A kernel of no time: what moves takes time of its own.
OpCost CopyOp::getCost() { return {}; }
OpCost SendOp::getCost() { return {}; }
OpCost RecvOp::getCost() { return {}; }

Movement CopyOp::getMovement() {
  Movement movement;
  movement.kind = Movement::Kind::Copy;
  movement.bytes = byteSize(getType());
  movement.from = getFrom();
  movement.to = getTo();
  return movement;
}

/// C1 of copies.
LogicalResult CopyOp::verify() {
  if (getFrom().empty() || getTo().empty() || getFrom() == getTo())
    return emitOpError() << "expected two tiers that differ but got "
                         << getFromAttr() << " and " << getToAttr();
  return success();
}

static Movement message(Movement::Kind kind, Type type, StringRef peer,
                        int64_t tag) {
  Movement movement;
  movement.kind = kind;
  movement.bytes = byteSize(type);
  movement.peer = peer;
  movement.tag = tag;
  return movement;
}

Movement SendOp::getMovement() {
  return message(Movement::Kind::Send, getInput().getType(), getPeer(),
                 getTag());
}

Movement RecvOp::getMovement() {
  return message(Movement::Kind::Receive, getType(), getPeer(), getTag());
}

/// C1 of messages.
static LogicalResult verifyTag(Operation *op, int64_t tag) {
  if (tag < 0)
    return op->emitOpError() << "expected a tag of at least 0 but got " << tag;
  return success();
}

LogicalResult SendOp::verify() { return verifyTag(*this, getTag()); }
LogicalResult RecvOp::verify() { return verifyTag(*this, getTag()); }
