// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/CPU/FunctionNames.h"

#ifdef __linux__
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <elf.h>
#include <map>
#include <mutex>
#include <vector>
#endif

namespace hyperparallel::runtime {

#ifdef __linux__

/// Names by offset from where the shared object was loaded.
using Names = std::map<uint64_t, std::string>;

template <typename T>
static bool readAt(FILE *file, uint64_t offset, std::vector<T> &out) {
  return std::fseek(file, static_cast<long>(offset), SEEK_SET) == 0 &&
         std::fread(out.data(), sizeof(T), out.size(), file) == out.size();
}

static Names readNames(FILE *file) {
  Names names;
  std::vector<Elf64_Ehdr> header(1);
  if (!readAt(file, 0, header) || header[0].e_shentsize != sizeof(Elf64_Shdr))
    return names;
  std::vector<Elf64_Shdr> sections(header[0].e_shnum);
  if (!readAt(file, header[0].e_shoff, sections))
    return names;
  for (const Elf64_Shdr &section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size())
      continue;
    const Elf64_Shdr &strings = sections[section.sh_link];
    std::vector<Elf64_Sym> symbols(section.sh_size / sizeof(Elf64_Sym));
    std::vector<char> text(strings.sh_size + 1); // ends in a nul in any case
    text.pop_back();
    if (!readAt(file, section.sh_offset, symbols) ||
        !readAt(file, strings.sh_offset, text))
      continue;
    text.push_back('\0');
    for (const Elf64_Sym &symbol : symbols)
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
          symbol.st_name < text.size())
        names[symbol.st_value] = text.data() + symbol.st_name;
  }
  return names;
}

std::string functionName(const void *address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname || !info.dli_fbase)
    return "";
  static std::mutex mutex;
  static std::map<std::pair<const void *, std::string>, Names> known;
  std::lock_guard<std::mutex> lock(mutex);
  auto [entry, isNew] = known.try_emplace({info.dli_fbase, info.dli_fname});
  if (isNew)
    if (FILE *file = std::fopen(info.dli_fname, "rb")) {
      entry->second = readNames(file);
      std::fclose(file);
    }
  auto found = entry->second.find(
      static_cast<uint64_t>(static_cast<const char *>(address) -
                            static_cast<const char *>(info.dli_fbase)));
  return found == entry->second.end() ? "" : found->second;
}

#else

std::string functionName(const void *) { return ""; }

#endif

} // namespace hyperparallel::runtime
