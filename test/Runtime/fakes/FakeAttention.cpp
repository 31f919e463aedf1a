// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeAttention.cpp - CANN's operator for attention -----------------===//
//
// NOT Huawei's library (a test double, see FakeOpapi.cpp). What this operator
// is not asked for (dropout, masks of booleans, prefixes) is refused.
//
//===----------------------------------------------------------------------===//

#include "test/Runtime/fakes/FakeOpapi.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ascend = hyperparallel::runtime::ascend;
using namespace fakes;

namespace {

/// What is wrong with the shapes and types; null if nothing is.
const char *findFault(const TensorHandle *q, const TensorHandle *k,
                      const TensorHandle *v, const TensorHandle *shift,
                      const TensorHandle *most, const TensorHandle *sums,
                      const TensorHandle *out) {
  for (const TensorHandle *tensor : {q, k, v, most, sums, out})
    if (!tensor || tensor->sizes.size() != 4)
      return "expected tensors of batch, heads, rows and columns";
  for (const TensorHandle *tensor : {q, k, v, out})
    if (tensor->type != q->type || !isFloat(q->type))
      return "element types that differ";
  bool fits = k->sizes == v->sizes && out->sizes == q->sizes &&
              q->sizes[0] == k->sizes[0] && q->sizes[3] == k->sizes[3] &&
              k->sizes[1] > 0 && q->sizes[1] % k->sizes[1] == 0;
  if (!fits || q->sizes[1] > 256 || q->sizes[3] > 512)
    return "shapes that do not fit";
  std::vector<int64_t> ofRows = {q->sizes[0], q->sizes[1], q->sizes[2], 8};
  for (const TensorHandle *tensor : {most, sums})
    if (tensor->sizes != ofRows || tensor->type != ascend::Float)
      return "expected 8 numbers in f32 for each row";
  if (!shift)
    return nullptr;
  std::vector<int64_t> wanted = {q->sizes[0], q->sizes[1], q->sizes[2],
                                 k->sizes[2]};
  if (shift->sizes.size() != 4 || shift->type != q->type)
    return "what is added to the scores is of another rank or type";
  if (shift->sizes[0] == 1)
    wanted[0] = 1;
  return shift->sizes == wanted ? nullptr
                                : "what is added is of no shape that is taken";
}

/// One row of the result, in f32.
void attend(const TensorHandle &q, const TensorHandle &k, const TensorHandle &v,
            const TensorHandle *shift, float scale, const Index &row,
            const TensorHandle &most, const TensorHandle &sums,
            const TensorHandle &out) {
  int64_t width = q.sizes[3], count = k.sizes[2];
  int64_t head = row[1] / (q.sizes[1] / k.sizes[1]);
  std::vector<float> scores(count), result(width, 0.f);
  for (int64_t n = 0; n < count; ++n) {
    float sum = 0;
    for (int64_t d = 0; d < width; ++d)
      sum += load(placeOf(q, {row[0], row[1], row[2], d}), q.type) *
             load(placeOf(k, {row[0], head, n, d}), k.type);
    scores[n] = scale * sum;
    if (shift)
      scores[n] +=
          load(placeOf(*shift, {row[0], row[1], row[2], n}), shift->type);
  }
  float highest = *std::max_element(scores.begin(), scores.end()), total = 0;
  for (float &score : scores)
    total += score = std::exp(score - highest);
  for (int64_t n = 0; n < count; ++n)
    for (int64_t d = 0; d < width; ++d)
      result[d] +=
          scores[n] / total * load(placeOf(v, {row[0], head, n, d}), v.type);
  for (int64_t d = 0; d < width; ++d)
    store(placeOf(out, {row[0], row[1], row[2], d}), out.type, result[d]);
  for (int64_t i = 0; i < 8; ++i) {
    store(placeOf(most, {row[0], row[1], row[2], i}), most.type, highest);
    store(placeOf(sums, {row[0], row[1], row[2], i}), sums.type, total);
  }
}

} // namespace

FAKE int aclnnFlashAttentionScoreV2GetWorkspaceSize(
    const TensorHandle *q, const TensorHandle *k, const TensorHandle *v,
    const TensorHandle *shift, const TensorHandle *dropped,
    const TensorHandle *padding, const TensorHandle *mask,
    const IntArrayHandle *prefix, const IntArrayHandle *firstQ,
    const IntArrayHandle *firstK, double scale, double kept, int64_t before,
    int64_t after, int64_t heads, char *layout, int64_t precision,
    int64_t sparse, int64_t order, const TensorHandle *most,
    const TensorHandle *sums, const TensorHandle *probabilities,
    const TensorHandle *out, uint64_t *size, ExecutorHandle **executor) {
  const std::string name = "aclnnFlashAttentionScoreV2";
  if (dropped || padding || mask || prefix || firstQ || firstK ||
      probabilities || kept != 1 || precision != 0 || sparse != 0 || order != 0)
    return refuse(name + ": what this fake does not compute");
  if (const char *fault = findFault(q, k, v, shift, most, sums, out))
    return refuse(name + ": " + fault);
  if (std::strcmp(layout, "BNSD") != 0 || heads != q->sizes[1] ||
      before < q->sizes[2] || after < k->sizes[2])
    return refuse(name + ": a layout, heads or a window that do not fit");
  std::vector<const TensorHandle *> reads = {q, k, v};
  if (shift)
    reads.push_back(shift);
  return plan(
      "aclnnFlashAttentionScoreV2", 8192, reads, {most, sums, out},
      [=] {
        std::vector<int64_t> rows(q->sizes.begin(), q->sizes.end() - 1);
        forEach(rows, [&](const Index &row) {
          attend(*q, *k, *v, shift, static_cast<float>(scale), row, *most,
                 *sums, *out);
        });
        return std::string();
      },
      size, executor);
}
RUN(aclnnFlashAttentionScoreV2)
