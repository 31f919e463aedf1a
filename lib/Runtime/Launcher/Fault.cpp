// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Launcher/Fault.h"

#include <unistd.h>

namespace hyperparallel::launcher {

static std::string &prefix() {
  static std::string text;
  return text;
}
static hp_context *told = nullptr;
static void (*lastAction)() = nullptr;

void nameFaults(std::string newPrefix, hp_context *context) {
  prefix() = std::move(newPrefix);
  told = context;
}

void whenEnding(void (*action)()) { lastAction = action; }

void endWith(const std::string &message) {
  // One write, so that the messages of several ranks do not mix.
  std::string line = "hp-run: " + prefix() + "error: " + message + "\n";
  ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  (void)written;
  if (told)
    hp_run_cancel(told, message.c_str());
  if (lastAction)
    lastAction();
  // Threads may be inside MPI or a program that does not come back.
  _exit(1);
}

void require(hp_status status) {
  if (status != HP_OK)
    endWith(hp_last_error());
}

} // namespace hyperparallel::launcher
