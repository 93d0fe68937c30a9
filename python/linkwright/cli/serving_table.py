"""Serving of a large model as text: memory, first token, output token, and layouts side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from linkwright.advise.predict.llm.compute import WIDE
from linkwright.base.units import GIGA, TERA, counted, format_time
from linkwright.cli.output import print_json, print_table
from linkwright.cli.training_table import say

if TYPE_CHECKING:
    from linkwright.advise.predict.llm.serving import PassTime, ServingForecast

# A part of a pass above this share decides it.
DECIDES = 0.4
ASSUMED = {
    "arithmetic": "arithmetic, whose kernels are not simulated: a share of the peak",
    "kernel starts": "starts of kernels, which are not simulated: an assumed time each",
}


def show(made: Sequence[ServingForecast], watts: float | None, price: float | None, as_json: bool) -> int:
    """Print the forecasts; return the exit status, 1 if none fits."""
    if as_json:
        plain = [one.as_dict() | one.per_million(watts, price) for one in made]
        print_json(plain[0] if len(plain) == 1 else {"forecasts": plain})
        return 1 if all(one.fits is False for one in made) else 0
    for number, one in enumerate(made):
        click.echo("\n" if number else "", nl=False)
        _print_one(one, watts, price)
    if len(made) > 1:
        found = [
            (one.tokens_per_s_per_gpu["usual"], one, one.first.time_ns, one.token.time_ns)
            for one in made
            if one.first and one.token
        ]
        rows = [
            [one.machine, one.layout.words(), format_time(first), format_time(token), f"{rate:,.0f}"]
            for rate, one, first, token in sorted(found, key=lambda row: -row[0])
        ]
        rows += [[one.machine, one.layout.words(), "does not fit", "-", "-"] for one in made if not one.token]
        click.echo("\nmost tokens first; the ranges above say what the model can tell apart")
        print_table(["machine", "layout", "first token", "output token", "tokens/s/GPU"], rows, left=(0, 1))
    return 1 if all(one.fits is False for one in made) else 0


def _print_one(one: ServingForecast, watts: float | None, price: float | None) -> None:
    model, load, held = one.model, one.load, one.memory
    active = f", {model.active / GIGA:,.1f} B of them active" if model.experts else ""
    say(f"serving {model.name} ({model.parameters / GIGA:,.1f} B parameters{active}) on {one.machine}")
    say(f"{one.layout.ranks} GPUs: {one.layout.words()}; batch {load.batch}, context {load.context:,} tokens, prompt "
        f"{load.prompt:,}; {one.chip.precision}, keys and values {load.cache}\n")  # fmt: skip
    if one.prefill_gpus:
        say(f"{one.prefill_gpus} other GPUs compute prompts\n")
    rows = [[name.replace("cache", "KV cache"), f"{size / GIGA:,.1f} GB"] for name, size in vars(held).items()]
    print_table(["memory of a GPU", ""], [*rows, ["total", f"{held.total / GIGA:,.1f} GB"]])
    say(_room(one))
    if one.first is None or one.token is None:
        return
    click.echo()
    say(f"time to first token    {_range(one.first)}, one prompt on each copy, no queue")
    token = one.token
    rate = one.tokens_per_s_per_gpu
    say(f"time per output token  {_range(token)}")
    say(f"output                 {rate['usual']:,.0f} tokens/s/GPU ({rate['low']:,.0f} to {rate['high']:,.0f}), "
        f"{_counted(one)}")  # fmt: skip
    if one.idle_stages:
        copies, stages = one.layout.dp, one.layout.pp
        say(f"{one.idle_stages} of {stages} stages are idle at any time: a copy has "
            f"{counted(one.load.batch // copies, 'sequence')}; a batch of {copies * stages} takes no longer for a "
            "token")  # fmt: skip
    million, what = one.per_million(watts, price), "for a million output tokens"
    gpus = one.layout.ranks + one.prefill_gpus
    if watts:
        say(f"energy {million['energy_kwh']:,.3g} kWh {what}: each of {gpus} GPUs at {watts:g} W")
    if price:
        say(f"cost {million['cost']:,.3g} {what}: each of {gpus} GPUs at {price:g} an hour")
    click.echo()
    rows = [
        [name, *(f"{part.parts[name] / part.time_ns:.1%}" if name in part.parts else "" for part in (one.first, token))]
        for name in one.first.parts
    ]
    print_table(["share of", "first token", "output token"], rows)
    rows = [
        [word, group["group"], str(group["ranks"]), format_time(group["busy_ns"]), group["link"], group["choice"]]
        for word, part in (("first", one.first), ("output", token))
        for group in (group.as_dict() for group in part.groups)
    ]
    if rows:
        click.echo()
        print_table(["token", "group", "ranks", "busy", "busiest link", "library's choice"], rows, left=(0, 1, 4, 5))
    click.echo()
    for word, part in (("the first token", one.first), ("an output token", token)):
        if part.largest in ASSUMED and part.parts[part.largest] > DECIDES * part.time_ns:
            say(f"not ours: {part.parts[part.largest] / part.time_ns:.0%} of {word} is {ASSUMED[part.largest]}; use "
                "the range")  # fmt: skip
    say(f"products reach {one.chip.reached:.1%} of {one.chip.peak_flops_per_s / TERA:,.0f} TFlop/s ({one.chip.basis})")
    say("not modelled: " + "; ".join(one.not_modelled))


def _counted(one: ServingForecast) -> str:
    """What the rate of output includes."""
    made = one.requests
    if made is None:
        return "prompts not counted: no token follows them; give a --prompt below --context to count them"
    asked = f"{made.per_s['usual']:,.3g} requests/s of {made.outputs:,} tokens"
    if not made.apart:
        return f"{asked}; prompts take {made.prompt_share:.0%} of the time"
    if made.binds == "prompts":
        return (
            f"{asked}, all GPUs counted; prompts bind: output alone could take {made.output['usual']:,.3g} requests/s"
        )
    return f"{asked}, all GPUs counted; those that compute prompts are busy {made.prompt_share:.0%} of the time"


def _range(part: PassTime) -> str:
    return f"{format_time(part.time_ns)} ({format_time(part.low_ns)} to {format_time(part.high_ns)})"


def _room(one: ServingForecast) -> str:
    if one.capacity_bytes is None:
        return "the machine states no capacity, so this was not checked"
    total, room = one.memory.total / GIGA, one.capacity_bytes / GIGA
    if one.fits:
        return f"FITS: {total:,.1f} GB of {room:,.0f} GB; the largest batch that fits is {one.largest_batch:,}"
    if one.largest_batch:
        cures = [f"use --batch {one.largest_batch:,}", "a shorter --context"]
        cures += ["--cache fp8"] if one.load.cache == "bf16" else []
    else:
        cures = ["divide the model further (--tp, --pp, --ep)"]
        cures += ["use --precision fp8"] if one.chip.precision in WIDE and "fp8" in one.chip.precisions else []
    cure = ", or ".join(cures)
    return f"DOES NOT FIT: {total:,.1f} GB of {room:,.0f} GB, {total - room:,.1f} GB too much; {cure}"
