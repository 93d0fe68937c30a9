"""What the figure shows: which algorithm is fastest from which size to which, and by how much."""

from __future__ import annotations

from collections.abc import Callable

from linkwright_evidence.outcome import Claim, numbered

from .curves import ALGORITHMS, SIZES, Page, Times, fastest, goodput

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# Of a ratio that is read off the figure.
CLOSE = 0.05

Rate = Callable[[str, int], float]  # of an algorithm at a size, in Gb/s


def check(times: Times, page: Page) -> list[Claim]:
    """All claims in order, each judged on the model; the figure's value stands beside it."""

    def model(name: str, size: int) -> float:
        return goodput(times, name, size)

    def figure(name: str, size: int) -> float:
        return page["goodput", name, size]

    made = [
        _order("swing is faster than bucket up to 8 MiB, bucket beyond", "swing", "bucket", 8 * MIB, model),
        _order("swing is faster than hamring up to 32 MiB, hamring beyond", "swing", "hamring", 32 * MIB, model),
        _order(
            "bucket is faster than hamring up to 128 MiB, hamring from 512 MiB on",
            "bucket",
            "hamring",
            128 * MIB,
            model,
        ),
        _order("recdoub is faster than bucket up to 128 KiB, bucket beyond", "recdoub", "bucket", 128 * KIB, model),
        _order("recdoub is faster than hamring up to 2 MiB, hamring beyond", "recdoub", "hamring", 2 * MIB, model),
        _order("swing is faster than recdoub at every size", "swing", "recdoub", SIZES[-1], model),
        _gain(model, figure),
        _ratio("recdoub takes 1.23 times as long as swing with 32 B", *_small(times, page)),
        _ratio("swing ends at 92 % of hamring", *_ends("swing", "hamring", model, figure)),
        _ratio("recdoub ends at 21 % of hamring", *_ends("recdoub", "hamring", model, figure)),
        _ratio("bucket ends at 96 % of hamring", *_ends("bucket", "hamring", model, figure)),
    ]
    return [numbered("T", number, *claim) for number, claim in enumerate(made, 1)]


def _order(statement: str, small: str, large: str, last: int, rate: Rate) -> tuple[str, bool, str]:
    """Whether `small` is faster up to size `last`, and `large` beyond."""
    wrong = [size for size in SIZES if (rate(small, size) > rate(large, size)) != (size <= last)]
    return statement, not wrong, f"otherwise at {', '.join(map(_words, wrong))}" if wrong else "at all 14 sizes"


def _gain(model: Rate, figure: Rate) -> tuple[str, bool, str]:
    (size, gain), (there, published) = _largest_gain(model), _largest_gain(figure)
    holds = size == there and abs(gain / published - 1) < 2 * CLOSE
    why = f"model: {gain:.2f} times at {_words(size)}; figure: {published:.2f} times at {_words(there)}"
    return "swing leads most, 1.64 times the next best within 10 %, at 128 KiB", holds, why


def _largest_gain(rate: Rate) -> tuple[int, float]:
    """Where swing is farthest ahead of all others; among sizes at which every curve can be read."""
    others = [name for name in ALGORITHMS if name != "swing"]
    gains = {size: rate("swing", size) / max(rate(name, size) for name in others) for size in SIZES if size >= 32 * KIB}
    size = max(gains, key=lambda size: gains[size])
    return size, gains[size]


def _small(times: Times, page: Page) -> tuple[float, float]:
    first = SIZES[0]
    model = fastest(times, "recdoub", first) / fastest(times, "swing", first)
    return model, page["runtime", "recdoub", first] / page["runtime", "swing", first]


def _ends(one: str, other: str, model: Rate, figure: Rate) -> tuple[float, float]:
    last = SIZES[-1]
    return model(one, last) / model(other, last), figure(one, last) / figure(other, last)


def _ratio(statement: str, model: float, figure: float) -> tuple[str, bool, str]:
    """A ratio within 5 % of that of the figure."""
    return f"{statement}, within 5 %", abs(model / figure - 1) < CLOSE, f"model: {model:.3f}; figure: {figure:.3f}"


def _words(size_bytes: int) -> str:
    for unit, word in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size_bytes >= unit:
            return f"{size_bytes // unit} {word}"
    return f"{size_bytes} B"
