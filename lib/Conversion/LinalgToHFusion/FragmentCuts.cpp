//===- FragmentCuts.cpp - Fragments that are cut in parts -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   1. A part is a range of the ops that are not cheap; cheap ones are written
//      in each part that uses them.
//   2. What one part makes and a later one uses is a temporary tensor, or the
//      result that it also is. Booleans are bytes there.
//   3. A part that was refused, too, is cut again, down to single ops.
//
// Cost: linear in ops, for each level of cuts.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/FragmentCuts.h"
#include "lib/Conversion/LinalgToHFusion/HFusionNames.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MD5.h"

using namespace mlir;

namespace mlir::hyperparallel {

namespace {
class Cutter {
public:
  Cutter(const HFusionFunction &function, ArrayRef<HFusionValue> results,
         const llvm::StringSet<> &refused);
  CutFragment run();

private:
  /// A tensor that parts read or write.
  size_t numberOf(const HFusionValue &value);
  void readUses();
  void emit(size_t begin, size_t end);
  std::optional<FragmentPart> write(size_t begin, size_t end);
  size_t findCut(size_t begin, size_t end) const;

  const HFusionFunction &function;
  ArrayRef<HFusionValue> results;
  const llvm::StringSet<> &refused;
  llvm::StringMap<size_t> lineOf;             ///< by name
  SmallVector<SmallVector<std::string>> uses; ///< names, of each line
  SmallVector<size_t> heavy;                  ///< lines that parts are made of
  SmallVector<size_t> lastUse;     ///< position in heavy, of each line
  llvm::StringMap<size_t> numbers; ///< of tensors, by name
  CutFragment cut;
};
} // namespace

/// The values that an op's text names.
static SmallVector<std::string> namesIn(StringRef text) {
  SmallVector<std::string> names;
  for (size_t at = text.find('%'); at != StringRef::npos;
       at = text.find('%', at + 1)) {
    StringRef name = text.substr(at + 1).take_while(llvm::isAlnum);
    names.push_back(("%" + name).str());
  }
  return names;
}

static std::string digestOf(StringRef text) {
  llvm::MD5 digest;
  digest.update(text);
  return digest.final().digest().str().str();
}

static bool isBoolean(const HFusionValue &value) {
  return value.element.isInteger(1);
}

Cutter::Cutter(const HFusionFunction &function, ArrayRef<HFusionValue> results,
               const llvm::StringSet<> &refused)
    : function(function), results(results), refused(refused) {
  for (size_t i = 0; i < function.getNumArguments(); ++i)
    numbers[function.getArgument(i).name] = i;
  for (const HFusionValue &result : results)
    numbers[result.name] = numbers.size();
  readUses();
}

void Cutter::readUses() {
  ArrayRef<HFusionFunction::Line> lines = function.getLines();
  for (auto [number, line] : llvm::enumerate(lines))
    lineOf[line.result.name] = number;
  uses.resize(lines.size());
  lastUse.assign(lines.size(), 0);
  for (auto [number, line] : llvm::enumerate(lines)) {
    uses[number] = namesIn(line.text);
    bool isResult = llvm::any_of(results, [&](const HFusionValue &result) {
      return result.name == line.result.name;
    });
    if (line.isCheap && !isResult)
      continue;
    heavy.push_back(number);
  }
  // What cheap lines use is cheap: only heavy lines matter.
  for (auto [at, number] : llvm::enumerate(heavy))
    for (const std::string &name : uses[number])
      if (auto line = lineOf.find(name); line != lineOf.end())
        lastUse[line->second] = at;
}

size_t Cutter::numberOf(const HFusionValue &value) {
  auto [entry, isNew] = numbers.try_emplace(value.name, 0);
  if (isNew) {
    entry->second =
        function.getNumArguments() + results.size() + cut.temporaries.size();
    HFusionValue temporary = value;
    if (isBoolean(value))
      temporary.element = IntegerType::get(value.element.getContext(), 8);
    cut.temporaries.push_back(temporary);
  }
  return entry->second;
}

std::optional<FragmentPart> Cutter::write(size_t begin, size_t end) {
  ArrayRef<HFusionFunction::Line> lines = function.getLines();
  llvm::SmallDenseSet<size_t> own; // lines of the part
  for (size_t at = begin; at < end; ++at)
    own.insert(heavy[at]);
  SmallVector<std::string> pending;
  for (size_t at = begin; at < end; ++at)
    llvm::append_range(pending, uses[heavy[at]]);
  llvm::SmallDenseSet<size_t> read, arguments;
  while (!pending.empty()) {
    std::string name = pending.pop_back_val();
    auto line = lineOf.find(name);
    if (line == lineOf.end()) {
      arguments.insert(numbers.find(name)->second);
      continue;
    }
    size_t number = line->second;
    if (own.contains(number))
      continue;
    if (llvm::binary_search(heavy, number)) {
      read.insert(number);
      continue;
    }
    own.insert(number);
    llvm::append_range(pending, uses[number]);
  }

  FragmentPart part;
  SmallVector<HFusionValue> ins, outs;
  std::string before, body, after;
  auto sorted = [](const llvm::SmallDenseSet<size_t> &set) {
    SmallVector<size_t> list(set.begin(), set.end());
    llvm::sort(list);
    return list;
  };
  auto convert = [](const HFusionValue &from, StringRef to, Type element,
                    StringRef op, StringRef more, StringRef types) {
    HFusionValue empty = from;
    empty.element = element;
    std::string type = HFusionFunction::typeOf(empty);
    return ("  %e" + to.drop_front() + " = tensor.empty() : " + type + "\n  " +
            to + " = " + op + " ins(" + from.name + more + " : " +
            HFusionFunction::typeOf(from) + types + ") outs(%e" +
            to.drop_front() + " : " + type + ") -> " + type + "\n")
        .str();
  };
  for (size_t argument : sorted(arguments)) {
    ins.push_back(function.getArgument(argument));
    part.reads.push_back(argument);
  }
  for (size_t number : sorted(read)) {
    HFusionValue value = lines[number].result;
    part.reads.push_back(numberOf(value));
    if (isBoolean(value)) {
      std::string name = value.name;
      Type boolean = value.element;
      value.element = IntegerType::get(boolean.getContext(), 8);
      value.name = "%b" + name.substr(1);
      before +=
          "  %z" + name.substr(1) + " = arith.constant 0 : i8\n" +
          convert(value, name, boolean,
                  "hfusion.compare {compare_fn = #hfusion.compare_fn<vne>}",
                  ", %z" + name.substr(1), ", i8");
    }
    ins.push_back(value);
  }
  for (auto [number, line] : llvm::enumerate(lines))
    if (own.contains(number))
      body += "  " + line.result.name + " = " + line.text + "\n";
  for (size_t at = begin; at < end; ++at) {
    HFusionValue value = lines[heavy[at]].result;
    bool isResult = numbers.contains(value.name);
    if (!isResult && lastUse[heavy[at]] < end)
      continue;
    part.writes.push_back(numberOf(value));
    if (isBoolean(value)) {
      std::string name = value.name.substr(1);
      Type byte = IntegerType::get(value.element.getContext(), 8);
      after += "  %o" + name + " = arith.constant 1 : i8\n  %z" + name +
               " = arith.constant 0 : i8\n" +
               convert(value, "%b" + name, byte, kSelect,
                       ", %o" + name + ", %z" + name, ", i8, i8");
      value.element = byte;
      value.name = "%b" + name;
    }
    outs.push_back(value);
  }
  if (outs.empty())
    return std::nullopt;
  part.text = HFusionFunction::write(function.getName(), ins,
                                     before + body + after, outs);
  return part;
}

/// The place in the middle half at which the fewest bytes are handed on, most
/// of all booleans.
size_t Cutter::findCut(size_t begin, size_t end) const {
  ArrayRef<HFusionFunction::Line> lines = function.getLines();
  SmallVector<double> change(end - begin + 1, 0);
  for (size_t at = begin; at < end; ++at) {
    const HFusionValue &value = lines[heavy[at]].result;
    double cost = isBoolean(value) ? 16 : value.element.getIntOrFloatBitWidth();
    for (int64_t size : value.shape)
      cost *= static_cast<double>(size);
    size_t last = std::min(lastUse[heavy[at]], end - 1);
    if (last <= at)
      continue;
    change[at + 1 - begin] += cost;
    change[last + 1 - begin] -= cost;
  }
  size_t count = end - begin, best = count / 2;
  double cost = 0, least = std::numeric_limits<double>::infinity();
  for (size_t at = 1; at < count; ++at) {
    cost += change[at];
    if (cost < least && at >= (count + 3) / 4 && at <= count - count / 4) {
      least = cost;
      best = at;
    }
  }
  return begin + best;
}

void Cutter::emit(size_t begin, size_t end) {
  std::optional<FragmentPart> part = write(begin, end);
  if (!part)
    return;
  if (end - begin > 1 && refused.contains(digestOf(part->text))) {
    size_t middle = findCut(begin, end);
    emit(begin, middle);
    emit(middle, end);
    return;
  }
  cut.parts.push_back(std::move(*part));
}

CutFragment Cutter::run() {
  std::string whole = function.finish(results);
  if (!refused.contains(digestOf(whole))) {
    FragmentPart part{whole, {}, {}};
    size_t numArguments = function.getNumArguments();
    for (size_t i = 0; i < numArguments; ++i)
      part.reads.push_back(i);
    for (size_t i = 0; i < results.size(); ++i)
      part.writes.push_back(numArguments + i);
    cut.parts.push_back(std::move(part));
    return std::move(cut);
  }
  if (heavy.size() < 2) {
    emit(0, heavy.size());
    return std::move(cut);
  }
  size_t middle = findCut(0, heavy.size());
  emit(0, middle);
  emit(middle, heavy.size());
  return std::move(cut);
}

CutFragment cutFragment(const HFusionFunction &function,
                        ArrayRef<HFusionValue> results,
                        const llvm::StringSet<> &refused) {
  return Cutter(function, results, refused).run();
}

} // namespace mlir::hyperparallel
