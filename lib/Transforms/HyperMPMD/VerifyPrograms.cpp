//===- VerifyPrograms.cpp - no group waits forever ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Each nested module of a group is a process, its sends and receives in program
// order are what it does. lib/Scheduler executes them as rendezvous. Devices of
// one group do the same in the same order, so that groups stand for devices;
// collectives are among these, and each group does all of its own.
//
// Cost: linear in the programs.
//===----------------------------------------------------------------------===//
#include "lib/Scheduler/Deadlock.h"
#include "lib/Transforms/HyperMPMD/EntryProgram.h"
#include "lib/Transforms/HyperMPMD/Passes.h"

#include "llvm/ADT/StringMap.h"

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_VERIFYPROGRAMSPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

static std::string labelOf(Operation *op, StringRef peer, int64_t tag,
                           Type type) {
  std::string label;
  llvm::raw_string_ostream(label)
      << op->getName().stripDialect() << (isa<SendOp>(op) ? " to " : " from ")
      << peer << " tag " << tag << " of " << type;
  return label;
}

namespace {
struct VerifyProgramsPass
    : hypermpmd::impl::VerifyProgramsPassBase<VerifyProgramsPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    scheduler::Processes processes;
    llvm::StringMap<uint32_t> numbers;
    SmallVector<ModuleOp> programs;
    for (auto program : getOperation().getOps<ModuleOp>())
      if (auto group = program->getAttrOfType<StringAttr>(
              HyperMPMDDialect::kGroupAttrName)) {
        numbers[group.getValue()] = programs.size();
        processes.names.push_back(group.str());
        programs.push_back(program);
      }
    processes.actions.resize(programs.size());
    for (auto [number, program] : llvm::enumerate(programs)) {
      auto add = [&, &actions = processes.actions[number]](
                     Operation *op, StringRef peer, int64_t tag, Type type) {
        auto found = numbers.find(peer);
        if (found == numbers.end()) {
          op->emitOpError("expected a program of \"")
              << peer << "\" in the module";
          return WalkResult::interrupt();
        }
        scheduler::Action action;
        action.what = isa<SendOp>(op) ? scheduler::Action::What::Send
                                      : scheduler::Action::What::Receive;
        action.peer = found->second;
        action.tag = tag;
        action.label = labelOf(op, peer, tag, type);
        actions.push_back(std::move(action));
        return WalkResult::advance();
      };
      WalkResult walked = program.walk([&](Operation *op) -> WalkResult {
        if (auto send = dyn_cast<SendOp>(op))
          return add(op, send.getPeer(), send.getTag(),
                     send.getInput().getType());
        if (auto recv = dyn_cast<RecvOp>(op))
          return add(op, recv.getPeer(), recv.getTag(),
                     recv.getResult().getType());
        return WalkResult::advance();
      });
      if (walked.wasInterrupted())
        return signalPassFailure();
    }
    std::string fault =
        scheduler::findDeadlock(processes, scheduler::Semantics::Rendezvous);
    if (fault.empty())
      return;
    getOperation().emitError("expected every group to come to its end but ")
        << fault;
    signalPassFailure();
  }
};
} // namespace
