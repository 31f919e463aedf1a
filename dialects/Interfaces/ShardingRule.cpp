//===- ShardingRule.cpp - how the dimensions of an op relate --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/ShardingRule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::hyperparallel;

#include "dialects/Interfaces/Reduction.cpp.inc"

bool ShardingRule::isElementwise() const {
  if (results.empty())
    return false;
  for (const Factor &factor : factors)
    if (factor.kind == FactorKind::Reduction)
      return false;
  return llvm::all_of(operands, [&](const RuleTensor &tensor) {
    return tensor.dims == results.front().dims;
  });
}

/// Factor 0 is `i`, as in a textbook; after `z` come `a1`, `b1`, ...
static void printFactorName(raw_ostream &os, unsigned factor) {
  unsigned letter = (factor + ('i' - 'a')) % 26;
  os << char('a' + letter);
  if (unsigned round = (factor + ('i' - 'a')) / 26)
    os << round;
}

static void printTensor(raw_ostream &os, const RuleTensor &tensor) {
  os << '[';
  llvm::interleaveComma(tensor.dims, os, [&](ArrayRef<unsigned> factors) {
    if (factors.empty())
      os << '1';
    for (unsigned factor : factors)
      printFactorName(os, factor);
  });
  os << ']';
}

void ShardingRule::print(raw_ostream &os) const {
  auto printAll = [&](ArrayRef<RuleTensor> tensors) {
    os << '(';
    llvm::interleaveComma(tensors, os, [&](const RuleTensor &tensor) {
      printTensor(os, tensor);
    });
    os << ')';
  };
  printAll(operands);
  os << " -> ";
  printAll(results);
  os << " {";
  for (auto [index, factor] : llvm::enumerate(factors)) {
    if (index)
      os << ", ";
    printFactorName(os, index);
    os << '=' << factor.size;
    if (factor.kind == FactorKind::Reduction)
      os << " reduction<" << stringifyReduction(*factor.reduction) << '>';
    if (factor.kind == FactorKind::NeedReplication)
      os << " need_replication";
    if (factor.kind == FactorKind::Window)
      os << " window";
  }
  os << '}';
}
