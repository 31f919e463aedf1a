/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A buffer is filled on one stream and read on another. With the argument
 * "wait" an event orders the two; without, a back end that can tell (the fakes)
 * refuses the second copy. Prints the status of the read, and the reason.
 * Usage: missing_wait BACKEND [wait]
 */
#include "lib/Runtime/hp_runtime.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  hp_context *context = NULL;
  hp_device *device = NULL;
  hp_stream *first = NULL, *second = NULL;
  hp_event *event = NULL;
  void *buffer = NULL, *tier = NULL;
  hp_context_desc desc = {sizeof(desc), argv[1], 1, NULL, 0};
  if (argc < 2)
    return 2;
  if (hp_context_create(&desc, &context) ||
      hp_device_get(context, 0, &device) ||
      hp_stream_create(device, HP_STREAM_COMPUTE, &first) ||
      hp_stream_create(device, HP_STREAM_D2H, &second) ||
      hp_event_create(device, &event) ||
      hp_alloc(device, HP_TIER_DEVICE, 256, NULL, &buffer) ||
      hp_alloc(device, HP_TIER_PINNED, 256, NULL, &tier) ||
      hp_fill(buffer, "\1", 1, 256, first)) {
    printf("%s\n", hp_last_error());
    return 1;
  }
  if (argc > 2 && !strcmp(argv[2], "wait") &&
      (hp_event_record(event, first) || hp_stream_wait(second, event)))
    return 1;
  hp_status status = hp_copy(tier, buffer, 256, second);
  printf("%s: %s\n", hp_status_name(status), status ? hp_last_error() : "");
  return 0;
}
