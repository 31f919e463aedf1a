//===- SupernodeAttrs.cpp - parse, print and verify machines --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Supernode/Supernode.h"
#include "dialects/Supernode/SupernodeFields.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;

using EmitError = function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// What parts have in common
//===----------------------------------------------------------------------===//

static std::string toString(Quantity quantity) {
  std::string text;
  llvm::raw_string_ostream(text) << quantity;
  return text;
}

/// A field that is a number.
static Field number(AsmParser &parser, StringRef key, Quantity &value,
                    bool optional = false) {
  return {key, [&parser, &value] { return parseQuantity(parser, value); },
          optional};
}

/// A field that may be left out and is a name.
static Field optionalName(AsmParser &parser, StringRef key, StringAttr &value) {
  return {key,
          [&parser, &value]() -> ParseResult {
            std::string text;
            if (parser.parseString(&text))
              return failure();
            value = StringAttr::get(parser.getContext(), text);
            return success();
          },
          /*optional=*/true};
}

/// A field that is a list of names.
static Field names(AsmParser &parser, StringRef key,
                   SmallVectorImpl<StringAttr> &value) {
  return {key, [&parser, &value] { return parseNames(parser, value); },
          /*optional=*/true};
}

static LogicalResult verifyPositive(EmitError emitError, const Twine &what,
                                    double value) {
  if (value > 0 && std::isfinite(value))
    return success();
  return emitError() << "expected " << what << " to be positive but got "
                     << toString(value);
}

static LogicalResult verifyNotNegative(EmitError emitError, const Twine &what,
                                       double value) {
  if (value >= 0 && std::isfinite(value))
    return success();
  return emitError() << "expected " << what << " to be at least 0 but got "
                     << toString(value);
}

static LogicalResult verifyOnce(EmitError emitError, const Twine &where,
                                ArrayRef<StringAttr> names) {
  llvm::StringSet<> seen;
  for (StringAttr name : names)
    if (!seen.insert(name.getValue()).second)
      return emitError() << "expected " << where << " to name segment " << name
                         << " once but got it twice";
  return success();
}

//===----------------------------------------------------------------------===//
// Rate: <bf16 = 3.5e14>
//===----------------------------------------------------------------------===//

static FailureOr<RateAttr> parseRate(AsmParser &parser) {
  Type type;
  Quantity rate;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseType(type) || parser.parseEqual() ||
      parseQuantity(parser, rate))
    return failure();
  auto attr = parser.getChecked<RateAttr>(loc, parser.getContext(), type, rate);
  if (!attr)
    return failure();
  return attr;
}

Attribute RateAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<RateAttr> rate = parseRate(parser);
  if (failed(rate) || parser.parseGreater())
    return {};
  return *rate;
}

void RateAttr::print(AsmPrinter &printer) const {
  printer << '<' << getElementType() << " = ";
  printer.getStream() << getRate() << '>';
}

LogicalResult RateAttr::verify(EmitError emitError, Type type, Quantity rate) {
  if (!type.isIntOrFloat())
    return emitError() << "expected a rate for a float or integer type but got "
                       << type;
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return verifyPositive(emitError, "the rate for " + name, rate);
}

//===----------------------------------------------------------------------===//
// Cores: <8, gain = 0.9, cut = 4.0e-6, wake = 1.0e-5>
//===----------------------------------------------------------------------===//

Attribute CoresAttr::parse(AsmParser &parser, Type) {
  int64_t count;
  Quantity gain, cut, wake;
  SMLoc loc = parser.getCurrentLocation();
  Field fields[] = {number(parser, "gain", gain), number(parser, "cut", cut),
                    number(parser, "wake", wake)};
  if (parser.parseLess() || parser.parseInteger(count) ||
      parseFields(parser, fields))
    return {};
  return parser.getChecked<CoresAttr>(loc, parser.getContext(), count, gain,
                                      cut, wake);
}

void CoresAttr::print(AsmPrinter &printer) const {
  printer.getStream() << '<' << getCount() << ", gain = " << getGain()
                      << ", cut = " << getCut() << ", wake = " << getWake()
                      << '>';
}

LogicalResult CoresAttr::verify(EmitError emitError, int64_t count,
                                Quantity gain, Quantity cut, Quantity wake) {
  if (count < 1)
    return emitError() << "expected at least 1 core but got " << count;
  if (!(gain > 0 && gain <= 1))
    return emitError() << "expected the gain of a core to be in (0, 1] but got "
                       << toString(gain);
  if (failed(verifyNotNegative(emitError, "the time of a cut", cut)))
    return failure();
  return verifyNotNegative(emitError, "the time to wake up", wake);
}

//===----------------------------------------------------------------------===//
// Device group: <"npu" = 16, memory = "hbm", ..., rates = [bf16 = 3.5e14]>
//===----------------------------------------------------------------------===//

Attribute DeviceGroupAttr::parse(AsmParser &parser, Type) {
  std::string name, memory;
  int64_t count;
  Quantity launch, vector, efficiency = 1, packing = 0;
  StringAttr cache;
  CoresAttr cores;
  SmallVector<RateAttr> rates;
  SMLoc loc = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    FailureOr<RateAttr> rate = parseRate(parser);
    if (succeeded(rate))
      rates.push_back(*rate);
    return LogicalResult(rate);
  };
  auto parseCores = [&]() -> ParseResult {
    cores = dyn_cast_or_null<CoresAttr>(CoresAttr::parse(parser, Type()));
    return success(bool(cores));
  };
  Field fields[] = {{"memory", [&] { return parser.parseString(&memory); }},
                    number(parser, "launch", launch),
                    number(parser, "vector", vector),
                    number(parser, "efficiency", efficiency, /*optional=*/true),
                    number(parser, "packing", packing, /*optional=*/true),
                    optionalName(parser, "cache", cache),
                    {"cores", parseCores, /*optional=*/true},
                    {"rates", [&] {
                       return parser.parseCommaSeparatedList(
                           AsmParser::Delimiter::Square, parseOne);
                     }}};
  if (parser.parseLess() || parser.parseString(&name) || parser.parseEqual() ||
      parser.parseInteger(count) || parseFields(parser, fields))
    return {};
  return parser.getChecked<DeviceGroupAttr>(
      loc, parser.getContext(), name, count, memory, launch, vector, efficiency,
      packing, cache, cores, rates);
}

void DeviceGroupAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<' << Quoted{getName()} << " = " << getCount()
     << ", memory = " << Quoted{getMemory()} << ", launch = " << getLaunch()
     << ", vector = " << getVector();
  if (getEfficiency() != 1)
    os << ", efficiency = " << getEfficiency();
  if (getPacking() != 0)
    os << ", packing = " << getPacking();
  if (getCache())
    os << ", cache = " << getCache();
  if (getCores()) {
    os << ", cores = ";
    getCores().print(printer);
  }
  os << ", rates = [";
  llvm::interleaveComma(getRates(), os, [&](RateAttr rate) {
    printer << rate.getElementType();
    os << " = " << rate.getRate();
  });
  os << "]>";
}

LogicalResult DeviceGroupAttr::verify(EmitError emitError, StringRef name,
                                      int64_t count, StringRef, Quantity launch,
                                      Quantity vector, Quantity efficiency,
                                      Quantity packing, StringAttr, CoresAttr,
                                      ArrayRef<RateAttr> rates) {
  std::string group = ("group \"" + name + "\"").str();
  if (count < 1)
    return emitError() << "expected " << group
                       << " to have at least 1 device but got " << count;
  if (failed(verifyNotNegative(emitError, "the launch time of " + group,
                               launch)) ||
      failed(
          verifyPositive(emitError, "the vector rate of " + group, vector)) ||
      failed(verifyNotNegative(emitError, "the packing of " + group, packing)))
    return failure();
  if (!(efficiency > 0 && efficiency <= 1))
    return emitError() << "expected the efficiency of " << group
                       << " to be in (0, 1] but got " << toString(efficiency);
  if (rates.empty())
    return emitError() << "expected " << group << " to have at least one rate";
  llvm::SmallDenseSet<Type> seen;
  for (RateAttr rate : rates)
    if (!seen.insert(rate.getElementType()).second)
      return emitError() << "expected " << group << " to have one rate for "
                         << rate.getElementType() << " but got two";
  return success();
}

//===----------------------------------------------------------------------===//
// Level: <"node" = 8, latency = 8.0e-7, bandwidth = 1.8e11>
//===----------------------------------------------------------------------===//

Attribute LevelAttr::parse(AsmParser &parser, Type) {
  std::string name;
  int64_t size;
  Quantity latency, bandwidth;
  SmallVector<Algorithm> algorithms;
  SmallVector<StringAttr> shared;
  SMLoc loc = parser.getCurrentLocation();
  auto parseAlgorithm = [&]() -> ParseResult {
    StringRef keyword;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<Algorithm> algorithm = symbolizeAlgorithm(keyword);
    if (!algorithm)
      return parser.emitError(at) << "expected an algorithm (ring, tree, "
                                     "halving, direct, memory) but got `"
                                  << keyword << '`';
    algorithms.push_back(*algorithm);
    return success();
  };
  Field fields[] = {number(parser, "latency", latency),
                    number(parser, "bandwidth", bandwidth),
                    {"algorithms",
                     [&] {
                       return parser.parseCommaSeparatedList(
                           AsmParser::Delimiter::Square, parseAlgorithm);
                     },
                     /*optional=*/true},
                    names(parser, "shared", shared)};
  if (parser.parseLess() || parser.parseString(&name) || parser.parseEqual() ||
      parser.parseInteger(size) || parseFields(parser, fields))
    return {};
  return parser.getChecked<LevelAttr>(loc, parser.getContext(), name, size,
                                      latency, bandwidth, algorithms, shared);
}

void LevelAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<' << Quoted{getName()} << " = " << getSize()
     << ", latency = " << getLatency() << ", bandwidth = " << getBandwidth();
  if (!getAlgorithms().empty()) {
    os << ", algorithms = [";
    llvm::interleaveComma(getAlgorithms(), os, [&](Algorithm algorithm) {
      os << stringifyAlgorithm(algorithm);
    });
    os << ']';
  }
  if (!getShared().empty()) {
    os << ", shared = ";
    printNames(printer, getShared());
  }
  os << '>';
}

LogicalResult LevelAttr::verify(EmitError emitError, StringRef name,
                                int64_t size, Quantity latency,
                                Quantity bandwidth,
                                ArrayRef<Algorithm> algorithms,
                                ArrayRef<StringAttr> shared) {
  std::string level = ("level \"" + name + "\"").str();
  if (size < 1)
    return emitError() << "expected " << level
                       << " to have a size of at least 1 but got " << size;
  if (failed(
          verifyNotNegative(emitError, "the latency of " + level, latency)) ||
      failed(verifyPositive(emitError, "the bandwidth of " + level, bandwidth)))
    return failure();
  for (size_t i = 1; i < algorithms.size(); ++i)
    if (llvm::is_contained(algorithms.take_front(i), algorithms[i]))
      return emitError() << "expected " << level << " to name algorithm `"
                         << stringifyAlgorithm(algorithms[i])
                         << "` once but got it twice";
  return verifyOnce(emitError, level, shared);
}

//===----------------------------------------------------------------------===//
// Tier: <"dram" in "node", capacity = 2.0e12, bandwidth = 6.4e11>
//===----------------------------------------------------------------------===//

static ParseResult parseScoped(AsmParser &parser, std::string &name,
                               std::string &scope) {
  return failure(parser.parseLess() || parser.parseString(&name) ||
                 parser.parseKeyword("in") || parser.parseString(&scope));
}

Attribute TierAttr::parse(AsmParser &parser, Type) {
  std::string name, scope;
  Quantity capacity, bandwidth;
  SmallVector<StringAttr> shared;
  SMLoc loc = parser.getCurrentLocation();
  Field fields[] = {number(parser, "capacity", capacity),
                    number(parser, "bandwidth", bandwidth),
                    names(parser, "shared", shared)};
  if (parseScoped(parser, name, scope) || parseFields(parser, fields))
    return {};
  return parser.getChecked<TierAttr>(loc, parser.getContext(), name, scope,
                                     capacity, bandwidth, shared);
}

void TierAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<' << Quoted{getName()} << " in " << Quoted{getScope()}
     << ", capacity = " << getCapacity() << ", bandwidth = " << getBandwidth();
  if (!getShared().empty()) {
    os << ", shared = ";
    printNames(printer, getShared());
  }
  os << '>';
}

LogicalResult TierAttr::verify(EmitError emitError, StringRef name, StringRef,
                               Quantity capacity, Quantity bandwidth,
                               ArrayRef<StringAttr> shared) {
  std::string tier = ("tier \"" + name + "\"").str();
  if (failed(verifyPositive(emitError, "the capacity of " + tier, capacity)) ||
      failed(verifyPositive(emitError, "the bandwidth of " + tier, bandwidth)))
    return failure();
  return verifyOnce(emitError, tier, shared);
}

//===----------------------------------------------------------------------===//
// Segment: <"host" in "node", bandwidth = 5.9e11, within = "fabric">
//===----------------------------------------------------------------------===//

Attribute SegmentAttr::parse(AsmParser &parser, Type) {
  std::string name, scope;
  Quantity bandwidth;
  StringAttr within;
  SMLoc loc = parser.getCurrentLocation();
  Field fields[] = {number(parser, "bandwidth", bandwidth),
                    optionalName(parser, "within", within)};
  if (parseScoped(parser, name, scope) || parseFields(parser, fields))
    return {};
  return parser.getChecked<SegmentAttr>(loc, parser.getContext(), name, scope,
                                        bandwidth, within);
}

void SegmentAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<' << Quoted{getName()} << " in " << Quoted{getScope()}
     << ", bandwidth = " << getBandwidth();
  if (getWithin())
    os << ", within = " << getWithin();
  os << '>';
}

LogicalResult SegmentAttr::verify(EmitError emitError, StringRef name,
                                  StringRef, Quantity bandwidth, StringAttr) {
  return verifyPositive(emitError, "the bandwidth of segment \"" + name + "\"",
                        bandwidth);
}

//===----------------------------------------------------------------------===//
// Link: <"dram" -> "hbm", latency = 1.5e-6, bandwidth = 9.8e10>
//===----------------------------------------------------------------------===//

Attribute LinkAttr::parse(AsmParser &parser, Type) {
  std::string from, to;
  Quantity latency, bandwidth, staging(0);
  SmallVector<StringAttr> shared;
  SMLoc loc = parser.getCurrentLocation();
  Field fields[] = {number(parser, "latency", latency),
                    number(parser, "bandwidth", bandwidth),
                    number(parser, "staging", staging, /*optional=*/true),
                    names(parser, "shared", shared)};
  if (parser.parseLess() || parser.parseString(&from) || parser.parseArrow() ||
      parser.parseString(&to) || parseFields(parser, fields))
    return {};
  return parser.getChecked<LinkAttr>(loc, parser.getContext(), from, to,
                                     latency, bandwidth, staging, shared);
}

void LinkAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<' << Quoted{getFrom()} << " -> " << Quoted{getTo()}
     << ", latency = " << getLatency() << ", bandwidth = " << getBandwidth();
  if (getStaging() > 0)
    os << ", staging = " << getStaging();
  if (!getShared().empty()) {
    os << ", shared = ";
    printNames(printer, getShared());
  }
  os << '>';
}

LogicalResult LinkAttr::verify(EmitError emitError, StringRef from,
                               StringRef to, Quantity latency,
                               Quantity bandwidth, Quantity staging,
                               ArrayRef<StringAttr> shared) {
  std::string link = ("link \"" + from + "\" -> \"" + to + "\"").str();
  if (failed(verifyNotNegative(emitError, "the latency of " + link, latency)) ||
      failed(
          verifyPositive(emitError, "the bandwidth of " + link, bandwidth)) ||
      failed(verifyNotNegative(emitError, "the staging of " + link, staging)))
    return failure();
  return verifyOnce(emitError, link, shared);
}

int64_t LinkAttr::getNumChunks(double bytes) const {
  double staging = getStaging();
  return staging > 0 && bytes > staging ? int64_t(std::ceil(bytes / staging))
                                        : 1;
}

#define GET_ATTRDEF_CLASSES
#include "dialects/Supernode/SupernodeAttrs.cpp.inc"

#include "dialects/Supernode/SupernodeEnums.cpp.inc"

void SupernodeDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Supernode/SupernodeAttrs.cpp.inc"
      >();
}
