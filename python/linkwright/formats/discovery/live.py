"""This host, described by what its own programs say.

    nvidia-smi topo -m, --query-gpu=name        rocm-smi --showtopo, --showproductname        lstopo --output-format xml

The first that knows of a GPU is taken. A program that is not there, or does not answer, is said and left out. Rates of
ports come from `/sys/class/infiniband`.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence

from linkwright.base.errors import UsageError
from linkwright.formats.discovery import adapters, fitted, importing

TIMEOUT_S = 20.0

Tell = Callable[[str], None]


def machine_file(
    name: str, gpu: str | None, tell: Tell, logs: Sequence[fitted.Log] = (), collective: str | None = None
) -> str:
    """The machine file of this host.

    Args:
        name: of the machine.
        gpu: what its GPUs are, such as `H100`; by default what the vendor's program says.
        tell: is told which programs are not there.
        logs: what benchmarks printed here, to which start-ups and rates are fitted.
        collective: what the logs measured, where they do not say.

    Raises:
        UsageError: no program knows of a GPU.

    """
    for find in (_nvidia, _amd, _hwloc):
        if found := find(tell):
            format_key, text, model = found
            return importing.machine_file(
                text, f"{format_key} of this host", name=name, format_key=format_key, gpu=gpu or model,
                ports=adapters.found(), logs=logs, collective=collective,
            )  # fmt: skip
    raise UsageError(
        "none of nvidia-smi, rocm-smi and lstopo describes this host; measure it instead: `linkwright dissect`, then "
        "`linkwright fit latest`"
    )


def _nvidia(tell: Tell) -> tuple[str, str, str | None] | None:
    topology = _output(["nvidia-smi", "topo", "-m"], tell)
    if topology is None:
        return None
    names = _output(["nvidia-smi", "--query-gpu=name,mig.mode.current", "--format=csv,noheader"], tell) or ""
    if "Enabled" in names:
        raise UsageError(
            "nvidia-smi: GPUs are divided (MIG), and parts of a GPU have no links; disable it: nvidia-smi -mig 0"
        )
    return "nvidia-smi", topology, _model("nvidia-smi", (line.rpartition(",")[0] for line in names.splitlines()))


def _amd(tell: Tell) -> tuple[str, str, str | None] | None:
    topology = _output(["rocm-smi", "--showtopo"], tell)
    if topology is None:
        return None
    product = _output(["rocm-smi", "--showproductname"], tell) or ""
    series = (line.rpartition(":")[2] for line in product.splitlines() if "card series" in line.lower())
    return "rocm-smi", topology, _model("rocm-smi", series)


def _model(program: str, names: Iterable[str]) -> str | None:
    """What all GPUs are called; None if the program does not say."""
    known = sorted({name.strip() for name in names} - {""})
    if len(known) > 1:
        raise UsageError(f"{program}: GPUs of several kinds, {', '.join(known)}; describe them by hand")
    return known[0] if known else None


def _hwloc(tell: Tell) -> tuple[str, str, str | None] | None:
    # The second name is that of hwloc without a display.
    program = next((name for name in ("lstopo", "lstopo-no-graphics") if shutil.which(name)), "lstopo")
    text = _output([program, "--whole-io", "--output-format", "xml"], tell)
    if text is None:
        return None
    return "hwloc", text, None


def _output(command: list[str], tell: Tell) -> str | None:
    """What a program prints; None if it is not there, fails or hangs."""
    if shutil.which(command[0]) is None:
        tell(f"{command[0]}: not installed")
        return None
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        tell(f"{' '.join(command)}: {error}")
        return None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().partition("\n")[0][:200]
        tell(f"{' '.join(command)}: status {done.returncode}{': ' if said else ''}{said}")
        return None
    return done.stdout
