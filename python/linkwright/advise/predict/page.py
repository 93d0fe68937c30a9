"""The rules of a machine in plain sentences: `linkwright machines show NAME --rules`."""

from __future__ import annotations

from linkwright import _native
from linkwright.advise.predict import rules
from linkwright.advise.predict.rates import DTYPES, PRODUCT_SIDE, capacity_bytes
from linkwright.base.units import NS_PER_S, TERA, format_rate, format_time

SIDE = f"{PRODUCT_SIDE:,}"
PREAMBLE = (
    "From single messages simulated on the machine's own fabric, by path {path}, everything else quiet.\n"
    "Small is {small} B; a rate is that of large messages."
)


def text(machine: _native.Machine) -> str:
    """The whole page, ending with a line feed."""
    blocks = [f"{machine.name} in rules of thumb: {machine.summary}"]
    blocks.append(PREAMBLE.format(path=machine.paths[0], small=rules.SMALL_BYTES))
    blocks += [_level(level, bool(machine.open_size)) for level in rules.levels(machine)]
    alone = "\n".join(_alone(machine))
    if alone:
        blocks.append(f"A single endpoint\n{alone}")
    return "\n\n".join(blocks) + "\n"


def values(machine: _native.Machine) -> dict[str, object]:
    """The same as plain values for JSON."""
    return {
        "machine": machine.name,
        "path": machine.paths[0],
        "small_bytes": rules.SMALL_BYTES,
        "levels": [vars(level) | {"rate_bytes_per_s": level.rate * NS_PER_S} for level in rules.levels(machine)],
        "capacity_bytes": capacity_bytes(machine),
        "alone": rules.alone(machine),
    }


def _level(level: rules.Level, any_number: bool) -> str:
    near, far = format_time(level.latency_ns), format_time(level.farthest_latency_ns)
    ends = " and ".join(level.nearest)
    reach = f"takes {near} between {ends}"
    if far != near:
        reach += f", the nearest, and {far} to {level.farthest[1]}, the farthest"
    equal = _bytes(level.per_message_ns * level.rate)
    half = _bytes(level.half_size_bytes)
    number = "any number" if any_number else str(level.units)
    lines = [
        f"From {level.name} to {level.name}, {number} of them",
        f"  A small message {reach}.",
        f"  Large messages move at {format_rate(level.rate * NS_PER_S)}; half of that is reached at {half}.",
        f"  Each further message in a row costs {format_time(level.per_message_ns)}, the time of {equal} of data.",
    ]
    return "\n".join(lines)


def _alone(machine: _native.Machine) -> list[str]:
    found, capacity = rules.alone(machine), capacity_bytes(machine)
    lines = []
    if capacity is not None:
        lines.append(f"  It holds {_bytes(capacity)}.")
    if "load_ns" in found:
        lines.append(f"  A load that depends on the one before takes {format_time(found['load_ns'])}.")
    if "read_bytes_per_s" in found:
        lines.append(f"  It reads its memory at {format_rate(found['read_bytes_per_s'])}.")
    for precision in DTYPES:
        if (rate := found.get(f"{precision}_flops_per_s")) is not None:
            work = f"{rate / TERA:.1f} TFlop/s"
            lines.append(
                f"  A product of {SIDE} x {SIDE} matrices in {precision} precision runs at {work} on a whole chip."
            )
    return lines


def _bytes(size: float) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"
