// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- PtxParser.cpp - Reads the PTX that LLVM prints --------------------===//

#include "test/Runtime/fakes/Ptx.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace fake {

int sizeOf(Type type) {
  switch (type) {
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
    return 2;
  case Type::B32:
  case Type::U32:
  case Type::S32:
  case Type::F32:
    return 4;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
    return 8;
  default:
    return 1;
  }
}

bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 ||
         type == Type::S64;
}

bool isFloat(Type type) { return type >= Type::F16; }

namespace {

const std::map<std::string, Type> TypeNames = {
    {"pred", Type::Pred}, {"b8", Type::B8},   {"b16", Type::B16},
    {"b32", Type::B32},   {"b64", Type::B64}, {"u8", Type::U8},
    {"u16", Type::U16},   {"u32", Type::U32}, {"u64", Type::U64},
    {"s8", Type::S8},     {"s16", Type::S16}, {"s32", Type::S32},
    {"s64", Type::S64},   {"f16", Type::F16}, {"bf16", Type::BF16},
    {"f32", Type::F32},   {"f64", Type::F64}};

std::vector<std::string> split(const std::string &text, char at) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (char c : text) {
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (c == at && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else {
      part += c;
    }
  }
  parts.push_back(part);
  return parts;
}

std::string trim(const std::string &text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos)
    return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

class Parser {
public:
  Parser(const std::string &text, Module &module) : module(module) {
    // Comments go; lines stay countable.
    for (size_t i = 0; i < text.size(); ++i) {
      if (text.compare(i, 2, "//") == 0)
        while (i < text.size() && text[i] != '\n')
          ++i;
      source += i < text.size() ? text[i] : '\n';
    }
  }

  bool run(std::string &error);

private:
  bool statement(const std::string &text);
  bool variable(const std::string &text);
  bool header(const std::string &text);
  bool instruction(const std::string &text);
  bool operands(Instruction &made, const std::vector<std::string> &mods,
                const std::string &text);
  bool operand(const std::string &text, Type type, Operand &out);
  bool address(const std::string &text, Operand &out);
  uint32_t registerOf(const std::string &name);
  bool fail(const std::string &what) {
    message = "line " + std::to_string(line) + ": " + what;
    return false;
  }
  bool finishKernel();

  Module &module;
  std::string source, message;
  unsigned line = 1;
  Kernel *kernel = nullptr;
  std::map<std::string, uint32_t> registers;
  std::map<std::string, int32_t> labels;
  std::map<std::string, uint64_t> blockVariables; // shared and local offsets
  std::map<std::string, uint64_t> sharedOfModule; // name to bytes
  std::map<std::string, int> parameters;
  std::vector<std::pair<size_t, std::string>> branches;
};

bool Parser::run(std::string &error) {
  std::string text;
  int braces = 0;
  auto flush = [&] {
    std::string whole = trim(text);
    text.clear();
    return whole.empty() || statement(whole);
  };
  bool ok = true;
  for (size_t i = 0; ok && i < source.size(); ++i) {
    char c = source[i];
    line += c == '\n';
    if (c == '\n' &&
        (trim(text)[0] == '.' && (trim(text).rfind(".version", 0) == 0 ||
                                  trim(text).rfind(".target", 0) == 0 ||
                                  trim(text).rfind(".address_size", 0) == 0))) {
      text.clear();
    } else if (c == '{' && text.find(".entry") != std::string::npos) {
      ok = header(text);
      text.clear();
      ++braces;
    } else if (c == '}' && braces == 1 && trim(text).empty()) {
      ok = finishKernel();
      --braces;
    } else if (c == ':' && trim(text)[0] == '$') {
      labels[trim(text)] = static_cast<int32_t>(kernel->code.size());
      text.clear();
    } else if (c == ';') {
      ok = flush();
    } else {
      text += c;
    }
  }
  error = message;
  return ok;
}

bool Parser::statement(const std::string &text) {
  if (text[0] != '.')
    return instruction(text);
  if (text.rfind(".reg", 0) == 0) {
    size_t open = text.find('<');
    std::string name = text.substr(text.find('%'));
    if (open == std::string::npos) {
      registerOf(name);
      return true;
    }
    return true; // numbered registers are met as they are used
  }
  return variable(text);
}

/// `.shared .align 16 .b8 name[2048]`, `.global … .b8 name[4] = {1, 2, 3, 4}`.
bool Parser::variable(const std::string &text) {
  std::string declaration = trim(text.substr(0, text.find('=')));
  size_t open = declaration.find('[');
  std::string words =
      open == std::string::npos ? declaration : declaration.substr(0, open);
  size_t space = words.find_last_of(" \t");
  std::string name = words.substr(space + 1);
  std::string typeName = words.substr(0, space);
  typeName = trim(typeName);
  typeName = typeName.substr(typeName.rfind('.') + 1);
  auto type = TypeNames.find(typeName);
  if (type == TypeNames.end())
    return fail("unknown declaration '" + text.substr(0, 60) + "'");
  uint64_t count =
      open == std::string::npos
          ? 1
          : std::strtoull(declaration.c_str() + open + 1, nullptr, 10);
  uint64_t bytes = count * sizeOf(type->second);
  if (text.find(".shared") != std::string::npos) {
    if (!kernel) {
      sharedOfModule[name] = bytes;
      return true;
    }
    kernel->sharedBytes = (kernel->sharedBytes + 15) / 16 * 16;
    blockVariables[name] = kernel->sharedBytes;
    kernel->sharedBytes += static_cast<uint32_t>(bytes);
    return true;
  }
  if (text.find(".local") != std::string::npos) {
    kernel->localBytes = (kernel->localBytes + 15) / 16 * 16;
    blockVariables[name] = kernel->localBytes;
    kernel->localBytes += static_cast<uint32_t>(bytes);
    return true;
  }
  module.storage.push_back(
      std::make_unique<std::vector<uint64_t>>((bytes + 7) / 8 + 2, 0));
  auto *data = reinterpret_cast<uint8_t *>(module.storage.back()->data());
  module.variables[name] = {reinterpret_cast<uint64_t>(data), bytes};
  size_t values = text.find('=');
  if (values == std::string::npos)
    return true;
  std::string list = trim(text.substr(values + 1));
  if (list[0] == '{')
    list = list.substr(1, list.size() - 2);
  uint64_t at = 0;
  for (const std::string &part : split(list, ',')) {
    Operand value;
    if (!operand(trim(part), type->second, value))
      return false;
    if (at + sizeOf(type->second) > bytes)
      return fail("too many values for '" + name + "'");
    std::memcpy(data + at, &value.bits, sizeOf(type->second));
    at += sizeOf(type->second);
  }
  return true;
}

bool Parser::header(const std::string &text) {
  size_t entry = text.find(".entry"), open = text.find('(');
  std::string name = trim(text.substr(
      entry + 6, (open == std::string::npos ? text.size() : open) - entry - 6));
  kernel = &module.kernels[name];
  *kernel = Kernel();
  kernel->name = name;
  registers.clear();
  labels.clear();
  blockVariables.clear();
  parameters.clear();
  branches.clear();
  for (const auto &shared : sharedOfModule) {
    kernel->sharedBytes = (kernel->sharedBytes + 15) / 16 * 16;
    blockVariables[shared.first] = kernel->sharedBytes;
    kernel->sharedBytes += static_cast<uint32_t>(shared.second);
  }
  size_t close = text.find(')');
  if (open != std::string::npos)
    for (const std::string &part :
         split(text.substr(open + 1, close - open - 1), ',')) {
      std::string words = trim(part);
      if (words.empty())
        continue;
      int size = 0;
      std::string spaced = words;
      std::replace(spaced.begin(), spaced.end(), '\t', ' ');
      for (const std::string &word : split(spaced, ' '))
        if (auto type = TypeNames.find(word.substr(word.find('.') + 1));
            type != TypeNames.end())
          size = sizeOf(type->second);
      std::string parameter = words.substr(words.find_last_of(" \t") + 1);
      if (size == 0 || parameter.find('[') != std::string::npos)
        return fail("unknown parameter '" + words + "'");
      kernel->parameterBytes =
          (kernel->parameterBytes + size - 1) / size * size;
      parameters[parameter] = kernel->parameterBytes;
      kernel->parameterOffsets.push_back(kernel->parameterBytes);
      kernel->parameterSizes.push_back(size);
      kernel->parameterBytes += size;
    }
  if (size_t most = text.find(".maxntid"); most != std::string::npos)
    kernel->mostThreads = std::atoi(text.c_str() + most + 8);
  return true;
}

uint32_t Parser::registerOf(const std::string &name) {
  auto [entry, isNew] =
      registers.try_emplace(name, static_cast<uint32_t>(registers.size()));
  (void)isNew;
  return entry->second;
}

bool Parser::finishKernel() {
  for (const auto &branch : branches) {
    auto label = labels.find(branch.second);
    if (label == labels.end())
      return fail("no label " + branch.second);
    kernel->code[branch.first].target = label->second;
  }
  kernel->numRegisters = static_cast<uint32_t>(registers.size());
  kernel = nullptr;
  return true;
}

bool Parser::operand(const std::string &text, Type type, Operand &out) {
  static const std::map<std::string, uint32_t> specials = {
      {"%tid.x", 0},   {"%tid.y", 1},    {"%tid.z", 2},     {"%ntid.x", 3},
      {"%ntid.y", 4},  {"%ntid.z", 5},   {"%ctaid.x", 6},   {"%ctaid.y", 7},
      {"%ctaid.z", 8}, {"%nctaid.x", 9}, {"%nctaid.y", 10}, {"%nctaid.z", 11},
      {"%laneid", 12}};
  if (text == "_")
    return true;
  if (text[0] == '!' || text[0] == '%') {
    out.negated = text[0] == '!';
    std::string name = out.negated ? text.substr(1) : text;
    if (auto special = specials.find(name); special != specials.end()) {
      out.kind = Operand::Special;
      out.number = special->second;
      return true;
    }
    out.kind = Operand::Register;
    out.number = registerOf(name);
    return true;
  }
  out.kind = Operand::Immediate;
  if (text.rfind("0f", 0) == 0 || text.rfind("0F", 0) == 0) {
    out.bits = std::strtoull(text.c_str() + 2, nullptr, 16);
    if (type == Type::F64) {
      float narrow;
      uint32_t bits = static_cast<uint32_t>(out.bits);
      std::memcpy(&narrow, &bits, 4);
      double wide = narrow;
      std::memcpy(&out.bits, &wide, 8);
    }
    return true;
  }
  if (text.rfind("0d", 0) == 0 || text.rfind("0D", 0) == 0) {
    out.bits = std::strtoull(text.c_str() + 2, nullptr, 16);
    return true;
  }
  if (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-') {
    out.bits =
        text[0] == '-'
            ? static_cast<uint64_t>(std::strtoll(text.c_str(), nullptr, 0))
            : std::strtoull(text.c_str(), nullptr, 0);
    return true;
  }
  if (auto found = blockVariables.find(text); found != blockVariables.end()) {
    out.bits = found->second;
    return true;
  }
  if (auto found = module.variables.find(text);
      found != module.variables.end()) {
    out.bits = found->second.address;
    return true;
  }
  if (auto found = parameters.find(text); found != parameters.end()) {
    out.bits = static_cast<uint64_t>(found->second);
    return true;
  }
  return fail("unknown operand '" + text + "'");
}

/// `[%rd1+16]`, `[name]`, `[%rd1+-4]`.
bool Parser::address(const std::string &text, Operand &out) {
  std::string inside = trim(text.substr(1, text.size() - 2));
  size_t plus = inside.find('+');
  std::string base = trim(inside.substr(0, plus));
  if (!operand(base, Type::B64, out))
    return false;
  if (plus != std::string::npos)
    out.bits += static_cast<uint64_t>(
        std::strtoll(inside.c_str() + plus + 1, nullptr, 0));
  return true;
}

struct Named {
  const char *name;
  Op op;
};
const Named Names[] = {
    {"ld", Op::Ld},     {"st", Op::St},     {"mov", Op::Mov},
    {"cvta", Op::Cvta}, {"cvt", Op::Cvt},   {"add", Op::Add},
    {"sub", Op::Sub},   {"mul", Op::Mul},   {"mad", Op::Mad},
    {"fma", Op::Fma},   {"div", Op::Div},   {"rem", Op::Rem},
    {"min", Op::Min},   {"max", Op::Max},   {"abs", Op::Abs},
    {"neg", Op::Neg},   {"and", Op::And},   {"or", Op::Or},
    {"xor", Op::Xor},   {"not", Op::Not},   {"shl", Op::Shl},
    {"shr", Op::Shr},   {"setp", Op::Setp}, {"selp", Op::Selp},
    {"bra", Op::Bra},   {"bar", Op::Bar},   {"barrier", Op::Bar},
    {"ret", Op::Ret},   {"exit", Op::Ret},  {"shfl", Op::Shfl},
    {"sqrt", Op::Sqrt}, {"rcp", Op::Rcp},   {"rsqrt", Op::Rsqrt},
    {"ex2", Op::Ex2},   {"lg2", Op::Lg2},   {"copysign", Op::Copysign},
    {"popc", Op::Popc}, {"clz", Op::Clz},   {"brev", Op::Brev},
    {"prmt", Op::Prmt}, {"shf", Op::Shf},   {"bfe", Op::Bfe},
    {"bfi", Op::Bfi},   {"trap", Op::Trap}};

bool has(const std::vector<std::string> &mods, const char *name) {
  return std::find(mods.begin(), mods.end(), name) != mods.end();
}

bool Parser::instruction(const std::string &whole) {
  if (!kernel)
    return fail("'" + whole.substr(0, 60) + "' outside of a kernel");
  std::string text = whole;
  Instruction made;
  made.line = line;
  if (text[0] == '@') {
    size_t end = text.find_first_of(" \t");
    Operand guard;
    if (!operand(text.substr(1, end - 1), Type::Pred, guard))
      return false;
    made.guard = static_cast<int32_t>(guard.number);
    made.guardNegated = guard.negated;
    text = trim(text.substr(end));
  }
  size_t end = text.find_first_of(" \t");
  std::vector<std::string> mods = split(text.substr(0, end), '.');
  const Named *named =
      std::find_if(std::begin(Names), std::end(Names),
                   [&](const Named &known) { return mods[0] == known.name; });
  if (named == std::end(Names))
    return fail("unknown instruction '" + text.substr(0, 60) + "'");
  made.op = named->op;
  for (std::string &mod : mods)
    if (made.op == Op::Cvt && (mod == "f16x2" || mod == "bf16x2")) {
      mod.resize(mod.size() - 2);
      made.op = Op::CvtPack;
    }
  static const char *const plain[] = {
      "rn",    "rz",  "rm",     "rp",   "ftz",  "approx",  "full",  "lo",
      "wide",  "hi",  "global", "to",   "nc",   "shared",  "local", "param",
      "const", "v2",  "v4",     "sync", "bfly", "aligned", "uni",   "NaN",
      "and",   "or",  "xor",    "l",    "r",    "wrap",    "clamp", "volatile",
      "rni",   "rzi", "rmi",    "rpi",  "weak", "cta"};
  for (size_t i = 1; i < mods.size(); ++i) {
    bool isCompare = named->op == Op::Setp && i == 1;
    bool isKnown = TypeNames.count(mods[i]) || isCompare ||
                   std::any_of(std::begin(plain), std::end(plain),
                               [&](const char *one) { return mods[i] == one; });
    if (!isKnown)
      return fail("unknown modifier '." + mods[i] + "' in '" +
                  text.substr(0, 60) + "'");
  }
  std::vector<Type> types;
  for (const std::string &mod : mods)
    if (auto type = TypeNames.find(mod); type != TypeNames.end())
      types.push_back(type->second);
  if (!types.empty())
    made.type = types[0];
  made.from = types.size() > 1 ? types[1] : made.type;
  made.space = has(mods, "global")   ? Space::Global
               : has(mods, "shared") ? Space::Shared
               : has(mods, "local")  ? Space::Local
               : has(mods, "param")  ? Space::Param
               : has(mods, "const")  ? Space::Const
                                     : Space::Generic;
  made.vector = has(mods, "v2") ? 2 : has(mods, "v4") ? 4 : 1;
  made.nan = has(mods, "NaN");
  if (made.op == Op::Mul && has(mods, "wide"))
    made.op = Op::MulWide;
  if (made.op == Op::Mul && has(mods, "hi"))
    made.op = Op::MulHi;
  if (made.op == Op::Mad && has(mods, "wide"))
    made.op = Op::MadWide;
  static const char *const compares[] = {"eq",  "ne",  "lt", "le", "gt", "ge",
                                         "num", "nan", "lo", "ls", "hi", "hs"};
  for (uint8_t i = 0; made.op == Op::Setp && i < 12; ++i) {
    uint8_t plain = i < 8 ? i : static_cast<uint8_t>(i - 6);
    if (mods[1] == compares[i])
      made.compare = plain;
    if (mods[1] == std::string(compares[i]) + "u") {
      made.compare = plain;
      made.unordered = true;
    }
  }
  if (made.op == Op::Setp)
    made.combine = has(mods, "and")   ? 1
                   : has(mods, "or")  ? 2
                   : has(mods, "xor") ? 3
                                      : 0;
  static const char *const roundings[] = {"rni", "rzi", "rmi", "rpi"};
  for (uint8_t i = 0; made.op == Op::Cvt && i < 4; ++i)
    if (has(mods, roundings[i]))
      made.compare = static_cast<uint8_t>(i + 1);
  if (made.op == Op::Cvt && has(mods, "sat"))
    return fail("saturating conversions are not known");
  if (made.op == Op::Shfl && !has(mods, "bfly"))
    return fail("shuffles other than bfly are not known");
  made.left = made.op == Op::Shf && has(mods, "l");
  return operands(made, mods,
                  end == std::string::npos ? "" : trim(text.substr(end)));
}

bool Parser::operands(Instruction &made, const std::vector<std::string> &mods,
                      const std::string &text) {
  (void)mods;
  if (made.op == Op::Bra) {
    branches.emplace_back(kernel->code.size(), text);
    kernel->code.push_back(made);
    return true;
  }
  std::vector<std::string> parts;
  if (!text.empty())
    for (const std::string &part : split(text, ','))
      parts.push_back(trim(part));
  bool first = made.op != Op::St && made.op != Op::Bar && made.op != Op::Trap;
  bool isConversion = made.op == Op::Cvt || made.op == Op::CvtPack;
  Type wanted = isConversion ? made.from : made.type;
  for (const std::string &part : parts) {
    std::vector<Operand> &into = first ? made.to : made.with;
    std::string rest = part;
    if (part[0] == '[') {
      Operand place;
      if (!address(part, place))
        return false;
      made.with.insert(made.with.begin(), place);
      first = false;
      continue;
    }
    bool isList = part[0] == '{';
    if (isList)
      rest = part.substr(1, part.size() - 2);
    for (const std::string &piece : split(rest, ',')) {
      std::string name = trim(piece);
      // A second result, such as `%r1|%p1`: whether the value was valid.
      if (size_t bar = name.find('|'); bar != std::string::npos)
        name = name.substr(0, bar);
      Operand value;
      if (!operand(name, wanted, value))
        return false;
      into.push_back(value);
    }
    if (isList && made.op == Op::Mov)
      made.op = first ? Op::Unpack : Op::Pack;
    first = false;
  }
  kernel->code.push_back(std::move(made));
  return true;
}

} // namespace

bool parsePtx(const std::string &text, Module &out, std::string &error) {
  return Parser(text, out).run(error);
}

} // namespace fake
