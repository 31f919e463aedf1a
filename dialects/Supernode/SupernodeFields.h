//===- SupernodeFields.h - `key = value` lists ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Every part of a machine ends in a list of fields, in any order; a key that is
// unknown, given twice or missing is an error that says which are expected.
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_SUPERNODE_SUPERNODEFIELDS_H
#define HYPERPARALLEL_DIALECTS_SUPERNODE_SUPERNODEFIELDS_H

#include "dialects/Supernode/Supernode.h"
#include "mlir/IR/OpImplementation.h"

namespace mlir::hyperparallel::supernode {

/// One field: how its value is read, and whether it may be left out.
struct Field {
  StringRef key;
  std::function<ParseResult()> parseValue;
  bool optional = false;
};

/// `(, key = value)*` and the closing `>`.
ParseResult parseFields(AsmParser &parser, ArrayRef<Field> fields);

/// A number with or without a fraction.
ParseResult parseQuantity(AsmParser &parser, Quantity &quantity);

/// A name in quotation marks, escaped as MLIR reads it.
struct Quoted {
  StringRef name;
};
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Quoted quoted);

/// `["a", "b"]`.
ParseResult parseNames(AsmParser &parser, SmallVectorImpl<StringAttr> &names);
void printNames(AsmPrinter &printer, ArrayRef<StringAttr> names);

/// `[<part>, <part>]`: each part in its own attribute's syntax.
template <typename PartAttr>
ParseResult parseParts(AsmParser &parser, SmallVectorImpl<PartAttr> &parts) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    auto part = dyn_cast_or_null<PartAttr>(PartAttr::parse(parser, Type()));
    if (part)
      parts.push_back(part);
    return success(bool(part));
  });
}

template <typename PartAttr>
void printParts(AsmPrinter &printer, ArrayRef<PartAttr> parts) {
  printer << '[';
  llvm::interleaveComma(parts, printer,
                        [&](PartAttr part) { part.print(printer); });
  printer << ']';
}

} // namespace mlir::hyperparallel::supernode

#endif // HYPERPARALLEL_DIALECTS_SUPERNODE_SUPERNODEFIELDS_H
