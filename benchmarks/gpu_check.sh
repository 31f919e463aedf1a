#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What to run where there is a GPU. It lies in the bundle that `python benchmarks/gpu_check.py -o DIR` makes on any machine, and
# needs neither a network nor Python: only NVIDIA's driver, cuBLASLt, and python3 with torch for what is compared with.
#
#   DIR/gpu_check.sh [OUT.json]
#
# Writes JSON: whether the back end conforms; seconds of each step of the programs, the first one apart; copies over PCIe both
# ways; and torch's seconds, eager and compiled, for the same blocks. Each part is given a minute; what fails is null, and its
# words are on stderr.
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/gpu_check.json}
limit() { if command -v timeout > /dev/null; then timeout 60 "$@"; else "$@"; fi; }
run() { limit "$here/hyperparallel/bin/hp-run" "$here/programs/$1" --random=1 --steps="$2" || echo null; }
turns=${HP_GPU_CHECK_STEPS:-10}

conforms=false
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
if limit "$here/conformance" cuda "$here/programs/negate/program.so" "$(cat "$here/programs/negate/kernel")" \
    "$scratch/trace.json" > "$scratch/conformance" 2>&1; then
  conforms=true
else
  cat "$scratch/conformance" >&2
fi
torch=null
if [ -z "$HP_GPU_CHECK_NO_TORCH" ] && command -v python3 > /dev/null; then
  torch=$(limit python3 "$here/gpu_check_torch.py" "$here/sizes.json" "$turns") || torch=null
fi
copies=$(limit "$here/gpu_check_copies" cuda "${HP_GPU_CHECK_BYTES:-268435456}") || copies=null
{
  printf '{"conforms": %s,\n "forward": ' "$conforms"
  run forward "$turns"
  printf ' ,"training": '
  run training "$turns"
  printf ' ,"half_memory": '
  run half_memory "$turns"
  printf ' ,"copies": %s,\n "torch": %s,\n "sizes": ' "${copies:-null}" "${torch:-null}"
  cat "$here/sizes.json"
  printf '}\n'
} > "$out"
cat "$out"
[ "$conforms" = true ]
