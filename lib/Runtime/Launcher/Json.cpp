// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Launcher/Json.h"
#include "lib/Runtime/Launcher/Fault.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hyperparallel::launcher {

/// Reads one text, by recursive descent.
class JsonReader {
public:
  JsonReader(const char *begin, const char *end, const std::string &where)
      : begin(begin), at(begin), end(end), where(where) {}

  Json readAll() {
    Json value = read(0);
    skipSpace();
    if (at != end)
      refuse("nothing more");
    return value;
  }

private:
  [[noreturn]] void refuse(const char *expected) {
    endWith(where + ": expected " + expected + " at byte " +
            std::to_string(at - begin) + "; the file is damaged");
  }

  void skipSpace() {
    while (at != end && std::strchr(" \t\r\n", *at) && *at)
      ++at;
  }

  bool take(char wanted) {
    skipSpace();
    if (at == end || *at != wanted)
      return false;
    ++at;
    return true;
  }

  bool takeWord(const char *word) {
    size_t length = std::strlen(word);
    if (static_cast<size_t>(end - at) < length ||
        std::strncmp(at, word, length) != 0)
      return false;
    at += length;
    return true;
  }

  Json read(int depth) {
    if (depth > 100)
      refuse("less than a hundred levels");
    Json value;
    value.where = where;
    skipSpace();
    if (at == end)
      refuse("a value");
    if (*at == '"') {
      value.kind = Json::Kind::Text;
      value.string = readText();
    } else if (take('[')) {
      value.kind = Json::Kind::List;
      for (bool isFirst = true; !take(']'); isFirst = false) {
        if (!isFirst && !take(','))
          refuse("',' or ']'");
        value.elements.push_back(read(depth + 1));
      }
    } else if (take('{')) {
      value.kind = Json::Kind::Object;
      for (bool isFirst = true; !take('}'); isFirst = false) {
        if (!isFirst && !take(','))
          refuse("',' or '}'");
        skipSpace();
        std::string key = readText();
        if (!take(':'))
          refuse("':'");
        value.members[key] = read(depth + 1);
      }
    } else if (takeWord("true") || takeWord("false")) {
      value.kind = Json::Kind::Boolean;
      value.number = at[-2] == 'u'; // tr_u_e
    } else if (!takeWord("null")) {
      value.kind = Json::Kind::Number;
      value.number = readNumber();
    }
    return value;
  }

  double readNumber() {
    std::string text;
    while (at != end && *at && std::strchr("+-.0123456789eE", *at))
      text += *at++;
    char *rest = nullptr;
    double number = std::strtod(text.c_str(), &rest);
    if (text.empty() || *rest)
      refuse("a value");
    return number;
  }

  uint32_t readCode() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at) {
      if (at == end || !std::isxdigit(static_cast<unsigned char>(*at)))
        refuse("four hexadecimal digits");
      char c = *at;
      code = code * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
  }

  static void appendUtf8(std::string &text, uint32_t code) {
    if (code < 0x80) {
      text += static_cast<char>(code);
      return;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned lead[] = {0, 0xC0, 0xE0, 0xF0};
    text += static_cast<char>(lead[more] | (code >> (6 * more)));
    while (more-- > 0)
      text += static_cast<char>(0x80 | ((code >> (6 * more)) & 0x3F));
  }

  std::string readText() {
    if (at == end || *at != '"')
      refuse("a string");
    ++at;
    std::string text;
    while (at != end && *at != '"') {
      if (*at != '\\') {
        text += *at++;
        continue;
      }
      if (++at == end)
        break;
      char c = *at++;
      static const char plain[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
      if (const char *found = std::strchr(plain, c); found && c) {
        text += meant[found - plain];
      } else if (c == 'u') {
        uint32_t code = readCode();
        if (code >= 0xD800 && code < 0xDC00 && takeWord("\\u"))
          code = 0x10000 + ((code - 0xD800) << 10) + (readCode() - 0xDC00);
        appendUtf8(text, code);
      } else {
        refuse("an escape");
      }
    }
    if (at == end)
      refuse("the end of a string");
    ++at;
    return text;
  }

  const char *begin, *at, *end;
  const std::string &where;
};

Json Json::parse(const char *begin, const char *end, const std::string &where) {
  return JsonReader(begin, end, where).readAll();
}

Json Json::readFile(const std::string &path) {
  FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    endWith("cannot read " + path + ": " + std::strerror(errno));
  std::string text;
  char part[1 << 16];
  while (size_t count = std::fread(part, 1, sizeof(part), file))
    text.append(part, count);
  std::fclose(file);
  return parse(text.data(), text.data() + text.size(), path);
}

void Json::expect(Kind wanted, const char *what) const {
  if (kind != wanted)
    endWith(where + ": expected " + what + "; the file is damaged");
}

const Json &Json::operator[](const std::string &key) const {
  expect(Kind::Object, "an object");
  auto found = members.find(key);
  if (found == members.end())
    endWith(where + ": expected an entry '" + key + "'; the file is damaged");
  return found->second;
}

const std::string &Json::text() const {
  expect(Kind::Text, "a string");
  return string;
}

int64_t Json::integer() const {
  expect(Kind::Number, "a number");
  if (number != std::floor(number) || std::abs(number) > 9007199254740992.0)
    endWith(where + ": expected a whole number; the file is damaged");
  return static_cast<int64_t>(number);
}

const std::vector<Json> &Json::list() const {
  expect(Kind::List, "a list");
  return elements;
}

const std::map<std::string, Json> &Json::object() const {
  expect(Kind::Object, "an object");
  return members;
}

std::vector<int64_t> Json::integers() const {
  std::vector<int64_t> result;
  for (const Json &element : list())
    result.push_back(element.integer());
  return result;
}

std::string quoteJson(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", c);
      result += code;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

} // namespace hyperparallel::launcher
