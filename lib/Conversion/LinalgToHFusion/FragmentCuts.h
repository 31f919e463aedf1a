//===- FragmentCuts.h - Fragments that are cut in parts ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ascend's compiler refuses some fragments, for what their ops are together.
// Which, it says when it runs; so the texts of those that were refused are
// given to the next try, by their MD5 digests, and are cut.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_FRAGMENTCUTS_H
#define HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_FRAGMENTCUTS_H

#include "lib/Conversion/LinalgToHFusion/HFusionText.h"

#include "llvm/ADT/StringSet.h"

namespace mlir::hyperparallel {

/// A function, or one of those that it was cut into. Its tensors are numbers:
/// of the whole's arguments, then its results, then of temporary ones.
struct FragmentPart {
  std::string text;
  SmallVector<size_t> reads, writes;
};

struct CutFragment {
  SmallVector<FragmentPart> parts; ///< in order
  SmallVector<HFusionValue> temporaries;
};

/// One part, unless the text's digest is among the refused; then two halves,
/// cut where least is handed on, of which the same is true. `results` are
/// different tensors, and no arguments.
CutFragment cutFragment(const HFusionFunction &function,
                        ArrayRef<HFusionValue> results,
                        const llvm::StringSet<> &refused);

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CONVERSION_LINALGTOHFUSION_FRAGMENTCUTS_H
