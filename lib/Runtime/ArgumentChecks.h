// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- ArgumentChecks.h - What every back end refuses --------------------===//
//
// The arguments of public calls that are wrong on any device, and the words for
// it.
//
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_LIB_RUNTIME_ARGUMENTCHECKS_H
#define HYPERPARALLEL_LIB_RUNTIME_ARGUMENTCHECKS_H

#include "lib/Runtime/Status.h"

#include <map>
#include <set>

namespace hyperparallel::runtime {

inline hp_status checkNewStream(hp_stream_role role, const void *out) {
  return out && role >= HP_STREAM_COMPUTE && role <= HP_STREAM_COMM
             ? HP_OK
             : fail(HP_INVALID_ARGUMENT,
                    "hp_stream_create: expected a role from 0 to 3 and a place "
                    "for the result");
}

/// `what` the call `name` needs is there.
inline hp_status checkGiven(const void *given, const char *name,
                            const char *what) {
  return given ? HP_OK
               : fail(HP_INVALID_ARGUMENT, "%s: expected %s", name, what);
}

inline hp_status checkCopy(const void *dst, const void *src, int64_t bytes) {
  return bytes >= 0 && (bytes == 0 || (dst && src))
             ? HP_OK
             : fail(HP_INVALID_ARGUMENT, "hp_copy: expected two buffers");
}

inline hp_status checkCopyRows(const void *dst, int64_t dstPitch,
                               const void *src, int64_t srcPitch, int64_t width,
                               int64_t rows) {
  bool isGood = width >= 0 && rows >= 0 &&
                (rows <= 1 || (dstPitch >= width && srcPitch >= width)) &&
                (width * rows == 0 || (dst && src));
  return isGood ? HP_OK
                : fail(HP_INVALID_ARGUMENT,
                       "hp_copy_2d: expected two buffers with pitches of at "
                       "least %lld bytes",
                       static_cast<long long>(width));
}

inline hp_status checkFill(const void *dst, const void *pattern,
                           int64_t patternBytes, int64_t bytes) {
  bool isGood = pattern && patternBytes >= 1 && patternBytes <= 64 &&
                bytes >= 0 && bytes % patternBytes == 0 && (bytes == 0 || dst);
  return isGood
             ? HP_OK
             : fail(HP_INVALID_ARGUMENT,
                    "hp_fill: expected a buffer of whole patterns of 1 to 64 "
                    "bytes");
}

/// The members of a communicator, as one of them names them; `rank` is its own.
inline hp_status checkMembers(const char *name, const int64_t *ranks,
                              int64_t count, int64_t available, int64_t ordinal,
                              const void *out, int *rank) {
  if (!name || !ranks || count < 1 || !out)
    return fail(HP_INVALID_ARGUMENT,
                "hp_comm_create: expected a name, ranks, a device and a place "
                "for the result");
  std::set<int64_t> seen;
  *rank = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= available || !seen.insert(ranks[i]).second)
      return fail(HP_INVALID_ARGUMENT,
                  "communicator '%s': expected different devices below %lld "
                  "but got %lld",
                  name, static_cast<long long>(available),
                  static_cast<long long>(ranks[i]));
    if (ranks[i] == ordinal)
      *rank = static_cast<int>(i);
  }
  return *rank >= 0 ? HP_OK
                    : fail(HP_INVALID_ARGUMENT,
                           "communicator '%s': device %lld is not among its "
                           "ranks",
                           name, static_cast<long long>(ordinal));
}

/// A rank of a communicator, as "root" or "peer".
inline hp_status checkRank(const char *what, const char *role, int64_t rank,
                           int64_t size) {
  return rank >= 0 && rank < size
             ? HP_OK
             : fail(HP_INVALID_ARGUMENT,
                    "%s: expected a %s below %lld but got %lld", what, role,
                    static_cast<long long>(size), static_cast<long long>(rank));
}

/// The launches of a run on `available` devices. `isElsewhere(device)` says
/// which of them are another process's, and need no program here.
template <typename IsElsewhere>
hp_status checkLaunches(const hp_launch *launches, int64_t count,
                        int64_t available, IsElsewhere isElsewhere) {
  if (!launches || count < 1)
    return fail(HP_INVALID_ARGUMENT, "expected one launch at least");
  std::set<int64_t> devices;
  std::map<int64_t, std::set<int64_t>> ranks;
  for (int64_t i = 0; i < count; ++i) {
    const hp_launch &launch = launches[i];
    bool exists = launch.device >= 0 && launch.device < available;
    bool isHere = !(exists && isElsewhere(launch.device));
    if (launch.struct_size < sizeof(hp_launch) ||
        (isHere && (!launch.program || !launch.entry)))
      return fail(HP_INVALID_ARGUMENT,
                  "launch %lld: expected struct_size, a program and an entry",
                  static_cast<long long>(i));
    if (!exists)
      return fail(HP_INVALID_ARGUMENT,
                  "launch %lld: expected a device below %lld but got %lld",
                  static_cast<long long>(i), static_cast<long long>(available),
                  static_cast<long long>(launch.device));
    if (!devices.insert(launch.device).second)
      return fail(HP_INVALID_ARGUMENT, "device %lld has more than one launch",
                  static_cast<long long>(launch.device));
    if (!ranks[launch.group].insert(launch.rank).second)
      return fail(HP_INVALID_ARGUMENT,
                  "group %lld has more than one launch of rank %lld",
                  static_cast<long long>(launch.group),
                  static_cast<long long>(launch.rank));
  }
  for (const auto &entry : ranks)
    if (*entry.second.begin() != 0 ||
        *entry.second.rbegin() + 1 != static_cast<int64_t>(entry.second.size()))
      return fail(HP_INVALID_ARGUMENT,
                  "group %lld: expected ranks 0 to %zu but got %lld to %lld",
                  static_cast<long long>(entry.first), entry.second.size() - 1,
                  static_cast<long long>(*entry.second.begin()),
                  static_cast<long long>(*entry.second.rbegin()));
  return HP_OK;
}

} // namespace hyperparallel::runtime

#endif // HYPERPARALLEL_LIB_RUNTIME_ARGUMENTCHECKS_H
