// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Launcher/Supervisor.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace hyperparallel::launcher {

/// What the others need beyond `lostMs` to speak.
static constexpr int64_t SlackMs = 1500;
static constexpr int64_t LookMs = 20;

static std::atomic<bool> askedToEnd{false};
static std::atomic<int> worker{0};

int64_t launchedRank() {
  for (const char *name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"})
    if (const char *rank = std::getenv(name))
      return std::atoll(rank);
  return -1;
}

bool isAskedToEnd() { return askedToEnd; }

static void onAsked(int) { askedToEnd = true; }
static void passOn(int signal) {
  if (worker > 0)
    kill(worker, signal);
}

static void handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGTERM, SIGINT, SIGHUP})
    sigaction(signal, &action, nullptr);
}

static void sleepMs(int64_t milliseconds) {
  timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (nanosleep(&time, &time) != 0 && errno == EINTR)
    ;
}

static void say(int64_t rank, const std::string &what) {
  std::string line =
      "hp-run: rank " + std::to_string(rank) + ": error: " + what + "\n";
  ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  (void)written;
}

/// Waits for the worker; ends with what it ended with.
[[noreturn]] static void supervise(int64_t rank, int64_t lostMs) {
  int status = 0;
  bool isStopped = false;
  for (int64_t stoppedMs = 0;;) {
    pid_t changed = waitpid(worker, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (changed < 0 && errno != EINTR)
      _exit(1);
    if (changed > 0 && (WIFEXITED(status) || WIFSIGNALED(status)))
      break;
    if (changed > 0) {
      isStopped = WIFSTOPPED(status);
      stoppedMs = 0;
    }
    sleepMs(LookMs);
    stoppedMs += isStopped ? LookMs : 0;
    if (stoppedMs > lostMs + SlackMs / 2) {
      say(rank, "its process was stopped, and is taken for lost");
      kill(worker, SIGKILL);
      isStopped = false;
      stoppedMs = 0;
    }
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    _exit(0);
  if (WIFSIGNALED(status)) {
    say(rank, "its process was ended by signal " +
                  std::to_string(WTERMSIG(status)) + " (" +
                  strsignal(WTERMSIG(status)) + ")");
    sleepMs(lostMs);
  }
  sleepMs(SlackMs);
  _exit(1);
}

void becomeWorker(int64_t rank, int64_t lostMs) {
  pid_t supervisor = getpid();
  pid_t child = fork();
  if (child < 0) {
    say(rank, std::string("cannot start a process: ") + std::strerror(errno));
    _exit(1);
  }
  if (child > 0) {
    worker = child;
    handle(passOn);
    supervise(rank, lostMs);
  }
  handle(onAsked);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != supervisor)
    _exit(1);
}

} // namespace hyperparallel::launcher
