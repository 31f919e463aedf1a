//===- CostModel.cpp - seconds and bytes of a program ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A kernel takes max(contraction flops / matrix rate + other flops / vector
// rate, bytes / memory bandwidth) + launch (a roofline with a floor). What one
// kernel is, KernelFusion says; its ops share its time in proportion to what
// each would take by itself. A collective takes what CollectiveCost says +
// launch. A program is the sum of its tasks: what overlaps is the simulator's
// affair.
//
// What a machine may add, each from numbers of its own:
//  - packing: bytes read / packing is added to a contraction's operations,
//    unless it uses what it reads about once (a product with a vector);
//  - cache: the bandwidth of the cache holds where all bytes of the kernel fit
//    into the part of it that falls to each device at work;
//  - buses: a bandwidth is at most a device's part of each segment of the tier;
//  - cores: `onSharedCores`.
//
// Cost: linear in the ops of the functions that are reached, each visited once;
// linear in the devices of a mesh once per set of axes.
//===----------------------------------------------------------------------===//
#include "lib/Analysis/CostModel.h"

#include "lib/Analysis/CollectiveOps.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;
using hypershard::Axis;
using hypershard::MeshAxes;

static constexpr StringLiteral kDefaultMachine = "cpu-supernode";

StringRef hyperparallel::stringifyBound(Bound bound) {
  switch (bound) {
  case Bound::None:
    return "none";
  case Bound::Launch:
    return "launch";
  case Bound::Compute:
    return "compute";
  case Bound::Memory:
    return "memory";
  case Bound::Communication:
    return "communication";
  }
  llvm_unreachable("all bounds are listed");
}

MachineAttr hyperparallel::getMachineOrDefault(Operation *op) {
  if (MachineAttr machine = getMachine(op))
    return machine;
  return op->getContext()->getOrLoadDialect<SupernodeDialect>()->getPreset(
      kDefaultMachine);
}

CostModel::CostModel(MachineAttr machine, unsigned groupIndex, int64_t devices)
    : machine(machine), group(machine.getGroups()[groupIndex]),
      memory(machine.getTier(group.getMemory())), devices(devices) {}

/// Devices of the largest mesh; 1 if there is none.
static int64_t devicesAtWork(ModuleOp module) {
  int64_t devices = 1;
  for (auto mesh : module.getOps<hypershard::MeshOp>())
    devices = std::max(devices, MeshAxes(mesh.getMesh()).numDevices());
  return devices;
}

CostModel::CostModel(ModuleOp module)
    : CostModel(getMachineOrDefault(module), 0, devicesAtWork(module)) {}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The listed peak of the type, or of the narrowest type of its kind that is as
/// wide; nullopt if there is none.
static std::optional<double> listedRate(DeviceGroupAttr group,
                                        Type elementType) {
  if (!elementType.isIntOrFloat())
    return std::nullopt;
  unsigned width = elementType.getIntOrFloatBitWidth();
  bool isFloat = isa<FloatType>(elementType);
  RateAttr best;
  for (RateAttr rate : group.getRates()) {
    Type type = rate.getElementType();
    if (type == elementType)
      return rate.getRate();
    if (isa<FloatType>(type) != isFloat || type.getIntOrFloatBitWidth() < width)
      continue;
    if (!best || type.getIntOrFloatBitWidth() <
                     best.getElementType().getIntOrFloatBitWidth())
      best = rate;
  }
  if (!best)
    return std::nullopt;
  return best.getRate();
}

double CostModel::getPeakRate(Type elementType) const {
  return listedRate(group, elementType).value_or(group.getVector());
}

double CostModel::getContractionRate(Type elementType) const {
  std::optional<double> peak = listedRate(group, elementType);
  if (!peak)
    return group.getVector();
  return *peak * group.getEfficiency();
}

static double computeSeconds(const OpCost &work, double contractionRate,
                             double vectorRate) {
  return work.contractionFlops / contractionRate +
         (work.flops - work.contractionFlops) / vectorRate;
}

/// Devices at work within one unit of the scope.
int64_t CostModel::workingInUnit(StringRef scope) const {
  return std::min(devices, machine.getDevicesPerUnit(scope));
}

/// What one device takes by itself, and what all together take on the buses.
CostModel::MemorySeconds CostModel::memorySeconds(double bytes) const {
  TierAttr tier = memory;
  if (StringAttr name = group.getCache()) {
    TierAttr cache = machine.getTier(name.getValue());
    if (bytes <= cache.getCapacity() / workingInUnit(cache.getScope()))
      tier = cache;
  }
  MemorySeconds seconds = {bytes / tier.getBandwidth(), 0};
  for (StringAttr name : tier.getShared())
    for (SegmentAttr segment = machine.getSegment(name.getValue()); segment;
         segment = segment.getWithin()
                       ? machine.getSegment(segment.getWithin().getValue())
                       : SegmentAttr())
      seconds.onBus =
          std::max(seconds.onBus, bytes * workingInUnit(segment.getScope()) /
                                      segment.getBandwidth());
  return seconds;
}

/// The seconds on one core as the devices at work get cores.
double CostModel::onSharedCores(double seconds) const {
  CoresAttr cores = group.getCores();
  if (!cores)
    return seconds;
  if (devices > cores.getCount())
    return seconds * devices / cores.getCount();
  double share = static_cast<double>(cores.getCount() / devices);
  double cut = seconds / (1 + (share - 1) * cores.getGain()) + cores.getCut();
  return std::min(seconds, cut);
}

/// One kernel.
TaskCost CostModel::costOfKernel(const OpCost &work, Type elementType) const {
  TaskCost cost;
  cost.work = work;
  if (work.isFree())
    return cost;
  cost.launches = 1;
  double compute =
      computeSeconds(work, getContractionRate(elementType), group.getVector());
  bool reuses = work.contractionFlops >= work.bytesRead;
  if (group.getPacking() > 0 && reuses)
    compute += work.bytesRead / group.getPacking();
  MemorySeconds memory = memorySeconds(work.bytesRead + work.bytesWritten);
  double beyond =
      std::max(onSharedCores(std::max(compute, memory.alone)), memory.onBus);
  double launch = group.getLaunch();
  if (CoresAttr cores = group.getCores())
    launch *= std::max(1.0, static_cast<double>(devices) / cores.getCount());
  cost.seconds = beyond + launch;
  cost.peakSeconds = work.contractionFlops / getPeakRate(elementType);
  if (beyond <= launch)
    cost.bound = Bound::Launch;
  else
    cost.bound = compute >= memory.alone && beyond > memory.onBus
                     ? Bound::Compute
                     : Bound::Memory;
  return cost;
}

double CostModel::getKernelSeconds(const OpCost &work, Type elementType) const {
  return costOfKernel(work, elementType).seconds;
}

/// In which a contraction computes: the type of its first tensor.
static Type elementTypeOf(Operation *op) {
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        return tensor.getElementType();
  return IndexType::get(op->getContext());
}

TaskCost CostModel::costOfLeaf(Operation *op) {
  TaskCost cost;
  if (auto costed = dyn_cast<CostOpInterface>(op)) {
    // Scalars beside the tensor program are the host's, and take no kernel.
    bool isTensorOp =
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>) ||
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>);
    OpCost work = costed.getCost();
    if (!isTensorOp && !work.seconds)
      return cost;
    cost.work = work;
  } else if (!op->hasTrait<OpTrait::IsTerminator>()) {
    for (Type type : op->getOperandTypes())
      if (isa<RankedTensorType>(type))
        cost.work.bytesRead += byteSize(type);
    for (Type type : op->getResultTypes())
      if (isa<RankedTensorType>(type))
        cost.work.bytesWritten += byteSize(type);
    cost.estimated = cost.work.isFree() ? 0 : 1;
  }
  if (cost.work.isFree())
    return cost;

  cost.launches = 1;
  if (cost.work.seconds) {
    cost.seconds = *cost.work.seconds;
    cost.bound = Bound::Compute;
    return cost;
  }
  std::optional<CollectiveDescription> collective = describeCollective(op);
  if (collective && collective->kind != CollectiveKind::SliceLocal) {
    double bytes = collective->kind == CollectiveKind::Permute
                       ? collective->bytesReceived
                       : collective->localBytes;
    double seconds =
        getCollective(collective->kind, MeshAxes(collective->mesh.getMesh()),
                      collective->axes, bytes)
            .seconds;
    cost.seconds = group.getLaunch() + seconds;
    cost.communicationSeconds = cost.seconds;
    cost.bound =
        seconds > group.getLaunch() ? Bound::Communication : Bound::Launch;
    return cost;
  }

  TaskCost kernel = costOfKernel(cost.work, elementTypeOf(op));
  kernel.estimated = cost.estimated;
  return kernel;
}

/// Finds the cost of all structured ops of a block.
void CostModel::planBlock(Block *block) {
  if (!planned.insert(block).second)
    return;
  KernelPlan plan = planKernels(*block);
  for (auto [op, number] : plan.kernelOf)
    if (number < 0)
      kernels[op] = {};
  for (const FusedKernel &kernel : plan.kernels) {
    Type type = elementTypeOf(kernel.members.front().op);
    TaskCost whole = costOfKernel(kernel.work, type);
    if (kernel.members.size() == 1 || whole.seconds == 0) {
      for (const KernelMember &member : kernel.members)
        kernels[member.op] = whole;
      continue;
    }
    SmallVector<double> alone;
    for (const KernelMember &member : kernel.members)
      alone.push_back(
          getKernelSeconds(cast<CostOpInterface>(member.op).getCost(),
                           elementTypeOf(member.op)));
    double sum = std::accumulate(alone.begin(), alone.end(), 0.0);
    for (auto [member, seconds] : llvm::zip_equal(kernel.members, alone)) {
      TaskCost &cost = kernels[member.op];
      double part = seconds / sum;
      cost.work = member.work;
      cost.seconds = whole.seconds * part;
      cost.bound = whole.bound;
      cost.launches = part;
    }
  }
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {
/// Adds up tasks and tells what most of the seconds go to.
struct Sum {
  TaskCost total;
  double seconds[5] = {};

  void add(const TaskCost &task, double times = 1) {
    total.work += task.work * times;
    total.seconds += task.seconds * times;
    total.communicationSeconds += task.communicationSeconds * times;
    total.peakSeconds += task.peakSeconds * times;
    total.launches += task.launches * times;
    total.estimated += task.estimated * times;
    seconds[static_cast<int>(task.bound)] += task.seconds * times;
  }
  TaskCost get() {
    total.bound =
        static_cast<Bound>(std::max_element(seconds, seconds + 5) - seconds);
    return total;
  }
};
} // namespace

TaskCost CostModel::costOfRegion(Region &region) {
  Sum sum;
  for (Operation &op : region.getOps())
    sum.add(getCost(&op));
  return sum.get();
}

TaskCost CostModel::costOfCallee(Operation *op) {
  auto call = cast<CallOpInterface>(op);
  auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
  if (!symbol)
    return {};
  Operation *callee = symbols.lookupNearestSymbolFrom(op, symbol);
  return callee ? getCost(callee) : TaskCost();
}

/// Over all induction variables; nullopt if a bound is not constant.
static std::optional<double> tripCount(LoopLikeOpInterface loop) {
  auto lower = loop.getLoopLowerBounds(), upper = loop.getLoopUpperBounds();
  auto steps = loop.getLoopSteps();
  if (!lower || !upper || !steps)
    return std::nullopt;
  double trips = 1;
  for (auto [from, to, by] : llvm::zip_equal(*lower, *upper, *steps)) {
    std::optional<int64_t> low = getConstantIntValue(from);
    std::optional<int64_t> high = getConstantIntValue(to);
    std::optional<int64_t> step = getConstantIntValue(by);
    if (!low || !high || !step || *step <= 0)
      return std::nullopt;
    trips *= std::ceil(std::max(0.0, double(*high) - double(*low)) / *step);
  }
  return trips;
}

TaskCost CostModel::getCost(Operation *op) {
  if (auto function = dyn_cast<FunctionOpInterface>(op)) {
    // A function that calls itself finds an entry of no cost, and ends.
    auto [entry, isNew] = functions.try_emplace(op);
    if (!isNew)
      return entry->second;
    TaskCost cost;
    if (!function.isExternal())
      cost = costOfRegion(function.getFunctionBody());
    return functions[op] = cost;
  }
  if (isa<CallOpInterface>(op))
    return costOfCallee(op);
  if (isa<linalg::LinalgOp>(op) && op->getBlock()) {
    planBlock(op->getBlock());
    return kernels.lookup(op);
  }
  if (op->getNumRegions() == 0 || isa<CostOpInterface>(op))
    return costOfLeaf(op);

  Sum sum;
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op)) {
    double trips = tripCount(loop).value_or(1);
    for (Region &region : op->getRegions())
      sum.add(costOfRegion(region), trips);
    return sum.get();
  }
  if (isa<RegionBranchOpInterface>(op)) {
    TaskCost dearest;
    for (Region &region : op->getRegions()) {
      TaskCost cost = costOfRegion(region);
      if (cost.seconds > dearest.seconds)
        dearest = cost;
    }
    return dearest;
  }
  for (Region &region : op->getRegions())
    sum.add(costOfRegion(region));
  return sum.get();
}

//===----------------------------------------------------------------------===//
// Collectives and transfers
//===----------------------------------------------------------------------===//

/// How many members of the group (device ids) each level joins. Nothing if the
/// group is not regular: then it is taken as flat on the outermost level.
static GroupLevels levelsOfGroup(MachineAttr machine,
                                 ArrayRef<int64_t> members) {
  GroupLevels result;
  ArrayRef<LevelAttr> levels = machine.getLevels();
  SmallVector<int64_t> units(members);
  int64_t before = members.size(), unit = 1;
  for (auto [index, level] : llvm::enumerate(levels)) {
    unit *= level.getSize();
    units.clear();
    for (int64_t member : members)
      units.push_back(member / unit);
    llvm::sort(units);
    units.erase(llvm::unique(units), units.end());
    int64_t after = units.size();
    // A mesh larger than the machine: what is left crosses the outermost level.
    if (index + 1 == levels.size())
      after = 1;
    if (before % after != 0)
      return {{levels.back(), static_cast<int64_t>(members.size())}};
    if (before != after)
      result.push_back({level, before / after});
    before = after;
  }
  return result;
}

ArrayRef<GroupLevels> CostModel::getGroupLevels(const MeshAxes &mesh,
                                                ArrayRef<Axis> axes) {
  if (machine.getLevels().empty())
    return {};
  SmallVector<int64_t> key;
  for (Axis axis : axes)
    key.append({axis.axis, axis.pre, axis.size});
  auto keyAttr = DenseI64ArrayAttr::get(machine.getContext(), key);
  auto [entry, isNew] = groupLevels.try_emplace({mesh.attr(), keyAttr});
  if (!isNew)
    return entry->second;

  // Every device belongs to one group; its first member stands for the group.
  ArrayRef<int64_t> order = mesh.attr().getDeviceIds();
  int64_t size = hypershard::numShards(axes);
  DenseMap<int64_t, SmallVector<int64_t>> groups;
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    int64_t first = device;
    for (Axis axis : axes)
      first -= mesh.coordinate(device, axis) * mesh.stride(axis);
    SmallVector<int64_t> &members = groups[first];
    members.push_back(order.empty() ? device : order[device]);
    if (static_cast<int64_t>(members.size()) < size)
      continue;
    GroupLevels levels = levelsOfGroup(machine, members);
    if (!llvm::is_contained(entry->second, levels))
      entry->second.push_back(levels);
    groups.erase(first);
  }
  return entry->second;
}

CollectiveCost CostModel::getCollective(CollectiveKind kind,
                                        const MeshAxes &mesh,
                                        ArrayRef<Axis> axes,
                                        double localBytes) {
  CollectiveCost slowest;
  if (hypershard::numShards(axes) == 1)
    return slowest;
  for (const GroupLevels &levels : getGroupLevels(mesh, axes)) {
    CollectiveCost cost = bestCollective(kind, localBytes, levels);
    CoresAttr cores = group.getCores();
    if (cores && devices > cores.getCount())
      cost.seconds =
          cost.seconds * devices / cores.getCount() + cores.getWake();
    if (cost.seconds > slowest.seconds)
      slowest = cost;
  }
  return slowest;
}

LevelAttr CostModel::getOutermostLevel(const MeshAxes &mesh,
                                       ArrayRef<Axis> axes) {
  ArrayRef<GroupLevels> groups = getGroupLevels(mesh, axes);
  for (LevelAttr level : llvm::reverse(machine.getLevels()))
    if (llvm::any_of(groups, [&](const GroupLevels &levels) {
          return !levels.empty() && levels.back().level == level;
        }))
      return level;
  return {};
}

std::optional<double> CostModel::getTransferSeconds(StringRef from,
                                                    StringRef to, double bytes,
                                                    int64_t concurrent) const {
  LinkAttr link = machine.getLink(from, to);
  if (!link)
    return std::nullopt;
  double bandwidth = link.getBandwidth();
  for (StringAttr name : link.getShared())
    for (SegmentAttr segment = machine.getSegment(name); segment;
         segment = segment.getWithin() ? machine.getSegment(segment.getWithin())
                                       : SegmentAttr()) {
      int64_t sharing =
          std::min(concurrent, machine.getDevicesPerUnit(segment.getScope()));
      bandwidth = std::min(bandwidth, segment.getBandwidth() /
                                          std::max<int64_t>(sharing, 1));
    }
  return link.getLatency() * double(link.getNumChunks(bytes)) +
         bytes / bandwidth;
}

CommunicationParameters CostModel::getCommunicationParameters() const {
  CommunicationParameters parameters;
  parameters.launch = group.getLaunch();
  if (machine.getLevels().empty())
    return parameters;
  parameters.levels.clear();
  int64_t devices = 1;
  for (LevelAttr level : machine.getLevels()) {
    devices *= level.getSize();
    parameters.levels.push_back(
        {devices, level.getLatency(), level.getBandwidth()});
  }
  parameters.levels.back().devices = 0;
  return parameters;
}

CommunicationCost hyperparallel::getCommunicationCost(ModuleOp module) {
  MachineAttr machine = supernode::getMachine(module);
  if (!machine)
    return CommunicationCost();
  return CommunicationCost(CostModel(machine).getCommunicationParameters());
}
