/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A training of two numbers as a compiled program could be: args are x (input,
 * 4 of f32: the rate, milliseconds that a step takes at least, and what loops
 * without end: 1 + the device's number) and w (a parameter, 8 of f32 over all
 * devices, padded), which is updated in place; the result is the loss, the sum
 * of squares of w. SIZE is the number of devices, LOCAL what one holds of w.
 */
#include "lib/Runtime/hp_runtime.h"

#include <time.h>

const uint32_t hp_program_abi = HP_ABI_VERSION;

void hp_entry_main(void **args, void **results) {
  const float *x = args[0];
  float *w = args[1];
  const hp_axis all = {1, SIZE};
  float partial = 0, loss = 0;
  struct timespec pause = {0, (long)(x[1] * 1000000)};
  nanosleep(&pause, 0);
  for (volatile int stuck = x[2] == (float)(1 + hp_rt_device_id()); stuck;)
    ;
  for (int i = 0; i < LOCAL; ++i)
    partial += w[i] * w[i];
  hp_rt_label("loss");
  hp_rt_all_reduce(&partial, &loss, 1, HP_F32, HP_SUM, &all, 1);
  for (int i = 0; i < LOCAL; ++i)
    w[i] -= x[0] * w[i] * loss;
  *(float *)results[0] = loss;
}
