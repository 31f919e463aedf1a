//===- StateUpdates.cpp - results that are an argument's next value -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Names are looked up in a table: linear in arguments and results. A name that
// no argument has is the business of who verifies the program.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/StateUpdates.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

SmallVector<std::optional<unsigned>>
mlir::hyperparallel::getUpdatedArguments(FunctionOpInterface function) {
  SmallVector<std::optional<unsigned>> updated(function.getNumResults());
  llvm::StringMap<unsigned> arguments;
  for (unsigned result = 0; result < updated.size(); ++result) {
    auto name =
        function.getResultAttrOfType<StringAttr>(result, kUpdatesAttrName);
    if (!name)
      continue;
    if (arguments.empty())
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (auto own = function.getArgAttrOfType<StringAttr>(i, "hp.name"))
          arguments.try_emplace(own.getValue(), i);
    if (auto found = arguments.find(name.getValue()); found != arguments.end())
      updated[result] = found->second;
  }
  return updated;
}
