// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- MatmulCalls.cpp - Products through cuBLASLt -----------------------===//
//
// cuBLASLt's matrices are column-major. A row-major [m,n] is a column-major
// [n,m], so c = op(a) op(b) is computed as its transpose: the library's A is
// our b, its B our a; its m is our n. A bias of n elements then is one of rows.
//
// The library knows one batch dimension. Ours are folded, from the inside, as
// far as all operands' strides allow; what is left is a loop of calls.
//
// What the library answers about a kind of product is kept: descriptors,
// layouts and the algorithm are made once for each.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/CUDA/Matmul.h"
#include "lib/Runtime/ElementTypes.h"

#include <algorithm>
#include <climits>
#include <cstring>

namespace hyperparallel::runtime::cuda {

static int typeOf(int64_t dtype) {
  switch (dtype) {
  case HP_F16:
    return lt::R16F;
  case HP_BF16:
    return lt::R16BF;
  case HP_F64:
    return lt::R64F;
  default:
    return lt::R32F;
  }
}

hp_status canMultiply(int64_t dtype, int64_t activation) {
  if (dtype != HP_F16 && dtype != HP_BF16 && dtype != HP_F32 && dtype != HP_F64)
    return fail(HP_UNIMPLEMENTED,
                "matmul: expected f16, bf16, f32 or f64 operands but got %s",
                dtypeName(dtype));
  if (activation == HP_ACT_GELU || activation == HP_ACT_SILU ||
      (dtype == HP_F64 && activation != HP_ACT_NONE))
    return fail(HP_UNIMPLEMENTED,
                "matmul: cuBLASLt has no epilogue for this activation of %s; "
                "the compiler writes a kernel for it",
                dtypeName(dtype));
  return HP_OK;
}

hp_status canAttend(int64_t, int64_t) {
  return fail(HP_UNIMPLEMENTED,
              "the cuda back end has no call for attention: programs have two "
              "products and a softmax");
}

static hp_status checkProduct(const hp_matmul_desc &desc) {
  if (desc.struct_size < sizeof(hp_matmul_desc))
    return fail(HP_INVALID_ARGUMENT,
                "matmul: expected a description of %zu bytes but got %llu",
                sizeof(hp_matmul_desc),
                static_cast<unsigned long long>(desc.struct_size));
  bool half = desc.dtype == HP_F16 || desc.dtype == HP_BF16;
  if (hp_status status = canMultiply(desc.dtype, desc.activation);
      status != HP_OK)
    return status;
  if (desc.out_dtype != desc.dtype && !(half && desc.out_dtype == HP_F32))
    return fail(HP_UNIMPLEMENTED,
                "matmul: expected a result of the operands' type, or f32 for "
                "f16 and bf16");
  if (desc.dtype == HP_F64 && desc.bias)
    return fail(HP_UNIMPLEMENTED, "matmul: cuBLASLt adds no bias in f64");
  bool bad = desc.batch_rank < 0 || desc.batch_rank > HP_MATMUL_MAX_BATCH ||
             desc.activation < HP_ACT_NONE || desc.activation > HP_ACT_SILU;
  for (int64_t extent :
       {desc.m, desc.n, desc.k, desc.ld_a, desc.ld_b, desc.ld_c})
    bad |= extent < 0 || extent > INT_MAX;
  for (int64_t i = 0; !bad && i < desc.batch_rank; ++i)
    bad |= desc.batch[i] < 0;
  bad |= (desc.trans_a ? desc.k : desc.m) > 1 &&
         desc.ld_a < (desc.trans_a ? desc.m : desc.k);
  bad |= (desc.trans_b ? desc.n : desc.k) > 1 &&
         desc.ld_b < (desc.trans_b ? desc.k : desc.n);
  bad |= desc.m > 1 && desc.ld_c < desc.n;
  return bad ? fail(HP_INVALID_ARGUMENT,
                    "matmul: expected extents, strides and an activation in "
                    "range")
             : HP_OK;
}

namespace {
/// Everything the library wants to know about one kind of product.
class PlanMaker {
public:
  PlanMaker(Device &device, const hp_matmul_desc &desc, ProductPlan &plan)
      : products(device.context->products), device(device), desc(desc),
        plan(plan) {}

  hp_status make(int64_t batch, int64_t folded, size_t workspace,
                 const uint32_t alignment[3]);

private:
  hp_status step(int result) {
    return products.check(result, "describing a product");
  }
  hp_status describe();
  hp_status layout(lt::Layout *out, int type, int64_t rows, int64_t columns,
                   int64_t ld, int64_t batch, int64_t stride);

  const CublasLt &products;
  Device &device;
  const hp_matmul_desc &desc;
  ProductPlan &plan;
};
} // namespace

hp_status PlanMaker::layout(lt::Layout *out, int type, int64_t rows,
                            int64_t columns, int64_t ld, int64_t batch,
                            int64_t stride) {
  hp_status status = step(products.layoutCreate(
      out, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
      std::max(ld, rows)));
  if (status != HP_OK || batch == 1)
    return status;
  int32_t count = static_cast<int32_t>(batch);
  status =
      step(products.layoutSet(*out, lt::BatchCount, &count, sizeof(count)));
  return status == HP_OK ? step(products.layoutSet(*out, lt::BatchStride,
                                                   &stride, sizeof(stride)))
                         : status;
}

hp_status PlanMaker::describe() {
  bool isDouble = desc.dtype == HP_F64;
  int compute = isDouble                                ? lt::Compute64F
                : desc.dtype == HP_F32 && products.tf32 ? lt::Compute32FFastTF32
                                                        : lt::Compute32F;
  hp_status status = step(
      products.descCreate(&plan.desc, compute, isDouble ? lt::R64F : lt::R32F));
  int32_t transA = desc.trans_b ? 1 : 0, transB = desc.trans_a ? 1 : 0;
  if (status == HP_OK)
    status =
        step(products.descSet(plan.desc, lt::TransA, &transA, sizeof(transA)));
  if (status == HP_OK)
    status =
        step(products.descSet(plan.desc, lt::TransB, &transB, sizeof(transB)));
  uint32_t epilogue = (desc.bias ? lt::EpilogueBias : 0) |
                      (desc.activation == HP_ACT_RELU        ? lt::EpilogueRelu
                       : desc.activation == HP_ACT_GELU_TANH ? lt::EpilogueGelu
                                                             : 0);
  if (epilogue == 0)
    epilogue = lt::EpilogueDefault;
  if (status == HP_OK)
    status = step(
        products.descSet(plan.desc, lt::Epilogue, &epilogue, sizeof(epilogue)));
  return status;
}

hp_status PlanMaker::make(int64_t batch, int64_t folded, size_t workspace,
                          const uint32_t alignment[3]) {
  int64_t inner = desc.batch_rank - 1;
  auto stride = [&](const int64_t *strides) {
    return folded > 0 ? strides[inner] : 0;
  };
  int in = typeOf(desc.dtype), out = typeOf(desc.out_dtype);
  hp_status status = describe();
  if (status == HP_OK)
    status = layout(&plan.a, in, desc.trans_b ? desc.k : desc.n,
                    desc.trans_b ? desc.n : desc.k, desc.ld_b, batch,
                    stride(desc.stride_b));
  if (status == HP_OK)
    status = layout(&plan.b, in, desc.trans_a ? desc.m : desc.k,
                    desc.trans_a ? desc.k : desc.m, desc.ld_a, batch,
                    stride(desc.stride_a));
  if (status == HP_OK)
    status = layout(&plan.c, out, desc.n, desc.m, desc.ld_c, batch,
                    stride(desc.stride_c));
  lt::Preference preference = nullptr;
  if (status == HP_OK)
    status = step(products.preferenceCreate(&preference));
  if (status == HP_OK)
    status = step(products.preferenceSet(preference, lt::MaxWorkspaceBytes,
                                         &workspace, sizeof(workspace)));
  const int attributes[4] = {lt::MinAlignmentA, lt::MinAlignmentB,
                             lt::MinAlignmentC, lt::MinAlignmentD};
  const uint32_t ofOperand[4] = {alignment[1], alignment[0], alignment[2],
                                 alignment[2]};
  for (int i = 0; status == HP_OK && i < 4; ++i)
    status = step(products.preferenceSet(preference, attributes[i],
                                         &ofOperand[i], sizeof(uint32_t)));
  int found = 0;
  if (status == HP_OK)
    status = step(products.heuristic(device.products, plan.desc, plan.a, plan.b,
                                     plan.c, plan.c, preference, 1,
                                     &plan.algorithm, &found));
  if (preference)
    products.preferenceDestroy(preference);
  if (status == HP_OK && found == 0)
    status =
        fail(HP_UNIMPLEMENTED,
             "cuBLASLt has no algorithm for a product of %lldx%lldx%lld",
             static_cast<long long>(desc.m), static_cast<long long>(desc.n),
             static_cast<long long>(desc.k));
  return status;
}

void forgetProducts(Device &device) {
  const CublasLt &products = device.context->products;
  for (auto &entry : device.plans) {
    for (lt::Layout layout : {entry.second.a, entry.second.b, entry.second.c})
      if (layout)
        products.layoutDestroy(layout);
    if (entry.second.desc)
      products.descDestroy(entry.second.desc);
  }
  device.plans.clear();
  if (device.products)
    products.destroy(device.products);
  device.products = nullptr;
}

/// The alignment that may be relied on, up to 256 bytes.
static uint32_t alignmentOf(const void *pointer, int64_t strideBytes) {
  uint64_t bits = reinterpret_cast<uint64_t>(pointer) |
                  static_cast<uint64_t>(strideBytes) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

static hp_status findPlan(Device &device, const hp_matmul_desc &desc,
                          int64_t batch, int64_t folded, size_t workspaceBytes,
                          ProductPlan **out) {
  const CublasLt &products = device.context->products;
  if (!device.products)
    if (hp_status status = products.check(products.create(&device.products),
                                          "starting cuBLASLt");
        status != HP_OK)
      return status;
  auto stride = [&](const int64_t *strides, int64_t dtype) {
    int64_t all = 0;
    for (int64_t i = 0; i < desc.batch_rank; ++i)
      all |= desc.batch[i] > 1 ? strides[i] * dtypeBytes(dtype) : 0;
    return all;
  };
  const uint32_t alignment[3] = {
      alignmentOf(desc.a, stride(desc.stride_a, desc.dtype)),
      alignmentOf(desc.b, stride(desc.stride_b, desc.dtype)),
      alignmentOf(desc.c, stride(desc.stride_c, desc.out_dtype))};
  hp_matmul_desc kind = desc;
  kind.a = kind.b = nullptr;
  kind.c = nullptr;
  kind.bias = reinterpret_cast<const void *>(uintptr_t(desc.bias != nullptr));
  kind.alpha = kind.beta = 0;
  std::string key(reinterpret_cast<const char *>(&kind), sizeof(kind));
  key.append(reinterpret_cast<const char *>(alignment), sizeof(alignment));
  key.append(reinterpret_cast<const char *>(&workspaceBytes),
             sizeof(workspaceBytes));
  auto [entry, isNew] = device.plans.try_emplace(std::move(key));
  *out = &entry->second;
  if (!isNew)
    return HP_OK;
  hp_status status = PlanMaker(device, desc, entry->second)
                         .make(batch, folded, workspaceBytes, alignment);
  if (status != HP_OK)
    device.plans.erase(entry);
  return status;
}

/// A product over nothing: c = activation(beta * c + bias) is only asked for
/// with beta 0 or 1 and no epilogue.
static hp_status clearResult(Device &device, const hp_matmul_desc &desc,
                             char *c, StreamHandle stream) {
  if (desc.bias || desc.activation != HP_ACT_NONE ||
      (desc.beta != 0 && desc.beta != 1))
    return fail(HP_UNIMPLEMENTED,
                "matmul: an epilogue on a product over nothing");
  const Driver &driver = device.context->driver;
  int64_t size = dtypeBytes(desc.out_dtype);
  for (int64_t row = 0; desc.beta == 0 && row < desc.m; ++row)
    if (hp_status status = driver.check(
            driver.setBytesAsync(reinterpret_cast<DevicePointer>(c) +
                                     row * desc.ld_c * size,
                                 0, static_cast<size_t>(desc.n * size), stream),
            "clearing a product");
        status != HP_OK)
      return status;
  return HP_OK;
}

hp_status multiply(Device &device, const hp_matmul_desc &desc,
                   StreamHandle stream) {
  hp_status status = checkProduct(desc);
  if (status == HP_OK)
    status = device.context->products.load();
  if (status != HP_OK || desc.m == 0 || desc.n == 0)
    return status;
  std::lock_guard<std::mutex> lock(device.planMutex);
  const CublasLt &products = device.context->products;
  int64_t folded = countFolded(desc), batch = 1, loops = 1;
  for (int64_t i = 0; i < desc.batch_rank; ++i)
    (i < desc.batch_rank - folded ? loops : batch) *= desc.batch[i];
  if (batch * loops == 0)
    return HP_OK;
  // Programs tell of a workspace of the compute stream. Without one the
  // library chooses an algorithm that needs none.
  bool ofProgram = stream == device.streams[HP_STREAM_COMPUTE];
  void *workspace = ofProgram ? device.workspace : nullptr;
  size_t workspaceBytes = ofProgram ? device.workspaceBytes : 0;
  ProductPlan *plan = nullptr;
  if (desc.k > 0)
    status = findPlan(device, desc, batch, folded, workspaceBytes, &plan);
  if (status == HP_OK && plan && desc.bias)
    status = products.check(products.descSet(plan->desc, lt::BiasPointer,
                                             &desc.bias, sizeof(desc.bias)),
                            "setting the bias of a product");
  float alpha = static_cast<float>(desc.alpha);
  float beta = static_cast<float>(desc.beta);
  bool isDouble = desc.dtype == HP_F64;
  const void *scaleA = isDouble ? static_cast<const void *>(&desc.alpha)
                                : static_cast<const void *>(&alpha);
  const void *scaleC = isDouble ? static_cast<const void *>(&desc.beta)
                                : static_cast<const void *>(&beta);
  for (int64_t turn = 0; status == HP_OK && turn < loops; ++turn) {
    int64_t offsetA = 0, offsetB = 0, offsetC = 0, rest = turn;
    for (int64_t i = desc.batch_rank - folded; i-- > 0;) {
      int64_t index = rest % desc.batch[i];
      rest /= desc.batch[i];
      offsetA += index * desc.stride_a[i];
      offsetB += index * desc.stride_b[i];
      offsetC += index * desc.stride_c[i];
    }
    const char *a =
        static_cast<const char *>(desc.a) + offsetA * dtypeBytes(desc.dtype);
    const char *b =
        static_cast<const char *>(desc.b) + offsetB * dtypeBytes(desc.dtype);
    char *c =
        static_cast<char *>(desc.c) + offsetC * dtypeBytes(desc.out_dtype);
    if (!plan) {
      for (int64_t i = 0; status == HP_OK && i < batch; ++i)
        status = clearResult(
            device, desc,
            c + (folded > 0 ? i * desc.stride_c[desc.batch_rank - 1] : 0) *
                    dtypeBytes(desc.out_dtype),
            stream);
      continue;
    }
    status =
        products.check(products.matmul(device.products, plan->desc, scaleA, b,
                                       plan->a, a, plan->b, scaleC, c, plan->c,
                                       c, plan->c, &plan->algorithm.algorithm,
                                       workspace, workspaceBytes, stream),
                       "multiplying");
  }
  return status;
}

} // namespace hyperparallel::runtime::cuda
