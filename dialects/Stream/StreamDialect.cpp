//===- StreamDialect.cpp - registration and attributes --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Stream/Stream.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::hyperparallel::stream;

#include "dialects/Stream/StreamDialect.cpp.inc"
#include "dialects/Stream/StreamEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Stream/StreamAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Stream/StreamTypes.cpp.inc"

void StreamDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Stream/StreamAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Stream/StreamTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Stream/StreamOps.cpp.inc"
      >();
}

LogicalResult IdAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                             Role role, int64_t number) {
  // C1
  if (number < 0 || (role == Role::Compute && number != 0))
    return emitError() << "expected a number of at least 0, and 0 for compute, "
                          "but got "
                       << number << " for " << stringifyRole(role);
  return success();
}

LogicalResult StreamDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  if (attr.getName() != kOfAttrName)
    return op->emitError() << "unknown attribute `" << attr.getName().getValue()
                           << "` of the stream dialect";
  auto id = dyn_cast<IdAttr>(attr.getValue());
  if (!isa<FunctionOpInterface>(op) || !id || id.isCompute())
    return op->emitError() << "expected `" << kOfAttrName
                           << "` to be a stream beside compute, on a function, "
                              "but got "
                           << attr.getValue();
  return success();
}

LogicalResult StreamDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                      unsigned argument,
                                                      NamedAttribute attr) {
  auto access = dyn_cast<StringAttr>(attr.getValue());
  if (attr.getName() != kAccessAttrName || !access ||
      (access.getValue() != "read" && access.getValue() != "write"))
    return op->emitError() << "argument " << argument << ": expected `"
                           << kAccessAttrName
                           << "` to be \"read\" or \"write\" but got `"
                           << attr.getName().getValue()
                           << "` = " << attr.getValue();
  return success();
}
