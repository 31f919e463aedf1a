//===- ObjectEmitter.cpp - From the LLVM dialect to objects ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   1. Translate to LLVM IR; give every function this processor's features.
//   2. Cut the module in parts. Kernels are small functions of their own, so a
//      part costs what its functions cost, and no inlining crosses parts.
//   3. Each part, as bitcode, is a cache key. What is missing is optimised (O2,
//      with the loop and SLP vectorisers) and emitted in a context of its own,
//      several at a time.
//
// The cut depends on the module only, so the same input gives the same bytes
// with any number of threads.
//
//===----------------------------------------------------------------------===//

#include "lib/CodeGen/ObjectEmitter.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/Transforms/Utils/SplitModule.h"

using namespace mlir;

namespace mlir::hyperparallel {

/// Functions a part holds, about. Small parts reuse more of the cache.
static constexpr size_t kFunctionsPerPart = 8;
static constexpr size_t kMaxParts = 16;

namespace {
/// The processor this program runs on.
struct Host {
  std::string triple = llvm::sys::getProcessTriple();
  std::string cpu = llvm::sys::getHostCPUName().str();
  std::string features;

  Host() {
    llvm::SubtargetFeatures list;
    // In a fixed order: the features are part of the cache key.
    llvm::StringMap<bool> known = llvm::sys::getHostCPUFeatures();
    SmallVector<StringRef> names = llvm::to_vector(known.keys());
    llvm::sort(names);
    for (StringRef name : names)
      list.AddFeature(name, known[name]);
    features = list.getString();
  }

  std::unique_ptr<llvm::TargetMachine> createMachine(std::string &error) const {
    llvm::Triple parsed(triple);
    const llvm::Target *target =
        llvm::TargetRegistry::lookupTarget(parsed, error);
    if (!target)
      return nullptr;
    return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
        parsed, cpu, features, llvm::TargetOptions(), llvm::Reloc::PIC_,
        std::nullopt, llvm::CodeGenOptLevel::Default));
  }
};

/// One part of the program: what it is made from, and what came of it.
struct Part {
  std::string bitcode;
  std::string key;
  std::string object;
  std::string error;
};
} // namespace

static void initializeHostTarget() {
  static bool once = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)once;
}

/// Optimises and emits one part; sets its object or its error.
static void compilePart(Part &part, const Host &host) {
  llvm::LLVMContext context;
  auto module = llvm::parseBitcodeFile(
      llvm::MemoryBufferRef(part.bitcode, "part"), context);
  if (!module) {
    part.error = llvm::toString(module.takeError());
    return;
  }
  std::unique_ptr<llvm::TargetMachine> machine = host.createMachine(part.error);
  if (!machine)
    return;

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  llvm::PassBuilder passes(machine.get(), tuning);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(**module, modules);

  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr,
                                   llvm::CodeGenFileType::ObjectFile)) {
    part.error = "this processor's back end cannot emit object files";
    return;
  }
  emission.run(**module);
  part.object.assign(object.begin(), object.end());
}

/// Step 1.
static std::unique_ptr<llvm::Module>
translate(ModuleOp module, llvm::LLVMContext &context, const Host &host) {
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, context, "hyperparallel");
  if (!translated)
    return nullptr;
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = host.createMachine(error);
  if (!machine) {
    module.emitError("no code generator for ") << host.triple << ": " << error;
    return nullptr;
  }
  translated->setTargetTriple(llvm::Triple(host.triple));
  translated->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *translated) {
    if (function.isDeclaration())
      continue;
    // Nothing is interposed and nothing unwinds.
    function.setDSOLocal(true);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (!function.getName().starts_with("hp_entry_"))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  return translated;
}

/// Step 2.
static SmallVector<Part, 0> cutModule(llvm::Module &module) {
  size_t numFunctions = llvm::count_if(
      module, [](const llvm::Function &f) { return !f.isDeclaration(); });
  size_t numParts = std::clamp<size_t>(
      (numFunctions + kFunctionsPerPart - 1) / kFunctionsPerPart, 1, kMaxParts);
  SmallVector<Part, 0> parts;
  auto add = [&](const llvm::Module &part) {
    Part &added = parts.emplace_back();
    llvm::raw_string_ostream stream(added.bitcode);
    llvm::WriteBitcodeToFile(part, stream);
  };
  if (numParts == 1)
    add(module);
  else
    llvm::SplitModule(
        module, numParts,
        [&](std::unique_ptr<llvm::Module> part) { add(*part); },
        /*PreserveLocals=*/false, /*RoundRobin=*/true);
  return parts;
}

FailureOr<SmallVector<std::string>>
emitObjects(ModuleOp module, const ObjectCache &cache, unsigned numThreads,
            EmissionStatistics &statistics) {
  initializeHostTarget();
  Host host;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated = translate(module, context, host);
  if (!translated)
    return failure();
  SmallVector<Part, 0> parts = cutModule(*translated);
  for (Part &part : parts) {
    part.key =
        ObjectCache::getKey({"object-1", LLVM_VERSION_STRING, host.triple,
                             host.cpu, host.features, StringRef(part.bitcode)});
    if (auto known = cache.load(part.key)) {
      part.object = std::move(*known);
      ++statistics.numCached;
    }
    ++statistics.numObjects;
  }
  {
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency(numThreads));
    for (Part &part : parts)
      if (part.object.empty())
        pool.async([&part, &host, &cache] {
          compilePart(part, host);
          if (!part.object.empty())
            cache.store(part.key, part.object);
        });
    pool.wait();
  }
  SmallVector<std::string> objects;
  for (Part &part : parts) {
    if (!part.error.empty())
      return module.emitError("cannot compile the program: ") << part.error;
    objects.push_back(std::move(part.object));
  }
  return objects;
}

//===----------------------------------------------------------------------===//
// Linking
//===----------------------------------------------------------------------===//

namespace {
/// Files that vanish with the scope.
struct TemporaryFiles {
  SmallVector<std::string> paths;
  ~TemporaryFiles() {
    for (const std::string &path : paths)
      llvm::sys::fs::remove(path);
  }
};
} // namespace

LogicalResult linkSharedObject(ModuleOp module, ArrayRef<std::string> objects,
                               StringRef path) {
  const char *given = std::getenv("CC");
  StringRef name = given && *given ? given : "cc";
  llvm::ErrorOr<std::string> compiler = llvm::sys::findProgramByName(name);
  if (!compiler)
    return module.emitError("no C compiler to link with: '")
           << name << "' is not on the PATH; install gcc or clang, or set CC";

  TemporaryFiles temporary;
  auto fail = [&](const Twine &reason) {
    return module.emitError("cannot write ") << path << ": " << reason;
  };
  for (const std::string &object : objects) {
    SmallString<128> file;
    int descriptor;
    if (std::error_code code = llvm::sys::fs::createTemporaryFile(
            "hyperparallel", "o", descriptor, file))
      return fail(code.message());
    temporary.paths.push_back(file.str().str());
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << object;
    stream.close();
    if (stream.has_error()) {
      stream.clear_error();
      return fail("the temporary directory is full");
    }
  }
  SmallString<128> linked, messages;
  if (std::error_code code =
          llvm::sys::fs::createUniqueFile(path + ".%%%%%%%%", linked))
    return fail(code.message());
  temporary.paths.push_back(linked.str().str());
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("hyperparallel", "txt", messages))
    return fail(code.message());
  temporary.paths.push_back(messages.str().str());

  SmallVector<StringRef> arguments = {*compiler, "-shared", "-o", linked};
  for (const std::string &file :
       ArrayRef(temporary.paths).take_front(objects.size()))
    arguments.push_back(file);
  arguments.push_back("-lm");
  std::optional<StringRef> redirects[] = {StringRef(""), messages.str(),
                                          messages.str()};
  std::string error;
  int status = llvm::sys::ExecuteAndWait(*compiler, arguments, std::nullopt,
                                         redirects, 0, 0, &error);
  if (status != 0) {
    auto text = llvm::MemoryBuffer::getFile(messages);
    return module.emitError("linking with ")
           << *compiler << " failed: " << error
           << (text ? (*text)->getBuffer().trim() : StringRef());
  }
  llvm::sys::fs::setPermissions(linked, llvm::sys::fs::all_read |
                                            llvm::sys::fs::all_exe |
                                            llvm::sys::fs::owner_write);
  if (std::error_code code = llvm::sys::fs::rename(linked, path))
    return fail(code.message());
  return success();
}

} // namespace mlir::hyperparallel
