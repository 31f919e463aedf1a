/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===-- hp_backend.h - What a back end of the runtime provides (C11) ------===*
 *
 * A back end is a shared library libhp_NAME.so that exports
 *
 *   const hp_backend_v1 *hp_backend_get(uint32_t abi_version);
 *
 * returning NULL if it cannot serve that version; "cpu" is built in. The
 * public hp_* functions look up the table and call through it:
 *
 *   - every object a back end hands out (context, device, stream, event,
 *     program, kernel, comm) begins with a pointer to its hp_backend_v1;
 *   - an entry that is NULL, or lies beyond struct_size, is unimplemented;
 *   - a back end reports a failure by calling `hp_backend_error` (exported by
 *     the runtime) and returning the status that it returns.
 *
 * Pointers given to a back end are never NULL where the public function needs
 * an object; all other arguments are the back end's to check.
 *===----------------------------------------------------------------------===*/
#ifndef HYPERPARALLEL_LIB_RUNTIME_HP_BACKEND_H
#define HYPERPARALLEL_LIB_RUNTIME_HP_BACKEND_H

#include "lib/Runtime/hp_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the calling thread's hp_last_error() and returns `status`. */
HP_API hp_status hp_backend_error(hp_status status, const char *message);

typedef struct hp_backend_v1 {
  uint64_t struct_size;
  const char *name;

  hp_status (*context_create)(const hp_context_desc *, hp_context **);
  void (*context_destroy)(hp_context *);
  int64_t (*device_count)(const hp_context *);
  hp_status (*device_get)(hp_context *, int64_t, hp_device **);

  hp_status (*tier_set_limit)(hp_device *, hp_tier, int64_t);
  hp_status (*tier_info)(hp_device *, hp_tier, int64_t *, int64_t *, int64_t *);
  hp_status (*tier_reset_peak)(hp_device *, hp_tier);
  hp_status (*alloc)(hp_device *, hp_tier, int64_t, hp_stream *, void **);
  hp_status (*free)(hp_device *, void *, hp_stream *);

  hp_status (*stream_create)(hp_device *, hp_stream_role, hp_stream **);
  hp_status (*stream_sync)(hp_stream *);
  hp_status (*stream_destroy)(hp_stream *);
  hp_status (*event_create)(hp_device *, hp_event **);
  hp_status (*event_record)(hp_event *, hp_stream *);
  hp_status (*stream_wait)(hp_stream *, hp_event *);
  hp_status (*event_query)(hp_event *, int32_t *);
  hp_status (*event_sync)(hp_event *);
  hp_status (*event_elapsed)(hp_event *, hp_event *, double *);
  hp_status (*event_destroy)(hp_event *);
  hp_status (*copy)(void *, const void *, int64_t, hp_stream *);
  hp_status (*copy_2d)(void *, int64_t, const void *, int64_t, int64_t, int64_t,
                       hp_stream *);
  hp_status (*fill)(void *, const void *, int64_t, int64_t, hp_stream *);
  hp_status (*host_task)(hp_stream *, hp_host_task_fn, void *);

  hp_status (*kernel_get)(hp_program *, const char *, hp_kernel **);
  hp_status (*kernel_launch)(hp_kernel *, const int64_t *, const int64_t *,
                             int64_t, void **, int64_t, hp_stream *);
  hp_status (*matmul)(const hp_matmul_desc *, hp_stream *);
  hp_status (*op_call)(const char *, const void *, hp_stream *);

  hp_status (*comm_create)(hp_context *, const char *, const int64_t *, int64_t,
                           hp_device *, hp_comm **);
  hp_status (*comm_destroy)(hp_comm *);
  hp_status (*all_gather)(const void *, void *, int64_t, hp_dtype, hp_comm *,
                          hp_stream *);
  hp_status (*all_reduce)(const void *, void *, int64_t, hp_dtype, hp_reduction,
                          hp_comm *, hp_stream *);
  hp_status (*reduce_scatter)(const void *, void *, int64_t, hp_dtype,
                              hp_reduction, hp_comm *, hp_stream *);
  hp_status (*all_to_all)(const void *, void *, int64_t, hp_dtype, hp_comm *,
                          hp_stream *);
  hp_status (*broadcast)(void *, int64_t, hp_dtype, int64_t, hp_comm *,
                         hp_stream *);
  hp_status (*barrier)(hp_comm *, hp_stream *);
  hp_status (*send)(const void *, int64_t, hp_dtype, int64_t, int64_t,
                    hp_comm *, hp_stream *);
  hp_status (*recv)(void *, int64_t, hp_dtype, int64_t, int64_t, hp_comm *,
                    hp_stream *);

  hp_status (*program_load)(hp_context *, const char *, hp_program **);
  hp_status (*program_has_entry)(hp_program *, const char *);
  hp_status (*program_unload)(hp_program *);
  hp_status (*run_start)(hp_context *, const hp_launch *, int64_t);
  hp_status (*run_wait)(hp_context *, int64_t, int32_t *, hp_run_stats *);
  hp_status (*run_cancel)(hp_context *, const char *);

  hp_status (*trace_begin)(hp_context *, const char *);
  hp_status (*trace_end)(hp_context *);

  hp_status (*process_info)(const hp_context *, int64_t *, int64_t *);
  hp_status (*process_of)(const hp_context *, int64_t, int64_t *);
  hp_status (*process_meet)(hp_context *);
  hp_status (*process_finish)(hp_context *);

  hp_status (*device_can)(hp_device *, hp_capability, int64_t, int64_t);
  hp_status (*group_begin)(hp_context *);
  hp_status (*group_end)(hp_context *);
} hp_backend_v1;

typedef const hp_backend_v1 *(*hp_backend_get_fn)(uint32_t abi_version);
/* What a back end exports; the runtime's own library does not. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const hp_backend_v1 *hp_backend_get(uint32_t abi_version);

/*===----------------------------------------------------------------------===*
 * Programs for devices with kernels
 *===----------------------------------------------------------------------===*/

/* Such a program calls the functions of (b) in hp_runtime.h, and those below,
 * through slots: it exports `const char hp_program_import_names[]`, names that
 * each end with a nul, and one more nul, and `void *hp_program_import_slots[]`,
 * as many pointers. The back end that loads the program sets them, or refuses
 * it. It also exports `const char hp_program_assertions[]`, texts in the same
 * form. Its kernels are in files beside it.
 *
 * Calls queue work on the device's compute stream and return; only hp_rt_read
 * and hp_rt_write wait. Pointers are to the device's memory. */

/* Launches a kernel of the program; its arguments are `count` values of at most
 * 8 bytes, one to a word. */
typedef void (*hp_rt_launch_fn)(const char *kernel, int64_t blocks,
                                int64_t threads, const int64_t *words,
                                int64_t count);
/* Where a thread of a kernel that fails an assertion leaves the number of its
 * text, from 1 on; the run then ends with HP_PROGRAM_ERROR. */
typedef int32_t *(*hp_rt_assertion_word_fn)(void);
/* An operation of the vendor's library on whole buffers: `count` pointers, and
 * in `words` for each of them hp_dtype, rank, sizes and strides (in elements).
 *   copy       (source, target): of one shape; what it moves does not overlap
 *   embedding  (table, rows, target): rows of the table by their numbers, which
 *              are in range
 *   check      (number): of an assertion that failed, or 0, as an i32; the run
 *              then ends with HP_PROGRAM_ERROR */
typedef void (*hp_rt_library_fn)(const char *operation, void *const *buffers,
                                 int64_t count, const int64_t *words,
                                 int64_t num_words);
/* Memory that products and operators on the compute stream may use beside their
 * operands, and nothing else uses then: `bytes` from the first address at or
 * behind `pointer` on that is a multiple of HP_WORKSPACE_ALIGNMENT. It replaces
 * what was told before, and is forgotten when the run ends; 0 bytes: there is
 * none. What a library wants above that is allocated, and counted. */
#define HP_WORKSPACE_ALIGNMENT 512
typedef void (*hp_rt_workspace_fn)(void *pointer, int64_t bytes);
/* From the device's memory to the host's, and back. */
typedef void (*hp_rt_read_fn)(void *host, const void *device, int64_t bytes);
typedef void (*hp_rt_write_fn)(void *device, const void *host, int64_t bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HYPERPARALLEL_LIB_RUNTIME_HP_BACKEND_H */
