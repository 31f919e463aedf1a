// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- ProgramFile.h - Whether a program's file is whole -----------------===//
//
// The loader maps what a shared object's headers promise and dies of SIGBUS
// where a truncated file lacks it; so every back end checks the promises before
// it opens a program.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_PROGRAMFILE_H
#define HYPERPARALLEL_LIB_RUNTIME_PROGRAMFILE_H

#include "lib/Runtime/Status.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#ifdef __linux__
#include <elf.h>
#include <vector>
#endif

namespace hyperparallel::runtime {

inline hp_status checkProgramFile(const char *path) {
#ifdef __linux__
  FILE *file = std::fopen(path, "rb");
  if (!file)
    return fail(HP_NOT_FOUND, "cannot load the program '%s': %s", path,
                std::strerror(errno));
  Elf64_Ehdr header = {};
  bool whole = std::fread(&header, sizeof(header), 1, file) == 1 &&
               !std::memcmp(header.e_ident, ELFMAG, SELFMAG) &&
               header.e_ident[EI_CLASS] == ELFCLASS64 &&
               header.e_phentsize == sizeof(Elf64_Phdr);
  std::vector<Elf64_Phdr> segments(whole ? header.e_phnum : 0);
  whole = whole && std::fseek(file, header.e_phoff, SEEK_SET) == 0 &&
          std::fread(segments.data(), sizeof(Elf64_Phdr), segments.size(),
                     file) == segments.size() &&
          std::fseek(file, 0, SEEK_END) == 0;
  uint64_t size = whole ? std::ftell(file) : 0;
  std::fclose(file);
  uint64_t needed =
      header.e_shoff + uint64_t(header.e_shnum) * header.e_shentsize;
  whole = whole && needed <= size;
  for (const Elf64_Phdr &segment : segments)
    whole = whole && segment.p_offset + segment.p_filesz <= size;
  if (!whole)
    return fail(HP_NOT_FOUND,
                "cannot load the program '%s': the file is truncated or no "
                "shared object; compile it again",
                path);
#else
  (void)path;
#endif
  return HP_OK;
}

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_PROGRAMFILE_H
