// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===-- CudaBackend.cpp - Contexts of "cuda", memory, and the table -------===//

#include "lib/Runtime/CUDA/Collectives.h"
#include "lib/Runtime/CUDA/Matmul.h"

#include <algorithm>

namespace hyperparallel::runtime::cuda {

hp_status enter(Device &device) {
  const Driver &driver = device.context->driver;
  return driver.check(driver.contextSet(device.handle), "choosing the device");
}

//===----------------------------------------------------------------------===//
// Books of memory
//===----------------------------------------------------------------------===//

static hp_status checkTier(int tier) {
  if (tier >= 0 && tier < HP_TIER_COUNT)
    return HP_OK;
  return fail(HP_INVALID_ARGUMENT, "expected a tier from 0 to %d but got %d",
              HP_TIER_COUNT - 1, tier);
}

hp_status Memory::setLimit(int tier, int64_t limit) {
  if (hp_status status = checkTier(tier); status != HP_OK)
    return status;
  std::lock_guard<std::mutex> lock(mutex);
  tiers[tier].limit = limit < 0 ? -1 : limit;
  return HP_OK;
}

hp_status Memory::info(int tier, int64_t *limit, int64_t *used, int64_t *peak) {
  if (hp_status status = checkTier(tier); status != HP_OK)
    return status;
  std::lock_guard<std::mutex> lock(mutex);
  if (limit)
    *limit = tiers[tier].limit;
  if (used)
    *used = tiers[tier].used;
  if (peak)
    *peak = tiers[tier].peak;
  return HP_OK;
}

hp_status Memory::resetPeak(int tier) {
  if (hp_status status = checkTier(tier); status != HP_OK)
    return status;
  std::lock_guard<std::mutex> lock(mutex);
  tiers[tier].peak = tiers[tier].used;
  return HP_OK;
}

hp_status Memory::take(int tier, int64_t bytes) {
  static const char *const names[] = {"device", "pinned", "host", "file"};
  if (hp_status status = checkTier(tier); status != HP_OK)
    return status;
  std::lock_guard<std::mutex> lock(mutex);
  Tier &books = tiers[tier];
  if (books.limit >= 0 && books.used + bytes > books.limit)
    return fail(HP_OUT_OF_MEMORY,
                "tier '%s': %lld bytes are wanted, %lld of at most %lld are in "
                "use",
                names[tier], static_cast<long long>(bytes),
                static_cast<long long>(books.used),
                static_cast<long long>(books.limit));
  books.used += bytes;
  books.peak = std::max(books.peak, books.used);
  return HP_OK;
}

void Memory::giveBack(int tier, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  tiers[tier].used -= bytes;
}

void Memory::add(void *pointer, Block block) {
  std::lock_guard<std::mutex> lock(mutex);
  blocks[pointer] = block;
}

bool Memory::remove(void *pointer, Block *out) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = blocks.find(pointer);
  if (found == blocks.end())
    return false;
  *out = found->second;
  tiers[out->tier].used -= out->bytes;
  blocks.erase(found);
  return true;
}

std::vector<std::pair<void *, Memory::Block>> Memory::blocksOfRun() {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::pair<void *, Block>> found;
  for (const auto &entry : blocks)
    if (entry.second.ofRun)
      found.push_back(entry);
  return found;
}

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

/// Page-locking is slow, so freed blocks are kept, by size.
static void *takePinned(Device &device, int64_t bytes) {
  std::lock_guard<std::mutex> lock(device.cacheMutex);
  auto found = device.pinned.find(bytes);
  if (found == device.pinned.end())
    return nullptr;
  void *pointer = found->second;
  device.pinned.erase(found);
  return pointer;
}

hp_status allocateMemory(Device &device, int tier, int64_t bytes, bool ofRun,
                         StreamHandle stream, void **out) {
  if (bytes < 0)
    return fail(HP_INVALID_ARGUMENT, "expected a size but got %lld bytes",
                static_cast<long long>(bytes));
  if (tier == HP_TIER_FILE)
    return fail(HP_UNIMPLEMENTED, "back end '%s' has no file tier",
                vendor().name);
  int64_t rounded = Memory::rounded(bytes);
  if (hp_status status = device.memory.take(tier, rounded); status != HP_OK)
    return status;
  const Driver &driver = device.context->driver;
  size_t size = static_cast<size_t>(std::max<int64_t>(rounded, 64));
  Result result = Success;
  bool ordered = false;
  if (tier == HP_TIER_DEVICE) {
    DevicePointer pointer = 0;
    ordered = stream != nullptr;
    result = ordered ? driver.allocAsync(&pointer, size, stream)
                     : driver.alloc(&pointer, size);
    *out = reinterpret_cast<void *>(pointer);
  } else if (!(*out = takePinned(device, static_cast<int64_t>(size)))) {
    result = driver.hostAlloc(out, size, HostAllocPortable);
  }
  if (result != Success) {
    device.memory.giveBack(tier, rounded);
    return driver.check(result, "allocating memory");
  }
  device.memory.add(*out, {rounded, tier, ofRun, ordered});
  return HP_OK;
}

hp_status freeMemory(Device &device, void *pointer, StreamHandle stream) {
  if (!pointer)
    return HP_OK;
  Memory::Block block;
  if (!device.memory.remove(pointer, &block))
    return fail(HP_INVALID_ARGUMENT,
                "expected memory of device %d that was not freed but got %p",
                device.ordinal, pointer);
  const Driver &driver = device.context->driver;
  if (block.tier == HP_TIER_DEVICE) {
    auto address = reinterpret_cast<DevicePointer>(pointer);
    return driver.check(stream && block.ordered
                            ? driver.freeAsync(address, stream)
                            : driver.free(address),
                        "freeing memory");
  }
  std::lock_guard<std::mutex> lock(device.cacheMutex);
  device.pinned.emplace(std::max<int64_t>(block.bytes, 64), pointer);
  return HP_OK;
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

namespace {

Context *contextOf(hp_context *context) {
  return reinterpret_cast<Context *>(context);
}
const Context *contextOf(const hp_context *context) {
  return reinterpret_cast<const Context *>(context);
}
Device &deviceOf(hp_device *device) {
  return *reinterpret_cast<Device *>(device);
}

hp_status openDevice(Context &context, int ordinal) {
  Driver &driver = context.driver;
  auto device = std::make_unique<Device>();
  device->backend = context.backend;
  device->context = &context;
  device->ordinal = ordinal;
  const char *what = "opening the device";
  char name[128] = "";
  int major = 0, minor = 0;
  Result result = driver.deviceGet(&device->number, ordinal);
  if (result == Success)
    result = driver.deviceName(name, sizeof(name), device->number);
  if (result == Success)
    result = driver.deviceAttribute(&major, CapabilityMajor, device->number);
  if (result == Success)
    result = driver.deviceAttribute(&minor, CapabilityMinor, device->number);
  if (result == Success)
    result = driver.contextRetain(&device->handle, device->number);
  if (result == Success)
    result = driver.contextSet(device->handle);
  PoolHandle pool = nullptr;
  uint64_t keepAll = ~uint64_t(0);
  if (result == Success)
    result = driver.defaultPool(&pool, device->number);
  if (result == Success)
    result = driver.poolSet(pool, PoolReleaseThreshold, &keepAll);
  for (StreamHandle &stream : device->streams)
    if (result == Success)
      result = driver.streamCreate(&stream, StreamNonBlocking);
  if (result == Success)
    result = driver.hostAlloc(reinterpret_cast<void **>(&device->assertionWord),
                              64, HostAllocPortable);
  if (result != Success)
    return driver.check(result, what);
  *device->assertionWord = 0;
  device->name = name;
  device->capability = major * 10 + minor;
  for (int32_t stream = 0; stream < NumOwnStreams; ++stream)
    device->tracer.addLane(context.trace, ordinal, stream);
  context.devices.push_back(std::move(device));
  return HP_OK;
}

void destroyContext(hp_context *handle) {
  Context *context = contextOf(handle);
  Driver &driver = context->driver;
  context->stopping = true;
  for (std::unique_ptr<Device> &device : context->devices)
    if (device->thread.joinable())
      device->thread.join();
  for (Program *program : context->programs) {
    unloadModules(*program);
    program->context = nullptr;
  }
  for (std::unique_ptr<Device> &device : context->devices) {
    driver.contextSet(device->handle);
    driver.contextSynchronize();
    forgetSteps(*device, nullptr);
    for (EventHandle event : device->freeEvents)
      driver.eventDestroy(event);
    for (StreamHandle stream : device->streams)
      driver.streamDestroy(stream);
    for (const SideStream &stream : device->beside)
      driver.streamDestroy(stream.handle);
    for (const auto &entry : device->pinned)
      driver.hostFree(entry.second);
    forgetGroups(*device);
    forgetProducts(*device);
    driver.hostFree(device->assertionWord);
    driver.contextRelease(device->number);
  }
  delete context;
}

hp_status createContext(const hp_context_desc *desc, hp_context **out) {
  auto context = std::make_unique<Context>();
  context->backend = hp_backend_get(HP_ABI_VERSION);
  for (int64_t i = 0; i < desc->num_options; ++i)
    if (hp_status status = applyOption(*context, desc->options[2 * i],
                                       desc->options[2 * i + 1]);
        status != HP_OK)
      return status;
  if (hp_status status = context->driver.load(context->driverPath.c_str());
      status != HP_OK)
    return status;
  int present = 0;
  hp_status status = context->driver.check(
      context->driver.deviceCount(&present), "counting the devices");
  if (status != HP_OK)
    return status;
  int64_t wanted = desc->num_devices == 0 ? present : desc->num_devices;
  if (wanted < 1 || wanted > present)
    return fail(HP_INVALID_ARGUMENT, "expected 1 to %d %s but got %lld",
                present, vendor().devices, static_cast<long long>(wanted));
  for (int64_t ordinal = 0; status == HP_OK && ordinal < wanted; ++ordinal)
    status = openDevice(*context, static_cast<int>(ordinal));
  hp_context *handle = reinterpret_cast<hp_context *>(context.release());
  if (status != HP_OK) {
    std::string message = hp_last_error();
    destroyContext(handle);
    return hp_backend_error(status, message.c_str());
  }
  *out = handle;
  return HP_OK;
}

int64_t deviceCount(const hp_context *context) {
  return static_cast<int64_t>(contextOf(context)->devices.size());
}

hp_status getDevice(hp_context *context, int64_t ordinal, hp_device **out) {
  if (!out || ordinal < 0 || ordinal >= deviceCount(context))
    return fail(HP_INVALID_ARGUMENT,
                "hp_device_get: expected a device below %lld but got %lld",
                static_cast<long long>(deviceCount(context)),
                static_cast<long long>(ordinal));
  *out =
      reinterpret_cast<hp_device *>(contextOf(context)->devices[ordinal].get());
  return HP_OK;
}

hp_status setTierLimit(hp_device *device, hp_tier tier, int64_t limit) {
  return deviceOf(device).memory.setLimit(tier, limit);
}
hp_status tierInfo(hp_device *device, hp_tier tier, int64_t *limit,
                   int64_t *used, int64_t *peak) {
  return deviceOf(device).memory.info(tier, limit, used, peak);
}
hp_status resetTierPeak(hp_device *device, hp_tier tier) {
  return deviceOf(device).memory.resetPeak(tier);
}

hp_status allocate(hp_device *device, hp_tier tier, int64_t bytes,
                   hp_stream *stream, void **out) {
  if (!out)
    return fail(HP_INVALID_ARGUMENT,
                "hp_alloc: expected a place for the result");
  Device &on = deviceOf(device);
  hp_status status = enter(on);
  return status != HP_OK
             ? status
             : allocateMemory(on, tier, bytes, /*ofRun=*/false,
                              stream
                                  ? reinterpret_cast<Stream *>(stream)->handle
                                  : nullptr,
                              out);
}

hp_status release(hp_device *device, void *pointer, hp_stream *stream) {
  Device &on = deviceOf(device);
  hp_status status = enter(on);
  return status != HP_OK
             ? status
             : freeMemory(on, pointer,
                          stream ? reinterpret_cast<Stream *>(stream)->handle
                                 : nullptr);
}

hp_status deviceCan(hp_device *, hp_capability capability, int64_t first,
                    int64_t second) {
  int type = 0, how = 0;
  switch (capability) {
  case HP_CAN_MULTIPLY:
    return canMultiply(first, second);
  case HP_CAN_REDUCE:
    return nccl::findReduction(first, second, &type, &how);
  case HP_CAN_STORE:
    return first == HP_TIER_FILE
               ? fail(HP_UNIMPLEMENTED, "back end '%s' has no file tier",
                      vendor().name)
               : checkTier(static_cast<int>(first));
  case HP_CAN_LAUNCH:
    return HP_OK;
  case HP_CAN_ATTEND:
    return canAttend(first, second);
  }
  return fail(HP_INVALID_ARGUMENT, "hp_device_can: expected a capability");
}

//===----------------------------------------------------------------------===//
// Processes: all GPUs are this one's
//===----------------------------------------------------------------------===//

hp_status processInfo(const hp_context *, int64_t *process,
                      int64_t *numProcesses) {
  if (process)
    *process = 0;
  if (numProcesses)
    *numProcesses = 1;
  return HP_OK;
}

hp_status processOf(const hp_context *context, int64_t ordinal,
                    int64_t *process) {
  if (!process || ordinal < 0 || ordinal >= deviceCount(context))
    return fail(HP_INVALID_ARGUMENT,
                "hp_process_of: expected a device below %lld but got %lld",
                static_cast<long long>(deviceCount(context)),
                static_cast<long long>(ordinal));
  *process = 0;
  return HP_OK;
}

hp_status meetProcesses(hp_context *) { return HP_OK; }

hp_status traceBegin(hp_context *context, const char *path) {
  return contextOf(context)->trace.begin(path);
}
hp_status traceEnd(hp_context *context) {
  return contextOf(context)->trace.end();
}

hp_backend_v1 makeTable() {
  hp_backend_v1 table = {};
  table.struct_size = sizeof(table);
  table.name = vendor().name;
  table.context_create = createContext;
  table.context_destroy = destroyContext;
  table.device_count = deviceCount;
  table.device_get = getDevice;
  table.tier_set_limit = setTierLimit;
  table.tier_info = tierInfo;
  table.tier_reset_peak = resetTierPeak;
  table.alloc = allocate;
  table.free = release;
  table.process_info = processInfo;
  table.process_of = processOf;
  table.process_meet = meetProcesses;
  table.process_finish = meetProcesses;
  table.device_can = deviceCan;
  table.trace_begin = traceBegin;
  table.trace_end = traceEnd;
  addCommEntries(table);
  addStreamEntries(table);
  addProgramEntries(table);
  addRunEntries(table);
  return table;
}

} // namespace

} // namespace hyperparallel::runtime::cuda

extern "C" const hp_backend_v1 *hp_backend_get(uint32_t abi_version) {
  static const hp_backend_v1 table = hyperparallel::runtime::cuda::makeTable();
  return abi_version == HP_ABI_VERSION ? &table : nullptr;
}
