//===- SupernodeFields.cpp - `key = value` lists --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Supernode/SupernodeFields.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;

llvm::raw_ostream &supernode::operator<<(llvm::raw_ostream &os,
                                         Quantity quantity) {
  char buffer[64];
  std::to_chars_result end =
      std::to_chars(buffer, buffer + sizeof(buffer), double(quantity));
  StringRef text(buffer, end.ptr - buffer);
  size_t exponent = text.find('e');
  // MLIR reads an exponent only after a fraction.
  if (exponent != StringRef::npos && !text.contains('.'))
    return os << text.take_front(exponent) << ".0" << text.substr(exponent);
  return os << text;
}

llvm::raw_ostream &supernode::operator<<(llvm::raw_ostream &os, Quoted quoted) {
  os << '"';
  llvm::printEscapedString(quoted.name, os);
  return os << '"';
}

ParseResult supernode::parseFields(AsmParser &parser, ArrayRef<Field> fields) {
  llvm::SmallBitVector seen(fields.size());
  auto keys = [&](InFlightDiagnostic &error, bool missingOnly) {
    bool first = true;
    for (auto [index, field] : llvm::enumerate(fields)) {
      if (missingOnly && (seen.test(index) || field.optional))
        continue;
      error << (first ? "`" : ", `") << field.key << '`';
      first = false;
    }
  };
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef key;
    if (parser.parseKeyword(&key))
      return failure();
    const Field *field =
        llvm::find_if(fields, [&](const Field &f) { return f.key == key; });
    if (field == fields.end()) {
      InFlightDiagnostic error = parser.emitError(loc, "expected one of ");
      keys(error, /*missingOnly=*/false);
      return error << " but got `" << key << '`';
    }
    unsigned index = field - fields.begin();
    if (seen.test(index))
      return parser.emitError(loc)
             << "expected `" << key << "` once but got it twice";
    seen.set(index);
    if (parser.parseEqual() || field->parseValue())
      return failure();
  }
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseGreater())
    return failure();
  for (auto [index, field] : llvm::enumerate(fields)) {
    if (seen.test(index) || field.optional)
      continue;
    InFlightDiagnostic error = parser.emitError(loc, "expected ");
    keys(error, /*missingOnly=*/true);
    return error << " before the end";
  }
  return success();
}

ParseResult supernode::parseQuantity(AsmParser &parser, Quantity &quantity) {
  SMLoc loc = parser.getCurrentLocation();
  Attribute number;
  if (parser.parseAttribute(number))
    return failure();
  if (auto real = dyn_cast<FloatAttr>(number))
    quantity = real.getValueAsDouble();
  else if (auto integer = dyn_cast<IntegerAttr>(number))
    quantity = integer.getValue().signedRoundToDouble();
  else
    return parser.emitError(loc) << "expected a number but got " << number;
  return success();
}

ParseResult supernode::parseNames(AsmParser &parser,
                                  SmallVectorImpl<StringAttr> &names) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  });
}

void supernode::printNames(AsmPrinter &printer, ArrayRef<StringAttr> names) {
  printer << '[';
  llvm::interleaveComma(names, printer);
  printer << ']';
}
