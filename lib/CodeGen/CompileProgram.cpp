//===- CompileProgram.cpp - One device's program to a .so -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   1. Describe the entries, while they still have tensors and names.
//   2. Lower (lib/Pipelines/LowerToCPU), emit, link.
//   3. Write the description last: where it is, the program is whole.
//
//===----------------------------------------------------------------------===//

#include "lib/CodeGen/CompileProgram.h"

#include "dialects/Offload/Offload.h"
#include "lib/Pipelines/LowerToCPU.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace mlir::hyperparallel {

/// The runtime's name of an element type, or empty.
static StringRef getDtypeName(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    switch (integer.getWidth()) {
    case 1:
      return "i1";
    case 8:
      return "i8";
    case 16:
      return "i16";
    case 32:
      return "i32";
    case 64:
      return "i64";
    default:
      return "";
    }
  }
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  if (type.isF32())
    return "f32";
  if (type.isF64())
    return "f64";
  return "";
}

/// One argument or result. `attributes` hold its name and role.
static FailureOr<llvm::json::Object>
describeTensor(func::FuncOp function, Type type, DictionaryAttr attributes) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      getDtypeName(tensor.getElementType()).empty())
    return function.emitError(
               "expected arguments and results that are tensors of static "
               "shape and of i1, i8, i16, i32, i64, f16, bf16, f32 or f64 but "
               "got ")
           << type;
  llvm::json::Object object;
  for (StringRef key : {"name", "role"})
    if (attributes)
      if (auto value = attributes.getAs<StringAttr>(("hp." + key).str()))
        object[key] = value.getValue();
  object["shape"] = llvm::json::Array(tensor.getShape());
  object["dtype"] = getDtypeName(tensor.getElementType());
  if (auto tier = offload::getTier(tensor))
    object["tier"] = tier.getName().getValue();
  return object;
}

/// What the entries take and return.
static FailureOr<llvm::json::Array> describeEntries(ModuleOp module) {
  llvm::json::Array entries;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    llvm::json::Array arguments, results;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto tensor = describeTensor(function, function.getArgumentTypes()[i],
                                   function.getArgAttrDict(i));
      if (failed(tensor))
        return failure();
      arguments.push_back(std::move(*tensor));
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      // What updates an argument is where that was.
      if (function.getResultAttr(i, "hp.updates"))
        continue;
      auto tensor = describeTensor(function, function.getResultTypes()[i],
                                   function.getResultAttrDict(i));
      if (failed(tensor))
        return failure();
      results.push_back(std::move(*tensor));
    }
    entries.push_back(llvm::json::Object{
        {"name", function.getSymName()},
        {"symbol", ("hp_entry_" + function.getSymName()).str()},
        {"arguments", std::move(arguments)},
        {"results", std::move(results)}});
  }
  if (entries.empty())
    return module.emitError("expected a public function but got none");
  return entries;
}

/// What each entry allocates at most, in each of the runtime's tiers.
static void addPeaks(ModuleOp lowered, llvm::json::Array &entries) {
  for (llvm::json::Value &value : entries) {
    llvm::json::Object &entry = *value.getAsObject();
    Operation *function =
        SymbolTable::lookupSymbolIn(lowered, *entry.getString("name"));
    auto peaks =
        function ? function->getAttrOfType<DenseI64ArrayAttr>("hp.peak_bytes")
                 : DenseI64ArrayAttr();
    if (peaks)
      entry["peak_bytes"] = llvm::json::Array(peaks.asArrayRef());
  }
}

static std::string getText(llvm::json::Array entries) {
  return llvm::formatv("{0}\n",
                       llvm::json::Value(llvm::json::Object{
                           {"version", 1}, {"entries", std::move(entries)}}))
      .str();
}

static LogicalResult writeFile(ModuleOp module, StringRef path,
                               StringRef text) {
  SmallString<128> temporary;
  int descriptor;
  if (std::error_code code = llvm::sys::fs::createUniqueFile(
          path + ".%%%%%%%%", descriptor, temporary))
    return module.emitError("cannot write ") << path << ": " << code.message();
  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << text;
  stream.close();
  std::error_code code = stream.error();
  stream.clear_error();
  if (!code)
    code = llvm::sys::fs::rename(temporary, path);
  if (!code)
    return success();
  llvm::sys::fs::remove(temporary);
  return module.emitError("cannot write ") << path << ": " << code.message();
}

LogicalResult compileProgram(ModuleOp module,
                             const CompileProgramOptions &options,
                             EmissionStatistics &statistics) {
  SmallString<128> descriptionPath(options.path);
  llvm::sys::path::replace_extension(descriptionPath, "json");
  llvm::sys::fs::remove(descriptionPath);
  FailureOr<llvm::json::Array> entries = describeEntries(module);
  if (failed(entries))
    return failure();

  PassManager manager(module->getName());
  buildLowerToCPUPipeline(manager);
  manager.enableVerifier(false);
  if (failed(manager.run(module)))
    return failure();
  addPeaks(module, *entries);
  FailureOr<SmallVector<std::string>> objects =
      emitObjects(module, ObjectCache(options.cacheDirectory),
                  options.numThreads, statistics);
  if (failed(objects) ||
      failed(linkSharedObject(module, *objects, options.path)))
    return failure();
  return writeFile(module, descriptionPath, getText(std::move(*entries)));
}

} // namespace mlir::hyperparallel
