//===- HyperShardAttrs.cpp - parse, print and verify attributes -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/HyperShard/HyperShard.h"
#include "dialects/HyperShard/MeshAxes.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

using EmitError = function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

static ParseResult parseMeshAxis(AsmParser &parser, std::string &name,
                                 int64_t &size) {
  return failure(parser.parseString(&name) || parser.parseEqual() ||
                 parser.parseInteger(size));
}

Attribute MeshAxisAttr::parse(AsmParser &parser, Type) {
  std::string name;
  int64_t size;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parseMeshAxis(parser, name, size) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<MeshAxisAttr>(loc, parser.getContext(), name, size);
}

void MeshAxisAttr::print(AsmPrinter &printer) const {
  printer << "<\"" << getName() << "\"=" << getSize() << '>';
}

LogicalResult MeshAxisAttr::verify(EmitError emitError, StringRef name,
                                   int64_t size) {
  if (name.empty())
    return emitError() << "expected a mesh axis to have a name";
  if (size < 1)
    return emitError() << "expected mesh axis \"" << name
                       << "\" to have at least 1 device but got " << size;
  return success();
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<MeshAxisAttr> axes;
  SmallVector<int64_t> deviceIds;
  SMLoc loc = parser.getCurrentLocation();
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    int64_t size;
    SMLoc axisLoc = parser.getCurrentLocation();
    if (parseMeshAxis(parser, name, size))
      return failure();
    auto axis = parser.getChecked<MeshAxisAttr>(axisLoc, parser.getContext(),
                                                name, size);
    if (!axis)
      return failure();
    axes.push_back(axis);
    return success();
  };
  auto parseId = [&] { return parser.parseInteger(deviceIds.emplace_back()); };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("device_ids") || parser.parseEqual() ||
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseId)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<MeshAttr>(loc, parser.getContext(), axes, deviceIds);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getAxes(), printer, [&](MeshAxisAttr axis) {
    printer << '"' << axis.getName() << "\"=" << axis.getSize();
  });
  printer << ']';
  if (!getDeviceIds().empty()) {
    printer << ", device_ids=[";
    llvm::interleaveComma(getDeviceIds(), printer);
    printer << ']';
  }
  printer << '>';
}

LogicalResult MeshAttr::verify(EmitError emitError, ArrayRef<MeshAxisAttr> axes,
                               ArrayRef<int64_t> deviceIds) {
  llvm::StringSet<> names;
  int64_t devices = 1;
  for (MeshAxisAttr axis : axes) {
    if (!names.insert(axis.getName()).second)
      return emitError() << "expected mesh axes of different names but got \""
                         << axis.getName() << "\" twice";
    // Passes list the members of groups.
    if (axis.getSize() > (int64_t(1) << 20) / devices)
      return emitError() << "expected a mesh of at most 2^20 devices";
    devices *= axis.getSize();
  }
  if (deviceIds.empty())
    return success();
  SmallVector<int64_t> sorted(deviceIds);
  llvm::sort(sorted);
  if (static_cast<int64_t>(sorted.size()) != devices ||
      !llvm::equal(sorted, llvm::seq<int64_t>(0, devices)))
    return emitError() << "expected device_ids to hold each of 0.."
                       << devices - 1 << " once but got [" << deviceIds << "]";
  if (llvm::is_sorted(deviceIds))
    return emitError() << "expected no device_ids for the order 0, 1, ..., "
                       << devices - 1 << ", which is the default";
  return success();
}

int64_t MeshAttr::getAxisIndex(StringRef name) const {
  for (auto [index, axis] : llvm::enumerate(getAxes()))
    if (axis.getName() == name)
      return index;
  return -1;
}

int64_t MeshAttr::getNumDevices() const {
  int64_t devices = 1;
  for (MeshAxisAttr axis : getAxes())
    devices *= axis.getSize();
  return devices;
}

//===----------------------------------------------------------------------===//
// Axes, dimensions and partial
//===----------------------------------------------------------------------===//

static FailureOr<AxisRefAttr> parseAxisRef(AsmParser &parser) {
  std::string name;
  int64_t preSize = 0, size = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseString(&name))
    return failure();
  if (succeeded(parser.parseOptionalColon()) &&
      (parser.parseLParen() || parser.parseInteger(preSize) ||
       parser.parseRParen() || parser.parseInteger(size)))
    return failure();
  // A sub-axis of pre-size 0 is wrong, and must not read as a whole axis.
  if (size != 0 && preSize == 0)
    preSize = -1;
  auto axis = parser.getChecked<AxisRefAttr>(loc, parser.getContext(), name,
                                             preSize, size);
  if (!axis)
    return failure();
  return axis;
}

static void printAxisRef(AsmPrinter &printer, AxisRefAttr axis) {
  printer << '"' << axis.getName() << '"';
  if (axis.isSubAxis())
    printer << ":(" << axis.getPreSize() << ')' << axis.getSize();
}

static ParseResult parseAxisRefs(AsmParser &parser,
                                 SmallVectorImpl<AxisRefAttr> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&] {
    FailureOr<AxisRefAttr> axis = parseAxisRef(parser);
    if (succeeded(axis))
      axes.push_back(*axis);
    return LogicalResult(axis);
  });
}

static void printAxisRefs(AsmPrinter &printer, ArrayRef<AxisRefAttr> axes) {
  printer << '{';
  llvm::interleaveComma(axes, printer,
                        [&](AxisRefAttr axis) { printAxisRef(printer, axis); });
  printer << '}';
}

Attribute AxisRefAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<AxisRefAttr> axis = parseAxisRef(parser);
  if (failed(axis) || parser.parseGreater())
    return {};
  return *axis;
}

void AxisRefAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxisRef(printer, *this);
  printer << '>';
}

LogicalResult AxisRefAttr::verify(EmitError emitError, StringRef name,
                                  int64_t preSize, int64_t size) {
  if (name.empty())
    return emitError() << "expected an axis to have a name";
  if (preSize == 0 && size == 0)
    return success();
  if (preSize < 1)
    return emitError() << "expected the pre-size of sub-axis of \"" << name
                       << "\" to be at least 1";
  if (size < 2)
    return emitError() << "expected the size of sub-axis of \"" << name
                       << "\" to be at least 2 but got " << size;
  if (size > (int64_t(1) << 32) / preSize)
    return emitError() << "expected sub-axis of \"" << name
                       << "\" to end within 2^32 devices";
  return success();
}

static FailureOr<DimShardingAttr> parseDim(AsmParser &parser) {
  SmallVector<AxisRefAttr> axes;
  bool isOpen = false;
  int64_t priority = 0;
  SMLoc loc = parser.getCurrentLocation();
  auto parseElement = [&]() -> ParseResult {
    if (isOpen)
      return parser.emitError(parser.getCurrentLocation(),
                              "expected `?` to come last in a dimension");
    if (succeeded(parser.parseOptionalQuestion())) {
      isOpen = true;
      return success();
    }
    FailureOr<AxisRefAttr> axis = parseAxisRef(parser);
    if (succeeded(axis))
      axes.push_back(*axis);
    return LogicalResult(axis);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                     parseElement))
    return failure();
  // Written `p1`, which the lexer takes for one keyword; `p-1` is two tokens.
  StringRef keyword;
  bool hasPriority = succeeded(parser.parseOptionalKeyword(&keyword));
  if (hasPriority) {
    if (keyword == "p") {
      if (parser.parseInteger(priority))
        return failure();
    } else if (!keyword.consume_front("p") ||
               keyword.getAsInteger(10, priority)) {
      return parser.emitError(loc, "expected a priority such as `p1` after a "
                                   "dimension");
    }
    if (axes.empty() && !isOpen)
      return parser.emitError(
          loc, "expected no priority on a closed dimension without axes");
  }
  auto dim = parser.getChecked<DimShardingAttr>(loc, parser.getContext(), axes,
                                                isOpen, priority);
  if (!dim)
    return failure();
  return dim;
}

static void printDim(AsmPrinter &printer, DimShardingAttr dim) {
  printer << '{';
  llvm::interleaveComma(dim.getAxes(), printer,
                        [&](AxisRefAttr axis) { printAxisRef(printer, axis); });
  if (dim.getIsOpen())
    printer << (dim.getAxes().empty() ? "?" : ", ?");
  printer << '}';
  if (dim.getPriority() != 0)
    printer << 'p' << dim.getPriority();
}

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimShardingAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}

void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printDim(printer, *this);
  printer << '>';
}

LogicalResult DimShardingAttr::verify(EmitError emitError,
                                      ArrayRef<AxisRefAttr> axes, bool isOpen,
                                      int64_t priority) {
  if (priority < 0)
    return emitError() << "expected a priority of at least 0 but got "
                       << priority;
  if (priority > 0 && axes.empty() && !isOpen)
    return emitError()
           << "expected no priority on a closed dimension without axes";
  return success();
}

static FailureOr<PartialAttr> parsePartial(AsmParser &parser) {
  SmallVector<AxisRefAttr> axes;
  StringRef keyword;
  if (parser.parseLess())
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Reduction> kind = symbolizeReduction(keyword);
  if (!kind)
    return parser.emitError(loc)
           << "expected one of sum, max, min, prod, and, or, avg but got `"
           << keyword << '`';
  if (parseAxisRefs(parser, axes) || parser.parseGreater())
    return failure();
  return PartialAttr::get(parser.getContext(), *kind, axes);
}

static void printPartial(AsmPrinter &printer, PartialAttr partial) {
  printer << '<' << stringifyReduction(partial.getKind()) << ' ';
  printAxisRefs(printer, partial.getAxes());
  printer << '>';
}

Attribute PartialAttr::parse(AsmParser &parser, Type) {
  FailureOr<PartialAttr> partial = parsePartial(parser);
  return failed(partial) ? PartialAttr() : *partial;
}

void PartialAttr::print(AsmPrinter &printer) const {
  printPartial(printer, *this);
}

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<DimShardingAttr> dims;
  SmallVector<AxisRefAttr> replicated;
  PartialAttr partial;
  SMLoc loc = parser.getCurrentLocation();
  auto parseOneDim = [&] {
    FailureOr<DimShardingAttr> dim = parseDim(parser);
    if (succeeded(dim))
      dims.push_back(*dim);
    return LogicalResult(dim);
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) ||
      parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOneDim))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc keywordLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return {};
    if (keyword == "replicated" && replicated.empty()) {
      if (parseAxisRefs(parser, replicated))
        return {};
      continue;
    }
    if (keyword == "partial" && !partial) {
      FailureOr<PartialAttr> parsed = parsePartial(parser);
      if (failed(parsed))
        return {};
      partial = *parsed;
      continue;
    }
    parser.emitError(keywordLoc)
        << "expected `replicated` or `partial`, each at most once, but got `"
        << keyword << '`';
    return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardingAttr>(loc, parser.getContext(), mesh, dims,
                                         replicated, partial);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << '<' << getMesh() << ", [";
  llvm::interleaveComma(getDims(), printer,
                        [&](DimShardingAttr dim) { printDim(printer, dim); });
  printer << ']';
  if (!getReplicated().empty()) {
    printer << ", replicated=";
    printAxisRefs(printer, getReplicated());
  }
  if (getPartial()) {
    printer << ", partial=";
    printPartial(printer, getPartial());
  }
  printer << '>';
}

static std::string toString(AxisRefAttr axis) {
  std::string text = '"' + axis.getName().str() + '"';
  if (axis.isSubAxis())
    text += ":(" + std::to_string(axis.getPreSize()) + ")" +
            std::to_string(axis.getSize());
  return text;
}

/// Do two references share devices' coordinates?
static bool overlap(AxisRefAttr a, AxisRefAttr b) {
  if (a.getName() != b.getName())
    return false;
  if (!a.isSubAxis() || !b.isSubAxis())
    return true;
  return a.getPreSize() < b.getPreSize() * b.getSize() &&
         b.getPreSize() < a.getPreSize() * a.getSize();
}

static LogicalResult verifyMergeable(EmitError emitError,
                                     ArrayRef<AxisRefAttr> axes) {
  for (size_t i = 1; i < axes.size(); ++i) {
    AxisRefAttr a = axes[i - 1], b = axes[i];
    if (a.getName() == b.getName() && a.isSubAxis() && b.isSubAxis() &&
        a.getPreSize() * a.getSize() == b.getPreSize())
      return emitError() << "expected sub-axes " << toString(a) << " and "
                         << toString(b) << " to be written as one";
  }
  return success();
}

LogicalResult ShardingAttr::verify(EmitError emitError, FlatSymbolRefAttr mesh,
                                   ArrayRef<DimShardingAttr> dims,
                                   ArrayRef<AxisRefAttr> replicated,
                                   PartialAttr partial) {
  SmallVector<AxisRefAttr> seen;
  auto use = [&](ArrayRef<AxisRefAttr> axes) -> LogicalResult {
    for (AxisRefAttr axis : axes) {
      for (AxisRefAttr other : seen) {
        if (axis == other)
          return emitError() << "expected each axis once but got "
                             << toString(axis) << " twice";
        if (overlap(axis, other))
          return emitError() << "expected disjoint axes but " << toString(other)
                             << " and " << toString(axis) << " overlap";
      }
      seen.push_back(axis);
    }
    return verifyMergeable(emitError, axes);
  };
  for (DimShardingAttr dim : dims)
    if (failed(use(dim.getAxes())))
      return failure();
  if (failed(use(replicated)))
    return failure();
  if (!partial)
    return success();
  if (partial.getAxes().empty())
    return emitError() << "expected `partial` to name at least one axis";
  return use(partial.getAxes());
}

ShardingAttr ShardingAttr::getReplicated(FlatSymbolRefAttr mesh, int64_t rank) {
  MLIRContext *context = mesh.getContext();
  SmallVector<DimShardingAttr> dims(
      rank, DimShardingAttr::get(context, {}, /*isOpen=*/false, 0));
  return ShardingAttr::get(context, mesh, dims, {}, {});
}

static LogicalResult verifyAxis(EmitError emitError, MeshAttr mesh,
                                AxisRefAttr axis) {
  int64_t index = mesh.getAxisIndex(axis.getName());
  if (index < 0) {
    InFlightDiagnostic error = emitError();
    error << "expected an axis of the mesh " << mesh << " but got \""
          << axis.getName() << '"';
    return error;
  }
  if (!axis.isSubAxis())
    return success();
  int64_t size = mesh.getAxes()[index].getSize();
  if (axis.getSize() == size)
    return emitError() << "expected sub-axis " << toString(axis)
                       << " to be written as the whole axis";
  if (size % (axis.getPreSize() * axis.getSize()) != 0)
    return emitError() << "expected sub-axis " << toString(axis)
                       << " to divide its axis of size " << size;
  return success();
}

static LogicalResult verifyOrder(EmitError emitError, MeshAttr mesh,
                                 ArrayRef<AxisRefAttr> axes, StringRef list) {
  auto key = [&](AxisRefAttr axis) {
    return std::make_pair(mesh.getAxisIndex(axis.getName()), axis.getPreSize());
  };
  for (size_t i = 1; i < axes.size(); ++i)
    if (key(axes[i]) < key(axes[i - 1]))
      return emitError() << "expected the axes of `" << list
                         << "` in mesh order but got " << toString(axes[i - 1])
                         << " before " << toString(axes[i]);
  return success();
}

LogicalResult ShardingAttr::verifyAgainst(MeshAttr mesh, Type type,
                                          EmitError emitError) const {
  auto verifyAxes = [&](ArrayRef<AxisRefAttr> axes) {
    return success(llvm::all_of(axes, [&](AxisRefAttr axis) {
      return succeeded(verifyAxis(emitError, mesh, axis));
    }));
  };
  for (DimShardingAttr dim : getDims())
    if (failed(verifyAxes(dim.getAxes())))
      return failure();
  if (failed(verifyAxes(getReplicated())) ||
      failed(verifyOrder(emitError, mesh, getReplicated(), "replicated")))
    return failure();
  if (getPartial() &&
      (failed(verifyAxes(getPartial().getAxes())) ||
       failed(verifyOrder(emitError, mesh, getPartial().getAxes(), "partial"))))
    return failure();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return emitError()
           << "expected a sharding only on a ranked tensor of static shape but "
              "got "
           << type;
  if (tensor.getRank() != static_cast<int64_t>(getDims().size()))
    return emitError() << "expected " << tensor.getRank() << " dimensions for "
                       << type << " but the sharding has " << getDims().size();
  return success();
}

#define GET_ATTRDEF_CLASSES
#include "dialects/HyperShard/HyperShardAttrs.cpp.inc"

#include "dialects/HyperShard/HyperShardEnums.cpp.inc"

void HyperShardDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/HyperShard/HyperShardAttrs.cpp.inc"
      >();
}
