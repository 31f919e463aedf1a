//===- SupernodeMachine.cpp - a machine as a whole ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Syntax of #supernode.machine, and the constraints between its parts (C1 to C6
// in SupernodeAttrs.td). Parts check themselves (SupernodeAttrs.cpp).
//===----------------------------------------------------------------------===//
#include "dialects/Supernode/Supernode.h"
#include "dialects/Supernode/SupernodeFields.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::supernode;

using EmitError = function_ref<InFlightDiagnostic()>;

static constexpr StringLiteral kDevice = "device";

//===----------------------------------------------------------------------===//
// Parse and print
//===----------------------------------------------------------------------===//

static Attribute parsePreset(AsmParser &parser) {
  std::string name;
  SMLoc loc;
  if (parser.parseEqual())
    return {};
  loc = parser.getCurrentLocation();
  if (parser.parseString(&name) || parser.parseGreater())
    return {};
  auto *dialect = parser.getContext()->getLoadedDialect<SupernodeDialect>();
  if (MachineAttr machine = dialect->getPreset(name))
    return machine;
  InFlightDiagnostic error = parser.emitError(loc, "expected a preset (");
  llvm::interleaveComma(getPresetNames(), error);
  error << ") but got \"" << name << '"';
  return {};
}

Attribute MachineAttr::parse(AsmParser &parser, Type) {
  std::string name;
  SmallVector<DeviceGroupAttr> groups;
  SmallVector<LevelAttr> levels;
  SmallVector<TierAttr> tiers;
  SmallVector<SegmentAttr> segments;
  SmallVector<LinkAttr> links;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  if (succeeded(parser.parseOptionalKeyword("preset")))
    return parsePreset(parser);
  Field fields[] = {
      {"groups", [&] { return parseParts(parser, groups); }},
      {"levels", [&] { return parseParts(parser, levels); }, true},
      {"tiers", [&] { return parseParts(parser, tiers); }},
      {"segments", [&] { return parseParts(parser, segments); }, true},
      {"links", [&] { return parseParts(parser, links); }, true}};
  if (parser.parseString(&name) || parseFields(parser, fields))
    return {};
  return MachineAttr::getChecked(
      [&] { return parser.emitError(loc); }, parser.getContext(),
      StringRef(name), ArrayRef(groups), ArrayRef(levels), ArrayRef(tiers),
      ArrayRef(segments), ArrayRef(links));
}

void MachineAttr::print(AsmPrinter &printer) const {
  auto &dialect = static_cast<SupernodeDialect &>(getDialect());
  if (dialect.getPreset(getName()) == *this) {
    printer.getStream() << "<preset = " << Quoted{getName()} << '>';
    return;
  }
  printer.getStream() << '<' << Quoted{getName()};
  auto print = [&](StringRef key, auto parts, bool optional) {
    if (parts.empty() && optional)
      return;
    printer << ", " << key << " = ";
    printParts(printer, parts);
  };
  print("groups", getGroups(), false);
  print("levels", getLevels(), true);
  print("tiers", getTiers(), false);
  print("segments", getSegments(), true);
  print("links", getLinks(), true);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Look-up
//===----------------------------------------------------------------------===//

template <typename PartAttr>
static PartAttr findNamed(ArrayRef<PartAttr> parts, StringRef name) {
  for (PartAttr part : parts)
    if (part.getName() == name)
      return part;
  return {};
}

int64_t MachineAttr::getNumDevices() const {
  int64_t devices = 0;
  for (DeviceGroupAttr group : getGroups())
    devices += group.getCount();
  return devices;
}

TierAttr MachineAttr::getTier(StringRef name) const {
  return findNamed(getTiers(), name);
}
SegmentAttr MachineAttr::getSegment(StringRef name) const {
  return findNamed(getSegments(), name);
}
LevelAttr MachineAttr::getLevel(StringRef name) const {
  return findNamed(getLevels(), name);
}
LinkAttr MachineAttr::getLink(StringRef from, StringRef to) const {
  for (LinkAttr link : getLinks())
    if (link.getFrom() == from && link.getTo() == to)
      return link;
  return {};
}

int64_t MachineAttr::getDevicesPerUnit(StringRef scope) const {
  int64_t devices = 1;
  if (scope == kDevice)
    return devices;
  for (LevelAttr level : getLevels()) {
    devices *= level.getSize();
    if (level.getName() == scope)
      break;
  }
  return devices;
}

//===----------------------------------------------------------------------===//
// Verify
//===----------------------------------------------------------------------===//

/// C1: names.
template <typename PartAttr>
static LogicalResult verifyNames(EmitError emitError, StringRef kind,
                                 ArrayRef<PartAttr> parts) {
  llvm::StringSet<> seen;
  for (PartAttr part : parts) {
    if (part.getName().empty())
      return emitError() << "expected every " << kind << " to have a name";
    if (!seen.insert(part.getName()).second)
      return emitError() << "expected " << kind
                         << "s of different names but got \"" << part.getName()
                         << "\" twice";
  }
  return success();
}

/// "a", "b", "c".
template <typename PartAttr>
static std::string listNames(ArrayRef<PartAttr> parts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(
      parts, os, [&](PartAttr part) { os << '"' << part.getName() << '"'; });
  return text;
}

/// C2.
static LogicalResult verifyDeviceCount(EmitError emitError,
                                       ArrayRef<DeviceGroupAttr> groups,
                                       ArrayRef<LevelAttr> levels) {
  constexpr int64_t kMost = int64_t(1) << 32;
  int64_t devices = 0, product = 1;
  for (DeviceGroupAttr group : groups)
    devices += std::min(group.getCount(), kMost + 1);
  for (LevelAttr level : levels)
    product *= std::min(level.getSize(), kMost / product + 1);
  if (devices > kMost || product > kMost)
    return emitError() << "expected a machine of at most 2^32 devices";
  if (devices != product)
    return emitError() << "expected the sizes of the levels to multiply to the "
                       << devices << " devices of the groups but got "
                       << product;
  return success();
}

/// C6: walks outwards from each segment; a walk longer than there are segments
/// has gone round.
static LogicalResult verifyNesting(EmitError emitError,
                                   ArrayRef<SegmentAttr> segments) {
  for (SegmentAttr segment : segments) {
    SegmentAttr at = segment;
    for (size_t steps = 0; at && at.getWithin(); ++steps) {
      if (steps == segments.size())
        return emitError() << "expected segment \"" << segment.getName()
                           << "\" not to lie within itself";
      SegmentAttr outer = findNamed(segments, at.getWithin().getValue());
      if (!outer)
        return emitError() << "expected segment \"" << at.getName()
                           << "\" to lie within one of [" << listNames(segments)
                           << "] but got " << at.getWithin();
      at = outer;
    }
  }
  return success();
}

LogicalResult MachineAttr::verify(EmitError emitError, StringRef name,
                                  ArrayRef<DeviceGroupAttr> groups,
                                  ArrayRef<LevelAttr> levels,
                                  ArrayRef<TierAttr> tiers,
                                  ArrayRef<SegmentAttr> segments,
                                  ArrayRef<LinkAttr> links) {
  if (name.empty())
    return emitError() << "expected the machine to have a name";
  if (groups.empty())
    return emitError() << "expected machine \"" << name
                       << "\" to have at least one group of devices";
  if (failed(verifyNames(emitError, "group", groups)) ||
      failed(verifyNames(emitError, "level", levels)) ||
      failed(verifyNames(emitError, "tier", tiers)) ||
      failed(verifyNames(emitError, "segment", segments)))
    return failure();
  if (findNamed(levels, kDevice))
    return emitError() << "expected no level to be called \"device\", which is "
                          "the scope of one device";
  if (failed(verifyDeviceCount(emitError, groups, levels)))
    return failure();

  auto verifyScope = [&](StringRef kind, auto part) -> LogicalResult { // C3
    if (part.getScope() == kDevice || findNamed(levels, part.getScope()))
      return success();
    return emitError() << "expected " << kind << " \"" << part.getName()
                       << "\" to be in \"device\" or a level ["
                       << listNames(levels) << "] but got \"" << part.getScope()
                       << '"';
  };
  auto verifyShared = [&](const Twine &where,
                          ArrayRef<StringAttr> shared) -> LogicalResult {
    for (StringAttr segment : shared)
      if (!findNamed(segments, segment.getValue()))
        return emitError() << "expected " << where << " to share one of ["
                           << listNames(segments) << "] but got " << segment;
    return success();
  };

  for (TierAttr tier : tiers)
    if (failed(verifyScope("tier", tier)))
      return failure();
  for (SegmentAttr segment : segments)
    if (failed(verifyScope("segment", segment)))
      return failure();
  if (failed(verifyNesting(emitError, segments)))
    return failure();
  for (DeviceGroupAttr group : groups) { // C4
    TierAttr memory = findNamed(tiers, group.getMemory());
    if (!memory || memory.getScope() != kDevice)
      return emitError() << "expected the memory of group \"" << group.getName()
                         << "\" to be a tier in \"device\" but got \""
                         << group.getMemory() << '"';
    if (group.getCache() && !findNamed(tiers, group.getCache().getValue()))
      return emitError() << "expected the cache of group \"" << group.getName()
                         << "\" to be a tier of [" << listNames(tiers)
                         << "] but got " << group.getCache();
  }
  for (TierAttr tier : tiers)
    if (failed(
            verifyShared("tier \"" + tier.getName() + "\"", tier.getShared())))
      return failure();
  for (LevelAttr level : levels)
    if (failed(verifyShared("level \"" + level.getName() + "\"",
                            level.getShared())))
      return failure();
  llvm::StringSet<> seen;
  for (LinkAttr link : links) {
    std::string text =
        ("link \"" + link.getFrom() + "\" -> \"" + link.getTo() + "\"").str();
    for (StringRef end : {link.getFrom(), link.getTo()}) // C5
      if (!findNamed(tiers, end))
        return emitError() << "expected " << text << " to join tiers of ["
                           << listNames(tiers) << "] but got \"" << end << '"';
    if (!seen.insert(text).second)
      return emitError() << "expected " << text << " once but got it twice";
    if (failed(verifyShared(text, link.getShared())))
      return failure();
  }
  return success();
}
