// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Runtime/Launcher/Options.h"
#include "lib/Runtime/Launcher/Fault.h"
#include "lib/Runtime/Launcher/TensorFiles.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <glob.h>
#include <unistd.h>
#include <vector>

namespace hyperparallel::launcher {

static const char usage[] =
    "usage: hp-run DIR [options]\n"
    "       mpiexec -n N hp-run DIR [options]\n\n"
    "Runs what hp compile made: all devices in this process, or spread over "
    "the\nprocesses that mpiexec starts.\n\n"
    "  --steps N          run N steps; what a step updates is kept (default "
    "1)\n"
    "  --inputs FILE      inputs by name, .npz or safetensors (default: "
    "DIR/inputs.npz)\n"
    "  --data FILE        inputs of every step, by name: the rows of one step "
    "behind\n"
    "                     those of the other (default: DIR/data.safetensors, "
    "if it is there)\n"
    "  --weights FILE     parameters and buffers (default: "
    "DIR/model.safetensors)\n"
    "  --random N         draw what has no value from this seed: to time a "
    "program\n"
    "  --results DIR      write the results here, each device its blocks\n"
    "  --save DIR         save the state here after the last step\n"
    "  --save-every N     and after every N steps\n"
    "  --resume DIR       go on from the last state that was saved there\n"
    "  --threads N        cores that each process may use (default: all)\n"
    "  --statistics FILE  write FILE.RANK: the hp_device_stats of the last "
    "step\n"
    "  --lost-after MS    a rank that is silent for so long is lost (default "
    "4000)\n"
    "  --stuck-after MS   a device of several ranks is taken for stuck if its "
    "program\n"
    "                     makes no call of the runtime for so long (default "
    "6000)\n"
    "  --openblas FILE    libscipy_openblas.so (default: that of the Python "
    "beside)\n"
    "  --mpi FILE         libmpi_abi.so.1 (default: that of mpiexec)\n";

/// The directory of a process's program, from /proc.
static std::string directoryOf(const std::string &process) {
  char path[4096];
  ssize_t length =
      readlink(("/proc/" + process + "/exe").c_str(), path, sizeof(path));
  std::string text(path, length > 0 ? length : 0);
  size_t slash = text.rfind('/');
  return slash == std::string::npos ? "" : text.substr(0, slash);
}

static std::string firstOf(const std::string &pattern) {
  glob_t found = {};
  std::string first;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0)
    first = found.gl_pathv[0];
  globfree(&found);
  return first;
}

/// What pip installs together lies together: mpiexec and its library, or this
/// program and the other packages, or what is found by PATH and the packages.
static void findLibraries(Options &options) {
  std::string own = directoryOf("self");
  std::vector<std::string> prefixes = {directoryOf(std::to_string(getppid())) +
                                       "/.."};
  const char *path = std::getenv("PATH");
  for (const char *at = path ? path : ""; *at;) {
    size_t length = std::strcspn(at, ":");
    prefixes.push_back(std::string(at, length) + "/..");
    at += length + (at[length] == ':');
  }
  const std::string library = "/scipy_openblas32/lib/libscipy_openblas.so";
  if (options.openblas.empty())
    options.openblas = firstOf(own + "/../.." + library);
  for (const std::string &prefix : prefixes) {
    if (options.mpi.empty())
      options.mpi = firstOf(prefix + "/lib/libmpi_abi.so.1");
    if (options.openblas.empty())
      options.openblas =
          firstOf(prefix + "/lib/python3*/site-packages" + library);
  }
}

static int64_t readCount(const char *option, const char *text) {
  char *end = nullptr;
  long long value = std::strtoll(text, &end, 10);
  if (*end || end == text || value < 1)
    endWith(std::string(option) +
            ": expected a number of at least 1 but got '" + text + "'");
  return value;
}

Options Options::read(int argc, char **argv) {
  Options options;
  struct Known {
    const char *name;
    std::string *text;
    int64_t *number;
  } known[] = {{"--steps", nullptr, &options.steps},
               {"--inputs", &options.inputs, nullptr},
               {"--data", &options.data, nullptr},
               {"--weights", &options.weights, nullptr},
               {"--results", &options.results, nullptr},
               {"--save", &options.save, nullptr},
               {"--save-every", nullptr, &options.saveEvery},
               {"--resume", &options.resume, nullptr},
               {"--threads", &options.threads, nullptr},
               {"--statistics", &options.statistics, nullptr},
               {"--lost-after", nullptr, &options.lostMs},
               {"--stuck-after", nullptr, &options.stuckMs},
               {"--random", nullptr, &options.random},
               {"--openblas", &options.openblas, nullptr},
               {"--mpi", &options.mpi, nullptr}};
  for (int i = 1; i < argc; ++i) {
    // --name value, or --name=value.
    size_t length = std::strcspn(argv[i], "=");
    const char *value = argv[i][length] ? argv[i] + length + 1 : nullptr;
    const Known *found = nullptr;
    for (const Known &one : known)
      if (std::string(argv[i], length) == one.name)
        found = &one;
    if (!std::strcmp(argv[i], "--help") || !std::strcmp(argv[i], "-h")) {
      std::fputs(usage, stdout);
      std::exit(0);
    }
    bool isPlace = !found && argv[i][0] != '-' && options.directory.empty();
    if (isPlace) {
      options.directory = argv[i];
      continue;
    }
    if (found && !value && i + 1 < argc)
      value = argv[++i];
    if (!found || !value) {
      std::fprintf(stderr, "%s\nhp-run: error: %s '%s'\n", usage,
                   found ? "expected a value behind" : "unknown argument",
                   argv[i]);
      std::exit(2);
    }
    if (found->text)
      *found->text = value;
    else
      *found->number = readCount(found->name, value);
  }
  if (options.directory.empty()) {
    std::fprintf(stderr, "%s\nhp-run: error: expected a DIR\n", usage);
    std::exit(2);
  }
  options.givesInputs = !options.inputs.empty();
  options.givesData = !options.data.empty();
  for (std::string *file : {&options.inputs, &options.data, &options.weights})
    if (!file->empty() && !fileExists(*file))
      endWith("cannot read " + *file + ": it is not there");
  if (options.inputs.empty())
    options.inputs = options.directory + "/inputs.npz";
  if (options.data.empty() &&
      fileExists(options.directory + "/data.safetensors"))
    options.data = options.directory + "/data.safetensors";
  if (options.weights.empty())
    options.weights = options.directory + "/model.safetensors";
  for (std::string *path : {&options.save, &options.results, &options.resume})
    while (path->size() > 1 && path->back() == '/')
      path->pop_back();
  findLibraries(options);
  return options;
}

} // namespace hyperparallel::launcher
