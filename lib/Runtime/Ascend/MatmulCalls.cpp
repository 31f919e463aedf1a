// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- MatmulCalls.cpp - Products through CANN's operators ---------------===//
//
// A product is aclnnMatmul, with a batch aclnnBatchMatMul; where it is scaled,
// added to what is there, or has a bias, aclnnAddmm or aclnnBaddbmm. Operands
// are views with strides, so that nothing is transposed or packed before.
//
// The operators know one batch dimension. Ours are folded, from the inside, as
// far as all operands' strides allow; what is left is a loop of calls. A
// dimension with stride 0 is one of size 1, which they broadcast.
//
// f16 and bf16 with a result in f32 are multiplied as f32, of copies. There is
// no f64, and no activation: the compiler writes fragments for those.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Ascend/Opapi.h"
#include "lib/Runtime/CUDA/Matmul.h"

#include <climits>

namespace hyperparallel::runtime::cuda {

using ascend::Operands;
using ascend::TensorHandle;

namespace {

/// One call: at most one batch dimension.
struct Product {
  int64_t batch, strideA, strideB, strideC;
  const char *a, *b;
  char *c;
};

hp_status checkKind(int64_t dtype, int64_t activation) {
  if (dtype != HP_F16 && dtype != HP_BF16 && dtype != HP_F32)
    return fail(HP_UNIMPLEMENTED,
                "matmul: Ascend multiplies f16, bf16 and f32");
  if (activation != HP_ACT_NONE)
    return fail(HP_UNIMPLEMENTED, "matmul: CANN's products have no activation; "
                                  "the compiler writes a fragment for it");
  return HP_OK;
}

hp_status checkProduct(const hp_matmul_desc &desc) {
  if (desc.struct_size < sizeof(hp_matmul_desc))
    return fail(HP_INVALID_ARGUMENT,
                "matmul: expected a description of %zu bytes but got %llu",
                sizeof(hp_matmul_desc),
                static_cast<unsigned long long>(desc.struct_size));
  bool half = desc.dtype == HP_F16 || desc.dtype == HP_BF16;
  if (desc.out_dtype != desc.dtype && !(half && desc.out_dtype == HP_F32))
    return fail(HP_UNIMPLEMENTED,
                "matmul: expected a result of the operands' type, or f32 for "
                "f16 and bf16");
  bool bad = desc.batch_rank < 0 || desc.batch_rank > HP_MATMUL_MAX_BATCH ||
             desc.activation < HP_ACT_NONE || desc.activation > HP_ACT_SILU;
  for (int64_t extent :
       {desc.m, desc.n, desc.k, desc.ld_a, desc.ld_b, desc.ld_c})
    bad |= extent < 0 || extent > INT_MAX;
  if (bad)
    return fail(HP_INVALID_ARGUMENT,
                "matmul: expected extents, strides and an activation in range");
  if (hp_status status = checkKind(desc.dtype, desc.activation);
      status != HP_OK)
    return status;
  return HP_OK;
}

int64_t bytesOf(int64_t dtype) { return dtype == HP_F32 ? 4 : 2; }

class Multiplier {
public:
  Multiplier(Device &device, const hp_matmul_desc &desc, StreamHandle stream)
      : device(device), desc(desc), stream(stream) {}
  ~Multiplier() {
    for (void *copy : copies)
      giveRunMemory(device, copy, stream);
  }

  hp_status run(const Product &product);

private:
  /// An operand's view; with a result in f32, of a copy of it in f32.
  hp_status view(const char *data, int64_t batch, int64_t batchStride,
                 int64_t rows, int64_t columns, int64_t ld, bool transposed,
                 TensorHandle **out);

  Device &device;
  const hp_matmul_desc &desc;
  StreamHandle stream;
  Operands operands;
  std::vector<void *> copies;
};

hp_status Multiplier::view(const char *data, int64_t batch, int64_t batchStride,
                           int64_t rows, int64_t columns, int64_t ld,
                           bool transposed, TensorHandle **out) {
  std::vector<int64_t> sizes, strides;
  if (desc.batch_rank > 0) {
    sizes.push_back(batchStride == 0 ? 1 : batch);
    strides.push_back(batchStride == 0 ? rows * columns : batchStride);
  }
  sizes.insert(sizes.end(), {rows, columns});
  strides.push_back(transposed ? 1 : ld);
  strides.push_back(transposed ? ld : 1);
  *out = operands.tensor(data, desc.dtype, sizes, strides);
  if (desc.dtype == desc.out_dtype || !*out)
    return HP_OK;
  int64_t elements = 1;
  std::vector<int64_t> packed(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; elements *= sizes[i])
    packed[i] = elements;
  void *copy = nullptr;
  hp_status status =
      takeRunMemory(device, HP_TIER_DEVICE, elements * 4, stream, &copy);
  if (status != HP_OK)
    return status;
  copies.push_back(copy);
  TensorHandle *wide = operands.tensor(copy, HP_F32, sizes, packed);
  if (wide)
    status = HP_RUN_OPERATOR(device, stream, copy, wide, *out);
  *out = wide;
  return status;
}

hp_status Multiplier::run(const Product &product) {
  TensorHandle *a = nullptr, *b = nullptr;
  hp_status status = view(product.a, product.batch, product.strideA, desc.m,
                          desc.k, desc.ld_a, desc.trans_a != 0, &a);
  if (status == HP_OK)
    status = view(product.b, product.batch, product.strideB, desc.k, desc.n,
                  desc.ld_b, desc.trans_b != 0, &b);
  if (status != HP_OK)
    return status;
  bool batched = desc.batch_rank > 0;
  std::vector<int64_t> sizes = {desc.m, desc.n}, strides = {desc.ld_c, 1};
  if (batched) {
    sizes.insert(sizes.begin(), product.batch);
    strides.insert(strides.begin(), product.strideC);
  }
  TensorHandle *c = operands.tensor(product.c, desc.out_dtype, sizes, strides);
  bool plain = desc.alpha == 1 && desc.beta == 0 && !desc.bias;
  if (desc.bias && desc.beta != 0)
    return fail(HP_UNIMPLEMENTED,
                "matmul: a bias, and a result that is added to");
  TensorHandle *added = nullptr;
  ascend::ScalarHandle *alpha = nullptr, *beta = nullptr;
  if (!plain) {
    // beta = 0 never reads c, but the operator does: it gets a.
    added = desc.bias
                ? operands.tensor(desc.bias, desc.out_dtype, {desc.n}, {1})
                : c;
    alpha = operands.scalar(desc.alpha, desc.out_dtype);
    beta = operands.scalar(desc.bias ? 1 : desc.beta, desc.out_dtype);
  }
  if (!operands.complete())
    return fail(HP_INTERNAL, "matmul: CANN made no tensor of an operand");
  if (plain)
    return batched ? HP_RUN_OPERATOR(device, stream, batchMatmul, a, b, c,
                                     ascend::KeepType)
                   : HP_RUN_OPERATOR(device, stream, matmul, a, b, c,
                                     ascend::KeepType);
  if (!desc.bias && desc.beta == 0)
    if (status = HP_RUN_OPERATOR(device, stream, zero, c); status != HP_OK)
      return status;
  return batched ? HP_RUN_OPERATOR(device, stream, baddbmm, added, a, b, beta,
                                   alpha, c, ascend::KeepType)
                 : HP_RUN_OPERATOR(device, stream, addmm, added, a, b, beta,
                                   alpha, c, ascend::KeepType);
}

/// A product over nothing: c = beta * c.
hp_status clearResult(Device &device, const hp_matmul_desc &desc,
                      const Product &product, StreamHandle stream) {
  if (desc.bias || (desc.beta != 0 && desc.beta != 1))
    return fail(HP_UNIMPLEMENTED,
                "matmul: an epilogue on a product over nothing");
  if (desc.beta == 1)
    return HP_OK;
  Operands operands;
  TensorHandle *c = operands.tensor(product.c, desc.out_dtype,
                                    {product.batch, desc.m, desc.n},
                                    {product.strideC, desc.ld_c, 1});
  return c ? HP_RUN_OPERATOR(device, stream, zero, c)
           : fail(HP_INTERNAL, "matmul: CANN made no tensor of the result");
}

} // namespace

hp_status canMultiply(int64_t dtype, int64_t activation) {
  return checkKind(dtype, activation);
}

hp_status canAttend(int64_t dtype, int64_t width) {
  bool isHalf = dtype == HP_F16 || dtype == HP_BF16;
  if ((isHalf || dtype == HP_F32) && width > 0 && width <= 512)
    return HP_OK;
  return fail(HP_UNIMPLEMENTED,
              "the ascend back end's call for attention (CANN's "
              "aclnnFlashAttentionScoreV2) takes f16, bf16 and f32, and heads "
              "of 1 to 512 elements");
}

hp_status multiply(Device &device, const hp_matmul_desc &desc,
                   StreamHandle stream) {
  hp_status status = checkProduct(desc);
  if (status == HP_OK)
    status = ascend::opapi().load();
  if (status != HP_OK || desc.m == 0 || desc.n == 0)
    return status;
  int64_t folded = countFolded(desc), batch = 1, loops = 1;
  for (int64_t i = 0; i < desc.batch_rank; ++i)
    (i < desc.batch_rank - folded ? loops : batch) *= desc.batch[i];
  if (batch == 0)
    return HP_OK;
  int64_t inner = desc.batch_rank - 1;
  for (int64_t turn = 0; status == HP_OK && turn < loops; ++turn) {
    int64_t offsetA = 0, offsetB = 0, offsetC = 0, rest = turn;
    for (int64_t i = desc.batch_rank - folded; i-- > 0;) {
      int64_t index = rest % desc.batch[i];
      rest /= desc.batch[i];
      offsetA += index * desc.stride_a[i];
      offsetB += index * desc.stride_b[i];
      offsetC += index * desc.stride_c[i];
    }
    Product product = {
        batch,
        folded > 0 ? desc.stride_a[inner] : 0,
        folded > 0 ? desc.stride_b[inner] : 0,
        folded > 0 ? desc.stride_c[inner] : 0,
        static_cast<const char *>(desc.a) + offsetA * bytesOf(desc.dtype),
        static_cast<const char *>(desc.b) + offsetB * bytesOf(desc.dtype),
        static_cast<char *>(desc.c) + offsetC * bytesOf(desc.out_dtype)};
    status = desc.k == 0 ? clearResult(device, desc, product, stream)
                         : Multiplier(device, desc, stream).run(product);
  }
  return status;
}

} // namespace hyperparallel::runtime::cuda
