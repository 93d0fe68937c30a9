#!/usr/bin/env bash
# What a GPU that is new to the project can do: the most valuable questions first, eight minutes, no network.
#
#     benches/first_contact.sh [FOLDER [STEP...]]        or make first-contact
#
# Each step has a limit of seconds and runs whether or not the one before it failed. After each step FOLDER holds what
# is known so far: summary.txt (a line a step) and results.tar.gz (logs, run folders). With STEP only these steps run,
# in the order of this file. Status 0 if every step that ran succeeded.
#
#     PYTHON                   what runs linkwright: a Python with cuda-bindings, NVRTC and NVML (default: python3)
#     FIRST_CONTACT_WHEELS     a folder of wheels to install first, for a machine without a network
#     FIRST_CONTACT_SECONDS    when to stop (default: 480); what does not fit is skipped
#     FIRST_CONTACT_CLOCK      a command that prints the time in seconds (default: date +%s); rehearsals use their own
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
case "${1:-}" in -*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;; esac
out=$(mkdir -p -- "${1:-first-contact}" && cd -- "${1:-first-contact}" && pwd) || exit 2
[ $# -gt 0 ] && shift
asked=" $* "
for name in "$@"; do
    awk '$1 == "step" || $1 == "measure" { print $2 }' "$0" | grep -qxF -- "$name" ||
        { echo "$0 has no step called $name" >&2; exit 2; }
done
python=${PYTHON:-python3}
work=$out/results
mkdir -p "$work"
: >"$out/summary.txt"
export PYTHONUNBUFFERED=1

now() { eval "${FIRST_CONTACT_CLOCK:-date +%s}"; }
end=$(($(now) + ${FIRST_CONTACT_SECONDS:-480}))
failed=0

say() { echo "$*" | tee -a "$out/summary.txt"; }

# step NAME SECONDS COMMAND...: runs it for at most so long, and less where less is left.
step() {
    local name=$1 limit=$2 began left status
    shift 2
    [ "$asked" = "  " ] || [[ $asked == *" $name "* ]] || return 0
    began=$(now)
    left=$((end - began))
    if [ $((2 * left)) -lt "$limit" ]; then
        say "skipped $name: $left s are left of the $limit s it may take"
        return 0
    fi
    [ "$left" -lt "$limit" ] && limit=$left
    timeout -k 5 "$limit" "$@" >"$work/$name.log" 2>&1 </dev/null
    status=$?
    [ $status = 0 ] || failed=1
    say "$(printf '%-12s status %-3s %4s s' "$name" $status $(($(now) - began)))"
    tail -n 12 "$work/$name.log" | cut -c-160 | sed 's/^/    /'
    tar -C "$out" -czf "$out/.results" results && mv "$out/.results" "$out/results.tar.gz"
}

# measure NAME SECONDS ARGUMENTS...: `linkwright run ARGUMENTS --on cuda`, with most of these seconds to measure.
measure() {
    local name=$1 limit=$2
    shift 2
    step "$name" $((limit + 15)) "$python" -m linkwright run "$@" --on cuda --time-budget "${limit}s" \
        --runs "$work/runs" --output "$work/$name.csv"
}

if [ -n "${FIRST_CONTACT_WHEELS:-}" ]; then
    site=$(mktemp -d)
    export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
    trap 'rm -rf "$site"' EXIT
    "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" "$FIRST_CONTACT_WHEELS"/*.whl || exit 2
fi

# Where there is no GPU, the steps say why.
sms=$("$python" -c 'from linkwright.executors.cuda.device import device; print(device().sm_count)' 2>"$work/sms.log" || echo 132)
half=1
while [ $((4 * half)) -le "$sms" ]; do half=$((2 * half)); done

step gpu 10 nvidia-smi -q -d CLOCK,POWER,MEMORY,PERFORMANCE,ECC
step executors 20 "$python" -m linkwright list executors
step discover 20 "$python" -m linkwright machines discover --output "$work/machine.toml"
"$python" -c "import torch, cupy" >/dev/null 2>&1 &  # a first import reads gigabytes
step compile 90 "$python" "$here/benches/gpu_kernels.py"

# The proof that kernels are right.
measure ring-2 6 allreduce/ring --ranks 2 --factor 8
measure ring-8 6 allreduce/ring --ranks 8 --factor 8
measure ring-all 8 allreduce/ring --ranks "$sms" --factor 8
measure rivals 16 allreduce --ranks "$((2 * half)),$sms" --sizes 4K -a all_pairs,recursive_doubling_latency,own --dtype bf16
step hardware 100 "$python" -m pytest -q -p no:cacheprovider --maxfail 20 --durations 5 "$here/tests/python/gpu/test_hardware.py"

# Probes.
measure hbm 25 probe/memory_bandwidth --ranks "$sms" -x block=4M -x kernel=read,copy -x threads=all
measure loads 10 probe/sm_load_latency -x through=shared,l1,l2,cluster
measure depth 10 probe/sm_load_latency -x working_set=16K,1M,16M,64M,256M
measure handover 8 probe/cache_line --ranks 8 -x how=compare_and_swap,read_write
measure map 25 probe/cache_line --ranks 16 --every-pair
measure clusters 8 probe/sm_cluster_latency -x threads=2,8,16
measure barriers 8 probe/sm_barrier --ranks "$sms" -x how=grid -x threads=2,8,32,all
measure atomics 8 probe/sm_atomic --ranks "$sms" -x at=same,own -x threads=1,all
measure link 12 probe/gpu_copy -x direction=to_device,to_host -x bytes=64M -x queued=16
measure echo 8 probe/round_trip -x transport=in_place,user_buffers
measure products 20 probe/matmul -x n=8192 -x dtype=bf16
measure pairs 6 probe/sm_pair_bandwidth --ranks "$sms" -x bytes=32K -x threads=2,all

# What others reach in the same minutes.
step peers 45 "$python" "$here/benches/gpu_peers.py"

# The sanitizer of the vendor.
step memcheck 60 "$python" "$here/benches/gpu_kernels.py" --memcheck
step racecheck 60 "$python" "$here/benches/gpu_kernels.py" --racecheck

# All questions at once, then the data of a machine file.
step suite 170 "$python" -m linkwright dissect --suite gpu --on cuda --ranks "$sms" --time-budget 150s --runs "$work/runs"
step fit 170 "$python" -m linkwright dissect --suite fit --on cuda --time-budget 150s --runs "$work/runs"

say "$([ $failed = 0 ] && echo "every step that ran succeeded" || echo "steps failed: see above")"
exit $failed
