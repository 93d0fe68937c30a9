"""Uneven exchanges on the command line: the options that state them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import click

from linkwright.ask.exchange import EVEN_BY_DEFAULT, UnevenExchange, read_counts, token_of, uneven
from linkwright.ask.question import DTYPES
from linkwright.base.errors import UsageError
from linkwright.cli import options, values


def _tokens(text: str) -> tuple[int, ...]:
    """(1, 128) from `1,128`."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"`{text}` is not a number of tokens; write `4096`, or several: `1,128,4096`") from None
    if min(found) < 1:
        raise UsageError(f"`{text}`: every rank has at least 1 token; of ranks without any, state --counts")
    return found


_options = (
    click.option(
        "--tokens", type=values.OptionType("N", _tokens),
        help="Tokens that each rank holds, or several: `4096`, `1,128,4096`.",
    ),
    click.option("--experts", type=click.IntRange(1), metavar="N", help="Experts of all ranks together."),
    click.option("--topk", type=click.IntRange(1), metavar="N", help="Experts of one token."),
    click.option("--hidden", type=click.IntRange(1), metavar="N", help="Elements of one token."),
    click.option("--routing", metavar="HOW", help="How tokens choose experts: uniform, zipf:S.  [default: uniform]"),
    click.option(
        "--counts", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
        help="CSV file of the elements that each rank (row) has for each rank, in place of tokens.",
    ),
)  # fmt: skip
experts = options.together(*_options[:4])  # those of tokens and experts alone


@dataclass(frozen=True)
class Stated:
    """The options of an uneven exchange as they are typed."""

    tokens: tuple[int, ...] | None
    experts: int | None
    topk: int | None
    hidden: int | None
    routing: str | None
    counts: Path | None

    def of(self, subject: options.Subject, dtype: str, seed: int) -> Dealt | None:
        """The exchange that `subject` is asked for; None if none is stated."""
        given = [flag for name, flag in _FLAGS.items() if getattr(self, name) is not None]
        if subject.collective not in uneven():
            if given:
                raise UsageError(f"{given[0]}: only {', '.join(sorted(uneven()))} are uneven; omit it")
            if dtype not in DTYPES:
                raise UsageError(
                    f"--dtype {dtype}: only tokens of a dispatch travel packed; use one of {', '.join(DTYPES)}"
                )
            return None
        if options.given("min_bytes", "max_bytes", "factor", "size_list", "sizes") and given:
            raise UsageError(f"{given[0]}: states the size, too; omit the sizes")
        if self.counts is not None:
            if len(given) > 1:
                raise UsageError(f"--counts: states everything; omit {given[0]}")
            return self._counted(self.counts, dtype)
        if not given and subject.collective == EVEN_BY_DEFAULT and dtype in DTYPES:
            return None
        lacking = [flag for name, flag in _FLAGS.items() if getattr(self, name) is None]
        missing = [flag for flag in lacking if flag not in ("--routing", "--counts")]
        if missing:
            raise UsageError(f"{subject.title}: lacks {', '.join(missing)}; state all four, or --counts")
        return self._routed(str(subject.collective), dtype, seed)

    def _counted(self, counts: Path, dtype: str) -> Dealt:
        if dtype not in DTYPES:
            raise UsageError(f"--dtype {dtype}: counts are of unpacked elements; use one of {', '.join(DTYPES)}")
        matrix = read_counts(counts)
        size = max(map(sum, matrix)) * DTYPES[dtype]
        return Dealt({"counts": str(counts)}, UnevenExchange(matrix), dtype, (size,), (len(matrix),))

    def _routed(self, collective: str, dtype: str, seed: int) -> Dealt:
        assert self.tokens
        assert self.experts
        assert self.topk
        assert self.hidden
        if collective == "combine" and dtype not in DTYPES:
            raise UsageError(f"--dtype {dtype}: a combine adds up, which packed tokens do not; use bf16 or f32")
        routing = self.routing or "uniform"
        elements, travels = token_of(self.hidden, dtype)
        stated = {
            "experts": self.experts,
            "topk": self.topk,
            "token_elements": elements,
            "routing": routing,
            "seed": seed,
        }
        sizes = tuple(count * elements * DTYPES[travels] for count in self.tokens)
        exchange = UnevenExchange((), self.experts, self.topk, elements, routing, seed)
        return Dealt(stated, exchange, travels, sizes, None)


# No option given.
NOTHING = Stated(None, None, None, None, None, None)
_FLAGS = {field.name: f"--{field.name}" for field in fields(Stated)}


@dataclass(frozen=True)
class Dealt:
    """What an exchange makes of the other options."""

    axis: dict[str, object]  # `exchange` of a part of a suite
    exchange: UnevenExchange
    dtype: str  # of elements as they travel
    sizes: tuple[int, ...]
    ranks: tuple[int, ...] | None  # those of a matrix


def stated(function: Callable) -> Callable:
    """The options of an exchange, as one argument `exchange` of the command."""

    @functools.wraps(function)
    def command(*args: object, tokens, experts, topk, hidden, routing, counts, **asked: object) -> object:
        found = Stated(tokens, experts, topk, hidden, routing, counts)
        return function(*args, exchange=found, **asked)

    return options.together(*_options)(command)
