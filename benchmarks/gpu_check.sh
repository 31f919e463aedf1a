#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What to run where there is a GPU. It lies in the bundle that `python benchmarks/gpu_check.py -o DIR` makes on any machine, and
# needs neither a network nor Python: only NVIDIA's driver, cuBLASLt, and python3 with torch for what is compared with.
#
#   DIR/gpu_check.sh [OUT.json]
#
# Writes JSON: whether the back end conforms; seconds of each step of the programs, the first one apart; copies over PCIe both
# ways; torch's seconds, eager, compiled and with activations offloaded, for the same blocks; and the goals, which are printed, too.
# Each part has a limit in seconds, all together 290; what fails or takes longer is null, and its words are on stderr. The file
# is whole after each part, so what is known is there however this ends.
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/gpu_check.json}
turns=${HP_GPU_CHECK_STEPS:-10}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

limit() {
  seconds=$1
  shift
  if command -v timeout > /dev/null; then timeout -k 2 "$seconds" "$@"; else "$@"; fi
}
known() { if [ -s "$scratch/$1" ]; then cat "$scratch/$1"; else echo null; fi; }
# part NAME SECONDS COMMAND...: its JSON, or nothing.
part() {
  name=$1
  shift
  begin=$(date +%s)
  if ! limit "$@" > "$scratch/part"; then
    echo "gpu_check: $name failed, or took longer than $1 s" >&2
    : > "$scratch/part"
  fi
  mv "$scratch/part" "$scratch/$name"
  echo "gpu_check: $name, $(($(date +%s) - begin)) s" >&2
  report
}
report() {
  {
    printf '{"conforms": %s' "$conforms"
    for name in forward half_memory training training_half_memory copies torch; do
      printf ',\n "%s": ' "$name"
      known "$name"
    done
    printf ',\n "sizes": '
    cat "$here/sizes.json"
    printf '}\n'
  } > "$out.new" && mv "$out.new" "$out"
}
run() { part "$1" "$2" "$here/hyperparallel/bin/hp-run" "$here/programs/$1" --random=1 --steps="$turns"; }

conforms=false
if limit 40 "$here/conformance" cuda "$here/programs/negate/program.so" "$(cat "$here/programs/negate/kernel")" \
    "$scratch/trace.json" > "$scratch/conformance" 2>&1; then
  conforms=true
else
  cat "$scratch/conformance" >&2
fi
report
part copies 15 "$here/gpu_check_copies" cuda "${HP_GPU_CHECK_BYTES:-268435456}"
run forward 25
run training 35
run half_memory 25
run training_half_memory 40
if command -v python3 > /dev/null; then
  if [ -z "$HP_GPU_CHECK_NO_TORCH" ]; then
    part torch 95 python3 "$here/gpu_check_torch.py" "$here/sizes.json" "$turns"
  fi
  limit 15 python3 "$here/gpu_check_goals.py" "$out" "$here" >&2 || echo "gpu_check: the goals were not computed" >&2
fi
cat "$out"
[ "$conforms" = true ]
