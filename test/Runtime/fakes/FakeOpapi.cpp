// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- FakeOpapi.cpp - A fake of CANN's operators (a test double) --------===//
//
// NOT Huawei's library: libhp_fake_opapi.so answers the operators of
// libopapi.so that the back end uses, on the CPU, over the fake runtime
// (FakeAscendCL.cpp). It checks shapes, element types, that tensors live until
// the second step, that each executor is run once and with the workspace that
// it asked for, where nothing else is, and what is read and written when. Sums
// are in f32. HP_FAKE_ASCEND_WORKSPACE=aclnnName=BYTES has one of them want so
// many bytes.
//
//===----------------------------------------------------------------------===//

#include "test/Runtime/fakes/FakeOpapi.h"
#include "lib/Runtime/CPU/HalfFloat.h"
#include "test/Runtime/fakes/FakeCuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace ascend = hyperparallel::runtime::ascend;
using fakes::ExecutorHandle;
using fakes::IntArrayHandle;
using fakes::ScalarHandle;
using fakes::TensorHandle;
using hyperparallel::runtime::BFloat16;
using hyperparallel::runtime::Float16;

namespace {
constexpr int Invalid = 161002, Failed = 561103;
std::mutex mutex;
std::set<const void *> alive;
} // namespace

namespace fakes {

int refuse(const std::string &what) {
  hp_fake_cuda_refuse(("aclnn: " + what).c_str());
  return Invalid;
}

int64_t sizeOf(int type) {
  switch (type) {
  case ascend::Float:
  case ascend::Int32:
    return 4;
  case ascend::Int64:
    return 8;
  case ascend::Int8:
  case ascend::Bool:
    return 1;
  case ascend::Float16:
  case ascend::Bfloat16:
  case ascend::Int16:
    return 2;
  default:
    return 0;
  }
}
bool isFloat(int type) {
  return type == ascend::Float || type == ascend::Float16 ||
         type == ascend::Bfloat16;
}
float load(const char *at, int type) {
  if (type == ascend::Float) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return type == ascend::Float16 ? Float16::toFloat(Float16{bits})
                                 : BFloat16::toFloat(BFloat16{bits});
}
void store(char *at, int type, float value) {
  if (type == ascend::Float) {
    std::memcpy(at, &value, 4);
    return;
  }
  if (type == ascend::Float16) {
    Float16 half = Float16::fromFloat(value);
    std::memcpy(at, &half, 2);
  } else {
    BFloat16 half = BFloat16::fromFloat(value);
    std::memcpy(at, &half, 2);
  }
}

int64_t loadWhole(const char *at, int type) {
  int64_t value = 0;
  int64_t bytes = sizeOf(type);
  std::memcpy(&value, at, static_cast<size_t>(bytes));
  auto unused = static_cast<unsigned>(64 - 8 * bytes); // the sign spreads
  return static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused;
}
void storeWhole(char *at, int type, int64_t value) {
  std::memcpy(at, &value, static_cast<size_t>(sizeOf(type)));
}

/// The place of an element, of which the index may be one of a larger shape:
/// dimensions of size 1 are repeated, and missing ones are in front.
char *placeOf(const TensorHandle &tensor, const std::vector<int64_t> &index) {
  int64_t offset = 0;
  size_t missing = index.size() - tensor.sizes.size();
  for (size_t i = 0; i < tensor.sizes.size(); ++i)
    offset +=
        (tensor.sizes[i] == 1 ? 0 : index[missing + i]) * tensor.strides[i];
  return tensor.data + offset * sizeOf(tensor.type);
}

void forEach(const std::vector<int64_t> &sizes,
             const std::function<void(const std::vector<int64_t> &)> &visit) {
  std::vector<int64_t> index(sizes.size(), 0);
  if (std::count(sizes.begin(), sizes.end(), 0))
    return;
  for (;;) {
    visit(index);
    size_t i = sizes.size();
    while (i > 0 && ++index[i - 1] == sizes[i - 1])
      index[--i] = 0;
    if (i == 0)
      return;
  }
}

bool broadcasts(const TensorHandle &from, const std::vector<int64_t> &to) {
  if (from.sizes.size() > to.size())
    return false;
  size_t missing = to.size() - from.sizes.size();
  for (size_t i = 0; i < from.sizes.size(); ++i)
    if (from.sizes[i] != 1 && from.sizes[i] != to[missing + i])
      return false;
  return true;
}

/// Notes what is touched: runs of neighbours, one by one.
static int touch(void *stream, const Workspace &workspace,
                 const TensorHandle &tensor, bool writes) {
  std::vector<std::pair<int64_t, int64_t>> dims; // stride, size
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0)
      return 0;
    if (tensor.sizes[i] > 1 && tensor.strides[i] != 0)
      dims.push_back({tensor.strides[i], tensor.sizes[i]});
  }
  std::sort(dims.begin(), dims.end());
  int64_t length = 1;
  size_t inner = 0;
  for (; inner < dims.size() && dims[inner].first == length; ++inner)
    length *= dims[inner].second;
  std::vector<int64_t> sizes;
  for (size_t i = inner; i < dims.size(); ++i)
    sizes.push_back(dims[i].second);
  int fault = 0;
  forEach(sizes, [&](const std::vector<int64_t> &index) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i)
      offset += index[i] * dims[inner + i].first;
    int64_t bytes = sizeOf(tensor.type);
    auto at = reinterpret_cast<uint64_t>(tensor.data + offset * bytes);
    auto size = static_cast<uint64_t>(length * bytes);
    if (!fault && workspace.meets(at, size))
      fault = refuse("a tensor of an operator lies in its workspace");
    if (!fault)
      fault = hp_fake_cuda_access(stream, at, size, writes);
  });
  return fault;
}

uint64_t denseBytes(const TensorHandle &tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.sizes)
    count *= size;
  return static_cast<uint64_t>(count * sizeOf(tensor.type));
}

/// What HP_FAKE_ASCEND_WORKSPACE has the operator want, if it is about it.
static uint64_t wantedBytes(const std::string &name, uint64_t usual) {
  const char *set = std::getenv("HP_FAKE_ASCEND_WORKSPACE");
  std::string words = set ? set : "";
  return words.rfind(name + "=", 0) == 0
             ? std::strtoull(words.c_str() + name.size() + 1, nullptr, 10)
             : usual;
}

int plan(const char *name, uint64_t workspace,
         std::vector<const TensorHandle *> reads,
         std::vector<const TensorHandle *> writes,
         std::function<std::string()> work, uint64_t *size,
         ExecutorHandle **out) {
  uint64_t all = 0;
  for (const auto *tensors : {&reads, &writes})
    for (const TensorHandle *tensor : *tensors)
      all += denseBytes(*tensor);
  workspace = wantedBytes(name, std::min(workspace, all));
  std::lock_guard<std::mutex> lock(mutex);
  *size = workspace;
  *out = new ExecutorHandle{name, workspace, std::move(reads),
                            std::move(writes), std::move(work)};
  alive.insert(*out);
  return 0;
}

/// What a captured call has seen is seen again when it is made again: handles
/// end for their users, and are deleted with the process.
template <typename T>
static void keep(const T *handle) {
  static std::mutex guard;
  static std::vector<std::unique_ptr<const T>> handles;
  std::lock_guard<std::mutex> lock(guard);
  handles.emplace_back(handle);
}

static int perform(const char *name, void *workspace,
                   const ExecutorHandle &executor, void *stream) {
  Workspace own(workspace, executor.workspace);
  int fault = hp_fake_cuda_begin(stream, name);
  if (!fault && own.begin() % HP_WORKSPACE_ALIGNMENT != 0)
    fault = refuse("a workspace that is not aligned to 512 bytes");
  if (!fault && executor.workspace > 0)
    fault = hp_fake_cuda_access(stream, reinterpret_cast<uint64_t>(workspace),
                                executor.workspace, 1);
  for (const TensorHandle *tensor : executor.reads)
    if (!fault)
      fault = touch(stream, own, *tensor, false);
  for (const TensorHandle *tensor : executor.writes)
    if (!fault)
      fault = touch(stream, own, *tensor, true);
  if (fault)
    return Failed;
  own.fill();
  std::string wrong = executor.work();
  if (wrong.empty() && !own.isIntact())
    wrong = "it wrote to its own workspace";
  return wrong.empty() ? 0 : refuse(std::string(name) + ": " + wrong);
}

int run(const char *name, void *workspace, uint64_t size,
        ExecutorHandle *executor, void *stream) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!alive.erase(executor))
      return refuse(std::string(name) + ": an executor that is none, or ran");
    for (const TensorHandle *tensor : executor->reads)
      if (!alive.count(tensor))
        return refuse(std::string(name) + ": a tensor ended before the call");
    for (const TensorHandle *tensor : executor->writes)
      if (!alive.count(tensor))
        return refuse(std::string(name) + ": a tensor ended before the call");
  }
  std::unique_ptr<ExecutorHandle> owned(executor);
  if (executor->name != name || size != executor->workspace ||
      (size > 0 && !workspace))
    return refuse(std::string(name) + ": another operator's executor, or not "
                                      "the workspace that was asked for");
  std::shared_ptr<ExecutorHandle> kept(std::move(owned));
  std::function<int(void *)> work = [=](void *on) {
    return perform(name, workspace, *kept, on);
  };
  return hp_fake_cuda_defer(stream, &work) ? 0 : work(stream);
}

} // namespace fakes

using namespace fakes;

namespace {
/// sum += term, of any type; integers wrap.
void add(char *sum, const char *term, int type) {
  if (isFloat(type)) {
    store(sum, type, load(sum, type) + load(term, type));
    return;
  }
  uint64_t left = 0, right = 0;
  auto bytes = static_cast<size_t>(sizeOf(type));
  std::memcpy(&left, sum, bytes);
  std::memcpy(&right, term, bytes);
  left += right;
  std::memcpy(sum, &left, bytes);
}
} // namespace

namespace {

/// out = beta * added + alpha * (a b), for each index of the batch.
std::string multiply(const TensorHandle *a, const TensorHandle *b,
                     const TensorHandle *added, float beta, float alpha,
                     TensorHandle *out) {
  size_t rank = out->sizes.size();
  int64_t m = out->sizes[rank - 2], n = out->sizes[rank - 1];
  int64_t k = a->sizes.back();
  std::vector<int64_t> batch(out->sizes.begin(), out->sizes.end() - 2);
  std::vector<float> left(m * k), right(k * n), sums(m * n);
  forEach(batch, [&](std::vector<int64_t> index) {
    auto dense = [&](const TensorHandle &tensor, std::vector<float> &into,
                     int64_t rows, int64_t columns) {
      std::vector<int64_t> at = index;
      at.resize(rank, 0);
      const char *base = placeOf(tensor, at);
      int64_t size = sizeOf(tensor.type);
      int64_t down = tensor.strides[tensor.strides.size() - 2];
      int64_t across = tensor.strides.back();
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          into[i * columns + j] =
              load(base + (i * down + j * across) * size, tensor.type);
    };
    dense(*a, left, m, k);
    dense(*b, right, k, n);
    std::fill(sums.begin(), sums.end(), 0.f);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p) {
        float factor = left[i * k + p];
        const float *row = right.data() + p * n;
        float *sum = sums.data() + i * n;
        for (int64_t j = 0; j < n; ++j)
          sum[j] += factor * row[j];
      }
    index.resize(rank);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        index[rank - 2] = i;
        index[rank - 1] = j;
        float value = alpha * sums[i * n + j];
        if (added)
          value += beta * load(placeOf(*added, index), added->type);
        store(placeOf(*out, index), out->type, value);
      }
  });
  return "";
}

int planProduct(const char *name, size_t rank, const TensorHandle *a,
                const TensorHandle *b, const TensorHandle *added, double beta,
                double alpha, TensorHandle *out, int8_t mathType,
                uint64_t *size, ExecutorHandle **executor) {
  if (!a || !b || !out || a->sizes.size() != rank || b->sizes.size() != rank ||
      out->sizes.size() != rank)
    return refuse(std::string(name) + ": operands of another rank");
  if (!isFloat(a->type) || a->type != b->type || a->type != out->type ||
      (added && added->type != out->type) || mathType != ascend::KeepType)
    return refuse(std::string(name) + ": element types that differ");
  bool fits = a->sizes[rank - 1] == b->sizes[rank - 2] &&
              a->sizes[rank - 2] == out->sizes[rank - 2] &&
              b->sizes[rank - 1] == out->sizes[rank - 1];
  if (rank == 3)
    for (const TensorHandle *operand : {a, b})
      fits &= operand->sizes[0] == out->sizes[0] || operand->sizes[0] == 1;
  if (rank == 3)
    fits &= std::max(a->sizes[0], b->sizes[0]) == out->sizes[0];
  if (added)
    fits &= broadcasts(*added, out->sizes);
  if (!fits)
    return refuse(std::string(name) + ": shapes that do not fit");
  std::vector<const TensorHandle *> reads = {a, b};
  if (added)
    reads.push_back(added);
  return plan(
      name, denseBytes(*a) + denseBytes(*b), reads, {out},
      [=] {
        return multiply(a, b, added, static_cast<float>(beta),
                        static_cast<float>(alpha), out);
      },
      size, executor);
}

} // namespace

FAKE TensorHandle *aclCreateTensor(const int64_t *sizes, uint64_t rank,
                                   int type, const int64_t *strides,
                                   int64_t offset, int format,
                                   const int64_t *storage, uint64_t storageRank,
                                   void *data) {
  int64_t room = 1, reach = 1;
  for (uint64_t i = 0; i < storageRank; ++i)
    room *= storage[i];
  for (uint64_t i = 0; i < rank; ++i)
    reach += (sizes[i] - 1) * strides[i];
  if (sizeOf(type) == 0 || format != ascend::FormatNd || offset != 0 ||
      reach > room || rank > 8) {
    refuse("a tensor that does not fit into its storage, or of no known type");
    return nullptr;
  }
  auto *made = new TensorHandle{{sizes, sizes + rank},
                                {strides, strides + rank},
                                type,
                                static_cast<char *>(data)};
  std::lock_guard<std::mutex> lock(mutex);
  alive.insert(made);
  return made;
}
FAKE int aclDestroyTensor(const TensorHandle *tensor) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!alive.erase(tensor))
      return refuse("a tensor that ended before");
  }
  keep(tensor);
  return 0;
}
FAKE ScalarHandle *aclCreateScalar(void *value, int type) {
  if (isFloat(type))
    return new ScalarHandle{load(static_cast<char *>(value), type), 0, type};
  if (type != ascend::Int64)
    return nullptr;
  int64_t whole = 0;
  std::memcpy(&whole, value, 8);
  return new ScalarHandle{static_cast<double>(whole), whole, type};
}
FAKE int aclDestroyScalar(const ScalarHandle *scalar) {
  keep(scalar);
  return 0;
}

FAKE IntArrayHandle *aclCreateIntArray(const int64_t *values, uint64_t size) {
  return new IntArrayHandle{{values, values + size}};
}
FAKE int aclDestroyIntArray(const IntArrayHandle *array) {
  keep(array);
  return 0;
}

FAKE int aclnnMatmulGetWorkspaceSize(const TensorHandle *a,
                                     const TensorHandle *b, TensorHandle *out,
                                     int8_t mathType, uint64_t *size,
                                     ExecutorHandle **executor) {
  return planProduct("aclnnMatmul", 2, a, b, nullptr, 0, 1, out, mathType, size,
                     executor);
}
RUN(aclnnMatmul)
FAKE int aclnnBatchMatMulGetWorkspaceSize(const TensorHandle *a,
                                          const TensorHandle *b,
                                          TensorHandle *out, int8_t mathType,
                                          uint64_t *size,
                                          ExecutorHandle **executor) {
  return planProduct("aclnnBatchMatMul", 3, a, b, nullptr, 0, 1, out, mathType,
                     size, executor);
}
RUN(aclnnBatchMatMul)
FAKE int aclnnAddmmGetWorkspaceSize(
    const TensorHandle *added, const TensorHandle *a, const TensorHandle *b,
    const ScalarHandle *beta, const ScalarHandle *alpha, TensorHandle *out,
    int8_t mathType, uint64_t *size, ExecutorHandle **executor) {
  return planProduct("aclnnAddmm", 2, a, b, added, beta->value, alpha->value,
                     out, mathType, size, executor);
}
RUN(aclnnAddmm)
FAKE int aclnnBaddbmmGetWorkspaceSize(
    const TensorHandle *added, const TensorHandle *a, const TensorHandle *b,
    const ScalarHandle *beta, const ScalarHandle *alpha, TensorHandle *out,
    int8_t mathType, uint64_t *size, ExecutorHandle **executor) {
  return planProduct("aclnnBaddbmm", 3, a, b, added, beta->value, alpha->value,
                     out, mathType, size, executor);
}
RUN(aclnnBaddbmm)

FAKE int aclnnInplaceCopyGetWorkspaceSize(TensorHandle *to,
                                          const TensorHandle *from,
                                          uint64_t *size,
                                          ExecutorHandle **executor) {
  if (!to || !from || !broadcasts(*from, to->sizes) ||
      (to->type != from->type && !(isFloat(to->type) && isFloat(from->type))))
    return refuse("aclnnInplaceCopy: shapes or element types that do not fit");
  return plan(
      "aclnnInplaceCopy", 512, {from}, {to},
      [=] {
        forEach(to->sizes, [&](const std::vector<int64_t> &index) {
          if (to->type == from->type)
            std::memcpy(placeOf(*to, index), placeOf(*from, index),
                        static_cast<size_t>(sizeOf(to->type)));
          else
            store(placeOf(*to, index), to->type,
                  load(placeOf(*from, index), from->type));
        });
        return std::string();
      },
      size, executor);
}
RUN(aclnnInplaceCopy)

FAKE int aclnnInplaceZeroGetWorkspaceSize(TensorHandle *to, uint64_t *size,
                                          ExecutorHandle **executor) {
  return plan(
      "aclnnInplaceZero", 0, {}, {to},
      [=] {
        forEach(to->sizes, [&](const std::vector<int64_t> &index) {
          std::memset(placeOf(*to, index), 0,
                      static_cast<size_t>(sizeOf(to->type)));
        });
        return std::string();
      },
      size, executor);
}
RUN(aclnnInplaceZero)

FAKE int aclnnEmbeddingGetWorkspaceSize(const TensorHandle *table,
                                        const TensorHandle *rows,
                                        const TensorHandle *out, uint64_t *size,
                                        ExecutorHandle **executor) {
  std::vector<int64_t> wanted = rows->sizes;
  if (table->sizes.size() == 2)
    wanted.push_back(table->sizes[1]);
  if (table->sizes.size() != 2 || out->sizes != wanted ||
      table->type != out->type ||
      (rows->type != ascend::Int64 && rows->type != ascend::Int32))
    return refuse("aclnnEmbedding: shapes or element types that do not fit");
  return plan(
      "aclnnEmbedding", 512, {table, rows}, {out},
      [=] {
        std::string wrong;
        forEach(rows->sizes, [&](const std::vector<int64_t> &index) {
          int64_t row = loadWhole(placeOf(*rows, index), rows->type);
          if (row < 0 || row >= table->sizes[0]) {
            wrong = "row " + std::to_string(row) + " of " +
                    std::to_string(table->sizes[0]);
            return;
          }
          std::vector<int64_t> at = index;
          at.push_back(0);
          for (int64_t j = 0; j < table->sizes[1]; ++j) {
            at.back() = j;
            std::memcpy(placeOf(*out, at), placeOf(*table, {row, j}),
                        static_cast<size_t>(sizeOf(out->type)));
          }
        });
        return wrong;
      },
      size, executor);
}
RUN(aclnnEmbedding)

FAKE int aclnnInplaceIndexAddGetWorkspaceSize(TensorHandle *table, int64_t dim,
                                              const TensorHandle *rows,
                                              const TensorHandle *updates,
                                              const ScalarHandle *alpha,
                                              uint64_t *size,
                                              ExecutorHandle **executor) {
  std::vector<int64_t> wanted = table->sizes;
  if (dim == 0 && !wanted.empty() && rows->sizes.size() == 1)
    wanted[0] = rows->sizes[0];
  if (dim != 0 || wanted.empty() || rows->sizes.size() != 1 ||
      updates->sizes != wanted || updates->type != table->type ||
      alpha->value != 1 ||
      (rows->type != ascend::Int64 && rows->type != ascend::Int32))
    return refuse("aclnnInplaceIndexAdd: shapes or element types that do not "
                  "fit");
  return plan(
      "aclnnInplaceIndexAdd", 512, {rows, updates}, {table},
      [=] {
        std::string wrong;
        forEach(updates->sizes, [&](std::vector<int64_t> index) {
          const char *update = placeOf(*updates, index);
          int64_t row = loadWhole(placeOf(*rows, {index[0]}), rows->type);
          if (row < 0 || row >= table->sizes[0]) {
            wrong = "row " + std::to_string(row) + " of " +
                    std::to_string(table->sizes[0]);
            return;
          }
          index[0] = row;
          add(placeOf(*table, index), update, table->type);
        });
        return wrong;
      },
      size, executor);
}
RUN(aclnnInplaceIndexAdd)

FAKE int aclnnInplaceFillScalarGetWorkspaceSize(TensorHandle *to,
                                                const ScalarHandle *number,
                                                uint64_t *size,
                                                ExecutorHandle **executor) {
  if (isFloat(to->type) != isFloat(number->type))
    return refuse("aclnnInplaceFillScalar: a number of another kind");
  ScalarHandle kept = *number; // it may end before the call
  return plan(
      "aclnnInplaceFillScalar", 0, {}, {to},
      [=] {
        forEach(to->sizes, [&](const std::vector<int64_t> &index) {
          if (isFloat(to->type))
            store(placeOf(*to, index), to->type,
                  static_cast<float>(kept.value));
          else
            std::memcpy(placeOf(*to, index), &kept.whole,
                        static_cast<size_t>(sizeOf(to->type)));
        });
        return std::string();
      },
      size, executor);
}
RUN(aclnnInplaceFillScalar)
