// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- StreamNumbers.h - How compiled programs name streams --------------===//
//
// A word: the role (hp_stream_role) in its lowest bits, above them which one of
// that role. There is one compute stream.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_STREAMNUMBERS_H
#define HYPERPARALLEL_LIB_RUNTIME_STREAMNUMBERS_H

#include "lib/Runtime/Status.h"

#include <string>

namespace hyperparallel::runtime {

/// "comm stream", "comm stream 1"; without the word in between, "comm 1".
inline std::string streamName(int32_t stream, const char *between = "") {
  static const char *const roles[] = {"compute", "h2d",  "d2h",
                                      "comm",    "send", "recv"};
  int32_t number = stream >> HP_STREAM_ROLE_BITS;
  return std::string(roles[stream & ((1 << HP_STREAM_ROLE_BITS) - 1)]) +
         between + (number ? " " + std::to_string(number) : std::string());
}

inline hp_status checkStreamNumber(const char *what, int32_t stream) {
  int32_t role = stream & ((1 << HP_STREAM_ROLE_BITS) - 1);
  int32_t number = stream >> HP_STREAM_ROLE_BITS;
  return role <= HP_STREAM_RECV && number >= 0 && number <= 255 &&
                 (role != HP_STREAM_COMPUTE || number == 0)
             ? HP_OK
             : fail(HP_INVALID_ARGUMENT, "%s: expected a stream but got %d",
                    what, static_cast<int>(stream));
}

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_STREAMNUMBERS_H
