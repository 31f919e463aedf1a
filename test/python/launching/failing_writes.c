/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Preloaded into a process: its FAIL_AT-th call that changes files (counted
 * from 1) ends it on the spot, as a loss of power would, or, with FAIL_AS=full,
 * finds the disk full, as all that write from then on do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int count = 0;

/* Whether the call that is about to be made fails. */
static int fails(int writes) {
  const char *at = getenv("FAIL_AT"), *as = getenv("FAIL_AS");
  ++count;
  if (!at || count < atoi(at))
    return 0;
  if (as && !strcmp(as, "full")) {
    errno = ENOSPC;
    return writes;
  }
  return raise(SIGKILL), 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int mkdir(const char *path, mode_t mode) {
  return fails(1) ? -1 : NEXT(mkdir)(path, mode);
}
FILE *fopen(const char *path, const char *mode) {
  return *mode == 'w' && fails(1) ? NULL : NEXT(fopen)(path, mode);
}
size_t fwrite(const void *data, size_t size, size_t times, FILE *file) {
  if (file != stdout && file != stderr && fails(1))
    return 0;
  return NEXT(fwrite)(data, size, times, file);
}
int fflush(FILE *file) {
  if (file && file != stdout && file != stderr && fails(1))
    return EOF;
  return NEXT(fflush)(file);
}
int fsync(int file) { return fails(1) ? -1 : NEXT(fsync)(file); }
int rename(const char *from, const char *to) {
  return fails(0) ? -1 : NEXT(rename)(from, to);
}
int renameat2(int from_at, const char *from, int to_at, const char *to,
              unsigned flags) {
  return fails(0) ? -1 : NEXT(renameat2)(from_at, from, to_at, to, flags);
}
int unlink(const char *path) { return fails(0) ? -1 : NEXT(unlink)(path); }
int rmdir(const char *path) { return fails(0) ? -1 : NEXT(rmdir)(path); }
