"""The columns of `results.parquet` and `samples.parquet`: the only place that names them.

Results are tidy: one row for each metric of each experiment. A missing value is null and `reason`
says why; it is never 0 and never the text N/A.
"""

from __future__ import annotations

FORMAT = 4
STATUS = ("ok", "failed", "waived", "out-of-time", "disturbed")

# Column -> (type; may be null; meaning). docs/formats.md prints this table.
RESULTS = {
    "run": ("string", False, "id of the run, the name of its folder"),
    "experiment": ("string", False, "key of the experiment: `part/algorithm/axes`, the same in every run"),
    "part": ("string", True, "part of the suite"),
    "suite": ("string", True, "key of the suite"),
    "machine": ("string", True, "described machine, or the name of the machine that was measured"),
    "executor": (
        "string",
        True,
        "what ran the schedule: `sim`, `threads`, `mpi`, `cuda`, `gpus`, `metalium`, `reference`",
    ),
    "collective": ("string", True, "`allreduce`, ...; null for traffic patterns and probes"),
    "algorithm": ("string", True, "algorithm of the collective, or name of the pattern or probe"),
    "schedule": ("string", True, "digest of a schedule of the user's, kept in `schedules/`; null for registered ones"),
    "ranks": ("int64", True, "ranks that take part"),
    "size_bytes": (
        "int64",
        True,
        "message size S of the collective, of one message of a pattern, or the size that a probe varies",
    ),
    "dtype": ("string", True, "data type of an element"),
    "op": ("string", True, "what combines: `sum`, `max`, ...; null where nothing is combined"),
    "placement": (
        "string",
        True,
        "`a->b` where rank 0 sits on endpoint a and rank 1 on b; else `topology` or the name of a placement",
    ),
    "endpoints": ("string", True, "numbers of the endpoints of ranks 0, 1, ...: `0->5`; null in topology order"),
    "root": ("int64", True, "root of a rooted collective; 0 for others"),
    "grid": ("string", True, "ranks as a grid, `8x8`; null where the algorithm was given none"),
    "exchange": (
        "string",
        True,
        "of an uneven exchange, the counts of each pair or experts, experts of a token, its elements, "
        "routing and seed, as JSON; null for all others",
    ),
    "skew": ("string", True, "how ranks arrive: `uniform:2us`, ...; null: all at once"),
    "messages": ("int64", True, "messages of each pair of a traffic pattern; null for collectives and probes"),
    "both_ways": ("bool", True, "whether the pairs of a traffic pattern send both ways; null like `messages`"),
    "issue": ("string", True, "issue policy: `blocking`, `window(k)`, `batch(k)`, `unlimited`"),
    "path": ("string", True, "path of the machine file"),
    "axes": ("string", True, "of a probe, what was varied besides ranks and size: `order=random pages=4K`"),
    "metric": ("string", False, "what was found: see the table of metrics"),
    "value": ("double", True, "the value in `unit`; of samples, the median"),
    "unit": ("string", True, "`ns`, `B/s`, `1` (a count or a share), `B`"),
    "ci_low": ("double", True, "lower end of the 95 % interval; null for modelled and single values"),
    "ci_high": ("double", True, "upper end of the 95 % interval"),
    "n": ("int64", True, "launches behind the interval; null for a modelled value of one run"),
    "precision": ("double", True, "half the width of the interval over `value`, a share; null without an interval"),
    "grade": (
        "string",
        True,
        "how far to trust a measured value: `tight` (within the target), `fair` (within 10 %), `wide` (beyond), "
        "`single` (too few launches for an interval); null for modelled values",
    ),
    "status": (
        "string",
        False,
        "`ok`, `failed`, `waived` (left out on purpose), `out-of-time` or `disturbed` (no sample was kept)",
    ),
    "code": ("string", True, "why the status is not `ok`, for programs: see the table of codes"),
    "flags": ("string", True, "remarks on the value, for programs: codes, separated by commas"),
    "reason": ("string", True, "code and flags in words"),
    "limit": (
        "double",
        True,
        "what no schedule for this problem beats on the described machine, in `unit`: the same for every algorithm",
    ),
    "limit_name": (
        "string",
        True,
        "which limit: `latency`, `port`, `cut`, `arrival`, `links`, `memory`, `compute`; of a GPU, `gpu_peak`",
    ),
    "bound": ("double", True, "the lower bound of this schedule's own traffic, in `unit`"),
    "bound_name": ("string", True, "which bound, named as limits are"),
    "best_seen": ("double", True, "of a measured machine, what its best seen rate or latency gives, in `unit`"),
    "best_seen_name": (
        "string",
        True,
        "what was seen at best: `cache_line`, `copy_rate`, `flop_rate` or `store`",
    ),
    "reference": ("double", True, "published value, in `unit`"),
    "launch_ns": (
        "double",
        True,
        "of a modelled time, what it holds for the start of a library's kernels; 0: a bare schedule, which has none; "
        "null: measured",
    ),
}

# What a value is compared with, in its own unit; the column of the name of each.
COMPARED = ("limit", "bound", "best_seen")
COMPARED_NAMES = tuple(f"{column}_name" for column in COMPARED)

SAMPLES = {
    "run": ("string", False, "id of the run"),
    "experiment": ("string", False, "key of the experiment"),
    "launch": ("int32", False, "number of the launch, from 0"),
    "sample": ("int32", False, "number of the sample within its launch, in order of time"),
    "rank": ("int32", True, "rank; null: the slowest rank"),
    "start_ns": ("double", True, "when this rank started, since the first one did; null without rank"),
    "value_ns": (
        "double",
        False,
        "duration of one operation, since this rank started; of a probe, of what its description says",
    ),
    "set_aside": (
        "string",
        True,
        "why the samples of this launch do not count, `foreign` load or a `clock` that moved; null: they count",
    ),
    "canary_before_ns": (
        "double",
        True,
        "8-byte round trip between two processors before this launch of the experiment; null with a rank",
    ),
    "canary_after_ns": ("double", True, "the same after it; null with a rank"),
}

# Flag -> meaning; `flags` holds some of these.
FLAGS = {
    "disturbed": "in every launch others kept processors busy, or a clock changed",
    "oversubscribed": "ranks share processors: the times are those of a shared machine",
    "unpinned": "ranks or threads could not be pinned to processors",
    "unchecked": "the data were not compared with the exact answer",
    "unwarmed": "the warm-up ended before its batches agreed",
    "moved": "the canary differed by more than a quarter before and after a launch",
    "two-modes": "launches form two groups; the value is that of the larger one",
    "simulated": "the executor ran on a simulator of the hardware: the times are the simulator's, not measured",
    "no-arithmetic": "no time was charged for reductions",
    "folded": "one rank was simulated on behalf of all",
    "traffic": "messages without a collective: their order is proved, their contents have no meaning",
}

# Code -> meaning, of rows that no error ended; those of an error are its own.
CODES = {
    "out-of-time": "the time budget is too short for an interval, so the experiment was not started",
    "all-disturbed": "every sample was dropped because something else ran",
    "process-ended": "the process of the launch died during this experiment",
    "worker-killed": "every worker of the cluster that ran the experiment was killed",
    "not-on-mpi": "a probe concerns a single host",
    "untimed": "the executor does not measure times",
    "below-sweep": "half of the peak is reached below the smallest size",
}

# Metric -> (unit, better, meaning). `better` is `low` or `high`, or `` where neither is.
METRICS = {
    "time": ("ns", "low", "time of the slowest rank, of a ping-pong its round trips; of a probe, of one operation"),
    "time_min": ("ns", "low", "smallest sample"),
    "time_p95": ("ns", "low", "95th percentile of all samples"),
    "time_p99": ("ns", "low", "99th percentile of all samples"),
    "time_max": ("ns", "low", "largest sample"),
    "time_first": ("ns", "low", "first, cold iteration, kept apart"),
    "time_row_first": ("ns", "low", "first of five in a row without a barrier between, median of launches"),
    "time_row_last": ("ns", "low", "last of the five: ranks leave at different times, so the next begins skewed"),
    "canary_before": (
        "ns",
        "low",
        "8-byte round trip between two processors before the experiment, median of launches",
    ),
    "canary_after": (
        "ns",
        "low",
        "the same after the experiment; if far from the value before, the machine's speed changed",
    ),
    "clock": ("Hz", "", "measured clock of the slowest processor looked at, after the experiment, median of launches"),
    "sync_residual": ("ns", "low", "largest error of the clocks by which MPI ranks start; `reason` names the method"),
    "time_rank_mean": ("ns", "low", "mean over the ranks' own times"),
    "time_rank_min": ("ns", "low", "fastest rank"),
    "time_rank_median": ("ns", "low", "median over the ranks' own times"),
    "time_rank_p95": ("ns", "low", "95th percentile over the ranks' own times"),
    "latency": ("ns", "low", "half a round trip of a ping-pong; of a probe, the time of its operation"),
    "bandwidth": ("B/s", "high", "bytes that all messages of a pattern move, over the time of the slowest rank"),
    "alg_bw": ("B/s", "high", "S / t; of a pattern, the bytes that all messages move, over t"),
    "bus_bw": ("B/s", "high", "alg_bw times the collective's factor, see the table of collectives"),
    "endpoint_rate_min": (
        "B/s",
        "high",
        "bytes that an endpoint sends in a pattern, over its own time: of the slowest endpoint that sends",
    ),
    "endpoint_rate_median": ("B/s", "high", "median over the endpoints that send"),
    "endpoint_rate_max": ("B/s", "high", "the fastest endpoint that sends"),
    "message_min": (
        "ns",
        "low",
        "shortest latency of a message of a pattern, from when its sender takes it up until it is complete; "
        "docs/load.md says when that is",
    ),
    "message_p5": ("ns", "low", "5th percentile of the latencies of messages"),
    "message_p25": ("ns", "low", "25th percentile"),
    "message_p50": ("ns", "low", "median latency of a message"),
    "message_p75": ("ns", "low", "75th percentile"),
    "message_p95": ("ns", "low", "95th percentile"),
    "message_p99": ("ns", "low", "99th percentile"),
    "message_max": ("ns", "low", "longest latency of a message"),
    "half_peak_size": ("B", "low", "n_1/2: the size at which a sweep reaches half of its peak rate"),
    "samples": ("1", "", "samples kept over all launches"),
    "dropped": ("1", "", "samples dropped because something else ran meanwhile"),
    "mode1": ("ns", "low", "first mode, where launch medians form two groups"),
    "mode1_share": ("1", "", "share of the launches in the first mode"),
    "mode2": ("ns", "low", "second mode"),
    "mode2_share": ("1", "", "share of the launches in the second mode"),
    "hops_max": ("1", "low", "most links that one message crosses"),
    "hops_mean": ("1", "low", "mean over messages of the links crossed"),
    "byte_hops": ("B", "low", "sum over messages of bytes times links crossed"),
    "peak_link_load": ("1", "low", "most messages that held or wanted one link at one instant"),
    "critical_share": ("1", "", "largest share of the critical path; `reason` names the cause"),
}


def row(**values: object) -> dict[str, object]:
    """A result row: every column, null where not given. An unknown column is a bug."""
    extra = values.keys() - RESULTS.keys()
    if extra:
        raise KeyError(f"no such result column: {sorted(extra)}")
    assert values.get("status") in STATUS, values.get("status")
    return {name: values.get(name) for name in RESULTS}


def changed(row: dict[str, object], **values: object) -> dict[str, object]:
    """The row with other values in some columns: a tenth of what `row` costs."""
    made = {**row, **values}
    if len(made) > len(RESULTS):
        raise KeyError(f"no such result column: {sorted(values.keys() - RESULTS.keys())}")
    assert made["status"] in STATUS, made["status"]
    return made
