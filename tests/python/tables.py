"""Tables of made-up results: what each kind of table looks like, without measuring anything."""

import contextlib
import io

from linkwright.ask.question import Collective, Pattern, Probe
from linkwright.base.stats import grade
from linkwright.base.stats.bandwidth import bus_bw
from linkwright.cli.table import LiveTable
from linkwright.executors import probes
from linkwright.session.suite import rows
from linkwright.store import schema

CONTEXT = rows.Context("", "", "box", "threads", ("cpu 0", "cpu 1", "cpu 2", "cpu 3"))


def collective(algorithm, size, **more):
    return Collective("run", algorithm, 4, size, op="sum", **more, collective="allreduce")


def pattern(size, **more):
    return Pattern("latency_by_size", "ping_pong", 2, size, dtype="u8", **more)


def probe(key, **axes):
    kind = probes.find(key)
    values = kind.assignment(axes)
    named = [a for a in kind.axes if a.key == kind.size_axis or values[a.key] != a.read(a.default)]
    texts = tuple(f"{axis.key}={axis.text(values[axis.key])}" for axis in named)
    size = values[kind.size_axis] if kind.size_axis else None
    return Probe(key, key, 1, size, axes=tuple(values.items()), named=texts)


def measured(experiment, ns, half=None, **more):
    """Rows of a value whose interval reaches `half` of it to both sides; none: a single launch."""
    ends = {} if half is None else {"ci_low": ns * (1 - half), "ci_high": ns * (1 + half)}
    common = {"status": "ok", "n": 9, "precision": half, "grade": grade.grade(half), **ends}
    found = [CONTEXT.row(experiment, "time", value=ns, **common, **more)]
    if isinstance(experiment, Collective):
        rate = bus_bw(experiment.collective, experiment.ranks, experiment.size_bytes, ns)
        found.append(CONTEXT.row(experiment, "bus_bw", value=rate, **common))
    elif isinstance(experiment, Probe):
        own = {"ns": ns, "B/s": 64e9 / ns, "1": 1.0}
        for metric in probes.find(experiment.algorithm).metrics:
            found.append(CONTEXT.row(experiment, metric.key, value=own[metric.unit], unit=metric.unit, **common))
    else:
        found.append(CONTEXT.row(experiment, "latency", value=ns / 2, **common))
    return experiment, found


def without(experiment, status, reason):
    return experiment, rows.without_value(CONTEXT, experiment, status, reason)


def shown(*found):
    """What the live table prints of these results."""
    assert {row["status"] for _, its in found for row in its} <= set(schema.STATUS)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        table = LiveTable()
        for experiment, its in found:
            table.rows(experiment, its)
        table.finish()
    return out.getvalue()


BUDGET = "not started: the time budget is too short for the launches of an interval"
BUSY = "others kept up to 1.5 processors busy in every launch"
RESULTS = (
    measured(collective("ring", 8), 812.4, 0.021, best_seen=300.0, best_seen_name="cache_line", flags="unpinned"),
    measured(collective("ring", 65536), 12400.0, 0.12, best_seen=5000.0, best_seen_name="copy_rate", flags="unpinned"),
    measured(collective("swing_latency", 8), 301.0, 0.004, best_seen=300.0, flags="unpinned"),
    measured(collective("swing_latency", 65536), 9800.0, best_seen=5000.0, flags="unpinned,disturbed", reason=BUSY),
    without(collective("hamiltonian_rings_bidirectional", 65536), "out-of-time", BUDGET),
    without(collective("hierarchical", 8), "waived", "allreduce/hierarchical: waived: ranks in a line have no nodes"),
    without(collective("by_rows", 8), "waived", "allreduce/by_rows: waived: ranks in a line have no nodes"),
    without(collective("shared_memory", 8), "failed", "rank 2: element 5 is 3, not 10"),
    measured(pattern(8), 120.0, 0.013),
    measured(pattern(8 << 20), 1.2e6, 60.7),
    measured(pattern(8, messages=16), 130.0, 0.013),
    measured(probe("memory_latency", working_set="4K"), 1.03, 0.011),
    measured(probe("memory_latency", working_set="64M", pages="2M"), 160.3, 0.07, flags="disturbed", reason=BUSY),
    measured(probe("round_trip", in_bytes="64", transport="process_vm_readv"), 3380.0, 0.03),
    without(probe("round_trip", in_bytes="16K", transport="tcp"), "out-of-time", BUDGET),
)
