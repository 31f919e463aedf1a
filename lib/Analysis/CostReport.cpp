//===- CostReport.cpp - the cost of every task, for people ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Analysis/CostReport.h"

#include "lib/Analysis/CollectiveOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using supernode::Quantity;

namespace {
struct Task {
  Operation *op;
  TaskCost cost;
  /// How a collective is done; empty for anything else.
  std::string algorithm;
};
} // namespace

/// The tasks of a function that take time.
static SmallVector<Task> tasksOf(FunctionOpInterface function,
                                 CostModel &model) {
  SmallVector<Task> tasks;
  for (Operation &op : function.getFunctionBody().getOps()) {
    Task task = {&op, model.getCost(&op), ""};
    if (task.cost.seconds == 0)
      continue;
    if (auto collective = describeCollective(&op))
      if (collective->kind != CollectiveKind::SliceLocal)
        task.algorithm = toString(model.getCollective(
            collective->kind, hypershard::MeshAxes(collective->mesh.getMesh()),
            collective->axes, collective->localBytes));
    tasks.push_back(task);
  }
  return tasks;
}

static StringRef calleeOf(Operation *op) {
  auto call = dyn_cast<CallOpInterface>(op);
  if (!call)
    return "";
  auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  return symbol ? symbol.getLeafReference().getValue() : StringRef();
}

static StringRef pathOf(Operation *op) {
  auto path = op->getAttrOfType<StringAttr>("hp.path");
  return path ? path.getValue() : StringRef();
}

static void printCost(const TaskCost &cost, raw_ostream &os) {
  os << " flops=" << Quantity(cost.work.flops)
     << " contraction=" << Quantity(cost.work.contractionFlops)
     << " read=" << Quantity(cost.work.bytesRead)
     << " written=" << Quantity(cost.work.bytesWritten)
     << " received=" << Quantity(cost.work.bytesReceived)
     << " seconds=" << llvm::format("%.6g", cost.seconds)
     << " bound=" << stringifyBound(cost.bound);
  if (cost.estimated)
    os << " estimated=" << Quantity(cost.estimated);
}

void hyperparallel::printCosts(ModuleOp module, CostModel &model,
                               raw_ostream &os) {
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (function.isExternal())
      continue;
    os << '@' << function.getName() << ':';
    printCost(model.getCost(function), os);
    os << '\n';
    for (const Task &task : tasksOf(function, model)) {
      os << "  " << task.op->getName();
      if (StringRef callee = calleeOf(task.op); !callee.empty())
        os << " @" << callee;
      os << ':';
      printCost(task.cost, os);
      if (!task.algorithm.empty())
        os << " by " << task.algorithm;
      os << '\n';
    }
  }
}

static void writeCost(const TaskCost &cost, llvm::json::OStream &json) {
  json.attribute("flops", cost.work.flops);
  json.attribute("contraction_flops", cost.work.contractionFlops);
  json.attribute("bytes_read", cost.work.bytesRead);
  json.attribute("bytes_written", cost.work.bytesWritten);
  json.attribute("bytes_received", cost.work.bytesReceived);
  json.attribute("seconds", cost.seconds);
  json.attribute("communication_seconds", cost.communicationSeconds);
  json.attribute("launches", cost.launches);
  json.attribute("estimated_ops", cost.estimated);
  json.attribute("bound", stringifyBound(cost.bound));
}

void hyperparallel::printCostsAsJson(ModuleOp module, CostModel &model,
                                     raw_ostream &os) {
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("machine", model.getMachine().getName());
    json.attributeArray("functions", [&] {
      for (auto function : module.getOps<FunctionOpInterface>()) {
        if (function.isExternal())
          continue;
        json.object([&] {
          json.attribute("name", function.getName());
          writeCost(model.getCost(function), json);
          json.attributeArray("tasks", [&] {
            for (const Task &task : tasksOf(function, model))
              json.object([&] {
                json.attribute("op", task.op->getName().getStringRef());
                json.attribute("path", pathOf(task.op));
                json.attribute("callee", calleeOf(task.op));
                json.attribute("algorithm", task.algorithm);
                writeCost(task.cost, json);
              });
          });
        });
      }
    });
  });
}
