/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What every back end must do (docs/Runtime.md). The device's memory is never
 * touched by the host, only copied.
 *
 *   conformance BACKEND PROGRAM KERNEL TRACE [KEY VALUE]...
 *
 * PROGRAM is compiled for the back end: @main negates 64 f32; KERNEL is that of
 * it (any word for "cpu"), and TRACE a file to write. Prints "ok NAME" for each
 * part, in order; anything that is wrong ends the program with the line and the
 * reason. Parts of the ABI that a back end may leave out are those that
 * hp_device_can speaks of: what it says is held to.
 */
#include "test/Runtime/conformance/conformance.h"

void *device_bytes(place at, int64_t bytes) {
  void *pointer = NULL;
  EXPECT(hp_alloc(at.device, HP_TIER_DEVICE, bytes, NULL, &pointer) == HP_OK);
  return pointer;
}
void *upload(place at, const void *host, int64_t bytes) {
  void *pointer = device_bytes(at, bytes);
  EXPECT(hp_copy(pointer, host, bytes, at.stream) == HP_OK);
  EXPECT(hp_stream_sync(at.stream) == HP_OK);
  return pointer;
}
void download(place at, void *host, const void *pointer, int64_t bytes) {
  EXPECT(hp_copy(host, pointer, bytes, at.stream) == HP_OK);
  EXPECT(hp_stream_sync(at.stream) == HP_OK);
}
void release(place at, void *pointer) {
  EXPECT(hp_free(at.device, pointer, NULL) == HP_OK);
}

/* Sizes are counted in 64 bytes; a limit holds; what is freed may be had again;
 * freeing twice is an error. */
static void memory(place at) {
  hp_device *device = at.device;
  hp_stream *stream = at.stream;
  const hp_tier tiers[] = {HP_TIER_DEVICE, HP_TIER_PINNED, HP_TIER_HOST};
  for (int i = 0; i < 3; ++i) {
    int64_t before = 0, limit = 0, used = 0, peak = 0;
    void *first = NULL, *second = NULL;
    EXPECT(hp_tier_info(device, tiers[i], NULL, &before, NULL) == HP_OK);
    EXPECT(hp_tier_set_limit(device, tiers[i], before + 4096) == HP_OK);
    EXPECT(hp_alloc(device, tiers[i], 1000, NULL, &first) == HP_OK);
    EXPECT(hp_alloc(device, tiers[i], 3073, NULL, &second) == HP_OUT_OF_MEMORY);
    EXPECT(strlen(hp_last_error()) > 0);
    EXPECT(hp_alloc(device, tiers[i], 3072, NULL, &second) == HP_OK);
    EXPECT((uintptr_t)first % 64 == 0 && (uintptr_t)second % 64 == 0);
    EXPECT(hp_tier_info(device, tiers[i], &limit, &used, &peak) == HP_OK);
    EXPECT(limit == before + 4096 && used == limit && peak == limit);
    release(at, first);
    EXPECT(hp_free(device, first, NULL) == HP_INVALID_ARGUMENT);
    release(at, second);
    EXPECT(hp_tier_reset_peak(device, tiers[i]) == HP_OK);
    EXPECT(hp_tier_info(device, tiers[i], NULL, &used, &peak) == HP_OK);
    EXPECT(used == before && peak == before);
    EXPECT(hp_tier_set_limit(device, tiers[i], -1) == HP_OK);
    EXPECT(hp_alloc(device, tiers[i], 0, stream, &first) == HP_OK && first);
    EXPECT(hp_free(device, first, stream) == HP_OK);
  }
  void *none = NULL;
  EXPECT(hp_alloc(device, HP_TIER_DEVICE, -1, NULL, &none) != HP_OK);
  EXPECT(hp_alloc(device, (hp_tier)9, 64, NULL, &none) == HP_INVALID_ARGUMENT);
}

/* Host to device, device to device, device to a tier and back; rows with
 * pitches; patterns of every size. */
static void copies(place at) {
  hp_device *device = at.device;
  hp_stream *stream = at.stream;
  enum { Count = 1000 };
  int32_t there[Count], back[Count];
  for (int i = 0; i < Count; ++i)
    there[i] = i * 7919 - 500000;
  void *first = upload(at, there, sizeof(there));
  void *second = device_bytes(at, sizeof(there));
  void *tier = NULL;
  EXPECT(hp_alloc(device, HP_TIER_HOST, sizeof(there), NULL, &tier) == HP_OK);
  EXPECT(hp_copy(second, first, sizeof(there), stream) == HP_OK);
  EXPECT(hp_copy(tier, second, sizeof(there), stream) == HP_OK);
  EXPECT(hp_fill(second, "\x2a", 1, sizeof(there), stream) == HP_OK);
  EXPECT(hp_copy(second, tier, sizeof(there), stream) == HP_OK);
  download(at, back, second, sizeof(back));
  EXPECT(memcmp(there, back, sizeof(back)) == 0);
  EXPECT(hp_copy(second, first, 0, stream) == HP_OK);
  EXPECT(hp_copy(NULL, first, 4, stream) == HP_INVALID_ARGUMENT);

  /* The block of 5 rows of 12 bytes in rows of 40, to rows of 28. */
  EXPECT(hp_fill(second, "\0", 1, sizeof(there), stream) == HP_OK);
  EXPECT(hp_copy_2d(second, 28, (char *)first + 8, 40, 12, 5, stream) == HP_OK);
  download(at, back, second, sizeof(back));
  for (int row = 0; row < 5; ++row)
    EXPECT(memcmp((char *)back + row * 28, (char *)there + 8 + row * 40, 12) ==
           0);
  EXPECT(back[3] == 0 && back[6] == 0);
  EXPECT(hp_copy_2d(second, 8, first, 40, 12, 5, stream) ==
         HP_INVALID_ARGUMENT);

  const char pattern[64] = "a pattern of sixty-four bytes, of which parts are "
                           "taken, as well";
  for (int size = 1; size <= 64; size *= 2) {
    EXPECT(hp_fill(second, pattern, size, size * 11, stream) == HP_OK);
    download(at, back, second, sizeof(back));
    for (int i = 0; i < 11; ++i)
      EXPECT(memcmp((char *)back + i * size, pattern, size) == 0);
  }
  EXPECT(hp_fill(second, pattern, 3, 10, stream) == HP_INVALID_ARGUMENT);
  release(at, first);
  release(at, second);
  release(at, tier);
}

/* From each kind of memory to each, whole and by rows with pitches: what is
 * between the rows stays. */
static void directions(place at) {
  enum { Rows = 6, Wide = 10, Total = 128, Kinds = 4 };
  const hp_tier tiers[] = {HP_TIER_DEVICE, HP_TIER_PINNED, HP_TIER_HOST};
  int32_t there[Total], back[Total], own[2][Total];
  for (int i = 0; i < Total; ++i)
    there[i] = (i % 2 ? -1 : 1) * (i * 7919 + 1);
  for (int from = 0; from < Kinds; ++from)
    for (int to = 0; to < Kinds; ++to) {
      void *source = own[0], *target = own[1];
      if (from < 3)
        EXPECT(hp_alloc(at.device, tiers[from], sizeof(there), NULL, &source) ==
               HP_OK);
      if (to < 3)
        EXPECT(hp_alloc(at.device, tiers[to], sizeof(there), NULL, &target) ==
               HP_OK);
      EXPECT(hp_copy(source, there, sizeof(there), at.stream) == HP_OK);
      EXPECT(hp_copy(target, source, sizeof(there), at.stream) == HP_OK);
      download(at, back, target, sizeof(back));
      EXPECT(memcmp(there, back, sizeof(back)) == 0);
      /* Rows of 10 in rows of 16, from the second element on, to rows of 13. */
      EXPECT(hp_copy_2d(target, 13 * 4, (int32_t *)source + 1, 16 * 4, Wide * 4,
                        Rows, at.stream) == HP_OK);
      download(at, back, target, sizeof(back));
      for (int i = 0; i < Total; ++i) {
        int row = i / 13, column = i % 13;
        int is_row = row < Rows && column < Wide;
        EXPECT(back[i] == (is_row ? there[row * 16 + 1 + column] : there[i]));
      }
      if (from < 3)
        release(at, source);
      if (to < 3)
        release(at, target);
    }
}

static void append(void *list) {
  int *numbers = list;
  ++numbers[0];
  numbers[numbers[0]] = numbers[0] * 10;
}

/* Host tasks run in the order of their stream; another stream that waits for an
 * event sees what came before its record; recording again replaces. */
static void order(place at) {
  hp_device *device = at.device;
  hp_stream *stream = at.stream;
  hp_stream *other = NULL;
  hp_event *event = NULL, *begin = NULL;
  int numbers[8] = {0};
  double milliseconds = -1;
  int32_t done = 0;
  EXPECT(hp_stream_create(device, HP_STREAM_D2H, &other) == HP_OK);
  EXPECT(hp_event_create(device, &event) == HP_OK);
  EXPECT(hp_event_create(device, &begin) == HP_OK);
  EXPECT(hp_event_query(event, &done) == HP_OK && done == 1);
  EXPECT(hp_event_elapsed(begin, event, &milliseconds) == HP_INVALID_ARGUMENT);
  EXPECT(hp_event_record(begin, stream) == HP_OK);
  EXPECT(hp_event_record(event, stream) == HP_OK);
  for (int i = 0; i < 3; ++i)
    EXPECT(hp_host_task(stream, append, numbers) == HP_OK);
  EXPECT(hp_event_record(event, stream) == HP_OK);
  EXPECT(hp_stream_wait(other, event) == HP_OK);
  EXPECT(hp_host_task(other, append, numbers) == HP_OK);
  EXPECT(hp_stream_sync(other) == HP_OK);
  EXPECT(numbers[0] == 4 && numbers[3] == 30 && numbers[4] == 40);
  EXPECT(hp_event_sync(event) == HP_OK);
  EXPECT(hp_event_query(event, &done) == HP_OK && done == 1);
  EXPECT(hp_event_elapsed(begin, event, &milliseconds) == HP_OK);
  EXPECT(milliseconds >= 0);
  EXPECT(hp_host_task(stream, NULL, NULL) == HP_INVALID_ARGUMENT);

  /* A buffer goes to a tier and back by three streams and two events. */
  float there[256], back[256];
  void *tier = NULL;
  hp_stream *up = NULL;
  for (int i = 0; i < 256; ++i)
    there[i] = (float)(i * (i % 2 ? -1 : 1)) + 0.5f;
  EXPECT(hp_stream_create(device, HP_STREAM_H2D, &up) == HP_OK);
  EXPECT(hp_alloc(device, HP_TIER_PINNED, sizeof(there), NULL, &tier) == HP_OK);
  void *buffer = device_bytes(at, sizeof(there));
  EXPECT(hp_copy(buffer, there, sizeof(there), stream) == HP_OK);
  EXPECT(hp_event_record(event, stream) == HP_OK);
  EXPECT(hp_stream_wait(other, event) == HP_OK);
  EXPECT(hp_copy(tier, buffer, sizeof(there), other) == HP_OK);
  EXPECT(hp_fill(buffer, "\0", 1, sizeof(there), other) == HP_OK);
  EXPECT(hp_event_record(begin, other) == HP_OK);
  EXPECT(hp_stream_wait(up, begin) == HP_OK);
  EXPECT(hp_copy(buffer, tier, sizeof(there), up) == HP_OK);
  EXPECT(hp_event_record(event, up) == HP_OK);
  EXPECT(hp_stream_wait(stream, event) == HP_OK);
  download(at, back, buffer, sizeof(back));
  EXPECT(memcmp(there, back, sizeof(back)) == 0);
  release(at, buffer);
  release(at, tier);
  EXPECT(hp_event_destroy(event) == HP_OK);
  EXPECT(hp_event_destroy(begin) == HP_OK);
  EXPECT(hp_stream_destroy(up) == HP_OK);
  EXPECT(hp_stream_destroy(other) == HP_OK);
}

/* What is optional is known, and what is not a capability is refused. */
static void capabilities(place at) {
  EXPECT(hp_device_can(at.device, HP_CAN_STORE, HP_TIER_DEVICE, 0) == HP_OK);
  EXPECT(hp_device_can(at.device, HP_CAN_STORE, HP_TIER_PINNED, 0) == HP_OK);
  EXPECT(hp_device_can(at.device, HP_CAN_STORE, HP_TIER_HOST, 0) == HP_OK);
  void *file = NULL;
  hp_status status = hp_alloc(at.device, HP_TIER_FILE, 64, NULL, &file);
  EXPECT(status == hp_device_can(at.device, HP_CAN_STORE, HP_TIER_FILE, 0));
  if (status == HP_OK)
    release(at, file);
  EXPECT(hp_device_can(at.device, (hp_capability)99, 0, 0) ==
         HP_INVALID_ARGUMENT);
}

int main(int argc, char **argv) {
  if (argc < 5 || argc % 2 != 1)
    return 2;
  hp_context *context = NULL;
  place at = {NULL, NULL};
  hp_context_desc desc = {sizeof(desc), argv[1], 4,
                          (const char *const *)(argv + 5), (argc - 5) / 2};
  EXPECT(hp_context_create(&desc, &context) == HP_OK);
  EXPECT(strcmp(hp_context_backend(context), argv[1]) == 0);
  EXPECT(hp_device_count(context) == 4);
  EXPECT(hp_device_get(context, 4, &at.device) == HP_INVALID_ARGUMENT);
  EXPECT(hp_device_get(context, 0, &at.device) == HP_OK);
  EXPECT(hp_stream_create(at.device, (hp_stream_role)7, &at.stream) ==
         HP_INVALID_ARGUMENT);
  EXPECT(hp_stream_create(at.device, HP_STREAM_COMPUTE, &at.stream) == HP_OK);
  capabilities(at);
  printf("ok capabilities\n");
  memory(at);
  printf("ok memory\n");
  copies(at);
  directions(at);
  printf("ok copies\n");
  order(at);
  printf("ok order\n");
  products(at);
  printf("ok products\n");
  EXPECT(hp_stream_destroy(at.stream) == HP_OK);
  groups(context);
  printf("ok groups\n");
  programs(context, argv[2], argv[3], argv[4]);
  printf("ok programs\n");
  hp_context_destroy(context);
  return 0;
}
