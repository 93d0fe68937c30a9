"""Further predictions of the model: crossovers, costs of copies and bytes, limits, link configurations."""

from __future__ import annotations

from linkwright import _native
from linkwright_evidence.numbers import changed, values

from . import grid
from .grid import BYTES_PER_VALUE, MODES, VALUES, Grid

LINE = 64  # bytes; every size is a multiple of it
GENERATIONS = ("gen3", "gen4", "gen5")
# Configurations of which the limits are drawn.
DRAWN = (("gen4", 16), ("gen5", 8))


def crossovers(machine, page: Grid) -> list[dict]:
    """For each output size, the smallest input in lines of 64 B at which raw is faster than mmio."""
    rows = []
    for out in VALUES:
        least, most = 1, VALUES[-1] * BYTES_PER_VALUE // LINE  # mmio wins at the one, raw at the other
        while most - least > 1:
            middle = (least + most) // 2
            times = [_mean(machine, mode, middle * LINE, out * BYTES_PER_VALUE) for mode in ("mmio", "raw")]
            least, most = (middle, most) if times[0] <= times[1] else (least, middle)
        rows.append(
            {
                "out_bytes": out * BYTES_PER_VALUE,
                "raw_wins_from_bytes": most * LINE,
                **_bracket(page, out),
            }
        )
    return rows


def _mean(machine, mode: str, in_bytes: int, out_bytes: int) -> float:
    return grid.round_trip_us(machine, mode, in_bytes, out_bytes)["mean"]


def _bracket(page: Grid, out: int) -> dict[str, int | None]:
    """Largest published input that mmio wins and the smallest that raw wins, in bytes."""
    both = [i for i in VALUES if all((mode, "mean", i, out) in page for mode in ("mmio", "raw"))]
    wins = {i: page["mmio", "mean", i, out] < page["raw", "mean", i, out] for i in both}
    lower = max((i * BYTES_PER_VALUE for i, won in wins.items() if won), default=None)
    upper = min((i * BYTES_PER_VALUE for i, won in wins.items() if not won), default=None)
    return {"published_mmio_wins_at_bytes": lower, "published_raw_wins_at_bytes": upper}


def copy_costs(model: Grid, page: Grid) -> list[dict]:
    """User less raw: what the two copies cost."""
    rows = []
    for out in VALUES:
        for inp in VALUES:
            keys = [(mode, "mean", inp, out) for mode in ("user", "raw")]
            open_pair = all(key in page for key in keys)
            rows.append(
                {
                    "output": f"output {out * BYTES_PER_VALUE} B",
                    "in_bytes": inp * BYTES_PER_VALUE,
                    "copies_us": model[keys[0]] - model[keys[1]],
                    "published_us": round(page[keys[0]] - page[keys[1]], 1) if open_pair else None,
                }
            )
    return rows


def byte_costs(model: Grid) -> list[dict]:
    """Nanoseconds per byte of input and of output, from the smallest to the largest size with the other smallest."""
    rows = []
    bytes_between = (VALUES[-1] - VALUES[0]) * BYTES_PER_VALUE
    for mode in MODES:
        first = model[mode, "mean", VALUES[0], VALUES[0]]
        far = {"input": (VALUES[-1], VALUES[0]), "output": (VALUES[0], VALUES[-1])}
        for way, cell in far.items():
            cost = 1e3 * (model[mode, "mean", *cell] - first) / bytes_between
            rows.append({"mode": mode, "of": way, "ns_per_byte": cost, "gb_per_s": 1 / cost})
    return rows


def limit_lines(machine, model: Grid) -> list[dict]:
    """Raw with equal input and output, compared with the time of these bytes on the link alone."""
    links = {f"theory_{g}_x{n}_us": configured(machine, g, n) for g, n in DRAWN}
    rows = []
    for count in VALUES:
        size = count * BYTES_PER_VALUE
        row = {"size_bytes": size, "raw_us": model["raw", "mean", count, count]}
        for name, link in links.items():
            carried = _native.pcie_link(link, size, size)
            row[name] = (carried["read_ps"] + carried["write_ps"]) / 1e6
        rows.append(row)
    return rows


def configured(machine, generation: str, lanes: int):
    """The machine with another link, whose efficiency depends on its width."""
    share = next(r["value"] for r in machine.numbers() if r["key"] == f"facts.link_efficiency_x{lanes}")
    link = {"fabric.generation": f'"{generation}"', "fabric.lanes": str(lanes), "fabric.link_efficiency": share}
    return changed(machine, link)


def configurations(machine) -> list[dict]:
    """Which links carry what the fitted engine moves."""
    rate = values(machine)["fabric.dma_rate"]
    rows = []
    for generation in GENERATIONS:
        for lanes in (8, 16):
            carried = _native.pcie_link(configured(machine, generation, lanes), 1 << 20, 1 << 20)
            read, write = carried["read_rate"] / 1e9, carried["write_rate"] / 1e9
            verdict = "yes" if min(read, write) >= rate else "no"
            link = f"{generation} x{lanes}"
            rows.append({"link": link, "read_gb_s": read, "write_gb_s": write, "allows_fitted_rate": verdict})
    return rows
