//===- SupernodePresets.cpp - machines by name ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The presets are written once, as YAML with the standing of every number
// (python/hyperparallel/machines/*.yaml); SupernodePresets.inc is made of them
// by `python -m hyperparallel.machines`, and a test checks that it is fresh.
//===----------------------------------------------------------------------===//
#include "dialects/Supernode/Supernode.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;

namespace {
struct Preset {
  StringRef name;
  StringRef text;
};
} // namespace

static constexpr Preset kPresets[] = {
#include "dialects/Supernode/SupernodePresets.inc"
};

ArrayRef<StringRef> supernode::getPresetNames() {
  static const SmallVector<StringRef> names = [] {
    SmallVector<StringRef> result;
    for (const Preset &preset : kPresets)
      result.push_back(preset.name);
    return result;
  }();
  return names;
}

MachineAttr SupernodeDialect::getPreset(StringRef name) {
  const Preset *preset = llvm::find_if(
      kPresets, [&](const Preset &preset) { return preset.name == name; });
  if (preset == std::end(kPresets))
    return {};
  std::lock_guard<std::mutex> lock(presetsMutex);
  MachineAttr &machine = presets[name];
  if (!machine)
    machine = dyn_cast_or_null<MachineAttr>(
        mlir::parseAttribute(preset->text, getContext()));
  return machine;
}
