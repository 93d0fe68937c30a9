"""`linkwright predict llm MODEL --on MACHINE`: does a large model fit, and how fast does it train?"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import click

from linkwright.base.errors import LinkwrightError, NoLayoutError, NoPeakError, UsageError, check_known
from linkwright.base.units import GIGA, KILO, MEGA, TERA, format_time
from linkwright.cli import options, values
from linkwright.cli.output import print_json, print_table
from linkwright.cli.training_table import say

if TYPE_CHECKING:
    from linkwright import _native
    from linkwright.advise.predict import Program
    from linkwright.advise.predict.llm import ModelForecast, ParallelLayout, Transformer, compute
    from linkwright.advise.predict.llm.serving import ServingForecast
    from linkwright.cli.predict_shown import Shown
    from linkwright.machines import Variant

_DEGREE = click.IntRange(1, 1 << 20)
# Options of training alone, and of serving alone.
TRAINS = (
    "vpp", "cp", "zero", "fsdp", "microbatch", "sequence", "recompute", "sequence_parallel", "overlap_dp", "overlap_tp",
    "overlap_ep", "tokens", "search",
)  # fmt: skip
SERVES = ("context", "prompt", "cache", "prefill_nodes")
SERVED = ("tp", "pp", "dp", "ep")  # degrees of a layout that serves
# Rows of a search.
SHOWN = 12
_UNITS = {"": 1.0, "K": KILO, "M": MEGA, "B": GIGA, "T": TERA}
PRECISIONS, RECOMPUTE = ("bf16", "half", "fp8", "mxfp8", "nvfp4"), ("none", "full")


class Length(click.IntRange):
    """A number of tokens of one sequence: `8192`, `8K` of 1,024 each, or `1M` of 1,024 of these."""

    name = "TOKENS"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """8192 from `8K`."""
        match = re.fullmatch(r"(\d{1,8})([KM]?)", str(value).strip(), re.ASCII)
        if not match:
            self.fail(f"`{value}` is not a number of tokens; write one such as `8192`, `128K` or `1M`", param, ctx)
        return super().convert(int(match[1]) << {"": 0, "K": 10, "M": 20}[match[2]], param, ctx)


_TOKEN_COUNT = values.pattern(
    "TOKENS", r"\s*(?=[\d.]*[1-9])(\d{1,15}(?:\.\d{1,6})?)([KMBT]?)\s*",
    "is not a number of tokens; write one such as `15T` or `300B`", lambda match: float(match[1]) * _UNITS[match[2]],
)  # fmt: skip
_LENGTH = Length(1, 1 << 24)


def _degree(name: str, text: str, usual: str = "1", kind: click.ParamType = _DEGREE) -> object:
    return click.option(f"--{name}", type=kind, help=f"{text}  [default: {usual}]")


@click.command(cls=options.Command, name="llm")
@click.argument("model", metavar="MODEL", shell_complete=options.completed("workloads"))
@options.on(
    "machines", required=True, metavar="MACHINE,..", help="Described machines, or machine files; each is answered."
)
@options.seated
@_degree("tp", "Tensor parallelism: GPUs that share every matrix.")
@_degree("pp", "Pipeline parallelism: stages.")
@_degree("vpp", "Pieces of the model on each stage (interleaved 1F1B).")
@_degree("dp", "Copies of the model.", "the GPUs that are left")
@_degree("ep", "Expert parallelism: GPUs that share the experts, among those of a stage.")
@_degree("cp", "Context parallelism: GPUs that share a sequence.")
@click.option("--zero", type=click.IntRange(0, 3), help="What copies share: 1 optimizer, 2 gradients, 3 parameters.  "
              "[default: 1]")  # fmt: skip
@click.option("--fsdp", is_flag=True, help="Share parameters too: the same as --zero 3.")
@_degree("microbatch", "Sequences of a microbatch.")
@_degree("batch", "Sequences of a step, or requests under way, on all GPUs.", "four microbatches a stage, or a request")
@_degree("sequence", "Tokens of a sequence: `8192`, `8K` or `1M`.", "that of the model", _LENGTH)
@click.option("--precision", type=click.Choice(PRECISIONS), help="Precision of the products.  [default: bf16]")
@click.option(
    "--recompute", type=click.Choice(RECOMPUTE),
    help="Activations that the backward pass computes again; attention is fused in both.  [default: none]",
)  # fmt: skip
@click.option(
    "--sequence-parallel/--no-sequence-parallel", default=None, help="Split norms by --tp too.  [default: on]"
)
@click.option("--overlap-dp/--no-overlap-dp", default=None, help="Hide gradients and parameters.  [default: on]")
@click.option("--overlap-tp/--no-overlap-tp", default=None, help="Hide tensors behind products.  [default: off]")
@click.option("--overlap-ep/--no-overlap-ep", default=None, help="Hide exchanges of experts.  [default: off]")
@click.option("--efficiency", type=values.SHARE, help="Share of the peak that products reach; default: calibrated "
              "where a study did so, else 50 %, from 25 to 75 %.")  # fmt: skip
@click.option("--tokens", type=_TOKEN_COUNT, help="Tokens of the whole training, for the time to train: `15T`.")
@click.option(
    "--compare", multiple=True, metavar="LAYOUT",
    help="Another layout, such as `tp=8,pp=4`, with the other options as given; may be repeated.",
)  # fmt: skip
@click.option(
    "--search", is_flag=True,
    help="Find the fastest layouts that fit: --tp, --pp, --vpp, --ep, --zero and --recompute where not given. Needs "
    "--batch.",
)  # fmt: skip
@click.option("--serve", is_flag=True, help="Serve requests instead of training: --batch of them at once.")
@_degree("context", "Tokens that each request holds, its prompt included (--serve).", "the model's sequence", _LENGTH)
@_degree("prompt", "Tokens of a prompt (--serve).", "--context", _LENGTH)
@click.option("--cache", type=click.Choice(("bf16", "fp8")), help="Precision of keys and values (--serve).  "
              "[default: bf16]")  # fmt: skip
@click.option(
    "--prefill-nodes", type=click.IntRange(1), metavar="N",
    help="Nodes that only compute prompts, the first ones, and send keys and values to the others (--serve).",
)  # fmt: skip
@click.option("--watts", type=values.WATTS, metavar="W", help="Power of a GPU: adds the energy of --tokens, or of a "
              "million output tokens (--serve).")  # fmt: skip
@click.option("--price", type=click.FloatRange(0, min_open=True), metavar="PRICE", help="Price of a GPU and hour: adds "
              "the cost of the same.")  # fmt: skip
@options.as_json
def command(
    model: str, machines: str, variant: Variant, efficiency: float | None, tokens: float | None, fsdp: bool,
    compare: tuple[str, ...], search: bool, serve: bool, prefill_nodes: int | None, watts: float | None,
    price: float | None, as_json: bool, **degrees: object,
) -> int:  # fmt: skip
    """Forecast training of MODEL, or serving with --serve: a shipped one (`linkwright list workloads`), or a file.

    The answer says first whether a GPU can hold its share. All collectives of all groups are simulated on the machine,
    as its library would send them. Ranks are numbered tp, cp, dp, pp, the first fastest, and sit on the GPUs in that
    order. The exit status is 1 if no layout fits. docs/large-models.md explains what is modelled and what is not.
    """
    from linkwright.advise import predict
    from linkwright.advise.predict import llm
    from linkwright.cli.progress import Progress

    if fsdp and degrees["zero"] not in (None, 3):
        raise UsageError(f"--fsdp is --zero 3, and --zero {degrees['zero']} is given; omit one of them")
    given = {name: value for name, value in degrees.items() if value is not None and name not in SERVES}
    given |= {"zero": 3} if fsdp else {}
    options.check_efficiency(efficiency)
    if search and compare:
        raise UsageError("--search finds layouts and --compare names them; omit one of them")
    if search and "dp" in given:
        raise UsageError("--search gives --dp what the other degrees leave; omit it")
    layouts = [
        llm.ParallelLayout(**given),
        *(replace(llm.ParallelLayout(**given), **_layout(text)) for text in compare),
    ]
    _one_kind(serve)
    for text in compare if serve else ():
        if other := next((name for name in _layout(text) if name not in SERVED), None):
            raise UsageError(f"--compare {text}: {other} is the same in all that serves; compare {', '.join(SERVED)}")
    if (watts or price) and not (serve or tokens):
        raise UsageError("--watts and --price are for a whole training; give its --tokens, or --serve")
    found = predict.read(predict.find(model))
    if found.kind != "transformer":
        raise UsageError(f"{found.head.where} has kind {found.kind}; use `linkwright predict {model}` without `llm`")
    trained = llm.read(found.document, found.head)
    progress = Progress(1, "simulating")
    if serve:
        from linkwright.cli import serving_table

        load = {name: degrees[name] for name in ("batch", "context", "prompt", "cache") if degrees[name]}
        served = [
            _Forecaster(trained, name.strip(), variant, efficiency).serve(layout, load, prefill_nodes or 0)
            for name in machines.split(",")
            for layout in layouts
        ]
        progress.close()
        return serving_table.show(served, watts, price, as_json)
    made, unseen = [], 0
    without: list[LinkwrightError] = []
    for name in (one.strip() for one in machines.split(",")):
        forecaster = _Forecaster(trained, name, variant, efficiency)
        if search:
            try:
                found_here, unseen_here = forecaster.search(given)
            except NoLayoutError as error:
                without.append(NoLayoutError(f"{forecaster.machine}: {error}"))
                continue
            except NoPeakError as error:
                without.append(error)
                continue
            made, unseen = made + found_here, unseen + unseen_here
        else:
            made += [forecaster.forecast(layout) for layout in layouts]
    progress.close()
    if without and not made:
        for error in without[:-1]:
            click.echo(f"linkwright: {error}", err=True)
        raise without[-1]
    if as_json:
        plain = [one.as_dict() | (one.whole(tokens, watts, price) if tokens else {}) for one in made]
        many = {"forecasts": plain} | (
            {"not_simulated": unseen, "no_layout": [str(error) for error in without]} if search else {}
        )
        print_json(plain[0] if len(plain) == 1 and not search else many)
    else:
        _print(made, (tokens, watts, price), search)
        for error in without:
            say(str(error))
        if unseen:
            say(f"{unseen:,} other layouts could be as fast, by what wires allow, and were not simulated; give "
                "some degrees to search among fewer")  # fmt: skip
    return 1 if all(one.fits is False for one in made) else 0


def _one_kind(serve: bool) -> None:
    """Refuse options of training when serving, and those of serving when training."""
    for name in TRAINS if serve else SERVES:
        if options.given(name):
            word = "is about training; omit it, or --serve" if serve else "is about serving; add --serve"
            raise UsageError(f"--{name.replace('_', '-')} {word}")


def answer(found: Program, machines: list[_native.Machine], asked: dict, shown: Shown) -> int:
    """Refuse a transformer without the word `llm`, whose options are others."""
    raise UsageError(f"{found.head.where} is a transformer; write `linkwright predict llm {found.head['name']} ...`")


class _Forecaster:
    """A model on one machine; what was simulated serves all layouts."""

    def __init__(self, model: Transformer, name: str, variant: Variant, efficiency: float | None):
        from linkwright.machines import load

        self._model, self._name, self._variant, self._efficiency = model, name, variant, efficiency
        self._machine = load(name, variant)
        if self._machine.open_size:
            raise UsageError(
                f"{self._machine.name} takes any number of endpoints; choose a machine with GPUs, and --nodes"
            )
        self._places = variant.places(self._machine, None) or tuple(range(self._machine.ranks))
        self._ranks = len(self._places)
        self._exchanges: dict[int, tuple] = {}

    @property
    def machine(self) -> str:
        """Name of the machine."""
        return str(self._machine.name)

    def _chip(self, precision: str) -> compute.ChipRates:
        from linkwright.advise.predict.llm import compute

        return compute.chip(self._machine, precision, self._efficiency)

    def forecast(self, layout: ParallelLayout) -> ModelForecast:
        """The forecast of one layout."""
        from linkwright.advise.predict import llm
        from linkwright.machines import load

        nodes = _nodes(self._model, layout, self._ranks, self._variant)
        if nodes not in self._exchanges:
            machine = load(self._name, replace(self._variant, nodes=nodes)) if nodes else self._machine
            asked = replace(self._variant, nodes=nodes) if nodes else self._variant
            places = asked.places(machine, None) or tuple(range(machine.ranks))
            self._exchanges[nodes] = machine, places, llm.GroupExchanges(machine, places)
        machine, places, known = self._exchanges[nodes]
        chip = self._chip(layout.precision)
        made = llm.forecast_model(self._model, layout, machine, places, chip, exchanges=known, ranks=self._ranks)
        return replace(made, machine=self._machine.name)

    def serve(self, layout: ParallelLayout, load: dict, prefill_nodes: int) -> ServingForecast:
        """The forecast of one layout that serves."""
        from linkwright.advise.predict.llm import GroupExchanges, serving
        from linkwright.advise.predict.rates import capacity_bytes

        nodes = self._variant.nodes or 1
        if prefill_nodes >= nodes:
            raise UsageError(
                f"--prefill-nodes {prefill_nodes} of {nodes} leaves no node to serve; "
                + (f"use at most {nodes - 1}, or more --nodes" if nodes > 1 else "give --nodes 2 or more")
            )
        per_node = self._machine.ranks // nodes
        split = prefill_nodes * per_node
        places = (*(at for at in self._places if at < split), *(at for at in self._places if at >= split))
        first = sum(at < split for at in places)
        apart = None
        if prefill_nodes:
            if first in (0, len(places)):
                raise UsageError(
                    f"--prefill-nodes {prefill_nodes}: --place leaves no rank on {'these' if not first else 'other'} "
                    "nodes; place ranks on both"
                )
            whole, own = GroupExchanges(self._machine, places), GroupExchanges(self._machine, places[:first])
            apart = serving.Prefill(first, own, whole)
        return serving.forecast_serving(
            self._model, layout, serving.ServingLoad(**load), self._chip(layout.precision),
            GroupExchanges(self._machine, places[first:]), machine=self._machine.name, ranks=len(places) - first,
            capacity=capacity_bytes(self._machine), prefill=apart,
        )  # fmt: skip

    def search(self, given: dict[str, object]) -> tuple[list[ModelForecast], int]:
        """The forecasts of the fastest layouts, and how many others could be as fast."""
        from linkwright.advise.predict.llm import TIE
        from linkwright.advise.predict.llm.search import fastest_layouts
        from linkwright.advise.predict.llm.together import WireExchanges
        from linkwright.advise.predict.rates import capacity_bytes

        nodes = self._variant.nodes or 1
        wires = WireExchanges(self._machine, self._places)
        return fastest_layouts(
            self._model, given, self._chip(str(given.get("precision", "bf16"))), wires, self.forecast,
            ranks=self._ranks, per_node=max(1, self._ranks // nodes), capacity=capacity_bytes(self._machine), tie=TIE,
        )  # fmt: skip


def _nodes(model: Transformer, layout: ParallelLayout, ranks: int, variant: Variant) -> int:
    """Nodes of two stages, which stand for all of them: stages are alike where each has whole nodes; 0: all nodes."""
    stage = layout.checked(model, ranks).stage
    nodes, each = variant.nodes or 1, ranks // (variant.nodes or 1)
    alike = layout.pp > 2 and not stage % each and not (variant.without or variant.degrade or variant.place)
    return 2 * stage // each if alike and 2 * stage // each < nodes else 0


def _layout(text: str) -> dict[str, object]:
    """{"tp": 8, "pp": 4} from `tp=8,pp=4`."""
    from linkwright.advise.predict.llm import ParallelLayout

    known = {one.name for one in fields(ParallelLayout) if one.type == "int"}
    found: dict[str, object] = {}
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        check_known("degree", name, known, where=f"--compare {text}")
        if not re.fullmatch(r"\d{1,7}", value, re.ASCII) or (int(value) < 1 and name != "zero"):
            raise UsageError(f"--compare {text}: `{part}` has no number above 0; write layouts as `tp=8,pp=4`")
        if name in found:
            raise UsageError(f"--compare {text}: states {name} twice; repeat --compare for another layout")
        found[name] = int(value)
    return found


def _print(made: list[ModelForecast], asked: tuple[float | None, ...], search: bool) -> None:
    from linkwright.advise.predict.llm import TIE

    ranked = sorted((one for one in made if one.step), key=lambda one: one.step.time_ns / one.tokens)
    firsts = list({one.machine: one for one in reversed(ranked)}.values())[::-1]  # the fastest of each machine
    for number, one in enumerate(firsts if search else made):
        click.echo("\n" if number else "", nl=False)
        _print_one(one, *asked)
    if len(made) == 1:
        return
    rows = []
    shown = [one for place, one in enumerate(ranked) if place < SHOWN or one in firsts] if search else ranked
    for number, one in enumerate(shown):
        ties = number and one.tokens_per_s_per_gpu * (1 + TIE) >= ranked[0].tokens_per_s_per_gpu
        rate = [f"{one.tokens_per_s_per_gpu:,.0f}", f"{one.mfu:.1%}", "~" if ties else ""]
        rows.append([one.machine, one.layout.words(), *rate])
    rows += [[one.machine, one.layout.words(), "does not fit", "-", ""] for one in made if not one.step]
    click.echo(f"\nfastest first; ~ within {TIE:.0%} of the first, which the model cannot tell apart")
    print_table(["machine", "layout", "tokens/s/GPU", "MFU", ""], rows, left=(0, 1, 4))
    say("the model's own errors are in docs/studies/training.md")


def _print_one(one: ModelForecast, tokens: float | None, watts: float | None, price: float | None) -> None:
    from linkwright.advise.predict.llm import NOT_MODELLED

    model, held = one.model, one.memory
    active = f", {model.active / GIGA:,.1f} B of them active" if model.experts else ""
    click.echo(f"{model.name} ({model.parameters / GIGA:,.1f} B parameters{active}) on {one.machine}")
    batch = f"batch {one.layout.batch} x {one.layout.sequence:,} tokens, microbatch {one.layout.microbatch}"
    click.echo(f"{one.layout.ranks} GPUs: {one.layout.words()}; {batch}; {one.chip.precision}\n")
    rows = [[name, f"{size / GIGA:,.1f} GB"] for name, size in vars(held).items()]
    print_table(["memory of a GPU", ""], [*rows, ["total", f"{held.total / GIGA:,.1f} GB"]])
    say(_room(one))
    if one.step is None:
        return
    made = one.step
    click.echo("")
    rate, usual = one.tokens_per_s_per_gpu or 0.0, made.time_ns
    say(f"step {format_time(usual)} ({format_time(one.low_ns)} to {format_time(one.high_ns)}): {rate:,.0f} "
        f"tokens/s/GPU ({rate * usual / one.high_ns:,.0f} to {rate * usual / one.low_ns:,.0f}), "
        f"{(one.flops_per_s or 0) / TERA:,.0f} TFlop/s/GPU, MFU {one.mfu:.1%}")  # fmt: skip
    if one.spread:
        wider = "; wider here, as the share of the peak is assumed" if one.chip.assumed else ""
        say(f"range: nine in ten of {one.spread.rows} published runs ({one.spread.source}){wider}")
    say(f"compute {made.compute_ns / made.time_ns:.1%}, bubble {made.bubble_ns / made.time_ns:.1%}, optimizer "
        f"{made.optimizer_ns / made.time_ns:.1%}; products reach {one.chip.reached:.1%} of "
        f"{one.chip.peak_flops_per_s / TERA:,.0f} TFlop/s ({one.chip.basis})")  # fmt: skip
    if tokens:
        from linkwright.show.shown import duration

        whole = one.whole(tokens, watts, price)
        say(f"{tokens / TERA:g} T tokens: {duration(whole['training_s'])} ({duration(whole['low_s'])} to "
            f"{duration(whole['high_s'])}), without restarts")  # fmt: skip
        if watts:
            say(f"energy {whole['energy_kwh'] / KILO:,.4g} MWh: {one.layout.ranks} GPUs at {watts:g} W all the time")
        if price:
            say(f"cost {whole['cost']:,.0f}: {one.layout.ranks} GPUs at {price:g} an hour")
    if made.groups:
        click.echo("")
        rows = [_group(group.as_dict(), made.time_ns) for group in made.groups]
        print_table(["group", "ranks", "busy", "exposed", "busiest link", "by", "at once"], rows, left=(0, 4, 5))
    click.echo()
    if one.sampled:
        say("simulated in part: " + "; ".join(one.sampled) + "; the others are taken to be alike")
    say("not modelled: " + "; ".join(NOT_MODELLED))


def _group(group: dict, step_ns: float) -> list[str]:
    together = f"{group['groups_at_once']}, {group['simulated_together']} share links"
    alone = f"{group['groups_at_once']}, none meet"
    return [
        group["group"], str(group["ranks"]), f"{group['busy_ns'] / step_ns:.1%}",
        f"{group['exposed_ns'] / step_ns:.1%}", group["link"], group["choice"],
        together if group["simulated_together"] > 1 else alone,
    ]  # fmt: skip


def _room(one: ModelForecast) -> str:
    if one.capacity_bytes is None:
        return "the machine states no capacity, so this was not checked"
    room, total = one.capacity_bytes / GIGA, one.memory.total / GIGA
    if one.fits:
        return f"FITS: {total:,.1f} GB of {room:,.0f} GB"
    cures = ["divide the model further (--tp, --pp, --ep)"]
    cures += ["share its state (--fsdp)"] if one.layout.zero < 3 else []
    cures += ["compute again (--recompute full)"] if one.layout.recompute != "full" else []
    return (
        f"DOES NOT FIT: {total:,.1f} GB of {room:,.0f} GB, {total - room:,.1f} GB too much; the largest part is "
        f"{one.memory.largest}. To fit, {', or '.join(cures)}"
    )
