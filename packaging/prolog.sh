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
status=$?
# 1: a size is below its floor, or its result is wrong. 2: no table, or one of another machine: not the node's fault.
[ "$status" -eq 1 ] && cat "$log.answer" >&2
[ "$status" -ne 1 ]
