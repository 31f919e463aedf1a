//===- DeviceEmitter.cpp - Kernels in the LLVM dialect to PTX -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   1. Translate to LLVM IR; tell every kernel how many threads a block has, so
//      that registers are allotted and numbers of threads have known ranges.
//   2. Refuse what no instruction computes: LLVM would end the process.
//   3. Optimise (O3: short loops are unrolled, neighbouring accesses become
//      vectors) and print PTX. It is assembled elsewhere, for each
//      architecture: this PTX is the oldest one's.
//
//===----------------------------------------------------------------------===//

#include "lib/CodeGen/DeviceEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

using namespace mlir;

namespace mlir::hyperparallel {

static constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";

static void initializeDeviceTarget() {
  static bool once = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)once;
}

/// The oldest version of PTX that has the architecture, from 8.0 on.
static StringRef getPtxFeature(StringRef architecture) {
  unsigned number = 0;
  StringRef name = architecture.drop_front(3);
  name.consumeInteger(10, number);
  if (number == 88 || number == 110)
    return "+ptx90";
  if (number == 103 || number == 121 || name == "f")
    return "+ptx88";
  return number >= 120 ? "+ptx87" : number >= 100 ? "+ptx86" : "+ptx80";
}

/// Whether the code generator knows it; it would end the process for others.
static bool isKnownArchitecture(StringRef architecture) {
  std::string error;
  llvm::Triple triple(kTriple);
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return true; // createMachine tells of it
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(triple, "", ""));
  return info && info->isCPUStringValid(architecture);
}

static std::unique_ptr<llvm::TargetMachine>
createMachine(StringRef architecture, std::string &error) {
  llvm::Triple triple(kTriple);
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, architecture, getPtxFeature(architecture), llvm::TargetOptions(),
      std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// The name of a function that devices have no instruction for, or empty.
static std::string findUnsupported(const llvm::Module &module) {
  for (const llvm::Function &function : module) {
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty())
      return function.getName().str();
    switch (function.getIntrinsicID()) {
    case llvm::Intrinsic::exp:
    case llvm::Intrinsic::exp2:
    case llvm::Intrinsic::exp10:
    case llvm::Intrinsic::log:
    case llvm::Intrinsic::log2:
    case llvm::Intrinsic::log10:
    case llvm::Intrinsic::sin:
    case llvm::Intrinsic::cos:
    case llvm::Intrinsic::tan:
    case llvm::Intrinsic::asin:
    case llvm::Intrinsic::acos:
    case llvm::Intrinsic::atan:
    case llvm::Intrinsic::atan2:
    case llvm::Intrinsic::sinh:
    case llvm::Intrinsic::cosh:
    case llvm::Intrinsic::tanh:
    case llvm::Intrinsic::pow:
    case llvm::Intrinsic::powi:
      if (!function.use_empty())
        return function.getName().str();
      break;
    default:
      break;
    }
  }
  return "";
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes(&machine);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

FailureOr<std::string> emitPTX(ModuleOp kernels, StringRef architecture,
                               const ObjectCache &cache) {
  initializeDeviceTarget();
  if (!isKnownArchitecture(architecture))
    return kernels.emitError("expected an architecture that the code generator "
                             "knows, such as sm_80, sm_90, sm_100 or sm_120, "
                             "but got ")
           << architecture;
  registerBuiltinDialectTranslation(*kernels.getContext());
  registerLLVMDialectTranslation(*kernels.getContext());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(kernels, context, "hp_device");
  if (!module)
    return failure();
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine =
      createMachine(architecture, error);
  if (!machine)
    return kernels.emitError("no code generator for ")
           << kTriple << ": " << error;
  module->setTargetTriple(llvm::Triple(kTriple));
  module->setDataLayout(machine->createDataLayout());
  for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>()) {
    auto threads = kernel->getAttrOfType<IntegerAttr>("hp.threads");
    if (llvm::Function *function = module->getFunction(kernel.getSymName());
        function && threads) {
      function->addFnAttr("nvvm.maxntid", std::to_string(threads.getInt()));
      function->addFnAttr(llvm::Attribute::NoUnwind);
    }
  }
  if (std::string name = findUnsupported(*module); !name.empty())
    return kernels.emitError("expected functions that kernels of the device "
                             "have instructions for but got ")
           << name << "; compute it in f32, or on the CPU";

  std::string bitcode;
  {
    llvm::raw_string_ostream stream(bitcode);
    llvm::WriteBitcodeToFile(*module, stream);
  }
  std::string key = ObjectCache::getKey(
      {"ptx-1", LLVM_VERSION_STRING, architecture, StringRef(bitcode)});
  if (auto known = cache.load(key))
    return *known;
  optimise(*module, *machine);
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    return kernels.emitError("the code generator cannot print PTX");
  emission.run(*module);
  std::string ptx(text.begin(), text.end());
  cache.store(key, ptx);
  return ptx;
}

} // namespace mlir::hyperparallel
