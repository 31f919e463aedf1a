// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Ascend/Opapi.h"

#include <algorithm>
#include <dlfcn.h>

namespace hyperparallel::runtime::ascend {

Opapi &opapi() {
  static Opapi library;
  return library;
}

hp_status Opapi::load() {
  std::lock_guard<std::mutex> lock(mutex);
  if (loaded)
    return HP_OK;
  void *libraries[4] = {};
  if (path.empty())
    libraries[3] = dlopen("libnnopbase.so", RTLD_NOW | RTLD_GLOBAL);
  libraries[0] = cuda::openLibrary(path.c_str(), "HP_LIBOPAPI", "libopapi.so");
  std::string reason = libraries[0] ? "" : dlerror();
  libraries[1] = dlopen("libopapi_math.so", RTLD_NOW | RTLD_GLOBAL);
  libraries[2] = dlopen("libopapi_nn.so", RTLD_NOW | RTLD_GLOBAL);
  auto find = [&](const char *name) -> void * {
    for (void *library : libraries)
      if (void *symbol = library ? dlsym(library, name) : nullptr)
        return symbol;
    return nullptr;
  };
  if (!find("aclCreateTensor"))
    return fail(HP_NOT_FOUND,
                "operators on 'ascend' need CANN's libopapi.so (%s); install "
                "the CANN toolkit with the operators of your chip and source "
                "its set_env.sh, or name the library in HP_LIBOPAPI",
                reason.c_str());
#define HP_OPAPI_RESOLVE(NAME, MEMBER)                                         \
  if (!((MEMBER) = reinterpret_cast<decltype(MEMBER)>(find(NAME))))            \
    return fail(HP_NOT_FOUND, "CANN's operators have no " NAME                 \
                              "; install a newer CANN toolkit");
#define HP_OPAPI_RESOLVE_META(NAME, MEMBER, RESULT, PARAMETERS)                \
  HP_OPAPI_RESOLVE(#NAME, MEMBER)
#define HP_OPAPI_RESOLVE_OPERATOR(NAME, MEMBER, PARAMETERS)                    \
  HP_OPAPI_RESOLVE(#NAME "GetWorkspaceSize", MEMBER##Size)                     \
  HP_OPAPI_RESOLVE(#NAME, MEMBER)
  HP_OPAPI_META(HP_OPAPI_RESOLVE_META)
  HP_OPAPI_OPERATORS(HP_OPAPI_RESOLVE_OPERATOR)
#undef HP_OPAPI_RESOLVE_OPERATOR
#undef HP_OPAPI_RESOLVE_META
#undef HP_OPAPI_RESOLVE
  loaded = true;
  return HP_OK;
}

int dataTypeOf(int64_t dtype) {
  static const int types[] = {Bool,    Int8,     Int16, Int32, Int64,
                              Float16, Bfloat16, Float, Double};
  return dtype >= HP_I1 && dtype <= HP_F64 ? types[dtype] : -1;
}

Operands::~Operands() {
  for (TensorHandle *tensor : tensors)
    opapi().destroyTensor(tensor);
  for (ScalarHandle *scalar : scalars)
    opapi().destroyScalar(scalar);
  for (IntArrayHandle *array : arrays)
    opapi().destroyIntArray(array);
}

TensorHandle *Operands::tensor(const void *data, int64_t dtype,
                               std::vector<int64_t> sizes,
                               std::vector<int64_t> strides) {
  // The storage is what the view reaches, as one row.
  int64_t reach = 1;
  for (size_t i = 0; i < sizes.size(); ++i)
    reach = sizes[i] == 0 ? 0 : reach + (sizes[i] - 1) * strides[i];
  reach = std::max<int64_t>(reach, 1);
  TensorHandle *made = opapi().createTensor(
      sizes.data(), sizes.size(), dataTypeOf(dtype), strides.data(),
      /*offset=*/0, FormatNd, &reach, 1, const_cast<void *>(data));
  if (made)
    tensors.push_back(made);
  failed |= !made;
  return made;
}

ScalarHandle *Operands::keep(ScalarHandle *made) {
  if (made)
    scalars.push_back(made);
  failed |= !made;
  return made;
}

ScalarHandle *Operands::scalar(double value, int64_t dtype) {
  auto narrow = static_cast<float>(value);
  auto whole = static_cast<int64_t>(value);
  return keep(dtype == HP_F64  ? opapi().createScalar(&value, Double)
              : dtype < HP_F16 ? opapi().createScalar(&whole, Int64)
                               : opapi().createScalar(&narrow, Float));
}

ScalarHandle *Operands::scalarOfBits(int64_t bits, int64_t dtype) {
  // The lowest bytes are the first.
  static const int types[] = {Int64,   Int64,    Int64, Int64, Int64,
                              Float16, Bfloat16, Float, Double};
  return keep(dtype >= HP_I1 && dtype <= HP_F64
                  ? opapi().createScalar(&bits, types[dtype])
                  : nullptr);
}

IntArrayHandle *Operands::numbers(const std::vector<int64_t> &values) {
  IntArrayHandle *made = opapi().createIntArray(values.data(), values.size());
  if (made)
    arrays.push_back(made);
  failed |= !made;
  return made;
}

/// Memory for an operator that wants more than its program reserved, or that
/// has no program: counted, under the limit, and in the stream's order.
static hp_status drawWorkspace(cuda::Device &device, cuda::StreamHandle stream,
                               const char *name, uint64_t bytes, void **out) {
  bool ofRun = cuda::threadState().device == &device;
  // The allocator's own alignment is at least that of the books.
  auto size = static_cast<int64_t>(bytes) + HP_WORKSPACE_ALIGNMENT - 64;
  hp_status status =
      ofRun ? takeRunMemory(device, HP_TIER_DEVICE, size, stream, out)
            : allocateMemory(device, HP_TIER_DEVICE, size, /*ofRun=*/false,
                             stream, out);
  if (status == HP_OK)
    device.stats.allocations += ofRun;
  if (status != HP_OUT_OF_MEMORY || !ofRun)
    return status;
  std::string words = hp_last_error();
  return fail(status,
              "operator %s wants a workspace of %lld bytes, but %llu are "
              "reserved for it, and the device has no more (%s); compile with "
              "--workspace %lldB",
              name, static_cast<long long>(bytes),
              static_cast<unsigned long long>(device.workspaceBytes),
              words.c_str(), static_cast<long long>(bytes));
}

hp_status queueOperator(cuda::Device &device, cuda::StreamHandle stream,
                        const char *name, int result, uint64_t workspaceBytes,
                        ExecutorHandle *executor, Opapi::Run run) {
  auto report = [&](int code) {
    const char *words = acl().message();
    return fail(HP_INTERNAL, "operator %s: %s (aclnn error %d)", name,
                words ? words : "unknown error", code);
  };
  if (result != Success)
    return report(result);
  void *workspace = nullptr, *drawn = nullptr;
  hp_status status = HP_OK;
  if (stream == device.streams[HP_STREAM_COMPUTE] &&
      workspaceBytes <= device.workspaceBytes)
    workspace = workspaceBytes > 0 ? device.workspace : nullptr;
  else if (workspaceBytes > 0)
    status = drawWorkspace(device, stream, name, workspaceBytes, &drawn);
  if (status != HP_OK)
    return status;
  if (drawn)
    workspace = cuda::alignWorkspace(drawn);
  result = run(workspace, workspaceBytes, executor,
               reinterpret_cast<Handle>(stream));
  if (result != Success)
    status = report(result);
  if (!drawn)
    return status;
  hp_status freed = cuda::threadState().device == &device
                        ? giveRunMemory(device, drawn, stream)
                        : freeMemory(device, drawn, stream);
  return status == HP_OK ? freed : status;
}

} // namespace hyperparallel::runtime::ascend
