//===- OffloadDialect.cpp - registration, attributes, types ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Offload/Offload.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::offload;

#include "dialects/Offload/OffloadDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Offload/OffloadAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Offload/OffloadTypes.cpp.inc"

void OffloadDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Offload/OffloadAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Offload/OffloadTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Offload/OffloadOps.cpp.inc"
      >();
}

TierAttr offload::getTier(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<TierAttr>(tensor.getEncoding()) : TierAttr();
}

RankedTensorType offload::inTier(RankedTensorType type, TierAttr tier) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), tier);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult TierAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               StringAttr name) {
  if (name.getValue().empty())
    return emitError() << "expected the name of a tier but got an empty one";
  return success();
}

Attribute TierAttr::parse(AsmParser &parser, Type) {
  std::string name;
  if (parser.parseLess() || parser.parseKeywordOrString(&name) ||
      parser.parseGreater())
    return {};
  return TierAttr::getChecked(
      [&] { return parser.emitError(parser.getNameLoc()); },
      parser.getContext(), parser.getBuilder().getStringAttr(name));
}

void TierAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printKeywordOrString(getName().getValue());
  printer << '>';
}

LogicalResult MoveAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t value, TierAttr, int64_t evictAfter,
                               int64_t freeBefore, int64_t prefetchBefore, bool,
                               bool recomputed) {
  if (value < 0 || evictAfter < -1 || freeBefore < 0 || prefetchBefore < 0)
    return emitError() << "expected the number of a value and positions of ops";
  if (evictAfter >= freeBefore)
    return emitError()
           << "expected the value to be freed before an op after op "
           << evictAfter << ", which it is evicted after, but got op "
           << freeBefore;
  if (prefetchBefore < freeBefore && prefetchBefore > evictAfter)
    return emitError() << "expected the value to come back before op "
                       << freeBefore
                       << " or a later one, or, around the end of "
                       << "the step, no later than op " << evictAfter
                       << ", but got op " << prefetchBefore;
  if (recomputed && prefetchBefore <= evictAfter)
    return emitError() << "expected what lives in a tier between steps to be "
                          "copied but got one that is recomputed";
  return success();
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

LogicalResult OffloadDialect::verifyOperationAttribute(Operation *op,
                                                       NamedAttribute attr) {
  if (attr.getName() != kMovesAttrName)
    return op->emitError() << "unknown attribute `" << attr.getName().getValue()
                           << "` of the offload dialect";
  auto moves = dyn_cast<ArrayAttr>(attr.getValue());
  if (!isa<FunctionOpInterface>(op) || !moves ||
      !llvm::all_of(moves, llvm::IsaPred<MoveAttr>))
    return op->emitError() << "expected `" << kMovesAttrName
                           << "` to be an array of #offload.move on a function";
  return success();
}

LogicalResult OffloadDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                       unsigned argument,
                                                       NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  StringRef name = attr.getName().getValue();
  if (!function || (name != kPlaceAttrName && name != kKeepAttrName))
    return op->emitError() << "unknown attribute `" << name
                           << "` of the offload dialect";
  if (name == kPlaceAttrName && !isa<TierAttr>(attr.getValue()))
    return op->emitError() << "argument " << argument
                           << ": expected a #offload.tier but got "
                           << attr.getValue();
  if (name == kKeepAttrName && !isa<UnitAttr>(attr.getValue()))
    return op->emitError() << "argument " << argument << ": expected `" << name
                           << "` without a value but got " << attr.getValue();
  Type type = function.getArgumentTypes()[argument];
  if (!isa<RankedTensorType>(type))
    return op->emitError() << "argument " << argument
                           << ": expected a tensor to "
                           << "place but got " << type;
  if (function.getArgAttr(argument, kPlaceAttrName) &&
      function.getArgAttr(argument, kKeepAttrName))
    return op->emitError()
           << "argument " << argument
           << ": expected it to be kept on the device or placed "
           << "in a tier but got both; remove one";
  return success();
}
