//===- HyperMPMDDialect.cpp - registration and attributes -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/HyperMPMD/HyperMPMD.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypermpmd;

#include "dialects/HyperMPMD/HyperMPMDDialect.cpp.inc"
#include "dialects/HyperMPMD/HyperMPMDEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/HyperMPMD/HyperMPMDAttrs.cpp.inc"

void HyperMPMDDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/HyperMPMD/HyperMPMDAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/HyperMPMD/HyperMPMDOps.cpp.inc"
      >();
}

TopologyAttr hypermpmd::getTopology(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto topology = op->getAttrOfType<TopologyAttr>(
            HyperMPMDDialect::kTopologyAttrName))
      return topology;
  return {};
}

//===----------------------------------------------------------------------===//
// Groups and topologies
//===----------------------------------------------------------------------===//

static FailureOr<GroupAttr> parseGroup(AsmParser &parser) {
  std::string name;
  hypershard::MeshAttr mesh;
  if (parser.parseString(&name) || parser.parseEqual() ||
      parser.parseCustomAttributeWithFallback(mesh))
    return failure();
  return GroupAttr::get(parser.getContext(), name, mesh);
}

static void printGroup(AsmPrinter &printer, GroupAttr group) {
  printer.printString(group.getName());
  printer << " = ";
  group.getMesh().print(printer);
}

Attribute GroupAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<GroupAttr> group = parseGroup(parser);
  if (failed(group) || parser.parseGreater())
    return {};
  return *group;
}

void GroupAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printGroup(printer, *this);
  printer << '>';
}

Attribute TopologyAttr::parse(AsmParser &parser, Type) {
  SmallVector<GroupAttr> groups;
  SMLoc loc = parser.getCurrentLocation();
  auto parse = [&]() -> ParseResult {
    FailureOr<GroupAttr> group = parseGroup(parser);
    if (failed(group))
      return failure();
    groups.push_back(*group);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parse))
    return {};
  return parser.getChecked<TopologyAttr>(loc, parser.getContext(), groups);
}

void TopologyAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getGroups(), printer,
                        [&](GroupAttr group) { printGroup(printer, group); });
  printer << '>';
}

LogicalResult TopologyAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<GroupAttr> groups) {
  if (groups.empty())
    return emitError() << "expected at least one device group";
  llvm::StringSet<> names;
  for (GroupAttr group : groups) {
    if (group.getName().empty())
      return emitError() << "expected a device group to have a name";
    if (!names.insert(group.getName()).second)
      return emitError() << "expected device groups of different names but got "
                         << '"' << group.getName() << "\" twice";
  }
  return success();
}

int64_t TopologyAttr::getGroupIndex(StringRef name) const {
  for (auto [index, group] : llvm::enumerate(getGroups()))
    if (group.getName() == name)
      return index;
  return -1;
}

GroupAttr TopologyAttr::getGroup(StringRef name) const {
  int64_t index = getGroupIndex(name);
  return index < 0 ? GroupAttr() : getGroups()[index];
}

int64_t TopologyAttr::getFirstDevice(StringRef name) const {
  int64_t device = 0;
  for (GroupAttr group : getGroups()) {
    if (group.getName() == name)
      break;
    device += group.getMesh().getNumDevices();
  }
  return device;
}

int64_t TopologyAttr::getNumDevices() const {
  int64_t devices = 0;
  for (GroupAttr group : getGroups())
    devices += group.getMesh().getNumDevices();
  return devices;
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

/// A group of the topology around `op`; an error if it is none.
static LogicalResult verifyGroupName(Operation *op, Attribute attr,
                                     const Twine &what) {
  auto name = dyn_cast_or_null<StringAttr>(attr);
  if (!name)
    return op->emitError() << what
                           << ": expected the name of a device group but got "
                           << attr;
  TopologyAttr topology = getTopology(op);
  if (!topology)
    return op->emitError() << what << ": expected a module with `"
                           << HyperMPMDDialect::kTopologyAttrName
                           << "` around it, which names the device groups";
  if (!topology.getGroup(name.getValue()))
    return op->emitError() << what << ": expected a device group of "
                           << topology << " but got " << name;
  return success();
}

LogicalResult HyperMPMDDialect::verifyOperationAttribute(Operation *op,
                                                         NamedAttribute attr) {
  StringRef name = attr.getName().getValue();
  if (name == kTopologyAttrName) {
    if (!isa<ModuleOp>(op) || !isa<TopologyAttr>(attr.getValue()))
      return op->emitError() << "expected `" << name
                             << "` to be a #hypermpmd.topology on a module";
    return success();
  }
  if (name == kGroupAttrName)
    return verifyGroupName(op, attr.getValue(), Twine("`") + name + "`");
  if (name == kMicrobatchAttrName) {
    auto number = dyn_cast<IntegerAttr>(attr.getValue());
    if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
      return op->emitError()
             << "expected `" << name << "` to be an i64 of at least 0 but got "
             << attr.getValue();
    return success();
  }
  return op->emitError() << "unknown attribute `" << name
                         << "` of the hypermpmd dialect";
}

LogicalResult HyperMPMDDialect::verifyRegionArgAttribute(Operation *op,
                                                         unsigned,
                                                         unsigned argument,
                                                         NamedAttribute attr) {
  StringRef name = attr.getName().getValue();
  if (name != kGroupsAttrName)
    return op->emitError() << "unknown attribute `" << name
                           << "` of the hypermpmd dialect";
  auto groups = dyn_cast<ArrayAttr>(attr.getValue());
  if (!groups)
    return op->emitError() << "argument " << argument << ": expected `" << name
                           << "` to be an array of names but got "
                           << attr.getValue();
  for (Attribute group : groups)
    if (failed(verifyGroupName(op, group, "argument " + Twine(argument))))
      return failure();
  return success();
}

LogicalResult HyperMPMDDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attr) {
  if (attr.getName() != kGroupAttrName)
    return op->emitError() << "unknown attribute `" << attr.getName().getValue()
                           << "` of the hypermpmd dialect";
  return verifyGroupName(op, attr.getValue(), "result " + Twine(result));
}
