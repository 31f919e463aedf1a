/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===-- hp_runtime.h - The HyperParallel runtime ABI (C11) ----------------===*
 *
 * Two groups of callers share this header.
 *
 *   (a) Hosts (Python, C, C++) use `hp_*`: contexts, memory, streams, events,
 *       programs, collectives, traces. Every call returns an `hp_status`, and
 *       `hp_last_error()` tells of the calling thread's latest failure.
 *   (b) Compiled programs use `hp_rt_*` (those for devices with kernels:
 *       hp_backend.h) on the thread's current device. A failure is recorded,
 *       and control jumps (longjmp) out of the program to the executor, which
 *       frees what the device had allocated and ends the run with a status: so
 *       compiled code must not rely on clean-up of its own.
 *
 * Conventions
 *   - Raw pointers, byte counts and integers cross this boundary; never memref
 *     descriptors. A tensor is contiguous and row-major unless strides are
 *     given. Sizes of tensors are in elements, buffers in bytes.
 *   - A compiled entry is `void entry(void** args, void** results)`. args[i]
 *     points to the i-th local tensor: owned by the caller, only read.
 *     results[i] points to a caller-owned buffer that the entry fills.
 *   - Structs that cross the boundary begin with `struct_size`, which the
 *     caller sets to sizeof; later versions only append fields.
 *   - What a back end cannot do returns HP_UNIMPLEMENTED.
 *
 *===----------------------------------------------------------------------===*/
#ifndef HYPERPARALLEL_LIB_RUNTIME_HP_RUNTIME_H
#define HYPERPARALLEL_LIB_RUNTIME_HP_RUNTIME_H

#include <stdint.h>

#if defined(__GNUC__)
#define HP_API __attribute__((visibility("default")))
#define HP_NORETURN __attribute__((noreturn))
#else
#define HP_API
#define HP_NORETURN
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function is removed or changes meaning. */
#define HP_ABI_VERSION 1u

/*===----------------------------------------------------------------------===*
 * Vocabulary
 *===----------------------------------------------------------------------===*/

typedef enum hp_status {
  HP_OK = 0,
  HP_INVALID_ARGUMENT = 1,
  HP_NOT_FOUND = 2,     /* back end, file, symbol, library */
  HP_UNIMPLEMENTED = 3, /* this back end cannot do it */
  HP_OUT_OF_MEMORY = 4, /* a tier's limit, or the system's */
  HP_DEADLOCK = 5,      /* the watchdog found devices that wait forever */
  HP_MISMATCH = 6,      /* members of a group called different collectives */
  HP_PROGRAM_ERROR = 7, /* an assertion of the program failed, or it is stuck */
  HP_CANCELLED = 8,     /* ended because another device failed, or by request */
  HP_INTERNAL = 9,
  HP_LOST = 10 /* a process of the run is gone, or does not answer */
} hp_status;

typedef enum hp_dtype {
  HP_I1 = 0, /* one byte, 0 or 1 */
  HP_I8 = 1,
  HP_I16 = 2,
  HP_I32 = 3,
  HP_I64 = 4,
  HP_F16 = 5,
  HP_BF16 = 6,
  HP_F32 = 7,
  HP_F64 = 8
} hp_dtype;

/* Integers are signed and wrap; float max and min hand NaN on (as
 * arith.maximumf does); f16 and bf16 are summed in f32 and rounded once.
 * AND and OR are bitwise and for integers; AVG (sum divided by the group's
 * size) is for floats; HP_I1 takes AND, OR and PROD (= AND). */
typedef enum hp_reduction {
  HP_SUM = 0,
  HP_MAX = 1,
  HP_MIN = 2,
  HP_PROD = 3,
  HP_AND = 4,
  HP_OR = 5,
  HP_AVG = 6
} hp_reduction;

/* Memory tiers, each accounted and limited per device. */
typedef enum hp_tier {
  HP_TIER_DEVICE = 0,
  HP_TIER_PINNED = 1,
  HP_TIER_HOST = 2,
  HP_TIER_FILE = 3
} hp_tier;
#define HP_TIER_COUNT 4

typedef enum hp_stream_role {
  HP_STREAM_COMPUTE = 0,
  HP_STREAM_H2D = 1,
  HP_STREAM_D2H = 2,
  HP_STREAM_COMM = 3,
  HP_STREAM_SEND = 4,
  HP_STREAM_RECV = 5
} hp_stream_role;
/* Streams of compiled programs are numbered role | n << HP_STREAM_ROLE_BITS. */
#define HP_STREAM_ROLE_BITS 3

/* One (sub-)axis of the device mesh in the space of linear device ids (row
 * major, last axis fastest): a device's coordinate is (id / stride) % size.
 * A list of axes, major to minor, names a communication group: its members
 * are the caller's id with these coordinates varied, and a member's rank is
 * the mixed-radix number of its coordinates. */
typedef struct hp_axis {
  int64_t stride, size;
} hp_axis;

/* Kinds counted by hp_device_stats.collectives. */
typedef enum hp_collective {
  HP_ALL_GATHER = 0,
  HP_ALL_REDUCE = 1,
  HP_REDUCE_SCATTER = 2,
  HP_ALL_TO_ALL = 3,
  HP_PERMUTE = 4,
  HP_HALO_EXCHANGE = 5,
  HP_BROADCAST = 6,
  HP_BARRIER = 7,
  HP_SEND = 8,
  HP_RECV = 9
} hp_collective;
#define HP_COLLECTIVE_COUNT 10

typedef struct hp_context hp_context;
typedef struct hp_device hp_device;
typedef struct hp_stream hp_stream;
typedef struct hp_event hp_event;
typedef struct hp_program hp_program;
typedef struct hp_kernel hp_kernel;
typedef struct hp_comm hp_comm;

/*===----------------------------------------------------------------------===*
 * (a) Public API
 *===----------------------------------------------------------------------===*/

HP_API uint32_t hp_abi_version(void);
/* Message of the calling thread's latest failure; valid until the next one. */
HP_API const char *hp_last_error(void);
HP_API const char *hp_status_name(hp_status status);

/*--- Context and devices ---*/

typedef struct hp_context_desc {
  uint64_t struct_size;
  const char *backend; /* "cpu" is built in; another name loads libhp_NAME.so */
  int64_t num_devices; /* virtual devices of "cpu"; 0 = as many as exist */
  /* Options as key, value, key, value; unknown keys are refused. "cpu" knows
   *   threads      cores to share out over the devices (default: usable cores)
   *   openblas     path of libscipy_openblas.so (needed by hp_rt_matmul only)
   *   watchdog_ms  period of the watchdog (default 100; 0 turns it off)
   *   processes    "mpi": the devices are spread over the processes that
   * mpiexec started, in order and as evenly as can be. Every process makes the
   * same calls: all pass the launches of all devices, of which those of other
   * processes need no program, no entry and no tensors. One such context in a
   * process. mpi          path of libmpi_abi.so.1 (default: by search path)
   *   lost_ms      a process that is not heard of for so long is lost, which
   *                ends the run everywhere (default 4000)
   *   stuck_ms     a device that makes no call of the runtime for so long, and
   *                multiplies no matrices, is taken to be in a loop without
   *                end, which ends the run (default 0: never) */
  const char *const *options;
  int64_t num_options; /* pairs */
} hp_context_desc;

HP_API hp_status hp_context_create(const hp_context_desc *desc,
                                   hp_context **out);
/* Cancels what runs, ends the context's threads and frees what is left. A
 * device that does not come back within five seconds is left to itself, with
 * what it uses. NULL is allowed. */
HP_API void hp_context_destroy(hp_context *context);
HP_API const char *hp_context_backend(const hp_context *context);
HP_API int64_t hp_device_count(const hp_context *context);
/* This process's number and how many there are (0 and 1 without processes),
 * and which one a device belongs to. */
HP_API hp_status hp_process_info(const hp_context *context, int64_t *process,
                                 int64_t *num_processes);
HP_API hp_status hp_process_of(const hp_context *context, int64_t ordinal,
                               int64_t *process);
/* Waits until all processes have called it as often as this one. */
HP_API hp_status hp_process_meet(hp_context *context);
/* Waits until all processes call it, after which no run may follow, and ends
 * what connects them. Without it the others take this process for lost. */
HP_API hp_status hp_process_finish(hp_context *context);
/* Devices belong to their context. */
HP_API hp_status hp_device_get(hp_context *context, int64_t ordinal,
                               hp_device **out);

/*--- What a back end can do ---*/

/* Parts of the ABI that a back end may leave out. */
typedef enum hp_capability {
  HP_CAN_MULTIPLY = 0, /* hp_matmul: hp_dtype of a and b, hp_activation */
  HP_CAN_REDUCE = 1,   /* reductions between devices: hp_dtype, hp_reduction */
  HP_CAN_STORE = 2,    /* hp_alloc: hp_tier, 0 */
  HP_CAN_LAUNCH = 3,   /* kernels of programs: 0, 0 */
  HP_CAN_ATTEND = 4    /* attention as one call: hp_dtype, width of a head */
} hp_capability;

/* HP_OK, or HP_UNIMPLEMENTED with the reason in hp_last_error(); the calls in
 * question then answer the same. */
HP_API hp_status hp_device_can(hp_device *device, hp_capability capability,
                               int64_t first, int64_t second);

/*--- Tiers and memory ---*/

/* limit < 0 means "no limit". Sizes are counted as rounded up to 64 bytes. */
HP_API hp_status hp_tier_set_limit(hp_device *device, hp_tier tier,
                                   int64_t limit);
HP_API hp_status hp_tier_info(hp_device *device, hp_tier tier, int64_t *limit,
                              int64_t *used, int64_t *peak);
HP_API hp_status hp_tier_reset_peak(hp_device *device, hp_tier tier);
/* Stream-ordered where stream is given: the memory may be used by actions
 * queued on `stream` after the call, and is released when `stream` gets there.
 * NULL means at once. Memory is aligned to 64 bytes. */
HP_API hp_status hp_alloc(hp_device *device, hp_tier tier, int64_t bytes,
                          hp_stream *stream, void **out);
HP_API hp_status hp_free(hp_device *device, void *pointer, hp_stream *stream);

/*--- Streams, events, copies, host tasks ---*/

HP_API hp_status hp_stream_create(hp_device *device, hp_stream_role role,
                                  hp_stream **out);
/* Blocks until all that was queued is done; returns the first failure. */
HP_API hp_status hp_stream_sync(hp_stream *stream);
HP_API hp_status hp_stream_destroy(hp_stream *stream);
HP_API hp_status hp_event_create(hp_device *device, hp_event **out);
/* Recording again replaces the former record. */
HP_API hp_status hp_event_record(hp_event *event, hp_stream *stream);
HP_API hp_status hp_stream_wait(hp_stream *stream, hp_event *event);
HP_API hp_status hp_event_query(hp_event *event, int32_t *done);
HP_API hp_status hp_event_sync(hp_event *event);
HP_API hp_status hp_event_elapsed(hp_event *start, hp_event *end,
                                  double *milliseconds);
HP_API hp_status hp_event_destroy(hp_event *event);
HP_API hp_status hp_copy(void *dst, const void *src, int64_t bytes,
                         hp_stream *stream);
HP_API hp_status hp_copy_2d(void *dst, int64_t dst_pitch, const void *src,
                            int64_t src_pitch, int64_t width, int64_t rows,
                            hp_stream *stream);
HP_API hp_status hp_fill(void *dst, const void *pattern, int64_t pattern_bytes,
                         int64_t bytes, hp_stream *stream);
typedef void (*hp_host_task_fn)(void *arg);
HP_API hp_status hp_host_task(hp_stream *stream, hp_host_task_fn fn, void *arg);

/*--- Kernels and library operations ---*/

HP_API hp_status hp_kernel_get(hp_program *program, const char *name,
                               hp_kernel **out);
HP_API hp_status hp_kernel_launch(hp_kernel *kernel, const int64_t grid[3],
                                  const int64_t block[3], int64_t shared_bytes,
                                  void **args, int64_t num_args,
                                  hp_stream *stream);

#define HP_MATMUL_MAX_BATCH 4
typedef enum hp_activation {
  HP_ACT_NONE = 0,
  HP_ACT_RELU = 1,
  HP_ACT_GELU = 2,      /* x/2 (1 + erf(x / sqrt 2)) */
  HP_ACT_GELU_TANH = 3, /* tanh approximation */
  HP_ACT_SILU = 4       /* x / (1 + exp -x) */
} hp_activation;

/* c = activation(alpha * op(a) op(b) + beta * c + bias), per batch index.
 * op(a) is [m,k], op(b) is [k,n], c is [m,n]; op transposes where trans_x = 1.
 * Row-major: ld_x is the distance of two stored rows, in elements. Up to four
 * batch dimensions (outermost first) with a stride per operand, in elements; a
 * stride of 0 broadcasts a or b. c must not overlap a, b or itself.
 * beta = 0 never reads c. k = 0 gives a product of zero.
 * dtypes: f32, f64, f16, bf16 for a and b; out_dtype = dtype, or f32 for f16
 * and bf16 (both are multiplied and summed in f32).
 * Every field is eight bytes, so compiled code may see an array of words. */
typedef struct hp_matmul_desc {
  uint64_t struct_size;
  int64_t dtype;     /* hp_dtype of a and b */
  int64_t out_dtype; /* hp_dtype of c and bias */
  int64_t trans_a, trans_b;
  int64_t m, n, k;
  const void *a;
  const void *b;
  void *c;
  int64_t ld_a, ld_b, ld_c;
  int64_t batch_rank; /* 0 to HP_MATMUL_MAX_BATCH */
  int64_t batch[HP_MATMUL_MAX_BATCH];
  int64_t stride_a[HP_MATMUL_MAX_BATCH];
  int64_t stride_b[HP_MATMUL_MAX_BATCH];
  int64_t stride_c[HP_MATMUL_MAX_BATCH];
  double alpha, beta;
  const void *bias;   /* NULL, or n elements of out_dtype, added to each row */
  int64_t activation; /* hp_activation */
} hp_matmul_desc;

HP_API hp_status hp_matmul(const hp_matmul_desc *desc, hp_stream *stream);
/* A named operation of the back end's vendor library. */
HP_API hp_status hp_op_call(const char *name, const void *desc,
                            hp_stream *stream);

/*--- Communicators: group operations on streams ---*/

/* One handle per member; `ranks` are device ordinals, in rank order. Members
 * queue the same operations in the same order; roots and peers are ranks. An
 * operation that a member never queues keeps the others waiting, until a
 * member's handle is destroyed. */
HP_API hp_status hp_comm_create(hp_context *context, const char *name,
                                const int64_t *ranks, int64_t num_ranks,
                                hp_device *device, hp_comm **out);
HP_API hp_status hp_comm_destroy(hp_comm *comm);
HP_API hp_status hp_all_gather(const void *in, void *out, int64_t count,
                               hp_dtype dtype, hp_comm *comm,
                               hp_stream *stream);
HP_API hp_status hp_all_reduce(const void *in, void *out, int64_t count,
                               hp_dtype dtype, hp_reduction op, hp_comm *comm,
                               hp_stream *stream);
/* count is that of `out`; `in` holds num_ranks times as many. */
HP_API hp_status hp_reduce_scatter(const void *in, void *out, int64_t count,
                                   hp_dtype dtype, hp_reduction op,
                                   hp_comm *comm, hp_stream *stream);
/* count elements go to each member. */
HP_API hp_status hp_all_to_all(const void *in, void *out, int64_t count,
                               hp_dtype dtype, hp_comm *comm,
                               hp_stream *stream);
HP_API hp_status hp_broadcast(void *buffer, int64_t count, hp_dtype dtype,
                              int64_t root, hp_comm *comm, hp_stream *stream);
HP_API hp_status hp_barrier(hp_comm *comm, hp_stream *stream);
HP_API hp_status hp_send(const void *buffer, int64_t count, hp_dtype dtype,
                         int64_t peer, int64_t tag, hp_comm *comm,
                         hp_stream *stream);
HP_API hp_status hp_recv(void *buffer, int64_t count, hp_dtype dtype,
                         int64_t peer, int64_t tag, hp_comm *comm,
                         hp_stream *stream);
/* A thread that makes handles or queues operations for several members does so
 * between these two: the calls may be put off until the end, since each may
 * wait for the others. Groups of a thread may be nested. */
HP_API hp_status hp_group_begin(hp_context *context);
HP_API hp_status hp_group_end(hp_context *context);

/*--- Programs ---*/

/* Loads a shared object of compiled entries. */
HP_API hp_status hp_program_load(hp_context *context, const char *path,
                                 hp_program **out);
/* HP_NOT_FOUND if the program exports no such entry. */
HP_API hp_status hp_program_has_entry(hp_program *program, const char *entry);
HP_API hp_status hp_program_unload(hp_program *program);

/* What one device does in a run. Launches of one `group` form a mesh: their
 * `rank`s are 0 .. size-1 and are what hp_rt_device_id() returns and what the
 * axes of collectives speak of. Groups may run different programs. */
typedef struct hp_launch {
  uint64_t struct_size;
  int64_t device; /* ordinal; at most one launch per device */
  int64_t group;
  int64_t rank;
  hp_program *program;
  const char *entry; /* symbol name */
  void **args;
  void **results;
  /* Bytes of each tier that args and results occupy; counted as used while
   * the run lasts, so that limits and peaks mean the whole device. */
  int64_t resident[HP_TIER_COUNT];
  /* How many args and results there are. 0 and 0: not said, which is enough to
   * run, but not to tell that a step is run again with the same buffers. */
  int64_t num_args, num_results;
} hp_launch;

typedef struct hp_device_stats {
  int64_t device, group, rank;
  int64_t status; /* hp_status of this device */
  int64_t wall_ns;
  int64_t wait_ns; /* of it: waiting for other devices */
  int64_t peak[HP_TIER_COUNT];
  int64_t leaked[HP_TIER_COUNT]; /* allocated and never freed by the entry */
  int64_t allocations;
  int64_t collectives[HP_COLLECTIVE_COUNT]; /* calls in groups of two or more */
  int64_t moved[HP_COLLECTIVE_COUNT]; /* bytes received from other devices */
  int64_t matmuls;
  int64_t matmul_ns;
  double matmul_flops;
  int64_t copies[2];    /* hp_rt_copy_start: to the device, from the device */
  int64_t copied[2];    /* bytes of them */
  int64_t copy_wait_ns; /* of wall_ns: waiting for them */
} hp_device_stats;

typedef struct hp_run_stats {
  uint64_t struct_size;
  int64_t wall_ns;
  int64_t num_devices;      /* in: room in `devices`; out: number of launches
                             * on this process's devices */
  hp_device_stats *devices; /* of those, in launch order; may be NULL */
  /* Devices that launched a captured graph instead of entering the program, and
   * why one of the others did not: words that are good until the next run; NULL
   * if there is nothing to say. */
  int64_t replayed;
  const char *not_captured;
} hp_run_stats;

/* Runs all launches at once and returns when every device has ended. On
 * failure results are unspecified and the status is that of the first device
 * that failed by itself. One run at a time per context; hp_run_cancel may be
 * called from any thread. stats may be NULL. */
HP_API hp_status hp_program_run(hp_context *context, const hp_launch *launches,
                                int64_t num_launches, hp_run_stats *stats);
HP_API hp_status hp_run_cancel(hp_context *context, const char *reason);
/* The same in two steps, for hosts that must stay responsive: start returns
 * at once; wait blocks for at most timeout_ms (< 0: until the end), and when
 * the run has ended sets *done and returns its status. Launches are copied,
 * what they point to must live until then. With stuck_ms, a failed run has
 * ended even if a device does not come back: nothing more can run in the
 * context, and what the launches point to must live on. */
HP_API hp_status hp_run_start(hp_context *context, const hp_launch *launches,
                              int64_t num_launches);
HP_API hp_status hp_run_wait(hp_context *context, int64_t timeout_ms,
                             int32_t *done, hp_run_stats *stats);

/*--- Trace ---*/

/* Records what devices and streams do and writes Chrome-trace JSON. */
HP_API hp_status hp_trace_begin(hp_context *context, const char *path);
HP_API hp_status hp_trace_end(hp_context *context);

/*===----------------------------------------------------------------------===*
 * (b) Calls made by compiled programs
 *===----------------------------------------------------------------------===*/

/* A program may export `const uint32_t hp_program_abi = HP_ABI_VERSION;`, and
 * is then refused by a runtime of another version. */
typedef void (*hp_entry_fn)(void **args, void **results);

/* 64-byte aligned, uninitialised; zero bytes give a valid pointer. Not from
 * inside a hp_rt_parallel_for body. hp_rt_free(NULL) does nothing. */
HP_API void *hp_rt_alloc(int64_t bytes, int32_t tier);
HP_API void hp_rt_free(void *pointer);

/* The device's linear id in its mesh: hp_launch.rank. */
HP_API int64_t hp_rt_device_id(void);
/* Ends the run: "assertion failed: msg". */
HP_API HP_NORETURN void hp_rt_assert_fail(const char *msg);

/* Names the calls that follow on this thread in traces and in watchdog
 * messages, until the next label; the string must outlive the run. Without a
 * label a parallel loop bears its function's name. */
HP_API void hp_rt_label(const char *label);
/* A named span in the trace; properly nested. */
HP_API void hp_rt_range_begin(const char *name);
HP_API void hp_rt_range_end(void);

/* fn(ctx, begin, end) over a partition of [0, n); no piece but the last is
 * smaller than `grain` (< 1 means 1). Pieces may run at the same time on the
 * device's share of cores, in any order; a nested call runs in place. Bodies
 * may call hp_rt_matmul, hp_rt_device_id and hp_rt_assert_fail, not
 * allocation or collectives. */
typedef void (*hp_body_fn)(void *ctx, int64_t begin, int64_t end);
HP_API void hp_rt_parallel_for(hp_body_fn fn, void *ctx, int64_t n,
                               int64_t grain);

/* Uses the device's share of cores (one core inside a parallel body). */
HP_API void hp_rt_matmul(const hp_matmul_desc *desc);

/* Collectives. All members of a group must make the same calls in the same
 * order. G is the group's size; no axes, or axes of size 1, mean G = 1, and
 * the call is a copy. in and out must not overlap, but for all_reduce, where
 * they may be equal. Reductions are done in rank order: every member gets the
 * same bits, in every run. */

/* in [outer][dim][inner], out [outer][G*dim][inner]. */
HP_API void hp_rt_all_gather(const void *in, void *out, int64_t outer,
                             int64_t dim, int64_t inner, int32_t dtype,
                             const hp_axis *axes, int64_t naxes);
HP_API void hp_rt_all_reduce(const void *in, void *out, int64_t count,
                             int32_t dtype, int32_t op, const hp_axis *axes,
                             int64_t naxes);
/* in [outer][G*dim][inner], out [outer][dim][inner]. */
HP_API void hp_rt_reduce_scatter(const void *in, void *out, int64_t outer,
                                 int64_t dim, int64_t inner, int32_t dtype,
                                 int32_t op, const hp_axis *axes,
                                 int64_t naxes);
/* `shape` is that of `in`; shape[split_dim] must be a multiple of G. Block j
 * of split_dim goes to rank j; blocks received are concatenated along
 * concat_dim in rank order. out has shape[split_dim] / G and
 * shape[concat_dim] * G. */
HP_API void hp_rt_all_to_all(const void *in, void *out, int64_t rank,
                             const int64_t *shape, int64_t split_dim,
                             int64_t concat_dim, int64_t elem_bytes,
                             const hp_axis *axes, int64_t naxes);
/* A device whose block index under `to` is b receives the buffer of the device
 * whose block index under `from` is b and whose other coordinates are its own.
 * Both lists span the same number of blocks. */
HP_API void hp_rt_permute(const void *in, void *out, int64_t bytes,
                          const hp_axis *from_axes, int64_t num_from,
                          const hp_axis *to_axes, int64_t num_to);
/* A dimension of global_size is split in blocks of in_dim = ceil(global_size /
 * G): in [outer][in_dim][inner_bytes]. Rank i gets the window [i*stride + lo,
 * i*stride + lo + size) of it: out [outer][size][inner_bytes]; what lies
 * outside [0, global_size) is zero. */
HP_API void hp_rt_halo_exchange(const void *in, void *out, int64_t outer,
                                int64_t in_dim, int64_t inner_bytes,
                                int64_t global_size, int64_t stride, int64_t lo,
                                int64_t size, const hp_axis *axes,
                                int64_t naxes);

/* Asynchronous pairs: start publishes `in` and does not block; hp_rt_wait
 * fills `out` and ends the future. Until then `in` must not change and `out`
 * must not be read. Members start and wait in the same order as each other; at
 * most 64 may be in flight in a group. */
HP_API void *hp_rt_all_gather_start(const void *in, void *out, int64_t outer,
                                    int64_t dim, int64_t inner, int32_t dtype,
                                    const hp_axis *axes, int64_t naxes);
HP_API void *hp_rt_all_reduce_start(const void *in, void *out, int64_t count,
                                    int32_t dtype, int32_t op,
                                    const hp_axis *axes, int64_t naxes);
HP_API void *hp_rt_reduce_scatter_start(const void *in, void *out,
                                        int64_t outer, int64_t dim,
                                        int64_t inner, int32_t dtype,
                                        int32_t op, const hp_axis *axes,
                                        int64_t naxes);
HP_API void *hp_rt_all_to_all_start(const void *in, void *out, int64_t rank,
                                    const int64_t *shape, int64_t split_dim,
                                    int64_t concat_dim, int64_t elem_bytes,
                                    const hp_axis *axes, int64_t naxes);
HP_API void *hp_rt_permute_start(const void *in, void *out, int64_t bytes,
                                 const hp_axis *from_axes, int64_t num_from,
                                 const hp_axis *to_axes, int64_t num_to);
HP_API void hp_rt_wait(void *future);

/* Copies between the device's memory and another tier (one of the two tiers is
 * HP_TIER_DEVICE), on the device's transfer threads: one for each direction, in
 * order. Until hp_rt_copy_wait, which ends the copy, source must not change and
 * target must not be read, and both must stay allocated. */
HP_API void *hp_rt_copy_start(void *target, int32_t target_tier,
                              const void *source, int32_t source_tier,
                              int64_t bytes);
/* Row i of the target becomes row rows[i] of the source, which is in another
 * tier and has num_rows rows of row_bytes. rows is read before the call
 * returns. */
HP_API void *hp_rt_copy_rows_start(void *target, const void *source,
                                   int32_t source_tier, int64_t row_bytes,
                                   int64_t num_rows, const int64_t *rows,
                                   int64_t count);
HP_API void hp_rt_copy_wait(void *copy);

/* Streams. Until hp_rt_stream_end, collectives, sends and receives are queued
 * on that stream, and return at once; what they are given has to live until
 * they are done. Everything else, and all that is called outside of such a
 * pair, is on the stream HP_STREAM_COMPUTE (0). Actions of a stream happen in
 * order; collectives of two streams are apart, even those of the same devices.
 * The members of a group queue the same calls on the same stream, in the same
 * order.
 *
 * A mark stands for all that was queued on a stream so far. hp_rt_stream_wait
 * makes what is queued on `stream` afterwards wait for a mark, as often as
 * wanted. Marks are good until the run ends, which waits for all streams. */
HP_API void hp_rt_stream_begin(int32_t stream);
HP_API void hp_rt_stream_end(void);
HP_API int64_t hp_rt_stream_mark(int32_t stream);
HP_API void hp_rt_stream_wait(int32_t stream, int64_t mark);

/* Between the devices of a run, also of different groups; peer is a device
 * ordinal. A message is matched by (sender, receiver, tag), in order. send
 * returns when `buffer` may be reused; it copies and never waits. */
HP_API void hp_rt_send(const void *buffer, int64_t bytes, int64_t peer,
                       int64_t tag);
HP_API void hp_rt_recv(void *buffer, int64_t bytes, int64_t peer, int64_t tag);

/* What the calling device has to send or receive of a tensor whose part of
 * `shape` it holds in `buffer`. `blocks` is the same on all devices of a group;
 * an entry is [device id in the group, peer (a device ordinal), where the block
 * begins in each dimension of the part, its size in each dimension], sorted by
 * device id. One message for each entry of the device, in order, as by
 * hp_rt_send and hp_rt_recv. */
HP_API void hp_rt_send_blocks(const void *buffer, int64_t rank,
                              const int64_t *shape, int64_t element_bytes,
                              const int64_t *blocks, int64_t num_blocks,
                              int64_t tag);
HP_API void hp_rt_recv_blocks(void *buffer, int64_t rank, const int64_t *shape,
                              int64_t element_bytes, const int64_t *blocks,
                              int64_t num_blocks, int64_t tag);

/* The same for several tensors, whose blocks for one peer are one message, in
 * the order of tensors, then of blocks. `words`: how many tensors, then for
 * each its rank, element_bytes, num_blocks, shape and blocks. */
HP_API void hp_rt_send_packet(const void *const *buffers, const int64_t *words,
                              int64_t tag);
HP_API void hp_rt_recv_packet(void *const *buffers, const int64_t *words,
                              int64_t tag);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HYPERPARALLEL_LIB_RUNTIME_HP_RUNTIME_H */
