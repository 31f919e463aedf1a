/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Programs on two devices, their kernels, and the trace of a run.
 */
#include "test/Runtime/conformance/conformance.h"

enum { Elements = 64, Bytes = Elements * 4 };

static void run(hp_context *context, hp_program *program, const char *entry,
                hp_status wanted, int is_traced) {
  place places[2];
  float there[Elements], back[Elements];
  void *arguments[2][1], *results[2][1];
  hp_launch launches[2];
  hp_device_stats devices[2];
  hp_run_stats stats = {sizeof(stats), 0, 2, devices, 0, NULL};
  for (int i = 0; i < Elements; ++i)
    there[i] = (float)i - 20;
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT(hp_device_get(context, rank, &places[rank].device) == HP_OK);
    EXPECT(hp_stream_create(places[rank].device, HP_STREAM_COMPUTE,
                            &places[rank].stream) == HP_OK);
    arguments[rank][0] = upload(places[rank], there, Bytes);
    results[rank][0] = device_bytes(places[rank], Bytes);
    hp_launch launch = {
        sizeof(launch),  rank,          0,   rank, program, entry,
        arguments[rank], results[rank], {0}, 1,    1};
    launches[rank] = launch;
  }
  /* The same step again; a back end may have captured it by the third time. */
  for (int i = 0; i < 3; ++i) {
    EXPECT(hp_program_run(context, launches, 2, &stats) == wanted);
    EXPECT(stats.replayed >= 0 && stats.replayed <= 2);
    EXPECT(stats.replayed == 0 || (wanted == HP_OK && i > 0 && !is_traced));
    if (strcmp(hp_context_backend(context), "cpu") != 0 && i == 2)
      EXPECT(stats.replayed == (is_traced ? 0 : 2));
  }
  for (int rank = 0; rank < 2; ++rank) {
    if (wanted == HP_OK) {
      EXPECT(stats.num_devices == 2 && devices[rank].rank == rank);
      EXPECT(devices[rank].status == HP_OK && devices[rank].wall_ns > 0);
      EXPECT(devices[rank].leaked[HP_TIER_DEVICE] == 0);
      download(places[rank], back, results[rank][0], Bytes);
      for (int i = 0; i < Elements; ++i)
        EXPECT(back[i] == -there[i]);
    }
    release(places[rank], arguments[rank][0]);
    release(places[rank], results[rank][0]);
    EXPECT(hp_stream_destroy(places[rank].stream) == HP_OK);
  }
  /* Two launches of one device, and a rank that is missing. */
  launches[1].device = 0;
  EXPECT(hp_program_run(context, launches, 2, NULL) == HP_INVALID_ARGUMENT);
  launches[0].rank = 3;
  EXPECT(hp_program_run(context, launches, 1, NULL) == HP_INVALID_ARGUMENT);
}

static void traced(hp_context *context, hp_program *program,
                   const char *trace) {
  static char text[1 << 16];
  EXPECT(hp_trace_end(context) == HP_INVALID_ARGUMENT);
  EXPECT(hp_trace_begin(context, "/no/such/folder/trace") == HP_NOT_FOUND);
  EXPECT(hp_trace_begin(context, trace) == HP_OK);
  EXPECT(hp_trace_begin(context, trace) == HP_INVALID_ARGUMENT);
  run(context, program, "hp_entry_main", HP_OK, 1);
  EXPECT(hp_trace_end(context) == HP_OK);
  FILE *file = fopen(trace, "r");
  EXPECT(file != NULL);
  text[fread(text, 1, sizeof(text) - 1, file)] = 0;
  fclose(file);
  EXPECT(strstr(text, "\"traceEvents\"") && strstr(text, "hp_entry_main"));
  EXPECT(strstr(text, "\"device 0\"") && strstr(text, "\"device 1\""));
}

static void launched(hp_context *context, hp_program *program,
                     const char *name) {
  hp_kernel *kernel = NULL;
  place at = {NULL, NULL};
  EXPECT(hp_device_get(context, 1, &at.device) == HP_OK);
  EXPECT(hp_stream_create(at.device, HP_STREAM_COMPUTE, &at.stream) == HP_OK);
  hp_status attends = hp_device_can(at.device, HP_CAN_ATTEND, HP_F32, 64);
  EXPECT(attends == HP_OK || attends == HP_UNIMPLEMENTED);
  if (hp_device_can(at.device, HP_CAN_LAUNCH, 0, 0) != HP_OK) {
    EXPECT(hp_kernel_get(program, name, &kernel) == HP_UNIMPLEMENTED);
    EXPECT(hp_stream_destroy(at.stream) == HP_OK);
    return;
  }
  float there[Elements], back[Elements];
  for (int i = 0; i < Elements; ++i)
    there[i] = 3 - (float)i;
  void *in = upload(at, there, Bytes), *out = device_bytes(at, Bytes);
  void *arguments[] = {&in, &out};
  const int64_t grid[] = {1, 1, 1}, block[] = {32, 1, 1}, none[] = {0, 1, 1};
  EXPECT(hp_kernel_get(program, "no_such_kernel", &kernel) == HP_NOT_FOUND);
  EXPECT(hp_kernel_get(program, name, &kernel) == HP_OK);
  EXPECT(hp_kernel_launch(kernel, none, block, 0, arguments, 2, at.stream) ==
         HP_INVALID_ARGUMENT);
  EXPECT(hp_kernel_launch(kernel, grid, block, 0, arguments, 2, at.stream) ==
         HP_OK);
  download(at, back, out, Bytes);
  for (int i = 0; i < Elements; ++i)
    EXPECT(back[i] == -there[i]);
  release(at, in);
  release(at, out);
  EXPECT(hp_stream_destroy(at.stream) == HP_OK);
}

void programs(hp_context *context, const char *path, const char *kernel,
              const char *trace) {
  hp_program *program = NULL;
  EXPECT(hp_program_load(context, "/no/such/program.so", &program) ==
         HP_NOT_FOUND);
  EXPECT(hp_program_load(context, path, &program) == HP_OK);
  EXPECT(hp_program_has_entry(program, "hp_entry_main") == HP_OK);
  EXPECT(hp_program_has_entry(program, "hp_entry_other") == HP_NOT_FOUND);
  run(context, program, "hp_entry_main", HP_OK, 0);
  run(context, program, "hp_entry_main", HP_OK, 0);
  traced(context, program, trace);
  launched(context, program, kernel);
  EXPECT(hp_program_unload(program) == HP_OK);
}
