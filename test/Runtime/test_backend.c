/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A back end of an older version, as far as the loader can tell: its table
 * ends before the programs, and most of what comes before is missing.
 */
#include "lib/Runtime/hp_backend.h"

#include <stddef.h>
#include <stdlib.h>

struct hp_context {
  const hp_backend_v1 *backend;
  int64_t devices;
};

static hp_status create(const hp_context_desc *desc, hp_context **out);
static void destroy(hp_context *context) { free(context); }
static int64_t count(const hp_context *context) { return context->devices; }
static hp_status get(hp_context *context, int64_t ordinal, hp_device **out) {
  (void)context;
  (void)ordinal;
  (void)out;
  return hp_backend_error(HP_NOT_FOUND, "the test back end has no device");
}

static const hp_backend_v1 table = {
    .struct_size = offsetof(hp_backend_v1, run_start),
    .name = "test",
    .context_create = create,
    .context_destroy = destroy,
    .device_count = count,
    .device_get = get,
};

static hp_status create(const hp_context_desc *desc, hp_context **out) {
  *out = malloc(sizeof(hp_context));
  (*out)->backend = &table;
  (*out)->devices = desc->num_devices;
  return HP_OK;
}

HP_API const hp_backend_v1 *hp_backend_get(uint32_t abi_version);
const hp_backend_v1 *hp_backend_get(uint32_t abi_version) {
  return abi_version == HP_ABI_VERSION ? &table : NULL;
}
