//===- ObjectCache.cpp - Compiled objects by content ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/CodeGen/ObjectCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;

namespace mlir::hyperparallel {

static constexpr size_t kDigestBytes = 32;

static std::string getDigest(StringRef content) {
  SHA256 hash;
  hash.update(content);
  std::array<uint8_t, kDigestBytes> digest = hash.final();
  return std::string(digest.begin(), digest.end());
}

std::string ObjectCache::getDefaultDirectory() {
  SmallString<128> path;
  if (const char *given = std::getenv("XDG_CACHE_HOME"); given && *given)
    path = given;
  else if (const char *home = std::getenv("HOME"); home && *home)
    sys::path::append(path, home, ".cache");
  else
    return {};
  sys::path::append(path, "hyperparallel");
  return path.str().str();
}

std::string ObjectCache::getKey(ArrayRef<StringRef> parts) {
  SHA256 hash;
  for (StringRef part : parts) {
    hash.update(std::to_string(part.size()));
    hash.update(StringRef(":"));
    hash.update(part);
  }
  return toHex(hash.final(), /*LowerCase=*/true);
}

std::string ObjectCache::getPath(StringRef key) const {
  SmallString<128> path(directory);
  sys::path::append(path, key.take_front(2), key.drop_front(2));
  return path.str().str();
}

std::optional<std::string> ObjectCache::load(StringRef key) const {
  if (directory.empty())
    return std::nullopt;
  auto buffer = MemoryBuffer::getFile(getPath(key), /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return std::nullopt;
  StringRef stored = (*buffer)->getBuffer();
  if (stored.size() <= kDigestBytes)
    return std::nullopt;
  StringRef content = stored.drop_front(kDigestBytes);
  if (getDigest(content) != stored.take_front(kDigestBytes))
    return std::nullopt;
  return content.str();
}

void ObjectCache::store(StringRef key, StringRef content) const {
  if (directory.empty())
    return;
  std::string path = getPath(key);
  if (sys::fs::create_directories(sys::path::parent_path(path)))
    return;
  SmallString<128> temporary;
  int descriptor;
  if (sys::fs::createUniqueFile(path + ".%%%%%%%%", descriptor, temporary))
    return;
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << getDigest(content) << content;
  stream.close();
  bool failed = stream.has_error();
  stream.clear_error();
  if (failed || sys::fs::rename(temporary, path))
    sys::fs::remove(temporary);
}

} // namespace mlir::hyperparallel
