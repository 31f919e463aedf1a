//===- CompileProgram.cpp - One device's program to a .so -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   1. Describe the entries, while they still have tensors and names.
//   2. Lower (lib/Pipelines), emit, link; print kernels of a device as PTX.
//   3. Write the description last: where it is, the program is whole.
//
//===----------------------------------------------------------------------===//

#include "lib/CodeGen/CompileProgram.h"

#include "dialects/Offload/Offload.h"
#include "lib/CodeGen/DeviceEmitter.h"
#include "lib/Pipelines/LowerToCPU.h"
#include "lib/Pipelines/LowerToDevice.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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

/// The kernels of a lowered program.
static llvm::json::Array describeKernels(ModuleOp kernels) {
  llvm::json::Array described;
  for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>())
    if (auto threads = kernel->getAttrOfType<IntegerAttr>("hp.threads"))
      described.push_back(llvm::json::Object{{"name", kernel.getSymName()},
                                             {"threads", threads.getInt()}});
  return described;
}

/// Fragments of HFusion, as one module that Ascend's compiler takes; their
/// names are added to `described`.
static std::string printFragments(ModuleOp kernels,
                                  llvm::json::Array &described) {
  std::string text = "module {\n";
  auto fragments = kernels->getAttrOfType<ArrayAttr>("hp.fragments");
  for (Attribute fragment :
       fragments ? fragments.getValue() : ArrayRef<Attribute>()) {
    auto pair = cast<ArrayAttr>(fragment).getValue();
    StringRef name = cast<StringAttr>(pair[0]).getValue();
    StringRef body = cast<StringAttr>(pair[1]).getValue();
    body.consume_front("func.func @fragment(");
    text += ("func.func @" + name + "(" + body).str();
    described.push_back(llvm::json::Object{{"name", name}});
  }
  return text + "}\n";
}

/// How many calls of each function of the runtime the program's text has.
static llvm::json::Object countCalls(ModuleOp program) {
  llvm::json::Object calls;
  program.walk([&](LLVM::CallOp call) {
    std::optional<StringRef> callee = call.getCallee();
    if (!callee || !callee->starts_with("hp_rt_"))
      return;
    int64_t before = calls.getInteger(*callee).value_or(0);
    calls[*callee] = before + 1;
  });
  return calls;
}

/// What a pass has counted: what the calls of products do at their end, and why
/// not more (`hp.epilogues`, FoldEpilogues); what became of attention
/// (`hp.attention`, FormAttention); which operators of a vendor are called
/// (`hp.operations`, LaunchDeviceKernels), and why (`hp.choices`,
/// ChooseOperators).
static llvm::json::Object describeCounts(ModuleOp program, StringRef name) {
  llvm::json::Object counts;
  if (auto told = program->getAttrOfType<DictionaryAttr>(name))
    for (NamedAttribute entry : told)
      counts[entry.getName().str()] =
          cast<IntegerAttr>(entry.getValue()).getInt();
  return counts;
}

/// What ReserveWorkspace has reserved for libraries; null: nothing.
static llvm::json::Value describeWorkspace(ModuleOp program) {
  auto reserved = program->getAttrOfType<DictionaryAttr>("hp.reserved");
  if (!reserved)
    return nullptr;
  return llvm::json::Object{
      {"bytes", reserved.getAs<IntegerAttr>("bytes").getInt()},
      {"calls", reserved.getAs<IntegerAttr>("calls").getInt()},
      {"because", reserved.getAs<StringAttr>("because").getValue()}};
}

static std::string getText(llvm::json::Object description) {
  return llvm::formatv("{0}\n", llvm::json::Value(std::move(description)))
      .str();
}

/// The kernels, taken out of the program.
static OwningOpRef<ModuleOp> takeKernels(ModuleOp program) {
  auto kernels = program.lookupSymbol<ModuleOp>("hp_device");
  if (kernels)
    kernels->remove();
  return kernels;
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
  bool hasKernels = !options.kernelsPath.empty();
  bool isAscend = StringRef(options.architecture).starts_with("Ascend");
  if (hasKernels && isAscend)
    buildLowerToFragmentsPipeline(manager);
  else if (hasKernels)
    buildLowerToDevicePipeline(manager);
  else
    buildLowerToCPUPipeline(manager);
  manager.enableVerifier(false);
  if (failed(manager.run(module)))
    return failure();
  addPeaks(module, *entries);
  llvm::json::Object description{{"version", 1},
                                 {"entries", std::move(*entries)}};
  ObjectCache cache(options.cacheDirectory);
  if (hasKernels && isAscend) {
    OwningOpRef<ModuleOp> kernels = takeKernels(module);
    llvm::json::Array described;
    std::string text = printFragments(*kernels, described);
    if (failed(writeFile(module, options.kernelsPath, text)))
      return failure();
    description["kernels"] = std::move(described);
    description["calls"] = countCalls(module);
    description["operations"] = describeCounts(module, "hp.operations");
    description["choices"] = describeCounts(module, "hp.choices");
    description["attention"] = describeCounts(module, "hp.attention");
    description["workspace"] = describeWorkspace(module);
  } else if (hasKernels) {
    OwningOpRef<ModuleOp> kernels = takeKernels(module);
    FailureOr<std::string> ptx = emitPTX(*kernels, options.architecture, cache);
    if (failed(ptx) || failed(writeFile(module, options.kernelsPath, *ptx)))
      return failure();
    description["kernels"] = describeKernels(*kernels);
    description["calls"] = countCalls(module);
    description["epilogues"] = describeCounts(module, "hp.epilogues");
    description["attention"] = describeCounts(module, "hp.attention");
    description["workspace"] = describeWorkspace(module);
  }
  FailureOr<SmallVector<std::string>> objects =
      emitObjects(module, cache, options.numThreads, statistics);
  if (failed(objects) ||
      failed(linkSharedObject(module, *objects, options.path)))
    return failure();
  return writeFile(module, descriptionPath, getText(std::move(description)));
}

} // namespace mlir::hyperparallel
