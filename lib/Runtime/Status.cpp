// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Status.h"

#include <utility>

namespace hyperparallel::runtime {

static std::string &message() {
  static thread_local std::string text;
  return text;
}

hp_status failWith(hp_status code, std::string text) {
  message() = std::move(text);
  return code;
}

const std::string &lastError() { return message(); }

} // namespace hyperparallel::runtime

extern "C" {

uint32_t hp_abi_version(void) { return HP_ABI_VERSION; }

const char *hp_last_error(void) {
  return hyperparallel::runtime::lastError().c_str();
}

const char *hp_status_name(hp_status status) {
  switch (status) {
  case HP_OK:
    return "ok";
  case HP_INVALID_ARGUMENT:
    return "invalid argument";
  case HP_NOT_FOUND:
    return "not found";
  case HP_UNIMPLEMENTED:
    return "unimplemented";
  case HP_OUT_OF_MEMORY:
    return "out of memory";
  case HP_DEADLOCK:
    return "deadlock";
  case HP_MISMATCH:
    return "mismatch";
  case HP_PROGRAM_ERROR:
    return "program error";
  case HP_CANCELLED:
    return "cancelled";
  case HP_INTERNAL:
    return "internal error";
  case HP_LOST:
    return "process lost";
  }
  return "unknown status";
}

} // extern "C"
