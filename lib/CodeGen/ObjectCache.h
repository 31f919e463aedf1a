//===- ObjectCache.h - Compiled objects by content --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A directory of files named by the hash of what they were made from. Entries
// are written to a temporary file and renamed, and carry a checksum: a reader
// sees a whole entry or none, whatever was killed in between.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_CODEGEN_OBJECTCACHE_H
#define HYPERPARALLEL_LIB_CODEGEN_OBJECTCACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace mlir::hyperparallel {

class ObjectCache {
public:
  /// An empty directory turns the cache off.
  explicit ObjectCache(llvm::StringRef directory) : directory(directory) {}

  /// ${XDG_CACHE_HOME:-~/.cache}/hyperparallel, or empty without a home.
  static std::string getDefaultDirectory();
  /// Hexadecimal digest of the parts, which are kept apart.
  static std::string getKey(llvm::ArrayRef<llvm::StringRef> parts);

  /// The entry, or nothing if there is none or it is damaged.
  std::optional<std::string> load(llvm::StringRef key) const;
  /// Failures are ignored: a cache that cannot be written is an empty cache.
  void store(llvm::StringRef key, llvm::StringRef content) const;

private:
  std::string getPath(llvm::StringRef key) const;
  std::string directory;
};

} // namespace mlir::hyperparallel

#endif // HYPERPARALLEL_LIB_CODEGEN_OBJECTCACHE_H
