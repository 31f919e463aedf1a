//===- ReorderCollectives.cpp - when collectives and messages are issued --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// An op's place in a local program is when it is issued; what reads its result
// waits for it. This pass chooses the places of what moves data between
// devices, and leaves what computes in its order:
//
//   compute   ├─ h.0 ─┤├─ h.1 ─┤├─ h.2 ─┤      ├ h.2' ┤├ h.1' ┤├ h.0' ┤
//   gather    h.0 h.1 ───┤ h.2 ────┤          as late as still hidden
//   reduce                                            └ h.2 ┘ └ h.1 ┘ as early
//
//   1. What takes less than it gives (reductions, exchanges, sends) is issued
//      as soon as its operand is there.
//   2. What gives more than it takes (gathers, receives) is issued as late as
//      it is still done before its first reader, by the cost model: from the
//      end, each ends when its reader begins or the next one on its stream
//      does. But never before the reader before its own begins, which is when a
//      receive is issued: what is there too early costs memory.
//   3. Sends and receives keep their order among each other, which was proved
//      free of deadlock; a receive does not hold back a later send.
//      Small ones to or from the same group that are sent, or read, less than a
//      latency apart go to one place, where they can travel together.
//   4. What takes no time (views) goes where it is needed.
//
// In, out: local form. Cost: O(n log n) in the ops of a block.
//===----------------------------------------------------------------------===//
#include "lib/Transforms/HyperShard/Passes.h"

#include "dialects/Interfaces/MovementOpInterface.h"
#include "dialects/Stream/Stream.h"
#include "dialects/Supernode/Supernode.h"
#include "lib/Analysis/CollectiveOps.h"
#include "lib/Analysis/CostModel.h"
#include "lib/Analysis/TensorLayout.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

namespace mlir::hyperparallel::hypershard {
#define GEN_PASS_DEF_REORDERCOLLECTIVESPASS
#include "lib/Transforms/HyperShard/Passes.h.inc"
} // namespace mlir::hyperparallel::hypershard

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

namespace {

/// How the place of an op is found.
enum class Placing {
  Kept,  ///< it computes, or does what nobody can tell: in the order given
  Free,  ///< it takes no time: where it is needed
  Early, ///< as soon as its operands are there
  Late   ///< as late as is still hidden
};

struct Item {
  Operation *op;
  Placing placing = Placing::Kept;
  /// Operands that are made in the block, by number.
  SmallVector<unsigned> operands;
  double seconds = 0;
  /// The stream of a collective, so to say.
  unsigned stream = 0;
  bool isMessage = false;
  /// Of a message that is cheaper to pack than to send alone.
  bool isSmall = false;
  StringRef peer;
  /// It is issued before the item of this number, at the earliest and as
  /// chosen.
  unsigned earliest = 0, place = 0;
  /// The first that reads it and has a place in the order.
  unsigned reader = 0;
  bool isIssued = false;
};

class BlockOrder {
public:
  BlockOrder(Block &block, CostModel &model) : block(block), model(model) {}
  /// False if there is nothing to choose.
  bool read();
  void choose();
  /// True if the order is another than before.
  bool write();

  int64_t numEarly = 0, numLate = 0, numHeldBack = 0;

private:
  void readItem(Item &item);
  void findEarliest();
  void findReaders();
  void placeLate();
  void orderMessages();
  void issue(unsigned number, SmallVectorImpl<Operation *> &order);

  Block &block;
  CostModel &model;
  std::vector<Item> items;
  /// When each item begins if only what computes takes time, and the end.
  std::vector<double> begins;
};

struct ReorderCollectivesPass final
    : hypershard::impl::ReorderCollectivesPassBase<ReorderCollectivesPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<supernode::SupernodeDialect>(); // the cost model's
  }
  void runOnOperation() override;
};

} // namespace

static double bytesOf(TypeRange types) {
  double bytes = 0;
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && tensor.hasStaticShape())
      bytes += byteSize(tensor);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void BlockOrder::readItem(Item &item) {
  Operation *op = item.op;
  auto collective = describeCollective(op);
  auto movement = dyn_cast<MovementOpInterface>(op);
  item.isMessage =
      movement && movement.getMovement().kind != Movement::Kind::Copy;
  if (collective && collective->kind != CollectiveKind::SliceLocal) {
    item.seconds = model.getCost(op).seconds;
    for (Axis axis : collective->axes)
      item.stream = std::max<unsigned>(item.stream, axis.axis + 1);
  } else if (!item.isMessage) {
    TaskCost cost = model.getCost(op);
    item.seconds = cost.seconds;
    bool isFree = cost.launches == 0 && isMemoryEffectFree(op) &&
                  op->getNumRegions() == 0;
    item.placing = isFree ? Placing::Free : Placing::Kept;
    return;
  }
  if (item.isMessage) {
    CommunicationCost cost(model.getCommunicationParameters());
    Movement message = movement.getMovement();
    item.peer = message.peer;
    item.isSmall = cost.copySeconds(4 * int64_t(message.bytes)) <
                   model.getCommunicationParameters().levels.back().latency;
  }
  bool grows = bytesOf(op->getResultTypes()) > bytesOf(op->getOperandTypes());
  item.placing = grows ? Placing::Late : Placing::Early;
}

bool BlockOrder::read() {
  DenseMap<Operation *, unsigned> numbers;
  bool moves = false;
  for (Operation &op : block.without_terminator()) {
    Item item{&op};
    readItem(item);
    moves |= item.placing == Placing::Early || item.placing == Placing::Late;
    llvm::SetVector<Value> operands(op.operand_begin(), op.operand_end());
    if (op.getNumRegions())
      getUsedValuesDefinedAbove(op.getRegions(), operands);
    for (Value operand : operands)
      if (auto known = numbers.find(operand.getDefiningOp());
          known != numbers.end())
        item.operands.push_back(known->second);
    numbers[&op] = items.size();
    items.push_back(std::move(item));
  }
  return moves;
}

/// When operands are there: what computes is done when the next item begins.
void BlockOrder::findEarliest() {
  for (auto [number, item] : llvm::enumerate(items)) {
    for (unsigned operand : item.operands)
      item.earliest = std::max(item.earliest, items[operand].earliest);
    if (item.placing == Placing::Kept)
      item.earliest = number + 1;
  }
}

void BlockOrder::findReaders() {
  unsigned end = items.size();
  for (Item &item : items)
    item.reader = end;
  for (unsigned number = end; number-- > 0;) {
    Item &item = items[number];
    unsigned own = item.placing == Placing::Kept   ? number
                   : item.placing == Placing::Free ? item.reader
                                                   : item.earliest;
    for (unsigned operand : item.operands)
      items[operand].reader =
          std::min(items[operand].reader, std::max(own, operand));
  }
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

void BlockOrder::placeLate() {
  unsigned end = items.size();
  begins.assign(end + 1, 0);
  for (unsigned number = 0; number < end; ++number)
    begins[number + 1] =
        begins[number] +
        (items[number].placing == Placing::Kept ? items[number].seconds : 0);
  SmallVector<unsigned> late;
  for (unsigned number = 0; number < end; ++number)
    if (items[number].placing == Placing::Late)
      late.push_back(number);
  llvm::sort(late, [&](unsigned a, unsigned b) {
    return std::make_pair(items[a].reader, a) <
           std::make_pair(items[b].reader, b);
  });
  // By reader, the one before it that reads something late, too.
  SmallVector<unsigned> before(late.size(), 0);
  for (unsigned at = 1; at < late.size(); ++at)
    before[at] = items[late[at]].reader == items[late[at - 1]].reader
                     ? before[at - 1]
                     : items[late[at - 1]].reader;
  DenseMap<unsigned, double> begun;
  for (unsigned at = late.size(); at-- > 0;) {
    Item &item = items[late[at]];
    double done = begins[item.reader];
    if (auto next = begun.find(item.stream); next != begun.end())
      done = std::min(done, next->second);
    double start = done - item.seconds;
    begun[item.stream] = start;
    // The last item that begins no later.
    auto after = std::upper_bound(begins.begin(), begins.end(), start);
    unsigned place = after == begins.begin() ? 0 : after - begins.begin() - 1;
    // When a message comes is not known.
    if (item.isMessage || place < before[at]) {
      numHeldBack += !item.isMessage;
      place = before[at];
    }
    item.place = std::max(item.earliest, std::min(place, item.reader));
    ++numLate;
  }
}

/// Their order is kept, and a receive comes no later than the next send can.
void BlockOrder::orderMessages() {
  SmallVector<Item *> messages;
  for (Item &item : items)
    if (item.isMessage)
      messages.push_back(&item);
  unsigned soonest = 0;
  for (Item *message : messages) {
    soonest = std::max(soonest, message->earliest);
    message->earliest = soonest;
    message->place = std::max(message->place, soonest);
  }
  unsigned latest = items.size();
  for (Item *message : llvm::reverse(messages)) {
    if (message->placing == Placing::Early)
      latest = std::min(latest, message->earliest);
    message->place =
        std::max(message->earliest, std::min(message->place, latest));
    latest = std::min(latest, message->place);
  }
  // Sends wait for the next, receives come with the one before.
  double latency = model.getCommunicationParameters().levels.back().latency;
  auto goTogether = [&](const Item &one, const Item &other) {
    bool isSend = one.placing == Placing::Early;
    double apart = isSend ? begins[other.place] - begins[one.place]
                          : begins[other.reader] - begins[one.reader];
    return one.isSmall && other.isSmall && one.placing == other.placing &&
           one.peer == other.peer && std::abs(apart) < latency;
  };
  for (size_t at = messages.size(); at-- > 1;)
    if (messages[at]->placing == Placing::Early &&
        goTogether(*messages[at - 1], *messages[at]))
      messages[at - 1]->place = messages[at]->place;
  for (size_t at = 1; at < messages.size(); ++at)
    if (messages[at]->placing == Placing::Late &&
        goTogether(*messages[at - 1], *messages[at]))
      messages[at]->place =
          std::max(messages[at]->earliest, messages[at - 1]->place);
}

void BlockOrder::choose() {
  findEarliest();
  findReaders();
  placeLate();
  for (Item &item : items)
    if (item.placing == Placing::Early) {
      item.place = item.earliest;
      ++numEarly;
    }
  orderMessages();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// An item behind all that it needs; what takes no time comes along.
void BlockOrder::issue(unsigned number, SmallVectorImpl<Operation *> &order) {
  SmallVector<std::pair<unsigned, unsigned>> stack = {{number, 0}};
  while (!stack.empty()) {
    auto &[at, next] = stack.back();
    Item &item = items[at];
    if (item.isIssued) {
      stack.pop_back();
      continue;
    }
    if (next < item.operands.size()) {
      unsigned operand = item.operands[next++];
      if (!items[operand].isIssued)
        stack.push_back({operand, 0});
      continue;
    }
    item.isIssued = true;
    order.push_back(item.op);
    stack.pop_back();
  }
}

bool BlockOrder::write() {
  std::vector<SmallVector<unsigned, 1>> moved(items.size() + 1);
  for (auto [number, item] : llvm::enumerate(items))
    if (item.placing == Placing::Early || item.placing == Placing::Late)
      moved[item.place].push_back(number);
  SmallVector<Operation *> order;
  for (unsigned place = 0; place <= items.size(); ++place) {
    for (unsigned number : moved[place])
      issue(number, order);
    if (place < items.size() && items[place].placing == Placing::Kept)
      issue(place, order);
  }
  for (unsigned number = 0; number < items.size(); ++number)
    issue(number, order);
  bool isNew = false;
  for (auto [item, op] : llvm::zip_equal(items, order))
    isNew |= item.op != op;
  if (isNew)
    for (Operation *op : order)
      op->moveBefore(block.getTerminator());
  return isNew;
}

void ReorderCollectivesPass::runOnOperation() {
  ModuleOp module = getOperation();
  if (module->hasAttr(stream::StreamDialect::kSynchronousAttrName))
    return markAllAnalysesPreserved();
  CostModel model(module);
  SmallVector<Block *> blocks;
  module.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      if (region.hasOneBlock() && !isa<ModuleOp>(op) &&
          region.front().mightHaveTerminator() &&
          isa<func::FuncOp, scf::ForOp>(op))
        blocks.push_back(&region.front());
  });
  SmallVector<std::unique_ptr<BlockOrder>> orders;
  // All costs are read before anything moves.
  for (Block *block : blocks) {
    auto order = std::make_unique<BlockOrder>(*block, model);
    if (order->read())
      orders.push_back(std::move(order));
  }
  for (std::unique_ptr<BlockOrder> &order : orders) {
    order->choose();
    numReordered += order->write();
    numEarly += order->numEarly;
    numLate += order->numLate;
    numHeldBack += order->numHeldBack;
  }
}
