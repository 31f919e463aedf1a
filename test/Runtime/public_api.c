/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The public API from C11: contexts, tiers, streams, events, copies, host
 * tasks, products, communicators, other back ends, and what is said when
 * something is wrong. Prints "ok" if all of it holds. argv[1] is OpenBLAS's
 * path.
 */
#include "lib/Runtime/hp_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(CONDITION)                                                      \
  do {                                                                         \
    if (!(CONDITION)) {                                                        \
      printf("line %d: %s (last error: %s)\n", __LINE__, #CONDITION,           \
             hp_last_error());                                                 \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)
#define EXPECT_ERROR(STATUS, CALL, TEXT)                                       \
  do {                                                                         \
    EXPECT((CALL) == (STATUS));                                                \
    EXPECT(strstr(hp_last_error(), TEXT) != NULL);                             \
  } while (0)

static hp_context *make_context(const char *backend, const char *openblas) {
  const char *options[] = {"openblas", openblas, "watchdog_ms", "50"};
  hp_context_desc desc = {sizeof(desc), backend, 3, options, 2};
  hp_context *context = NULL;
  EXPECT(hp_context_create(&desc, &context) == HP_OK);
  return context;
}

static void contexts(void) {
  hp_context *context = NULL;
  hp_context_desc desc = {sizeof(desc), "none", 1, NULL, 0};
  EXPECT_ERROR(HP_NOT_FOUND, hp_context_create(&desc, &context),
               "back end 'none' is not installed");
  desc.backend = "../cpu";
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_context_create(&desc, &context),
               "expected a back end's name");
  desc.backend = "cpu";
  desc.struct_size = 8;
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_context_create(&desc, &context),
               "struct_size");
  const char *options[] = {"color", "red"};
  desc.struct_size = sizeof(desc);
  desc.options = options;
  desc.num_options = 1;
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_context_create(&desc, &context),
               "no option 'color'");
  EXPECT(context == NULL);
  hp_context_destroy(NULL);
  EXPECT(hp_abi_version() == HP_ABI_VERSION);
  EXPECT(strcmp(hp_status_name(HP_DEADLOCK), "deadlock") == 0);
}

static void tiers(hp_device *device) {
  int64_t limit, used, peak;
  void *small = NULL, *large = NULL;
  EXPECT(hp_tier_set_limit(device, HP_TIER_HOST, 4096) == HP_OK);
  EXPECT(hp_alloc(device, HP_TIER_HOST, 1000, NULL, &small) == HP_OK);
  EXPECT_ERROR(HP_OUT_OF_MEMORY,
               hp_alloc(device, HP_TIER_HOST, 3100, NULL, &large),
               "tier 'host' is full");
  EXPECT(hp_alloc(device, HP_TIER_HOST, 3072, NULL, &large) == HP_OK);
  EXPECT(hp_tier_info(device, HP_TIER_HOST, &limit, &used, &peak) == HP_OK);
  EXPECT(limit == 4096 && used == 4096 && peak == 4096);
  EXPECT(hp_free(device, small, NULL) == HP_OK);
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_free(device, small, NULL),
               "it was freed before");
  EXPECT(hp_free(device, large, NULL) == HP_OK);
  EXPECT(hp_tier_reset_peak(device, HP_TIER_HOST) == HP_OK);
  EXPECT(hp_tier_info(device, HP_TIER_HOST, NULL, &used, &peak) == HP_OK);
  EXPECT(used == 0 && peak == 0);
  EXPECT_ERROR(HP_UNIMPLEMENTED,
               hp_alloc(device, HP_TIER_FILE, 64, NULL, &small), "file");
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_tier_set_limit(NULL, HP_TIER_HOST, 1),
               "expected a device but got NULL");
}

static void append(void *list) {
  int *numbers = list;
  int count = ++numbers[0];
  numbers[count] = count * 10;
}

/* Offload and prefetch: device -> host -> device over two streams. */
static void streams(hp_device *device) {
  hp_stream *down = NULL, *up = NULL;
  hp_event *stored = NULL, *begin = NULL;
  float source[1000], back[1000];
  for (int i = 0; i < 1000; ++i)
    source[i] = (float)(i * (i % 2 ? -1 : 1)) + 0.5f;
  EXPECT(hp_stream_create(device, HP_STREAM_D2H, &down) == HP_OK);
  EXPECT(hp_stream_create(device, HP_STREAM_H2D, &up) == HP_OK);
  EXPECT(hp_event_create(device, &stored) == HP_OK);
  EXPECT(hp_event_create(device, &begin) == HP_OK);
  int32_t done = 0;
  EXPECT(hp_event_query(stored, &done) == HP_OK && done == 1);
  void *host = NULL;
  EXPECT(hp_alloc(device, HP_TIER_HOST, sizeof(source), down, &host) == HP_OK);
  EXPECT(hp_event_record(begin, down) == HP_OK);
  EXPECT(hp_copy(host, source, sizeof(source), down) == HP_OK);
  EXPECT(hp_event_record(stored, down) == HP_OK);
  EXPECT(hp_stream_wait(up, stored) == HP_OK);
  EXPECT(hp_copy(back, host, sizeof(back), up) == HP_OK);
  EXPECT(hp_free(device, host, up) == HP_OK);
  EXPECT(hp_stream_sync(up) == HP_OK);
  EXPECT(memcmp(source, back, sizeof(source)) == 0);
  EXPECT(hp_event_query(stored, &done) == HP_OK && done == 1);
  double milliseconds = -1;
  EXPECT(hp_event_elapsed(begin, stored, &milliseconds) == HP_OK);
  EXPECT(milliseconds >= 0);
  int64_t used = -1;
  EXPECT(hp_tier_info(device, HP_TIER_HOST, NULL, &used, NULL) == HP_OK);
  EXPECT(used == 0);

  /* Columns 1 and 2 of a 4 x 4 matrix into a 4 x 2 one. */
  int16_t matrix[16], columns[8], pattern = -7;
  for (int i = 0; i < 16; ++i)
    matrix[i] = (int16_t)(100 - 13 * i);
  EXPECT(hp_copy_2d(columns, 4, matrix + 1, 8, 4, 4, up) == HP_OK);
  EXPECT(hp_fill(matrix, &pattern, 2, sizeof(matrix), up) == HP_OK);
  int numbers[4] = {0};
  for (int i = 0; i < 3; ++i)
    EXPECT(hp_host_task(up, append, numbers) == HP_OK);
  EXPECT(hp_stream_sync(up) == HP_OK);
  for (int i = 0; i < 8; ++i)
    EXPECT(columns[i] == 100 - 13 * (i / 2 * 4 + i % 2 + 1));
  EXPECT(matrix[0] == -7 && matrix[15] == -7);
  EXPECT(numbers[0] == 3 && numbers[1] == 10 && numbers[3] == 30);
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_copy(NULL, source, 4, up),
               "two buffers");
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_copy_2d(columns, 3, matrix, 8, 4, 4, up),
               "pitches of at least 4 bytes");

  /* A failed action is reported by every later sync. */
  char outside[128];
  EXPECT(hp_free(device, outside + (64 - (uintptr_t)outside % 64), up) ==
         HP_OK);
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_stream_sync(up), "cannot free");
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_stream_sync(up), "cannot free");
  EXPECT(hp_event_destroy(stored) == HP_OK);
  EXPECT(hp_event_destroy(begin) == HP_OK);
  EXPECT(hp_stream_destroy(down) == HP_OK);
  EXPECT(hp_stream_destroy(up) == HP_OK);
}

static void products(hp_device *device) {
  hp_stream *stream = NULL;
  const float a[] = {1, -2, 3, 4, 5, -6}, b[] = {7, 8, -9, 10, 11, 12};
  float c[4];
  hp_matmul_desc desc = {0};
  desc.struct_size = sizeof(desc);
  desc.dtype = desc.out_dtype = HP_F32;
  desc.m = desc.n = desc.ld_b = desc.ld_c = 2;
  desc.k = desc.ld_a = 3;
  desc.a = a;
  desc.b = b;
  desc.c = c;
  desc.alpha = 1;
  EXPECT(hp_stream_create(device, HP_STREAM_COMPUTE, &stream) == HP_OK);
  EXPECT(hp_matmul(&desc, stream) == HP_OK);
  EXPECT(hp_stream_sync(stream) == HP_OK);
  EXPECT(c[0] == 58 && c[1] == 24 && c[2] == -83 && c[3] == 10);
  desc.ld_a = 1;
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_matmul(&desc, stream), "ld_a = 1");
  EXPECT_ERROR(HP_UNIMPLEMENTED, hp_op_call("softmax", NULL, stream),
               "back end 'cpu' does not implement hp_op_call");
  EXPECT(hp_stream_destroy(stream) == HP_OK);
}

enum { MEMBERS = 3, COUNT = 5, LARGE = 50000 };
static float ins[MEMBERS][MEMBERS * COUNT], outs[MEMBERS][MEMBERS * COUNT];
static float large[MEMBERS][LARGE];

static float input(int rank, int i) {
  return (float)((rank + 1) * (i % 2 ? -1 : 1) * (i + 3)) + 0.25f;
}

/* Ranks are devices 2, 0, 1: rank and ordinal differ. */
static void communicators(hp_context *context) {
  const int64_t ranks[MEMBERS] = {2, 0, 1};
  hp_comm *comms[MEMBERS], *again = NULL;
  hp_stream *streams[MEMBERS];
  hp_device *device = NULL;
  for (int r = 0; r < MEMBERS; ++r) {
    EXPECT(hp_device_get(context, ranks[r], &device) == HP_OK);
    EXPECT(hp_stream_create(device, HP_STREAM_COMM, &streams[r]) == HP_OK);
    EXPECT(hp_comm_create(context, "ring", ranks, MEMBERS, device, &comms[r]) ==
           HP_OK);
    for (int i = 0; i < MEMBERS * COUNT; ++i)
      ins[r][i] = input(r, i);
    for (int i = 0; i < LARGE; ++i)
      large[r][i] = input(r, i % 1000);
  }
  EXPECT_ERROR(HP_INVALID_ARGUMENT,
               hp_comm_create(context, "ring", ranks, MEMBERS, device, &again),
               "device 1 has joined already");
  const int64_t wrong[] = {0, 0};
  EXPECT_ERROR(HP_INVALID_ARGUMENT,
               hp_comm_create(context, "ring", wrong, 2, device, &again),
               "expected different devices below 3 but got 0");

  for (int r = 0; r < MEMBERS; ++r) {
    EXPECT(hp_all_gather(ins[r], outs[r], COUNT, HP_F32, comms[r],
                         streams[r]) == HP_OK);
    EXPECT(hp_all_reduce(large[r], large[r], LARGE, HP_F32, HP_SUM, comms[r],
                         streams[r]) == HP_OK);
    EXPECT(hp_barrier(comms[r], streams[r]) == HP_OK);
  }
  for (int r = 0; r < MEMBERS; ++r)
    EXPECT(hp_stream_sync(streams[r]) == HP_OK);
  for (int r = 0; r < MEMBERS; ++r) {
    for (int i = 0; i < MEMBERS * COUNT; ++i)
      EXPECT(outs[r][i] == input(i / COUNT, i % COUNT));
    for (int i = 0; i < LARGE; ++i)
      EXPECT(large[r][i] ==
             input(0, i % 1000) + input(1, i % 1000) + input(2, i % 1000));
  }

  for (int r = 0; r < MEMBERS; ++r)
    EXPECT(hp_reduce_scatter(ins[r], outs[r], COUNT, HP_F32, HP_MAX, comms[r],
                             streams[r]) == HP_OK);
  for (int r = 0; r < MEMBERS; ++r)
    EXPECT(hp_stream_sync(streams[r]) == HP_OK);
  for (int r = 0; r < MEMBERS; ++r)
    for (int i = 0; i < COUNT; ++i) {
      float low = input(0, r * COUNT + i), high = input(2, r * COUNT + i);
      EXPECT(outs[r][i] == (low > high ? low : high));
    }

  for (int r = 0; r < MEMBERS; ++r)
    EXPECT(hp_all_to_all(ins[r], outs[r], COUNT, HP_F32, comms[r],
                         streams[r]) == HP_OK);
  for (int r = 0; r < MEMBERS; ++r)
    EXPECT(hp_stream_sync(streams[r]) == HP_OK);
  for (int r = 0; r < MEMBERS; ++r)
    for (int i = 0; i < MEMBERS * COUNT; ++i)
      EXPECT(outs[r][i] == input(i / COUNT, r * COUNT + i % COUNT));

  for (int r = 0; r < MEMBERS; ++r) {
    EXPECT(hp_send(ins[r], COUNT, HP_F32, (r + 1) % MEMBERS, 4, comms[r],
                   streams[r]) == HP_OK);
    EXPECT(hp_recv(outs[r], COUNT, HP_F32, (r + 2) % MEMBERS, 4, comms[r],
                   streams[r]) == HP_OK);
    EXPECT(hp_broadcast(ins[r], COUNT, HP_F32, 1, comms[r], streams[r]) ==
           HP_OK);
  }
  for (int r = 0; r < MEMBERS; ++r)
    EXPECT(hp_stream_sync(streams[r]) == HP_OK);
  for (int r = 0; r < MEMBERS; ++r)
    for (int i = 0; i < COUNT; ++i) {
      EXPECT(outs[r][i] == input((r + 2) % MEMBERS, i));
      EXPECT(ins[r][i] == input(1, i));
    }
  EXPECT_ERROR(HP_INVALID_ARGUMENT,
               hp_broadcast(ins[0], 1, HP_F32, 3, comms[0], streams[0]),
               "expected a root below 3 but got 3");
  EXPECT_ERROR(
      HP_INVALID_ARGUMENT,
      hp_all_reduce(ins[0], outs[0], 1, HP_F32, HP_AND, comms[0], streams[0]),
      "and of f32 elements is not defined");

  /* Members that disagree all learn it. */
  for (int r = 0; r < MEMBERS; ++r)
    EXPECT(hp_all_gather(ins[r], outs[r], r == 1 ? 2 : 3, HP_F32, comms[r],
                         streams[r]) == HP_OK);
  for (int r = 0; r < MEMBERS; ++r)
    EXPECT_ERROR(HP_MISMATCH, hp_stream_sync(streams[r]),
                 "rank 0 calls all_gather of 3 x f32, but rank 1 calls "
                 "all_gather of 2 x f32");
  for (int r = 0; r < MEMBERS; ++r)
    EXPECT(hp_stream_destroy(streams[r]) == HP_OK);

  /* A member that leaves releases who waits for it. */
  EXPECT(hp_stream_create(device, HP_STREAM_COMM, &streams[2]) == HP_OK);
  EXPECT(hp_barrier(comms[2], streams[2]) == HP_OK);
  EXPECT(hp_comm_destroy(comms[0]) == HP_OK);
  EXPECT_ERROR(HP_CANCELLED, hp_stream_sync(streams[2]), "device 2 has left");
  EXPECT(hp_comm_destroy(comms[1]) == HP_OK);
  EXPECT(hp_comm_destroy(comms[2]) == HP_OK);

  /* One that waits at the end does not keep the context. */
  const int64_t pair[] = {0, 1};
  EXPECT(hp_comm_create(context, "pair", pair, 2, device, &again) == HP_OK);
  EXPECT(hp_stream_create(device, HP_STREAM_COMM, &streams[1]) == HP_OK);
  EXPECT(hp_recv(outs[0], 1, HP_F32, 0, 0, again, streams[1]) == HP_OK);
}

static void other_backends(void) {
  const char *options[] = {"ignored", "by the test back end"};
  hp_context_desc desc = {sizeof(desc), "test", 3, options, 1};
  hp_context *context = NULL;
  hp_device *device = NULL;
  hp_program *program = NULL;
  EXPECT(hp_context_create(&desc, &context) == HP_OK);
  EXPECT(strcmp(hp_context_backend(context), "test") == 0);
  EXPECT(hp_device_count(context) == 3);
  EXPECT_ERROR(HP_NOT_FOUND, hp_device_get(context, 7, &device),
               "the test back end has no device");
  /* NULL in the table, and beyond what its struct_size covers. */
  EXPECT_ERROR(HP_UNIMPLEMENTED, hp_program_load(context, "x", &program),
               "back end 'test' does not implement hp_program_load");
  EXPECT_ERROR(HP_UNIMPLEMENTED, hp_trace_begin(context, "x"),
               "does not implement hp_trace_begin");
  hp_context_destroy(context);
}

int main(int argc, char **argv) {
  EXPECT(argc == 2);
  contexts();
  hp_context *context = make_context("cpu", argv[1]);
  hp_device *device = NULL, *none = NULL;
  EXPECT(hp_device_count(context) == 3);
  EXPECT(hp_device_get(context, 1, &device) == HP_OK);
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_device_get(context, 3, &none),
               "expected a device below 3 but got 3");
  tiers(device);
  streams(device);
  products(device);
  int32_t done = 0;
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_run_wait(context, 0, &done, NULL),
               "no run was started");
  EXPECT(hp_run_cancel(context, "nothing runs") == HP_OK);
  EXPECT_ERROR(HP_INVALID_ARGUMENT, hp_trace_end(context),
               "no trace was begun");
  communicators(context);
  /* Streams that were forgotten end with their context. */
  hp_stream *forgotten = NULL;
  EXPECT(hp_stream_create(device, HP_STREAM_COMM, &forgotten) == HP_OK);
  hp_context_destroy(context);
  other_backends();
  puts("ok");
  return 0;
}
