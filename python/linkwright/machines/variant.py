"""How a composed machine differs from its file: how many nodes, on which network, without what, what is slower."""

from __future__ import annotations

import hashlib
import math
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from linkwright.base.errors import UsageError

# More nodes than a machine has whose links are described one by one.
MOST_NODES = 1 << 16
MOST_FACTOR = 1e6
# Characters of a machine's name, which a file has too.
_NAME_MOST = 100


@dataclass(frozen=True)
class Variant:
    """What `--nodes`, `--fabric`, `--without` and `--degrade` say; without any of them the machine is its file."""

    nodes: int | None = None  # copies of the node that the file describes
    fabric: str | None = None  # network between them with its parameters, `ndr-fat-tree,taper=2`
    without: tuple[str, ...] = ()  # links, nodes, classes of links and transports that are taken away
    degrade: tuple[tuple[str, float], ...] = ()  # the same, with the factor of their rates

    def __post_init__(self) -> None:
        """Refuse what no machine can be."""
        if self.nodes is not None and not 1 <= self.nodes <= MOST_NODES:
            raise UsageError(f"--nodes {self.nodes}: a cluster has 1 to {MOST_NODES:,} nodes")
        if self.fabric is not None and self.nodes is None:
            raise UsageError(f"--fabric {self.fabric}: a network connects nodes; give their number with --nodes")
        for name, factor in self.degrade:
            if not (math.isfinite(factor) and 0 < factor <= MOST_FACTOR):
                raise UsageError(f"--degrade {name}={factor:g}: the factor of a rate is above 0 and at most 10^6")

    @classmethod
    def of(
        cls, nodes: int | None, fabric: str | None, without: Iterable[str], degrade: Mapping[str, float] | Iterable[str]
    ) -> Variant:
        """From values of the command line or of a program; `degrade` has factors by name, or texts `NAME=0.25`.

        A text for `without` is one name.
        """
        without = (without,) if isinstance(without, str) else without
        factors = list(degrade.items() if isinstance(degrade, Mapping) else map(_factor, degrade))
        names = [name for name, _ in factors]
        if again := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(f"--degrade {again}: is given twice; give the product of its factors once")
        return cls(nodes, fabric, tuple(without), tuple((name, float(factor)) for name, factor in factors))

    def to_json(self) -> dict[str, object]:
        """The values that `of` makes it from again."""
        return {
            "nodes": self.nodes,
            "fabric": self.fabric,
            "without": list(self.without),
            "degrade": dict(self.degrade),
        }

    def __bool__(self) -> bool:
        """Whether it changes a machine at all."""
        return self != AS_DESCRIBED

    @property
    def options(self) -> str:
        """What to type after the name of a machine to get this variant of it."""
        words = [f"--nodes {self.nodes}"] if self.nodes is not None else []
        words += [f"--fabric {shlex.quote(self.fabric)}"] if self.fabric else []
        words += [f"--without {shlex.quote(name)}" for name in self.without]
        words += [f"--degrade {shlex.quote(f'{name}={factor:g}')}" for name, factor in self.degrade]
        return " ".join(words)

    def name(self, base: str) -> str:
        """What to call the machine: `hgx-h100-x16-taper-2-without-nic-3`; long names end in a digest of the rest."""
        words = [f"x{self.nodes}"] if self.nodes is not None else []
        words += [self.fabric] if self.fabric else []
        words += [f"without {name}" for name in self.without]
        words += [f"{name} by {factor:g}" for name, factor in self.degrade]
        found = "-".join([base, *(re.sub(r"[^a-z0-9.]+", "-", word.lower()).strip("-") for word in words)])
        if len(found) <= _NAME_MOST:
            return found
        digest = hashlib.sha256(found.encode()).hexdigest()[:8]
        return f"{found[: _NAME_MOST - 9].rstrip('-.')}-{digest}"


# The machine of the file itself.
AS_DESCRIBED = Variant()


def _factor(text: str) -> tuple[str, float]:
    """(name, factor) of `NIC 3=0.25`."""
    name, equals, factor = text.rpartition("=")
    try:
        if equals and name.strip():
            return name.strip(), float(factor)
    except ValueError:
        pass
    raise UsageError(f"--degrade {text}: write a name and the factor of its rate, such as `nvlink=0.25`")
