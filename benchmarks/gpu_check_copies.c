/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Copies between pinned memory and the device, both ways: prints JSON with
 * bytes per second and seconds of a copy of nothing much.
 *
 *   gpu_check_copies BACKEND BYTES
 */
#include "lib/Runtime/hp_runtime.h"

#include <stdio.h>
#include <stdlib.h>

enum { Turns = 10 };

static void check(hp_status status) {
  if (status == HP_OK)
    return;
  fprintf(stderr, "gpu_check_copies: %s\n", hp_last_error());
  exit(1);
}

/* Seconds of one copy: of the best of ten, by events. */
static double best(hp_device *device, void *to, const void *from, int64_t bytes,
                   hp_stream_role role) {
  hp_stream *stream = NULL;
  hp_event *begin = NULL, *end = NULL;
  double least = 1e30, milliseconds = 0;
  check(hp_stream_create(device, role, &stream));
  check(hp_event_create(device, &begin));
  check(hp_event_create(device, &end));
  for (int turn = 0; turn < Turns; ++turn) {
    check(hp_event_record(begin, stream));
    check(hp_copy(to, from, bytes, stream));
    check(hp_event_record(end, stream));
    check(hp_event_sync(end));
    check(hp_event_elapsed(begin, end, &milliseconds));
    if (milliseconds < least)
      least = milliseconds;
  }
  check(hp_event_destroy(begin));
  check(hp_event_destroy(end));
  check(hp_stream_destroy(stream));
  return least / 1e3;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  int64_t bytes = atoll(argv[2]);
  hp_context_desc desc = {sizeof(desc), argv[1], 1, NULL, 0};
  hp_context *context = NULL;
  hp_device *device = NULL;
  void *pinned = NULL, *memory = NULL;
  check(hp_context_create(&desc, &context));
  check(hp_device_get(context, 0, &device));
  check(hp_alloc(device, HP_TIER_PINNED, bytes, NULL, &pinned));
  check(hp_alloc(device, HP_TIER_DEVICE, bytes, NULL, &memory));
  double in = best(device, memory, pinned, bytes, HP_STREAM_H2D);
  double out = best(device, pinned, memory, bytes, HP_STREAM_D2H);
  double small = best(device, memory, pinned, 64, HP_STREAM_H2D);
  printf("{\"bytes\": %lld, \"to_device_bytes_per_second\": %.4g, "
         "\"from_device_bytes_per_second\": %.4g, \"latency_seconds\": %.4g}\n",
         (long long)bytes, (double)bytes / in, (double)bytes / out, small);
  check(hp_free(device, pinned, NULL));
  check(hp_free(device, memory, NULL));
  hp_context_destroy(context);
  return 0;
}
