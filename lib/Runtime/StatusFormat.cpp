// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Status.h"

#include <cstdarg>
#include <cstdio>
#include <utility>

namespace hyperparallel::runtime {

hp_status fail(hp_status code, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = std::vsnprintf(nullptr, 0, format, args);
  va_end(args);
  std::string text(length > 0 ? length : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return failWith(code, std::move(text));
}

} // namespace hyperparallel::runtime
