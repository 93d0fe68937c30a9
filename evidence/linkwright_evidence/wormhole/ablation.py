"""The mechanisms of the machine, each taken away in turn, for `--ablate`; nothing is fitted anew."""

from __future__ import annotations

from linkwright_evidence import Options, ablation, parallel
from linkwright_evidence.numbers import changed
from linkwright_evidence.wormhole import movement
from linkwright_evidence.wormhole.allreduce import LO_SIZES_KIB, PROTOCOL, Bench

LINK_PACKET = "257"  # flits of a packet of 8 KiB, as many cycles on a link
# Mechanism -> what is changed in the machine file; first those that a single tile on an idle chip meets.
IDLE: dict[str, dict[str, str]] = {
    "pace of issue": {f"fabric.issue_{kind}": "0" for kind in ("write", "read", "self")},
    "packets slower than a link": {f"fabric.packet_{kind}": LINK_PACKET for kind in ("write", "read", "self")},
    "latency of DRAM": {"fabric.dram_read_extra": "0", "fabric.dram_write_extra": "0"},
    "least time of a DRAM access": {"fabric.dram_least": "0"},
    "partial writes": {"fabric.dram_partial_write": "0"},
    "cost of a barrier": {"path.ideal.barrier": "0"},
}
CONTENDED: dict[str, dict[str, str]] = {
    "finite buffers": {"fabric.buffers": '"unlimited"'},
    "buddy channels at each router": {"fabric.buddy": '"sender"'},
    "acknowledgements that nobody awaits": {"fabric.acknowledgements": '"awaited"'},
    "start of a notice": {"path.ideal.notice_start": "0"},
    "polling of a receiver": {"path.ideal.receive": "0"},
    "arithmetic": {"path.ideal.combine_per_tile": "0"},
    "handling of tiles": {"path.ideal.tile_handling": "0"},
    "windows": {f"{PROTOCOL}.windows_at_least": "1", f"{PROTOCOL}.window_tiles": str(max(LO_SIZES_KIB))},
}
MECHANISMS = IDLE | CONTENDED
VARIANTS = ("swing_LO", "rd_LO", "swing_BO", "rd_BO")
SIZE_KIB = 128


def tables(bench: Bench, cells: list, options: Options) -> dict[str, list[dict]]:
    """The data movement cells and the allreduces of 128 kB without each mechanism."""

    def without(values: dict[str, str]) -> list:
        return movement.cells(changed(bench.machine, values), lambda *_: None)

    def is_pooled(cell) -> bool:
        return cell.table in movement.PATTERNS

    scored = ablation.table(IDLE, without, cells, options.progress, is_pooled)
    return {"ablation": scored, "ablation_allreduce": _allreduces(bench, options)}


def _allreduces(bench: Bench, options: Options) -> list[dict]:
    """Run times without each mechanism, in percent of those with all."""
    whole = {variant: bench.slowest(variant, SIZE_KIB) for variant in VARIANTS}

    def one(name: str) -> dict:
        there = bench.changed(MECHANISMS[name])
        shares = {f"{v}_percent": 100 * there.slowest(v, SIZE_KIB) / whole[v] for v in VARIANTS}
        return {"without": name, **shares}

    return parallel(one, [(name,) for name in MECHANISMS], options, "ablation of allreduces")
