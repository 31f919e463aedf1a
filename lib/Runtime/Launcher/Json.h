// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- Json.h - Reading manifests and headers ----------------------------===//
//
// A small reader of JSON (RFC 8259): numbers are doubles, and exact integers
// as far as those are; text is UTF-8. Whatever is no JSON, or of another kind
// than asked for, ends the tool with a message that names the file.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_JSON_H
#define HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_JSON_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hyperparallel::launcher {

class Json {
public:
  /// `where` is what messages call the text.
  static Json parse(const char *begin, const char *end,
                    const std::string &where);
  static Json readFile(const std::string &path);

  bool isNull() const { return kind == Kind::Null; }
  bool has(const std::string &key) const { return members.count(key) != 0; }
  /// A member, which must be there.
  const Json &operator[](const std::string &key) const;
  const std::string &text() const;
  int64_t integer() const;
  std::vector<int64_t> integers() const;
  const std::vector<Json> &list() const;
  const std::map<std::string, Json> &object() const;

private:
  friend class JsonReader;
  enum class Kind { Null, Boolean, Number, Text, List, Object };
  void expect(Kind wanted, const char *what) const;

  Kind kind = Kind::Null;
  double number = 0;
  std::string string;
  std::vector<Json> elements;
  std::map<std::string, Json> members;
  std::string where;
};

/// The text as a JSON string, with its quotes.
std::string quoteJson(const std::string &text);

} // namespace hyperparallel::launcher

#endif // HYPERPARALLEL_LIB_RUNTIME_LAUNCHER_JSON_H
