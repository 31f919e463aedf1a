/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Products: all types, transposed, in batches, with a bias and activations.
 */
#include "test/Runtime/conformance/conformance.h"

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
static int product(place at, int64_t dtype, int64_t out_dtype, int trans_a,
                   int trans_b, double beta, int has_bias, int64_t activation,
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
    buffers[operand] =
        upload(at, memory[operand], Room * size_of(types[operand]));
  }
  desc.a = buffers[0];
  desc.b = buffers[1];
  desc.c = buffers[2];
  desc.bias = has_bias ? buffers[3] : NULL;
  hp_status status = hp_matmul(&desc, at.stream);
  if (status == HP_OK) {
    static double result[Room];
    download(at, result, buffers[2], Room * size_of(out_dtype));
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
    release(at, buffers[operand]);
  return status == HP_OK;
}

static void all_products(place at) {
  const int64_t types[6][2] = {{HP_F32, HP_F32},   {HP_F64, HP_F64},
                               {HP_F16, HP_F16},   {HP_F16, HP_F32},
                               {HP_BF16, HP_BF16}, {HP_BF16, HP_F32}};
  for (int type = 0; type < 6; ++type)
    for (int trans = 0; trans < 4; ++trans)
      for (int64_t rank = 0; rank <= 2; ++rank)
        for (int beta = 0; beta < 2; ++beta)
          EXPECT(product(at, types[type][0], types[type][1], trans & 1,
                         trans >> 1, beta, 0, HP_ACT_NONE, rank) ==
                 (hp_device_can(at.device, HP_CAN_MULTIPLY, types[type][0],
                                HP_ACT_NONE) == HP_OK));
  for (int type = 0; type < 6; ++type)
    for (int64_t activation = 0; activation <= HP_ACT_SILU; ++activation) {
      int can = hp_device_can(at.device, HP_CAN_MULTIPLY, types[type][0],
                              activation) == HP_OK;
      int has_bias = types[type][0] != HP_F64;
      EXPECT(product(at, types[type][0], types[type][1], 0, 1, 0, has_bias,
                     activation, 1) == can);
    }
  /* What nobody may leave out. */
  EXPECT(hp_device_can(at.device, HP_CAN_MULTIPLY, HP_F32, HP_ACT_NONE) ==
         HP_OK);
  EXPECT(hp_device_can(at.device, HP_CAN_MULTIPLY, HP_BF16, HP_ACT_NONE) ==
         HP_OK);
  hp_matmul_desc desc = {0};
  EXPECT(hp_matmul(&desc, at.stream) == HP_INVALID_ARGUMENT);
  EXPECT(hp_matmul(NULL, at.stream) == HP_INVALID_ARGUMENT);
}

/* A product over nothing is zero where nothing is added to, and k may be 0. */
static void empty_products(place at) {
  float ones[M * N], back[M * N];
  for (int i = 0; i < M * N; ++i)
    ones[i] = 1;
  void *c = upload(at, ones, sizeof(ones));
  hp_matmul_desc desc = {0};
  desc.struct_size = sizeof(desc);
  desc.dtype = desc.out_dtype = HP_F32;
  desc.m = M;
  desc.n = N;
  desc.ld_b = desc.ld_c = N;
  desc.a = desc.b = desc.c = c;
  desc.alpha = 1;
  desc.beta = 1;
  EXPECT(hp_matmul(&desc, at.stream) == HP_OK);
  download(at, back, c, sizeof(back));
  EXPECT(back[0] == 1 && back[M * N - 1] == 1);
  desc.beta = 0;
  EXPECT(hp_matmul(&desc, at.stream) == HP_OK);
  download(at, back, c, sizeof(back));
  EXPECT(back[0] == 0 && back[M * N - 1] == 0);
  release(at, c);
}

void products(place at) {
  all_products(at);
  empty_products(at);
}
