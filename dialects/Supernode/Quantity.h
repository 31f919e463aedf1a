//===- Quantity.h - a number of a machine description -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_DIALECTS_SUPERNODE_QUANTITY_H
#define HYPERPARALLEL_DIALECTS_SUPERNODE_QUANTITY_H

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::hyperparallel::supernode {

/// A double that can be a parameter of an attribute: equal and hashed by bits.
class Quantity {
public:
  Quantity(double value = 0) : value(value) {}
  operator double() const { return value; }

private:
  double value;
};

inline bool operator==(Quantity a, Quantity b) {
  return llvm::bit_cast<uint64_t>(double(a)) ==
         llvm::bit_cast<uint64_t>(double(b));
}
inline llvm::hash_code hash_value(Quantity quantity) {
  return llvm::hash_value(llvm::bit_cast<uint64_t>(double(quantity)));
}

/// The shortest decimal that reads back as the same number, as MLIR spells it.
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Quantity quantity);

} // namespace mlir::hyperparallel::supernode

#endif // HYPERPARALLEL_DIALECTS_SUPERNODE_QUANTITY_H
