/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Runs entries of a program on devices that may be spread over processes, and
 * prints a line for each case and device of this process: the case's number,
 * the device, and a hash of what it got.
 *
 *   spread PROGRAM CASES DEVICES [MPI]
 *
 * A line of CASES is: entry, bytes of the input, bytes of the output, words of
 * args[0]. Inputs are small floats that depend on device and place.
 */
#include "lib/Runtime/hp_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 16
#define MAX_WORDS 1024

static void check(hp_status status) {
  if (status == HP_OK)
    return;
  fprintf(stderr, "%s: %s\n", hp_status_name(status), hp_last_error());
  exit(1);
}

static uint64_t hash(const unsigned char *bytes, int64_t count) {
  uint64_t value = 1469598103934665603u;
  for (int64_t i = 0; i < count; ++i)
    value = (value ^ bytes[i]) * 1099511628211u;
  return value;
}

/* Only a process's own devices have handles in it, and what streams do
 * together stays within it. */
static void check_handles(hp_context *context, int64_t devices,
                          int64_t process) {
  int64_t ranks[MAX_DEVICES], processes = 0;
  check(hp_process_info(context, NULL, &processes));
  hp_device *own = NULL, *device = NULL;
  for (int64_t ordinal = 0; ordinal < devices; ++ordinal) {
    int64_t owner = 0;
    ranks[ordinal] = ordinal;
    check(hp_process_of(context, ordinal, &owner));
    hp_status status = hp_device_get(context, ordinal, &device);
    if (status != (owner == process ? HP_OK : HP_INVALID_ARGUMENT))
      exit(3);
    own = owner == process ? device : own;
  }
  hp_comm *comm = NULL;
  hp_status status = hp_comm_create(context, "all", ranks, devices, own, &comm);
  if (status != (processes > 1 ? HP_UNIMPLEMENTED : HP_OK))
    exit(4);
  if (status == HP_OK)
    check(hp_comm_destroy(comm));
}

static float *make_input(int64_t device, int64_t bytes) {
  float *input = malloc((size_t)bytes + 64);
  for (int64_t i = 0; i < bytes / 4 + 1; ++i)
    input[i] = (float)((i * 37 + device * 101) % 211 - 105) / 16.0f;
  return input;
}

int main(int argc, char **argv) {
  if (argc < 4)
    return 2;
  int64_t devices = atoll(argv[3]), process = 0;
  const char *options[] = {"processes", "mpi", "mpi", NULL, "lost_ms", "4000"};
  if (argc > 4)
    options[3] = argv[4];
  hp_context_desc desc = {sizeof(desc), "cpu", devices, options,
                          argc > 4 ? 3 : 0};
  hp_context *context = NULL;
  hp_program *program = NULL;
  check(hp_context_create(&desc, &context));
  check(hp_process_info(context, &process, NULL));
  check(hp_program_load(context, argv[1], &program));
  check_handles(context, devices, process);
  FILE *cases = fopen(argv[2], "r");
  char entry[64], rest[1 << 14];
  long long in_bytes, out_bytes;
  for (int number = 0; cases && fscanf(cases, "%63s %lld %lld%16383[^\n]",
                                       entry, &in_bytes, &out_bytes, rest) == 4;
       ++number) {
    int64_t words[MAX_WORDS] = {0};
    int count = 0;
    for (char *at = strtok(rest, " "); at && count < MAX_WORDS;
         at = strtok(NULL, " "))
      words[count++] = atoll(at);
    hp_launch launches[MAX_DEVICES] = {{0}};
    void *args[MAX_DEVICES][2], *results[MAX_DEVICES][1];
    int here[MAX_DEVICES] = {0};
    for (int64_t device = 0; device < devices; ++device) {
      int64_t owner = 0;
      check(hp_process_of(context, device, &owner));
      hp_launch *launch = &launches[device];
      launch->struct_size = sizeof(*launch);
      launch->device = launch->rank = device;
      here[device] = owner == process;
      if (!here[device])
        continue;
      args[device][0] = words;
      args[device][1] = make_input(device, in_bytes);
      results[device][0] = calloc(1, (size_t)out_bytes + 64);
      launch->program = program;
      launch->entry = entry;
      launch->args = args[device];
      launch->results = results[device];
    }
    check(hp_program_run(context, launches, devices, NULL));
    for (int64_t device = 0; device < devices; ++device) {
      if (!here[device])
        continue;
      printf("%d %s %d %016llx\n", number, entry, (int)device,
             (unsigned long long)hash(results[device][0], out_bytes));
      free(args[device][1]);
      free(results[device][0]);
    }
  }
  fflush(stdout);
  check(hp_process_finish(context));
  hp_context_destroy(context);
  return 0;
}
