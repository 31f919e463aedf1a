//===- VerifyPrograms.cpp - no group waits forever ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Each nested module of a group is a process, its sends and receives in program
// order are what it does. lib/Scheduler executes them as rendezvous. Devices of
// one group do the same in the same order, so that groups stand for devices;
// collectives are among these, and each group does all of its own.
//
// Those of a packet (hp.packet) are one message, sent where its last send is
// and received where its first receive is, as code generation does it; both
// sides must put the same into it.
//
// Cost: linear in the programs.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/Packets.h"
#include "lib/Scheduler/Deadlock.h"
#include "lib/Transforms/HyperMPMD/EntryProgram.h"
#include "lib/Transforms/HyperMPMD/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace mlir::hyperparallel::hypermpmd {
#define GEN_PASS_DEF_VERIFYPROGRAMSPASS
#include "lib/Transforms/HyperMPMD/Passes.h.inc"
} // namespace mlir::hyperparallel::hypermpmd

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

namespace {
/// A send or receive, or all that travel with it.
struct Message {
  SmallVector<Operation *> ops;

  bool isSend() const { return isa<SendOp>(ops.front()); }
  StringRef peer() const {
    auto send = dyn_cast<SendOp>(ops.front());
    return send ? send.getPeer() : cast<RecvOp>(ops.front()).getPeer();
  }
  /// Where it happens.
  Operation *place() const { return isSend() ? ops.back() : ops.front(); }
  std::string label() const;
};
} // namespace

static int64_t tagOf(Operation *op) {
  auto send = dyn_cast<SendOp>(op);
  return send ? send.getTag() : cast<RecvOp>(op).getTag();
}

std::string Message::label() const {
  std::string label;
  llvm::raw_string_ostream os(label);
  os << ops.front()->getName().stripDialect() << (isSend() ? " to " : " from ")
     << peer() << " tag ";
  llvm::interleave(ops, os, [&](Operation *op) { os << tagOf(op); }, ", ");
  os << " of ";
  llvm::interleave(
      ops, os,
      [&](Operation *op) {
        os << (isSend() ? op->getOperand(0) : op->getResult(0)).getType();
      },
      ", ");
  return label;
}

/// The messages of a group's program in the order in which they happen.
static SmallVector<Message> readMessages(ModuleOp program) {
  llvm::MapVector<std::pair<unsigned, int64_t>, Message> byPacket;
  DenseMap<Operation *, size_t> numbers;
  int64_t alone = -1;
  program.walk([&](Operation *op) {
    numbers[op] = numbers.size();
    if (!isa<SendOp, RecvOp>(op))
      return;
    std::optional<PacketPlace> packet = getPacketPlace(op);
    byPacket[{unsigned(isa<SendOp>(op)), packet ? packet->packet : alone--}]
        .ops.push_back(op);
  });
  SmallVector<Message> messages;
  for (auto &[key, message] : byPacket)
    messages.push_back(std::move(message));
  llvm::stable_sort(messages, [&](const Message &a, const Message &b) {
    return numbers.lookup(a.place()) < numbers.lookup(b.place());
  });
  return messages;
}

namespace {
struct VerifyProgramsPass
    : hypermpmd::impl::VerifyProgramsPassBase<VerifyProgramsPass> {
  LogicalResult add(uint32_t number, const Message &message);
  void runOnOperation() override;

  scheduler::Processes processes;
  llvm::StringMap<uint32_t> numbers;
  /// What travels with the message of a pair of groups and its first tag.
  std::map<std::tuple<uint32_t, uint32_t, int64_t>, Message> together;
};
} // namespace

LogicalResult VerifyProgramsPass::add(uint32_t number, const Message &message) {
  Operation *op = message.place();
  auto found = numbers.find(message.peer());
  if (found == numbers.end())
    return op->emitOpError("expected a program of \"")
           << message.peer() << "\" in the module";
  for (Operation *other : message.ops)
    if (other->getBlock() != op->getBlock())
      return other->emitOpError("expected what travels together to be in one "
                                "block");
  scheduler::Action action;
  action.what = message.isSend() ? scheduler::Action::What::Send
                                 : scheduler::Action::What::Receive;
  action.peer = found->second;
  action.tag = tagOf(message.ops.front());
  action.label = message.label();
  processes.actions[number].push_back(std::move(action));

  auto ends = message.isSend() ? std::pair(number, found->second)
                               : std::pair(found->second, number);
  auto [known, isNew] = together.try_emplace(
      {ends.first, ends.second, tagOf(message.ops.front())}, message);
  if (isNew || known->second.isSend() == message.isSend())
    return success();
  auto tags = [](const Message &one) {
    return llvm::map_to_vector(one.ops, tagOf);
  };
  if (tags(known->second) == tags(message))
    return success();
  InFlightDiagnostic error =
      op->emitOpError("expected what travels together to do so on both sides");
  error.attachNote(known->second.place()->getLoc())
      << "the other side is here: " << known->second.label();
  return error;
}

void VerifyProgramsPass::runOnOperation() {
  markAllAnalysesPreserved();
  processes = {};
  numbers.clear();
  together.clear();
  SmallVector<ModuleOp> programs;
  for (auto program : getOperation().getOps<ModuleOp>())
    if (auto group = program->getAttrOfType<StringAttr>(
            HyperMPMDDialect::kGroupAttrName)) {
      numbers[group.getValue()] = programs.size();
      processes.names.push_back(group.str());
      programs.push_back(program);
    }
  processes.actions.resize(programs.size());
  for (auto [number, program] : llvm::enumerate(programs))
    for (const Message &message : readMessages(program))
      if (failed(add(number, message)))
        return signalPassFailure();
  std::string fault =
      scheduler::findDeadlock(processes, scheduler::Semantics::Rendezvous);
  if (fault.empty())
    return;
  getOperation().emitError("expected every group to come to its end but ")
      << fault;
  signalPassFailure();
}
