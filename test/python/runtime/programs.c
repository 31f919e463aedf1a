/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Entries that make runtime calls with parameters from args[0], an array of
 * int64; args[1] is the input and results[0] the output. Compiled by the tests
 * in C11 against the ABI header alone, as any compiled program could be.
 */
#include "lib/Runtime/hp_runtime.h"

#include <stddef.h>
#include <string.h>

#define PARAMS const int64_t *p = (const int64_t *)args[0]

const uint32_t hp_program_abi = HP_ABI_VERSION;

/* Axes are stored as count, stride, size, stride, size, ... */
static const hp_axis *axes_at(const int64_t *p) {
  return (const hp_axis *)(p + 1);
}

/* p: asynchronous, outer, dim, inner, dtype, axes */
void all_gather(void **args, void **results) {
  PARAMS;
  hp_rt_label("test.gather");
  if (p[0])
    hp_rt_wait(hp_rt_all_gather_start(args[1], results[0], p[1], p[2], p[3],
                                      (int32_t)p[4], axes_at(p + 5), p[5]));
  else
    hp_rt_all_gather(args[1], results[0], p[1], p[2], p[3], (int32_t)p[4],
                     axes_at(p + 5), p[5]);
}

/* p: asynchronous, count, dtype, op, in place, axes */
void all_reduce(void **args, void **results) {
  PARAMS;
  const void *in = args[1];
  hp_rt_label("test.reduce");
  if (p[4]) {
    static const int64_t bytes[] = {1, 1, 2, 4, 8, 2, 2, 4, 8};
    memcpy(results[0], in, (size_t)(p[1] * bytes[p[2]]));
    in = results[0];
  }
  if (p[0])
    hp_rt_wait(hp_rt_all_reduce_start(in, results[0], p[1], (int32_t)p[2],
                                      (int32_t)p[3], axes_at(p + 5), p[5]));
  else
    hp_rt_all_reduce(in, results[0], p[1], (int32_t)p[2], (int32_t)p[3],
                     axes_at(p + 5), p[5]);
}

/* p: asynchronous, outer, dim, inner, dtype, op, axes */
void reduce_scatter(void **args, void **results) {
  PARAMS;
  hp_rt_label("test.scatter");
  if (p[0])
    hp_rt_wait(hp_rt_reduce_scatter_start(args[1], results[0], p[1], p[2], p[3],
                                          (int32_t)p[4], (int32_t)p[5],
                                          axes_at(p + 6), p[6]));
  else
    hp_rt_reduce_scatter(args[1], results[0], p[1], p[2], p[3], (int32_t)p[4],
                         (int32_t)p[5], axes_at(p + 6), p[6]);
}

/* p: asynchronous, split, concat, element bytes, rank, shape[4], axes */
void all_to_all(void **args, void **results) {
  PARAMS;
  hp_rt_label("test.to_all");
  if (p[0])
    hp_rt_wait(hp_rt_all_to_all_start(args[1], results[0], p[4], p + 5, p[1],
                                      p[2], p[3], axes_at(p + 9), p[9]));
  else
    hp_rt_all_to_all(args[1], results[0], p[4], p + 5, p[1], p[2], p[3],
                     axes_at(p + 9), p[9]);
}

/* p: asynchronous, bytes, from axes, to axes */
void permute(void **args, void **results) {
  PARAMS;
  const int64_t *to = p + 3 + 2 * p[2];
  hp_rt_label("test.permute");
  if (p[0])
    hp_rt_wait(hp_rt_permute_start(args[1], results[0], p[1], axes_at(p + 2),
                                   p[2], axes_at(to), to[0]));
  else
    hp_rt_permute(args[1], results[0], p[1], axes_at(p + 2), p[2], axes_at(to),
                  to[0]);
}

/* p: outer, in_dim, inner_bytes, global, stride, lo, size, axes */
void halo_exchange(void **args, void **results) {
  PARAMS;
  hp_rt_label("test.halo");
  hp_rt_halo_exchange(args[1], results[0], p[0], p[1], p[2], p[3], p[4], p[5],
                      p[6], axes_at(p + 7), p[7]);
}

/* Many collectives in flight at once, in two groups, waited for in reverse.
 * p: rounds, rows axes (at 1), columns axes (at 4); count 8 of f32. */
void overlapped(void **args, void **results) {
  PARAMS;
  void *futures[64];
  float *buffers = hp_rt_alloc(64 * 8 * (int64_t)sizeof(float), 0);
  const float *in = args[1];
  float *out = results[0];
  for (int64_t i = 0; i < p[0]; ++i) {
    const int64_t *axes = i % 2 ? p + 4 : p + 1;
    float *source = hp_rt_alloc(8 * (int64_t)sizeof(float), 0);
    for (int j = 0; j < 8; ++j)
      source[j] = in[j] + (float)i;
    futures[i] = hp_rt_all_reduce_start(source, buffers + 8 * i, 8, HP_F32,
                                        HP_SUM, axes_at(axes), axes[0]);
  }
  for (int64_t i = p[0]; i-- > 0;)
    hp_rt_wait(futures[i]);
  memcpy(out, buffers, (size_t)(p[0] * 8) * sizeof(float));
  hp_rt_free(buffers);
}

/*--- Streams ---*/

#define COMM(n) (HP_STREAM_COMM | (n) << HP_STREAM_ROLE_BITS)

/* Sums along rows and columns on a stream for each, and the sums of both are
 * summed up again on the first, which waits for the second; meanwhile the
 * device's own stream sums, too. p: rounds, rows axes (at 1), columns axes (at
 * 4); 8 of f32. results[0]: the last round's sums. */
void streams(void **args, void **results) {
  PARAMS;
  float in[8], rows[8], columns[8], all[8], own[8];
  for (int64_t round = 0; round < p[0]; ++round) {
    for (int j = 0; j < 8; ++j)
      in[j] = ((const float *)args[1])[j] + (float)round;
    hp_rt_stream_begin(COMM(0));
    hp_rt_all_reduce(in, rows, 8, HP_F32, HP_SUM, axes_at(p + 1), p[1]);
    hp_rt_stream_end();
    hp_rt_stream_begin(COMM(1));
    hp_rt_all_reduce(in, columns, 8, HP_F32, HP_SUM, axes_at(p + 4), p[4]);
    hp_rt_stream_end();
    hp_rt_stream_wait(COMM(0), hp_rt_stream_mark(COMM(1)));
    hp_rt_stream_begin(COMM(0));
    hp_rt_all_reduce(columns, all, 8, HP_F32, HP_SUM, axes_at(p + 1), p[1]);
    hp_rt_stream_end();
    /* The same group, on another stream: they never meet. */
    hp_rt_all_reduce(in, own, 8, HP_F32, HP_MAX, axes_at(p + 1), p[1]);
    hp_rt_stream_wait(HP_STREAM_COMPUTE, hp_rt_stream_mark(COMM(0)));
  }
  float *out = results[0];
  memcpy(out, rows, sizeof(rows));
  memcpy(out + 8, columns, sizeof(columns));
  memcpy(out + 16, all, sizeof(all));
  memcpy(out + 24, own, sizeof(own));
}

/* Device 0 sends to device 1 on streams, and each goes on. 8 of f32. */
void stream_messages(void **args, void **results) {
  hp_rt_stream_begin(HP_STREAM_SEND);
  hp_rt_send(args[1], 32, 1 - hp_rt_device_id(), 7);
  hp_rt_stream_end();
  hp_rt_stream_begin(HP_STREAM_RECV);
  hp_rt_recv(results[0], 32, 1 - hp_rt_device_id(), 7);
  hp_rt_stream_end();
  /* The run waits for all streams. */
}

/* p: axes. The last device leaves a collective of a stream out. */
void stream_skips_one(void **args, void **results) {
  PARAMS;
  hp_rt_label("on.stream");
  if (hp_rt_device_id() + 1 < p[2]) {
    hp_rt_stream_begin(COMM(0));
    hp_rt_all_reduce(args[1], results[0], 8, HP_F32, HP_SUM, axes_at(p), p[0]);
    hp_rt_stream_end();
    hp_rt_stream_wait(HP_STREAM_COMPUTE, hp_rt_stream_mark(COMM(0)));
  }
}

/* p: what is wrong: 0 an unknown stream, 1 a stream in a stream, 2 a future on
 * a stream, 3 a mismatch of kinds on a stream (axes at 1). */
void stream_faults(void **args, void **results) {
  PARAMS;
  hp_rt_stream_begin(p[0] == 0 ? 7 : COMM(0));
  if (p[0] == 1)
    hp_rt_stream_begin(COMM(1));
  if (p[0] == 2)
    hp_rt_wait(hp_rt_all_reduce_start(args[1], results[0], 8, HP_F32, HP_SUM,
                                      axes_at(p + 1), p[1]));
  hp_rt_all_reduce(args[1], results[0], 8, HP_F32,
                   hp_rt_device_id() == 0 ? HP_SUM : HP_MAX, axes_at(p + 1),
                   p[1]);
  hp_rt_stream_end();
}

/* All ways of reducing in turn, many times around the ring of slots.
 * p: rounds, axes. in and out hold 40000 of f32; out[i] is the last sum. */
void mixes_sizes(void **args, void **results) {
  PARAMS;
  static const int64_t counts[] = {7, 1500, 40000, 3, 20000};
  for (int64_t i = 0; i < p[0]; ++i)
    hp_rt_all_reduce(args[1], results[0], counts[i % 5], HP_F32, HP_SUM,
                     axes_at(p + 1), p[1]);
}

/* A ring of messages: p[0] = devices. Every device sends its input to the next
 * one twice, under two tags, and receives them in the other order. */
void ring(void **args, void **results) {
  PARAMS;
  int64_t me = hp_rt_device_id(), n = p[0];
  char *out = results[0];
  hp_rt_send(args[1], 32, (me + 1) % n, 7);
  hp_rt_send((char *)args[1] + 32, 32, (me + 1) % n, 8);
  hp_rt_recv(out + 32, 32, (me + n - 1) % n, 8);
  hp_rt_recv(out, 32, (me + n - 1) % n, 7);
}

/* Runs a script: p is the number of steps, and then for each step its length
 * in words, its kind, whether it is asynchronous, where `in` and `out` begin
 * (in elements of f32), and the words of the call. Asynchronous steps are
 * waited for at the end, every second one last. */
void script(void **args, void **results) {
  PARAMS;
  void *futures[64] = {0};
  int64_t steps = p[0];
  ++p;
  for (int64_t i = 0; i < steps; p += p[0], ++i) {
    const float *in = (const float *)args[1] + p[3];
    float *out = (float *)results[0] + p[4];
    const int64_t *w = p + 5;
    int later = p[2] != 0;
    switch (p[1]) {
    case HP_ALL_GATHER:
      if (later)
        futures[i] = hp_rt_all_gather_start(in, out, w[0], w[1], w[2], HP_F32,
                                            axes_at(w + 3), w[3]);
      else
        hp_rt_all_gather(in, out, w[0], w[1], w[2], HP_F32, axes_at(w + 3),
                         w[3]);
      break;
    case HP_ALL_REDUCE:
      if (later)
        futures[i] = hp_rt_all_reduce_start(in, out, w[0], HP_F32, HP_SUM,
                                            axes_at(w + 1), w[1]);
      else
        hp_rt_all_reduce(in, out, w[0], HP_F32, HP_SUM, axes_at(w + 1), w[1]);
      break;
    case HP_REDUCE_SCATTER:
      if (later)
        futures[i] = hp_rt_reduce_scatter_start(
            in, out, w[0], w[1], w[2], HP_F32, HP_MAX, axes_at(w + 3), w[3]);
      else
        hp_rt_reduce_scatter(in, out, w[0], w[1], w[2], HP_F32, HP_MAX,
                             axes_at(w + 3), w[3]);
      break;
    case HP_ALL_TO_ALL:
      if (later)
        futures[i] = hp_rt_all_to_all_start(in, out, 2, w, w[2], 1 - w[2], 4,
                                            axes_at(w + 3), w[3]);
      else
        hp_rt_all_to_all(in, out, 2, w, w[2], 1 - w[2], 4, axes_at(w + 3),
                         w[3]);
      break;
    }
  }
  for (int64_t i = 0; i < steps; i += 2)
    if (futures[i])
      hp_rt_wait(futures[i]);
  for (int64_t i = 1; i < steps; i += 2)
    if (futures[i])
      hp_rt_wait(futures[i]);
}

/*--- Faults ---*/

static void sum_over(void **args, void **results, int64_t count,
                     const char *label) {
  PARAMS;
  hp_rt_label(label);
  hp_rt_all_reduce(args[1], results[0], count, HP_F32, HP_SUM, axes_at(p),
                   p[0]);
}

/* The last device of four skips the second of two collectives. */
void skips_one(void **args, void **results) {
  sum_over(args, results, 8, "layer.0.attention");
  if (hp_rt_device_id() != 3)
    sum_over(args, results, 8, "layer.0.mlp");
}

/* Rows and columns in different orders: a cycle. p: rows (0), columns (3). */
void crossed_order(void **args, void **results) {
  PARAMS;
  const int64_t *first = p, *second = p + 3;
  if (hp_rt_device_id() == 1 || hp_rt_device_id() == 2) {
    first = p + 3;
    second = p;
  }
  hp_rt_label("first");
  hp_rt_all_reduce(args[1], results[0], 8, HP_F32, HP_SUM, axes_at(first),
                   first[0]);
  hp_rt_label("second");
  hp_rt_all_reduce(args[1], results[0], 8, HP_F32, HP_SUM, axes_at(second),
                   second[0]);
}

void different_kinds(void **args, void **results) {
  PARAMS;
  if (hp_rt_device_id() == 1)
    hp_rt_all_gather(args[1], results[0], 1, 2, 1, HP_F32, axes_at(p), p[0]);
  else
    sum_over(args, results, 8, "loss");
}

void different_sizes(void **args, void **results) {
  sum_over(args, results, hp_rt_device_id() == 1 ? 4 : 8, "loss");
}

void lost_message(void **args, void **results) {
  (void)args;
  if (hp_rt_device_id() == 0)
    hp_rt_recv(results[0], 32, 1, 5);
}

/* Device p[3] asserts while the others wait for it; all have begun by then. */
void asserts(void **args, void **results) {
  PARAMS;
  sum_over(args, results, 8, "before");
  void *leak = hp_rt_alloc(1000, HP_TIER_DEVICE);
  memset(leak, 1, 1000);
  if (hp_rt_device_id() == p[3])
    hp_rt_assert_fail("index out of bounds");
  sum_over(args, results, 8, "after");
}

static void failing_body(void *context, int64_t begin, int64_t end) {
  (void)context;
  for (int64_t i = begin; i < end; ++i)
    if (i == 777)
      hp_rt_assert_fail("row 777 is bad");
}

void asserts_in_loop(void **args, void **results) {
  (void)args;
  (void)results;
  hp_rt_parallel_for(failing_body, NULL, 1000, 1);
}

static void allocating_body(void *context, int64_t begin, int64_t end) {
  (void)context;
  (void)begin;
  (void)end;
  hp_rt_free(hp_rt_alloc(64, HP_TIER_DEVICE));
}

void allocates_in_loop(void **args, void **results) {
  (void)args;
  (void)results;
  hp_rt_parallel_for(allocating_body, NULL, 10, 1);
}

/* Never ends by itself. */
void spins_forever(void **args, void **results) {
  (void)args;
  (void)results;
  for (;;)
    hp_rt_free(hp_rt_alloc(64, HP_TIER_DEVICE));
}

/* p: future to wait for twice, axes at 0 */
void waits_twice(void **args, void **results) {
  PARAMS;
  void *future = hp_rt_all_reduce_start(args[1], results[0], 8, HP_F32, HP_SUM,
                                        axes_at(p), p[0]);
  hp_rt_wait(future);
  hp_rt_wait(future);
}

void frees_twice(void **args, void **results) {
  (void)args;
  (void)results;
  void *block = hp_rt_alloc(64, HP_TIER_DEVICE);
  hp_rt_free(block);
  hp_rt_free(block);
}

/*--- Copies between tiers ---*/

/* p: number of blocks (at most 64), floats in each, where the device fails
 * (-1: nowhere). Blocks of args[1], which is in the host's tier, come to the
 * device two ahead, are negated, go to the host and come back into results[0].
 */
void copies(void **args, void **results) {
  PARAMS;
  int64_t count = p[0], floats = p[1], bytes = floats * 4;
  const float *in = args[1];
  float *out = results[0];
  float *device[64], *host[64];
  void *coming[64], *going[64];
  for (int64_t i = 0; i < count + 2; ++i) {
    if (i < count) {
      device[i] = hp_rt_alloc(bytes, HP_TIER_DEVICE);
      coming[i] = hp_rt_copy_start(device[i], HP_TIER_DEVICE, in + i * floats,
                                   HP_TIER_HOST, bytes);
    }
    if (i < 2)
      continue;
    int64_t now = i - 2;
    hp_rt_copy_wait(coming[now]);
    for (int64_t j = 0; j < floats; ++j)
      device[now][j] = -device[now][j];
    if (now == p[2])
      hp_rt_assert_fail("told to fail");
    host[now] = hp_rt_alloc(bytes, HP_TIER_HOST);
    going[now] = hp_rt_copy_start(host[now], HP_TIER_HOST, device[now],
                                  HP_TIER_DEVICE, bytes);
  }
  for (int64_t i = 0; i < count; ++i) {
    hp_rt_copy_wait(going[i]);
    hp_rt_free(device[i]);
    coming[i] = hp_rt_copy_start(out + i * floats, HP_TIER_DEVICE, host[i],
                                 HP_TIER_HOST, bytes);
  }
  for (int64_t i = count; i-- > 0;) {
    hp_rt_copy_wait(coming[i]);
    hp_rt_free(host[i]);
  }
}

/* p: tiers of target and source, bytes, waits */
void copies_once(void **args, void **results) {
  PARAMS;
  void *copy =
      hp_rt_copy_start(results[0], (int32_t)p[0], args[0], (int32_t)p[1], p[2]);
  for (int64_t i = 0; i < p[3]; ++i)
    hp_rt_copy_wait(copy);
}

/* p: bytes of a row, rows of the table, number of indices, indices. args[1] is
 * the table, in the host's tier. */
void copies_rows(void **args, void **results) {
  PARAMS;
  hp_rt_copy_wait(hp_rt_copy_rows_start(results[0], args[1], HP_TIER_HOST, p[0],
                                        p[1], p + 3, p[2]));
}

/*--- Memory ---*/

/* p: number of (bytes, tier) pairs, pairs; allocates all, then frees all but
 * the last p[1 + 2 n]. results[0] gets the addresses modulo 64. */
void allocates(void **args, void **results) {
  PARAMS;
  void *blocks[64];
  int64_t *out = results[0];
  for (int64_t i = 0; i < p[0]; ++i) {
    blocks[i] = hp_rt_alloc(p[1 + 2 * i], (int32_t)p[2 + 2 * i]);
    memset(blocks[i], (int)i, (size_t)p[1 + 2 * i]);
    out[i] = (int64_t)((uintptr_t)blocks[i] % 64);
  }
  for (int64_t i = 0; i < p[0] - p[1 + 2 * p[0]]; ++i)
    hp_rt_free(blocks[i]);
}

/*--- Parallel loops ---*/

typedef struct {
  const float *in;
  float *out;
  int64_t columns;
} rows_context;

static void inner_body(void *context, int64_t begin, int64_t end) {
  rows_context *rows = context;
  for (int64_t j = begin; j < end; ++j)
    rows->out[j] += rows->in[j] * 2;
}

static void rows_body(void *context, int64_t begin, int64_t end) {
  rows_context *rows = context;
  for (int64_t i = begin; i < end; ++i) {
    rows_context row = {rows->in + i * rows->columns,
                        rows->out + i * rows->columns, rows->columns};
    for (int64_t j = 0; j < rows->columns; ++j)
      row.out[j] = (float)(hp_rt_device_id() + 1);
    hp_rt_parallel_for(inner_body, &row, rows->columns, 4);
  }
}

/* p: rows, columns, grain, repetitions. out = 2 in + id + 1 */
void loops(void **args, void **results) {
  PARAMS;
  rows_context rows = {args[1], results[0], p[1]};
  for (int64_t i = 0; i < p[3]; ++i)
    hp_rt_parallel_for(rows_body, &rows, p[0], p[2]);
}

static void empty_body(void *context, int64_t begin, int64_t end) {
  (void)context;
  (void)begin;
  (void)end;
}

/*--- Measurements ---*/

/* p: repetitions, kind (0 all_reduce, 1 all_gather), count of f32, axes */
void repeats_collective(void **args, void **results) {
  PARAMS;
  for (int64_t i = 0; i < p[0]; ++i) {
    if (p[1])
      hp_rt_all_gather(args[1], results[0], 1, p[2], 1, HP_F32, axes_at(p + 3),
                       p[3]);
    else
      hp_rt_all_reduce(args[1], results[0], p[2], HP_F32, HP_SUM,
                       axes_at(p + 3), p[3]);
  }
}

/* p: repetitions, n */
void repeats_loop(void **args, void **results) {
  PARAMS;
  (void)results;
  for (int64_t i = 0; i < p[0]; ++i)
    hp_rt_parallel_for(empty_body, NULL, p[1], 1);
}

/*--- Matmul ---*/

/* args: description with pointers left out, a, b, bias or unused, c before.
 * p: repetitions. results[0] starts as a copy of c. */
void matmul(void **args, void **results) {
  const int64_t *p = (const int64_t *)args[1];
  hp_matmul_desc desc;
  memcpy(&desc, args[0], sizeof(desc));
  desc.a = args[2];
  desc.b = args[3];
  desc.bias = desc.bias ? args[4] : NULL;
  desc.c = results[0];
  memcpy(results[0], args[5], (size_t)p[1]);
  for (int64_t i = 0; i < p[0]; ++i)
    hp_rt_matmul(&desc);
}

/* Every piece of a loop multiplies one batch entry. */
typedef struct {
  hp_matmul_desc desc;
  int64_t stride_a, stride_b, stride_c;
} pieces_context;

static void multiply_piece(void *context, int64_t begin, int64_t end) {
  pieces_context *pieces = context;
  for (int64_t i = begin; i < end; ++i) {
    hp_matmul_desc desc = pieces->desc;
    desc.a = (const char *)desc.a + i * pieces->stride_a;
    desc.b = (const char *)desc.b + i * pieces->stride_b;
    desc.c = (char *)desc.c + i * pieces->stride_c;
    hp_rt_matmul(&desc);
  }
}

/* p: pieces, stride of a, b and c in bytes */
void matmul_in_loop(void **args, void **results) {
  const int64_t *p = (const int64_t *)args[1];
  pieces_context pieces;
  memcpy(&pieces.desc, args[0], sizeof(pieces.desc));
  pieces.desc.a = args[2];
  pieces.desc.b = args[3];
  pieces.desc.c = results[0];
  pieces.stride_a = p[1];
  pieces.stride_b = p[2];
  pieces.stride_c = p[3];
  hp_rt_parallel_for(multiply_piece, &pieces, p[0], 1);
}
