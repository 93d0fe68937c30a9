#!/bin/bash
# Slurm prolog: measure the GPUs of this node before a job starts, and drain the node if they are slower than a healthy
# machine. In slurm.conf: Prolog=/etc/slurm/prolog.sh and PrologFlags=Alloc. A prolog that fails drains its node, so
# everything else that may go wrong here lets the job start.
set -u
machine=${LINKWRIGHT_MACHINE:-hgx-h100}
PATH=/opt/linkwright/bin:/opt/nccl-tests/bin:$PATH
# One `command -v` of two names succeeds if either is there.
command -v linkwright >/dev/null && command -v all_reduce_perf >/dev/null || exit 0
log=$(mktemp) || exit 0
trap 'rm -f "$log" "$log.answer"' EXIT
# It also fails if results are wrong, so its status does not decide: a log without a table is refused below with 2.
timeout 60 all_reduce_perf -b 256M -e 4G -f 4 -g "${LINKWRIGHT_GPUS:-8}" >"$log" 2>&1
linkwright expect allreduce --on "$machine" --log "$log" >"$log.answer" 2>&1
# Status 1 alone does not drain: a broken installation, a full disk or a lack of memory has it as well. The verdict is the
# line that names the sizes below their floor or with wrong results.
grep --quiet --fixed-strings "$log: failed at " "$log.answer" || exit 0
cat "$log.answer" >&2
exit 1
