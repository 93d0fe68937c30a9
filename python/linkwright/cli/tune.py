"""`linkwright tune --on MACHINE --for RUNTIME`: what makes a communication runtime, or an engine, the fastest."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwright.base.errors import UsageError
from linkwright.cli import exchanges, options, values

if TYPE_CHECKING:
    from linkwright.formats.tuning.engines import Engine
    from linkwright.formats.tuning.rules import Table
    from linkwright.formats.tuning.runtime import About, Runtime
    from linkwright.machines import Variant

# From a cache line to what fills links, by 8.
SIZES = "8,64,512,4K,32K,256K,2M,16M,128M"


@click.command(cls=options.Command, name="tune")
@options.on(help="A described machine, or the path of a machine file: the times are predicted.")
@click.option("--run", metavar="RUN", help="A finished run, `latest` for the last one: its times are taken.")
@click.option(
    "--for", "runtime_key", required=True, metavar="RUNTIME", shell_complete=options.completed("runtimes"),
    help="The runtime or engine, such as nccl or vllm-0.24; `linkwright list runtimes` lists all.",
)  # fmt: skip
@options.file("--out", help="Write to FILE; default: stdout.")
@click.option("--collectives", metavar="A,B", help="Only these collectives; default: all that the runtime has.")
@click.option(
    "--ranks", "-p", type=values.RANK_COUNTS,
    help="With --on: numbers of ranks, such as `8` or `2,4,8`; default: all that the machine has.",
)  # fmt: skip
@click.option("--sizes", default=SIZES, show_default=True, metavar="A,B,C", help="With --on: message sizes.")
@exchanges.experts
@options.seated
@click.option("--machine", metavar="NAME", help="With --run: use only this machine of the run.")
@options.file("--base", help="With --for mpich: the selection file of MPICH to extend.")
@options.seed
@options.runs
def command(
    on: str | None,
    run: str | None,
    runtime_key: str,
    out: Path | None,
    collectives: str | None,
    ranks: tuple[int, ...] | None,
    sizes: str,
    variant: Variant,
    machine: str | None,
    base: Path | None,
    seed: int,
    root_folder: Path,
    **experts: Any,
) -> None:
    """A table states the algorithm from each size on, by collective and ranks. It switches only where times differ
    by more than their spread and by at least 2 %; each line states its gain. Algorithms that the runtime does not
    have are omitted. `docs/tuning.md` shows how each runtime takes its file.

    For an engine that serves models, the answer is the setting that makes it take the fastest kernels, if it gains
    more than the error of the model. DeepEP takes the options of experts; without them they are those of DeepSeek-V3.

    \b
    linkwright tune --on hgx-h100 --for nccl --out nccl_tuner.conf
    linkwright tune --on hgx-h100 --for vllm-0.24 -p 2
    linkwright tune --on hgx-h100 --nodes 2 --for deepep --tokens 128,4096
    linkwright tune --run latest --for openmpi --out rules
    """
    from linkwright.base.files import check_place
    from linkwright.formats import tuning

    if engine := tuning.engines.find(runtime_key):
        tables = {"--run": run, "--collectives": collectives, "--machine": machine, "--base": base}
        return _engine(*engine, on, out, tables, ranks, sizes if options.given("sizes") else "", variant, experts)
    runtime = tuning.find(runtime_key)
    _refuse(f"--for {runtime.key}", {f"--{name}": value for name, value in experts.items()})
    if (on is None) == (run is None):
        raise UsageError("give either --on MACHINE, to predict, or --run RUN, to use measured times")
    if base and not runtime.needs_base:
        raise UsageError(f"--base: {runtime.key} does not extend a file; omit it")
    if runtime.needs_base and not base:
        raise UsageError(f"--for {runtime.key}: name the selection file to extend with --base FILE")
    if out:
        check_place(out, f"--out {out}")
    wanted = tuple(collectives.split(",")) if collectives else ()
    if on is not None:
        _refuse("--on", {"--machine": machine})
        found, about = _predicted(runtime, on, wanted, ranks, sizes, variant, base, seed)
    else:
        given = {"--ranks": ranks, "--nodes and the like": variant, "--sizes": sizes if sizes != SIZES else None}
        _refuse("--run", given)
        found, about = _measured(runtime, run or "latest", wanted, machine, base, root_folder)
    _write(runtime, found, about, out)


def _engine(
    engine: Engine, version: str, on: str | None, out: Path | None, given: Mapping[str, object],
    ranks: tuple[int, ...] | None, sizes: str, variant: Variant, experts: Mapping[str, Any],
) -> None:  # fmt: skip
    """The settings of an engine that serves models."""
    from linkwright.base.files import check_place, write_text
    from linkwright.formats.tuning import engines
    from linkwright.machines import Variant

    name = f"--for {engine.key}"
    if on is None:
        raise UsageError(f"{name}: its kernels are predicted; name a machine with --on MACHINE")
    its = {f"--{word}": value for word, value in experts.items()}
    ignored = {"--seed": options.given("seed"), "--runs": options.given("root_folder")}
    _refuse(name, {**given, **ignored, **({"--sizes": sizes} if engine.exchanges else its)})
    if variant != Variant(nodes=variant.nodes):
        raise UsageError(f"{name}: its kernels are described on whole machines; of them, use --nodes and -p only")
    if ranks and len(ranks) > 1:
        raise UsageError(f"--ranks: {name} answers for one number of ranks; give one")
    if out:
        check_place(out, f"--out {out}")
    stated = {word: value for word, value in experts.items() if value}
    listed = options.chosen_sizes("allreduce", "bf16", 0, 0, 0, sizes) if sizes else ()
    text = engines.text(
        engines.EngineQuestion(engine.key, version, on, variant.nodes or 1, ranks[0] if ranks else 0, listed, **stated)
    )
    if out is None:
        click.echo(text, nl=False)
        return
    write_text(out, text)
    click.echo(f"wrote {out}: {engine.key} on {on}, predicted")


def _refuse(source: str, given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value:
            raise UsageError(f"{option}: does not apply to {source}; omit it")


def _predicted(
    runtime: Runtime, on: str, wanted: tuple[str, ...], ranks: tuple[int, ...] | None, sizes: str, variant: Variant,
    base: Path | None, seed: int,
) -> tuple[list[Table], About]:  # fmt: skip
    """Tables from simulations."""
    from linkwright.cli.progress import Progress
    from linkwright.executors import ModelledTarget, resolve_one
    from linkwright.formats import tuning
    from linkwright.formats.tuning.predicted import prediction
    from linkwright.formats.tuning.runtime import About

    target = resolve_one(on, max(ranks) if ranks else None, variant=variant)
    if not isinstance(target, ModelledTarget):
        raise UsageError(
            f"--on {on}: this executor measures; make a run first (`linkwright dissect --on {on}`), then `tune --run`"
        )
    asked = options.chosen_sizes("allreduce", "f32", 0, 0, 0, sizes)
    todo = prediction(runtime, target, wanted, ranks, asked, seed)
    with closing(Progress(len(todo.questions), "simulating")) as progress:
        for done, (experiment, _) in enumerate(todo, 1):
            progress.show(done, experiment.key)
    about = About(f"{target.machine_name}, predicted", todo.channels, variant.nodes, base)
    return tuning.tables_of(runtime, todo.rows), about


def _measured(
    runtime: Runtime, run: str, wanted: tuple[str, ...], machine: str | None, base: Path | None, root_folder: Path
) -> tuple[list[Table], About]:
    """Tables from the rows of a run."""
    from linkwright.formats import interop, tuning
    from linkwright.formats.tuning.runtime import About
    from linkwright.store import run as runs

    content = interop.content(runs.find(root_folder, run), machine)
    rows = [row for row in content.rows if row["metric"] == "time" and (not wanted or row["collective"] in wanted)]
    content.only_machine([row for row in rows if row["value"] and row["collective"]], "times")
    return tuning.tables_of(runtime, rows), About(content.run, base=base)


def _write(runtime: Runtime, tables: list[Table], about: About, out: Path | None) -> None:
    """The file, a file of reasons where it has no comments, and what is left out."""
    from linkwright.base.files import write_text

    if not tables:
        raise UsageError(
            f"--for {runtime.key}: {about.title} has no time of an algorithm that {runtime.key} has; "
            f"`linkwright describe {runtime.key}` lists them"
        )
    written = runtime.render(tables, about)
    if out is None:
        click.echo(written.text, nl=False)
        return
    write_text(out, written.text)
    rules = sum(len(table.rules) for table in tables)
    click.echo(f"wrote {out}: {runtime.key}, {len(tables)} tables with {rules} rules, from {about.title}")
    if written.reasons:
        beside = out.with_name(f"{out.name}.reasons.txt")
        write_text(beside, written.reasons)
        click.echo(f"wrote {beside}: the reasons, which the format cannot hold")
