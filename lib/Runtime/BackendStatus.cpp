// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- BackendStatus.cpp - Status.h in a back end of its own -------------===//
//
// A back end that is a library of its own keeps its messages where the runtime
// does.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Status.h"
#include "lib/Runtime/hp_backend.h"

namespace hyperparallel::runtime {

hp_status failWith(hp_status code, std::string text) {
  return hp_backend_error(code, text.c_str());
}

const std::string &lastError() {
  static thread_local std::string text;
  return text = hp_last_error();
}

} // namespace hyperparallel::runtime
