"""The Cell Broadband Engine's on-chip network: DMAs between eight SPEs and memory on four slotted rings.

Parts: `streams` (sequences of DMAs and their rates), `curves` (figures 4 and 5), `load` (figure 6, loss cases),
`latency` (figure 7), `experiments` (table 1 and what is no schedule), `collectives`, `facts`, `known` (points that the
text states), `claims`, `blind` (what was held out or never printed, by structural choice), `ablation` and `holdout`.

Source: Kistler, Perrone and Petrini, "Cell Multiprocessor Communication Network: Built for Speed" (IEEE Micro,
May-June 2006). Text and table 1 are used; of the curves only the points that the text states.
"""

from __future__ import annotations

from linkwright.machines import load as load_machine
from linkwright_evidence import Options
from linkwright_evidence import ablation as common_ablation
from linkwright_evidence.cell import (
    ablation,
    blind,
    claims,
    collectives,
    curves,
    experiments,
    facts,
    holdout,
    latency,
    load,
)
from linkwright_evidence.cell.chip import BATCHES, variant
from linkwright_evidence.numbers import tuned
from linkwright_evidence.outcome import Outcome

MACHINE = "cell-be"

BATCH = (
    "so many issued and then all waited for: time per DMA, and of the whole batch. "
    "Batches of 32 exceed the queue of 16."
)
# What the tables show, in words.
NOTES = {
    "figure_4a": "One DMA at a time, waited for: latency. Known: 91 ns to 512 B, except for memory gets. The "
    "default reading lets the data phase of table 1 cover four lines; the other reading one line, "
    "which keeps the bandwidth and loses the flatness. Points are what the article's text states.",
    "figure_4b": "The same as bandwidth. Known at 16 KB: 22.5 GB/s, memory get 15 GB/s.",
    "figure_5a": f"Puts to main memory, {BATCH}",
    "figure_5b": "Puts to main memory: bandwidth of batches. Known: nonblocking reaches 25.6 GB/s from 2 KB on.",
    "figure_5c": f"Gets from main memory, {BATCH}",
    "figure_5d": "Gets from main memory: bandwidth of batches.",
    "figure_5e": f"Puts to a local store, {BATCH}",
    "figure_5f": "Puts to a local store: bandwidth of batches. Known: nonblocking reaches 25.6 GB/s from 2 KB on.",
    "figure_5g": f"Gets from a local store, {BATCH}",
    "figure_5h": "Gets from a local store: bandwidth of batches. Known: the gain of batches, 2 to 3 between 256 B "
    "and 4 KB.",
    "figure_6a": "All SPEs at main memory, or all others at the local store of SPE 0. Known: gets reach "
    "25.6 GB/s with two sources, puts stay about 1.5 below, which the model misses.",
    "figure_6b": "Every SPE is source and target. Known for 8 SPEs: complement slightly below 200 GB/s; "
    "pairwise gets lead puts by 40, which the model misses; uniform 80, by which the arbiter's window was "
    "chosen. Three pairs on a games console, whose SPEs may lie elsewhere, were measured later.",
    "latency_summary": "Figure 7 in numbers: time of 16-KB DMAs of 8 SPEs to or from main memory, by what counts as "
    "their start. Published: mode 5.6 us, worst 13 us. Fair sharing alone means 5.1 us per DMA of each SPE.",
    "figure_7a": "Share of 16-KB puts by latency from their selection by the DMA engine, in steps of 10 ns. "
    "A prediction.",
    "figure_7b": "The same for gets.",
    "where_the_latency_goes": "Table 1 from the trace of one DMA list of one element between SPEs, in SPU cycles.",
    "synchronisation": "A barrier of OR-signals at SPE 0 and back, and a shared counter by getllar and putllc.",
    "lists": "64 pieces: one DMA list, 64 DMAs of the SPU, 64 DMAs that the PPE puts into the proxy queue.",
    "ordering": "Eight DMAs of one tag group in a row; a fence waits for the earlier ones, a barrier holds later "
    "ones too.",
    "alignment": "Streams of 64 puts: what sizes and addresses off the line cost.",
    "refusals": "What the hardware refuses, with its rule, and a circle of waits.",
    "allreduce": "Every allreduce of the registry over eight SPEs, DMA, wait, signal; best_algorithm wins its size.",
    "loss_cases": "The documented ways to lose bandwidth. With identity placement the complement itself goes half "
    "the ring everywhere and fills the rings exactly.",
    "uniform_by_structure": "Aggregate of uniform random traffic by unpublished structure; range over seeds. "
    "Published: 80 GB/s. Held out until all rows but those with the window of the whole chip had been predicted.",
    "patterns_by_structure": "The same structures for the patterns that are known.",
    "flows": "Small sets of flows, gets, with the share of time that the rings are busy, in the mean over segments.",
    "start_jitter": "Starts up to 40 bus cycles apart: a deterministic run could lock into a phase.",
    "longer_runs": "Short windows found steady, against 512 DMAs per SPE.",
    "pairs_alone": "Every ordered pair of SPEs alone.",
    "placements": "Logical SPEs on random hardware units.",
    "six_of_eight": "Any six of the eight units.",
    "ablation": f"{common_ablation.NOTE} Cells by which something was chosen count here too.",
    "from_small_to_large": "The fitted numbers from cells with one SPE; these are cells with several. One SPE alone "
    "says nothing about the arbiter's window, which is given both ways.",
}


PLACEMENTS, PLACEMENTS_FULL = 24, 1000
PANELS = {"put to memory": "figure_7a", "get from memory": "figure_7b"}


def reproduce(options: Options) -> Outcome:
    """The whole study: cells, claims, and the tables behind the figures."""
    machine = load_machine(MACHINE)
    grounds = facts.grounds(machine, options, BATCHES)
    times = latency.hot_spots(machine)
    summaries = [row for operation, found in times.items() for row in latency.summary(found, operation)]
    uniform = blind.uniform(machine, grounds.loads, options)
    structures = blind.patterns(machine, options)
    placed = blind.placements(machine, options, PLACEMENTS_FULL if options.full else PLACEMENTS)
    outcome = Outcome(
        paper="cell",
        title="The on-chip network of the Cell Broadband Engine, re-run on a model",
        machine=MACHINE,
        tuned=tuned(machine),
        notes=NOTES,
    )
    known = facts.cells(grounds)
    outcome.cells = known + blind.cells(uniform, summaries, structures)
    outcome.claims = claims.check(
        claims.Findings(
            machine=machine,
            points=grounds.points,
            loads=grounds.loads,
            losses=grounds.losses,
            placed=placed["get pairwise"],
            latencies=grounds.latencies,
        )
    )
    outcome.tables = {
        "where_the_latency_goes": _components(grounds),
        **curves.figure_4(grounds.points, _other_reading(machine, options)),
        **curves.figure_5(grounds.points),
        "figure_6a": load.hot_rows(grounds.loads),
        "figure_6b": load.pattern_rows(grounds.loads),
        "latency_summary": summaries,
        **{panel: latency.histogram(times[operation]) for operation, panel in PANELS.items()},
        "loss_cases": load.loss_rows(grounds.losses),
        "uniform_by_structure": uniform,
        "patterns_by_structure": structures,
        "placements": blind.placement_rows(placed),
        "flows": blind.small_sets(machine, options),
        "start_jitter": blind.jitter(machine, options),
        "longer_runs": blind.longer(machine, options),
        "synchronisation": experiments.synchronisation(machine),
        "lists": experiments.lists(machine),
        "ordering": experiments.ordering(machine),
        "alignment": experiments.alignment(machine),
        "refusals": experiments.refusals(machine),
        "allreduce": collectives.measure(machine, options),
    }
    if options.full:
        outcome.tables |= {
            "pairs_alone": blind.ordered_pairs(machine, options),
            "six_of_eight": blind.six_of_eight(machine, options),
        }
    if options.ablate:
        outcome.tables["ablation"] = ablation.results(machine, known, options)
    if options.holdout_scale:
        outcome.tables |= holdout.results(machine, options)
    return outcome


def _components(grounds: facts.Grounds) -> list[dict]:
    clock = grounds.values["machine.clock"]
    return [
        {"component": name, "spu_cycles": round(ns * clock, 3), "duration": f"{ns:.4g} ns"}
        for name, ns in grounds.components.items()
    ]


def _other_reading(machine, options: Options) -> curves.Points:
    """Figure 4 where the data phase covers one line."""
    changed = variant(machine, "data phase covers one line")
    return curves.measure(changed, options, ("blocking",), "the other reading")
