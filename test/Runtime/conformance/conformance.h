/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the parts of the conformance suite share.
 */
#ifndef HYPERPARALLEL_TEST_RUNTIME_CONFORMANCE_CONFORMANCE_H
#define HYPERPARALLEL_TEST_RUNTIME_CONFORMANCE_CONFORMANCE_H

#include "lib/Runtime/hp_runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(CONDITION)                                                      \
  do {                                                                         \
    if (!(CONDITION)) {                                                        \
      printf("%s, line %d: %s (last error: %s)\n", __FILE__, __LINE__,         \
             #CONDITION, hp_last_error());                                     \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* A device with a stream, for the parts that need one. */
typedef struct place {
  hp_device *device;
  hp_stream *stream;
} place;

void *device_bytes(place at, int64_t bytes);
void *upload(place at, const void *host, int64_t bytes);
void download(place at, void *host, const void *pointer, int64_t bytes);
void release(place at, void *pointer);

/* Elements of every type. Numbers here are exact in all of them, but where f16
 * and bf16 round. */
int64_t size_of(int64_t dtype);
void put(void *base, int64_t at, int64_t dtype, double value);
double get(const void *base, int64_t at, int64_t dtype);

/* Parts; each ends the program where something is wrong. */
void products(place at);
void groups(hp_context *context);
void programs(hp_context *context, const char *program, const char *kernel,
              const char *trace);

#endif
