/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What every back end must do (docs/Runtime.md). The device's memory is never
 * touched by the host, only copied. Usage: conformance BACKEND [KEY VALUE]...
 *
 * Prints "ok NAME" or "unimplemented NAME" for each part, in order; anything
 * that is wrong ends the program with the line and the reason.
 */
#include "lib/Runtime/hp_runtime.h"

#include <math.h>
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

static hp_device *device;
static hp_stream *stream;

static void *device_bytes(int64_t bytes) {
  void *pointer = NULL;
  EXPECT(hp_alloc(device, HP_TIER_DEVICE, bytes, NULL, &pointer) == HP_OK);
  return pointer;
}
static void *upload(const void *host, int64_t bytes) {
  void *pointer = device_bytes(bytes);
  EXPECT(hp_copy(pointer, host, bytes, stream) == HP_OK);
  EXPECT(hp_stream_sync(stream) == HP_OK);
  return pointer;
}
static void download(void *host, const void *pointer, int64_t bytes) {
  EXPECT(hp_copy(host, pointer, bytes, stream) == HP_OK);
  EXPECT(hp_stream_sync(stream) == HP_OK);
}
static void release(void *pointer) {
  EXPECT(hp_free(device, pointer, NULL) == HP_OK);
}

/* Sizes are counted in 64 bytes; a limit holds; what is freed may be had again;
 * freeing twice is an error. */
static void memory(void) {
  const hp_tier tiers[] = {HP_TIER_DEVICE, HP_TIER_HOST};
  for (int i = 0; i < 2; ++i) {
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
    release(first);
    EXPECT(hp_free(device, first, NULL) == HP_INVALID_ARGUMENT);
    release(second);
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
static void copies(void) {
  enum { Count = 1000 };
  int32_t there[Count], back[Count];
  for (int i = 0; i < Count; ++i)
    there[i] = i * 7919 - 500000;
  void *first = upload(there, sizeof(there));
  void *second = device_bytes(sizeof(there));
  void *tier = NULL;
  EXPECT(hp_alloc(device, HP_TIER_HOST, sizeof(there), NULL, &tier) == HP_OK);
  EXPECT(hp_copy(second, first, sizeof(there), stream) == HP_OK);
  EXPECT(hp_copy(tier, second, sizeof(there), stream) == HP_OK);
  EXPECT(hp_fill(second, "\x2a", 1, sizeof(there), stream) == HP_OK);
  EXPECT(hp_copy(second, tier, sizeof(there), stream) == HP_OK);
  download(back, second, sizeof(back));
  EXPECT(memcmp(there, back, sizeof(back)) == 0);
  EXPECT(hp_copy(second, first, 0, stream) == HP_OK);
  EXPECT(hp_copy(NULL, first, 4, stream) == HP_INVALID_ARGUMENT);

  /* The block of 5 rows of 12 bytes in rows of 40, to rows of 28. */
  EXPECT(hp_fill(second, "\0", 1, sizeof(there), stream) == HP_OK);
  EXPECT(hp_copy_2d(second, 28, (char *)first + 8, 40, 12, 5, stream) == HP_OK);
  download(back, second, sizeof(back));
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
    download(back, second, sizeof(back));
    for (int i = 0; i < 11; ++i)
      EXPECT(memcmp((char *)back + i * size, pattern, size) == 0);
  }
  EXPECT(hp_fill(second, pattern, 3, 10, stream) == HP_INVALID_ARGUMENT);
  release(first);
  release(second);
  release(tier);
}

static void append(void *list) {
  int *numbers = list;
  ++numbers[0];
  numbers[numbers[0]] = numbers[0] * 10;
}

/* Host tasks run in the order of their stream; another stream that waits for an
 * event sees what came before its record; recording again replaces. */
static void order(void) {
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
  void *buffer = device_bytes(sizeof(there));
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
  download(back, buffer, sizeof(back));
  EXPECT(memcmp(there, back, sizeof(back)) == 0);
  release(buffer);
  release(tier);
  EXPECT(hp_event_destroy(event) == HP_OK);
  EXPECT(hp_event_destroy(begin) == HP_OK);
  EXPECT(hp_stream_destroy(up) == HP_OK);
  EXPECT(hp_stream_destroy(other) == HP_OK);
}

static uint16_t to_half(float value, int64_t dtype) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (dtype == HP_BF16)
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  /* Values here are small multiples of 1/8: exact in f16. */
  uint32_t exponent = (bits >> 23) & 255;
  if (exponent == 0)
    return (uint16_t)(bits >> 16 & 0x8000);
  return (uint16_t)((bits >> 16 & 0x8000) | (exponent - 112) << 10 |
                    (bits >> 13 & 0x3ff));
}
static float from_half(uint16_t half, int64_t dtype) {
  uint32_t bits = (uint32_t)half << 16;
  float value;
  if (dtype == HP_F16) {
    uint32_t exponent = half >> 10 & 31;
    if (exponent == 0)
      return ldexpf((float)(half & 0x3ff), -24) * (half & 0x8000 ? -1 : 1);
    bits = ((uint32_t)half & 0x8000) << 16 | (exponent + 112) << 23 |
           ((uint32_t)half & 0x3ff) << 13;
  }
  memcpy(&value, &bits, 4);
  return value;
}

static int64_t size_of(int64_t dtype) {
  return dtype == HP_F64 ? 8 : dtype == HP_F32 ? 4 : 2;
}
static void put(void *base, int64_t at, int64_t dtype, double value) {
  if (dtype == HP_F64)
    ((double *)base)[at] = value;
  else if (dtype == HP_F32)
    ((float *)base)[at] = (float)value;
  else
    ((uint16_t *)base)[at] = to_half((float)value, dtype);
}
static double get(const void *base, int64_t at, int64_t dtype) {
  return dtype == HP_F64   ? ((const double *)base)[at]
         : dtype == HP_F32 ? ((const float *)base)[at]
                           : from_half(((const uint16_t *)base)[at], dtype);
}
static double activate(int64_t activation, double x) {
  switch (activation) {
  case HP_ACT_RELU:
    return x > 0 ? x : 0;
  case HP_ACT_GELU:
    return x / 2 * (1 + erf(x / sqrt(2)));
  case HP_ACT_GELU_TANH:
    return x / 2 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  case HP_ACT_SILU:
    return x / (1 + exp(-x));
  default:
    return x;
  }
}

enum { M = 5, N = 7, K = 6, Pad = 3, Room = 2048 };

/* One product against the definition. 0 where the back end has no such one. */
static int product(int64_t dtype, int64_t out_dtype, int trans_a, int trans_b,
                   double beta, int has_bias, int64_t activation,
                   int64_t batch_rank) {
  static double memory[4][Room];
  int64_t ld_a = (trans_a ? M : K) + Pad, ld_b = (trans_b ? K : N) + Pad;
  int64_t ld_c = N + Pad;
  hp_matmul_desc desc = {0};
  desc.struct_size = sizeof(desc);
  desc.dtype = dtype;
  desc.out_dtype = out_dtype;
  desc.trans_a = trans_a;
  desc.trans_b = trans_b;
  desc.m = M;
  desc.n = N;
  desc.k = K;
  desc.ld_a = ld_a;
  desc.ld_b = ld_b;
  desc.ld_c = ld_c;
  desc.batch_rank = batch_rank;
  desc.alpha = 0.5;
  desc.beta = beta;
  desc.activation = activation;
  /* Two batch dimensions: over the outer one b is broadcast. */
  const int64_t batch[2] = {2, 3};
  for (int64_t i = 0; i < batch_rank; ++i) {
    int64_t which = i + 2 - batch_rank;
    desc.batch[i] = batch[which];
    desc.stride_a[i] = which ? 8 * ld_a : 3 * 8 * ld_a;
    desc.stride_b[i] = which ? 8 * ld_b : 0;
    desc.stride_c[i] = which ? 8 * ld_c : 3 * 8 * ld_c;
  }
  const int64_t types[4] = {dtype, dtype, out_dtype, out_dtype};
  void *buffers[4];
  for (int operand = 0; operand < 4; ++operand) {
    for (int64_t i = 0; i < Room; ++i)
      put(memory[operand], i, types[operand],
          (double)((i * (37 + operand) + operand * 11) % 23 - 11) / 8);
    buffers[operand] = upload(memory[operand], Room * size_of(types[operand]));
  }
  desc.a = buffers[0];
  desc.b = buffers[1];
  desc.c = buffers[2];
  desc.bias = has_bias ? buffers[3] : NULL;
  hp_status status = hp_matmul(&desc, stream);
  if (status == HP_OK) {
    static double result[Room];
    download(result, buffers[2], Room * size_of(out_dtype));
    double tolerance = out_dtype == HP_F64   ? 1e-12
                       : out_dtype == HP_F32 ? 2e-5
                                             : 2e-2;
    int64_t outer = batch_rank > 1 ? 2 : 1, inner = batch_rank > 0 ? 3 : 1;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t b = 0; b < inner; ++b)
        for (int64_t i = 0; i < M; ++i)
          for (int64_t j = 0; j < N; ++j) {
            int64_t at_a = (o * 3 + b) * 8 * ld_a, at_b = b * 8 * ld_b;
            int64_t at_c = (o * 3 + b) * 8 * ld_c + i * ld_c + j;
            double sum = 0;
            for (int64_t k = 0; k < K; ++k)
              sum +=
                  get(memory[0], at_a + (trans_a ? k * ld_a + i : i * ld_a + k),
                      dtype) *
                  get(memory[1], at_b + (trans_b ? j * ld_b + k : k * ld_b + j),
                      dtype);
            double wanted = 0.5 * sum;
            if (beta != 0)
              wanted += beta * get(memory[2], at_c, out_dtype);
            if (has_bias)
              wanted += get(memory[3], j, out_dtype);
            wanted = activate(activation, wanted);
            double found = get(result, at_c, out_dtype);
            EXPECT(fabs(found - wanted) <= tolerance * (1 + fabs(wanted)));
          }
    /* What lies between the rows is nobody's. */
    EXPECT(get(result, N, out_dtype) == get(memory[2], N, out_dtype));
  } else {
    EXPECT(status == HP_UNIMPLEMENTED);
  }
  for (int operand = 0; operand < 4; ++operand)
    release(buffers[operand]);
  return status == HP_OK;
}

static void products(void) {
  const int64_t types[6][2] = {{HP_F32, HP_F32},   {HP_F64, HP_F64},
                               {HP_F16, HP_F16},   {HP_F16, HP_F32},
                               {HP_BF16, HP_BF16}, {HP_BF16, HP_F32}};
  int has_doubles = 1;
  for (int type = 0; type < 6; ++type)
    for (int trans = 0; trans < 4; ++trans)
      for (int64_t rank = 0; rank <= 2; ++rank)
        for (int beta = 0; beta < 2; ++beta)
          if (!product(types[type][0], types[type][1], trans & 1, trans >> 1,
                       beta, 0, HP_ACT_NONE, rank)) {
            /* Nobody has to have f64. */
            EXPECT(types[type][0] == HP_F64);
            has_doubles = 0;
          }
  if (!has_doubles)
    printf("unimplemented products of f64\n");
  const char *names[] = {"none", "relu", "gelu", "gelu_tanh", "silu"};
  for (int64_t activation = 0; activation <= HP_ACT_SILU; ++activation)
    if (product(HP_F32, HP_F32, 0, 1, 0, 1, activation, 1))
      printf("ok products with a bias and %s\n", names[activation]);
    else
      printf("unimplemented products with a bias and %s\n", names[activation]);
  hp_matmul_desc desc = {0};
  EXPECT(hp_matmul(&desc, stream) == HP_INVALID_ARGUMENT);
  EXPECT(hp_matmul(NULL, stream) == HP_INVALID_ARGUMENT);
}

/* A product over nothing is zero where nothing is added to, and k may be 0. */
static void empty_products(void) {
  float ones[M * N], back[M * N];
  for (int i = 0; i < M * N; ++i)
    ones[i] = 1;
  void *c = upload(ones, sizeof(ones));
  hp_matmul_desc desc = {0};
  desc.struct_size = sizeof(desc);
  desc.dtype = desc.out_dtype = HP_F32;
  desc.m = M;
  desc.n = N;
  desc.ld_b = desc.ld_c = N;
  desc.a = desc.b = desc.c = c;
  desc.alpha = 1;
  desc.beta = 1;
  EXPECT(hp_matmul(&desc, stream) == HP_OK);
  download(back, c, sizeof(back));
  EXPECT(back[0] == 1 && back[M * N - 1] == 1);
  desc.beta = 0;
  EXPECT(hp_matmul(&desc, stream) == HP_OK);
  download(back, c, sizeof(back));
  EXPECT(back[0] == 0 && back[M * N - 1] == 0);
  release(c);
}

static void communicators(hp_context *context) {
  const int64_t ranks[] = {0};
  hp_comm *comm = NULL;
  hp_status status = hp_comm_create(context, "alone", ranks, 1, device, &comm);
  if (status == HP_UNIMPLEMENTED) {
    printf("unimplemented communicators\n");
    return;
  }
  EXPECT(status == HP_OK);
  float there[4] = {1, -2, 3, -4}, back[4];
  void *in = upload(there, sizeof(there)), *out = device_bytes(sizeof(there));
  EXPECT(hp_all_reduce(in, out, 4, HP_F32, HP_SUM, comm, stream) == HP_OK);
  download(back, out, sizeof(back));
  EXPECT(memcmp(there, back, sizeof(back)) == 0);
  release(in);
  release(out);
  EXPECT(hp_comm_destroy(comm) == HP_OK);
  printf("ok communicators\n");
}

int main(int argc, char **argv) {
  if (argc < 2 || argc % 2 != 0)
    return 2;
  hp_context *context = NULL;
  hp_context_desc desc = {sizeof(desc), argv[1], 1,
                          (const char *const *)(argv + 2), (argc - 2) / 2};
  EXPECT(hp_context_create(&desc, &context) == HP_OK);
  EXPECT(strcmp(hp_context_backend(context), argv[1]) == 0);
  EXPECT(hp_device_count(context) == 1);
  EXPECT(hp_device_get(context, 1, &device) == HP_INVALID_ARGUMENT);
  EXPECT(hp_device_get(context, 0, &device) == HP_OK);
  EXPECT(hp_stream_create(device, (hp_stream_role)7, &stream) ==
         HP_INVALID_ARGUMENT);
  EXPECT(hp_stream_create(device, HP_STREAM_COMPUTE, &stream) == HP_OK);
  memory();
  printf("ok memory\n");
  copies();
  printf("ok copies\n");
  order();
  printf("ok order\n");
  products();
  printf("ok products\n");
  empty_products();
  printf("ok empty products\n");
  communicators(context);
  EXPECT(hp_stream_destroy(stream) == HP_OK);
  hp_context_destroy(context);
  return 0;
}
