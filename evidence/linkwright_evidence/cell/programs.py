"""Programs of the chip's elements, line by line: the language of experiments that schedules cannot express.

```text
  put SPE1 16384 tag=3 fence      a DMA from the own local store; also barrier, local=, at= (addresses, 0 else)
  get MIC 128                     ... into it
  list put SPE1 128 x 2048        a DMA list of 2,048 pieces, one after another
  on SPE0 get MIC 128             a DMA in the proxy queue of SPE0
  wait                            for all own DMAs; `wait 3` for those of tag 3
  mail SPE1                       a word into its mailbox, once there is room
  read                            a word from the own mailbox, once there is one
  signal SPE0 4                   these bits into its signal register
  await 6                         until these bits have come
  add                             increment a shared counter: getllar and putllc until it succeeds
  compute 100                     SPU cycles
```

An element takes its steps in order and waits at each step that requires it. Mailbox words and signals are commands of
4 bytes; a word is readable `mmio` later. A program that finds a queue or mailbox full waits; if no program can go on,
the error names the circle of waits. The DMA engines and rings are the product's (`_native.DmaChip`), which also
applies the rules of the hardware to each command.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwright import _native
from linkwright.base.errors import ExecError, UsageError

Programs = Sequence[tuple[str, Sequence[str]]]
SIGNAL_BYTES = 4
MOMENTS = ("issued", "queued", "selected", "requested", "data", "complete")
STEPS = ("put", "get", "list", "on", "wait", "mail", "read", "signal", "await", "add", "compute")


@dataclass(frozen=True)
class Step:
    """One line: its first word, the element it concerns, its number, and the command of a DMA."""

    word: str
    element: int = 0
    number: int | None = None
    command: Mapping[str, object] = field(default_factory=dict)


def run(machine, programs: Programs, *, overwrite: bool = False) -> dict:
    """Run one program per element, given as `(element, lines)`, on a machine whose fabric is `slotted_ring`.

    Args:
        machine: the described machine.
        programs: the lines of each element.
        overwrite: whether signals replace the bits of the register instead of adding theirs.
    Returns:
        Columns by command, in the order of completion: `program`, `line`, and in picoseconds `issued_ps`,
        `queued_ps`, `selected_ps`, `requested_ps`, `data_ps`, `complete_ps`. `lines_ps`: by program, when each line
        was over; `retries`: by program, failed conditional writes.
    Raises:
        UsageError: a line that is not understood, or a command that the hardware refuses.
        ExecError: programs that wait for each other.
    """
    stage = _Stage(_native.DmaChip(machine), overwrite)
    for element, lines in programs:
        stage.enter(element, lines)
    stage.go()
    return stage.columns()


@dataclass(eq=False)
class _Runner:
    """State of one program."""

    element: str
    unit: int
    lines: Sequence[str]
    steps: list[Step]
    line: int = 0
    asleep: bool = False  # until a command enters its queue, or for an atomic
    until: int = 0
    tags: Counter = field(default_factory=Counter)  # commands under way
    ended: list[int] = field(default_factory=list)
    retries: int = 0

    @property
    def step(self) -> Step | None:
        """The present step; None at the end."""
        return self.steps[self.line] if self.line < len(self.steps) else None

    def open(self, tag: int | None) -> int:
        """Commands under way, of one tag or of all."""
        return self.tags.total() if tag is None else self.tags[tag]


@dataclass
class _Registers:
    """Mailbox and signal register of an element."""

    words: deque = field(default_factory=deque)  # when each becomes readable
    coming: int = 0
    bits: int = 0
    seen: int = 0

    def take_word(self, now: int) -> bool:
        """Take the first word; false if none is readable yet."""
        readable = bool(self.words) and self.words[0] <= now
        if readable:
            self.words.popleft()
        return readable

    def take_bits(self, bits: int) -> bool:
        """Take these bits; false if some have not arrived."""
        self.seen, self.bits = self.seen | self.bits, 0
        taken = self.seen & bits == bits
        if taken:
            self.seen &= ~bits
        return taken


class _Stage:
    """All programs on one chip."""

    def __init__(self, chip: _native.DmaChip, overwrite: bool):
        self._chip, self._overwrite = chip, overwrite
        self._runners: list[_Runner] = []
        self._registers = [_Registers() for _ in chip.elements]
        self._flights: list[tuple[_Runner, int, str, int, int]] = []  # runner, line, purpose, element or tag, bits
        self._done: list[tuple[_Runner, int, list[int]]] = []  # program, line, moments

    def enter(self, element: str, lines: Sequence[str]) -> None:
        """Read one program."""
        try:
            unit = self._unit(element)
        except ValueError as error:
            raise _refusal(element, 0, error) from None
        if any(runner.unit == unit for runner in self._runners):
            raise UsageError(f"option `program`: two programs for {element}; join them")
        steps = []
        for number, line in enumerate(lines, 1):
            try:
                steps.append(self._read(line.split(), unit))
            except ValueError as error:
                raise _refusal(element, number, error) from None
        self._runners.append(_Runner(element, unit, lines, steps))

    def go(self) -> None:
        """Run until every program is over."""
        now = 0
        while True:
            while sum(self._walk(now, runner) for runner in self._runners):
                pass
            now, news = self._chip.advance()
            if news is None:
                return self._end(now)
            for handle, held, moments in news:
                if held is None:
                    self._queued(handle, now)
                else:
                    self._complete(handle, held, moments, now)

    def columns(self) -> dict:
        """The result of a run."""
        index = {id(runner): number for number, runner in enumerate(self._runners)}
        period = self._chip.period_ps
        times = np.array([moments for _, _, moments in self._done], np.uint64).reshape(-1, len(MOMENTS)) * period
        return {
            "program": np.array([index[id(runner)] for runner, _, _ in self._done], np.uint32),
            "line": np.array([line for _, line, _ in self._done], np.uint32),
            **{f"{moment}_ps": times[:, place] for place, moment in enumerate(MOMENTS)},
            "retries": np.array([runner.retries for runner in self._runners], np.uint64),
            "lines_ps": [np.array(runner.ended, np.uint64) * period for runner in self._runners],
        }

    def _unit(self, name: str) -> int:
        if name not in self._chip.elements:
            raise ValueError(f"no element `{name}`; known: {', '.join(self._chip.elements)}")
        return self._chip.elements.index(name)

    def _read(self, words: list[str], unit: int) -> Step:
        word, rest = (words or [""])[0], words[1:]
        match word:
            case "on":
                return self._dma(self._named(rest), rest[1:], proxy=True)
            case "put" | "get" | "list":
                return self._dma(unit, words, proxy=False)
            case "mail":
                return Step(word, self._named(rest))
            case "signal":
                return Step(word, self._named(rest), _number(rest[1:], "bits"))
            case "await":
                return Step(word, number=_number(rest, "bits"))
            case "compute":
                return Step(word, number=-(-_number(rest, "cycles", 64) // 2))
            case "wait":
                return Step(word, number=_number(rest, "tag", 8) if rest else None)
            case "read" | "add":
                return Step(word)
        raise ValueError(f"unknown step `{word}`; known: {', '.join(STEPS)}")

    def _named(self, words: list[str]) -> int:
        if not words:
            raise ValueError("which element? name one")
        return self._unit(words[0])

    def _dma(self, unit: int, words: list[str], *, proxy: bool) -> Step:
        listed = words[:1] == ["list"]
        words = words[listed:]
        if words[:1] not in (["put"], ["get"]):
            raise ValueError(f"put or get, not `{' '.join(words[:1])}`; write one of them")
        if len(words) < 2:
            raise ValueError("to whom? name an element")
        command: dict[str, object] = {"kind": words[0], "other": self._unit(words[1])}
        command |= {"bytes": _number(words[2:], "size"), "proxy": proxy}
        rest = words[3:]
        if listed:
            if rest[:1] != ["x"]:
                raise ValueError("a list needs its number of pieces; write `list put SPE1 128 x 16`")
            command["pieces"] = _number(rest[1:], "number of pieces")
            rest = rest[2:]
            if not command["pieces"]:
                raise ValueError("a list of 0 pieces; write at least 1")
        for word in rest:
            command |= _option(word)
        return Step("dma", unit, command.get("tag", 0), command)

    def _walk(self, now: int, runner: _Runner) -> bool:
        """Let a program go as far as it can; whether it did anything."""
        moved = False
        while not runner.asleep and runner.until <= now and runner.step and self._take(now, runner, runner.step):
            moved = True
        return moved

    def _take(self, now: int, runner: _Runner, step: Step) -> bool:
        """Begin a step; false if it must wait."""
        registers, number = self._registers[runner.unit], step.number
        match step.word:
            case "dma":
                runner.tags[number] += 1
                self._give(now, runner, step.element, step.command, "data", number)
            case "wait":
                if runner.open(number):
                    return False
                self._pass(runner, now + self._chip.status)
            case "mail":
                box = self._registers[step.element]
                if len(box.words) + box.coming >= self._chip.mailbox:
                    return False
                box.coming += 1
                self._give(now, runner, runner.unit, _word(step.element), "word", step.element)
            case "signal":
                self._give(now, runner, runner.unit, _word(step.element), "bits", step.element, number)
            case "read":
                if not registers.take_word(now):
                    return False
                self._pass(runner, now)
            case "await":
                if not registers.take_bits(number):
                    return False
                self._pass(runner, now)
            case "add":
                self._atomic(now, runner, "reserve")
            case "compute":
                self._pass(runner, now + number)
        return True

    def _atomic(self, now: int, runner: _Runner, kind: str) -> None:
        command = {"kind": kind, "other": self._chip.memory, "bytes": self._chip.line_bytes}
        self._give(now, runner, runner.unit, command, kind)

    def _give(
        self, now: int, runner: _Runner, unit: int, command: Mapping, purpose: str, of: int = 0, bits: int = 0
    ) -> None:
        """Queue a command; the program goes on when it is in the queue."""
        runner.asleep = True
        handle = len(self._flights)
        self._flights.append((runner, runner.line, purpose, of, bits))
        try:
            self._chip.submit(now, unit, handle, **command)
        except UsageError as error:
            raise _refusal(runner.element, runner.line + 1, error) from None

    def _pass(self, runner: _Runner, at: int) -> None:
        """The present line of a program is over at `at`."""
        runner.line += 1
        runner.asleep = False
        runner.until = at
        runner.ended.append(at)
        self._chip.wake_at(at)

    def _queued(self, handle: int, now: int) -> None:
        runner, _, purpose, _, _ = self._flights[handle]
        if purpose not in ("reserve", "conditional"):
            self._pass(runner, now)

    def _complete(self, handle: int, held: bool, moments: list[int], now: int) -> None:
        runner, line, purpose, of, bits = self._flights[handle]
        self._done.append((runner, line, moments))
        match purpose:
            case "data":
                runner.tags[of] -= 1
            case "word":
                at = now + self._chip.mmio
                self._registers[of].coming -= 1
                self._registers[of].words.append(at)
                self._chip.wake_at(at)
            case "bits":
                register = self._registers[of]
                register.bits = bits if self._overwrite else register.bits | bits
            case "reserve":
                self._atomic(now, runner, "conditional")
            case "conditional" if held:
                self._pass(runner, now + self._chip.status)
            case "conditional":
                runner.retries += 1
                self._atomic(now, runner, "reserve")

    def _end(self, now: int) -> None:
        """No events are left: every program has finished, or some are stuck."""
        stuck = [runner for runner in self._runners if runner.step]
        if not stuck:
            return
        waiting = [self._explained(runner) for runner in stuck]
        waiting += self._circle(stuck[0])
        left = sum(len(runner.steps) - runner.line for runner in stuck)
        raise ExecError(
            f"stuck at {now * self._chip.period_ps} ps: {left} operations are unfinished; {'; '.join(waiting)}; order "
            f"the schedule so that every wait is for a smaller operation, or give the fabric more buffers",
            code="sim.stuck",
        )

    def _explained(self, runner: _Runner) -> str:
        step = runner.steps[runner.line]
        what = {
            "mail": f"room in the mailbox of {self._chip.elements[step.element]}",
            "read": "a word in its mailbox",
            "await": f"signal bits {step.number}",
        }.get(step.word, "its own commands")
        return f"{runner.element}, line {runner.line + 1}: `{runner.lines[runner.line]}` waits for {what}"

    def _blocker(self, runner: _Runner) -> _Runner | None:
        """The program whose next step could let this one go on."""
        step = runner.steps[runner.line]
        if step.word == "mail":
            return next((other for other in self._runners if other.unit == step.element), None)
        helps = {"read": "mail", "await": "signal"}.get(step.word)
        return next(
            (
                other
                for other in self._runners
                if any(later.word == helps and later.element == runner.unit for later in other.steps[other.line :])
            ),
            None,
        )

    def _circle(self, first: _Runner) -> list[str]:
        """The circle of waits that `first` leads into, if there is one."""
        chain = [first]
        while chain[-1].step:
            blocker = self._blocker(chain[-1])
            if blocker is None:
                return []
            if blocker in chain:
                names = [runner.element for runner in [*chain[chain.index(blocker) :], blocker]]
                return [f"circle: {' waits for '.join(names)}"]
            chain.append(blocker)
        return []


def _refusal(element: str, line: int, error: Exception) -> UsageError:
    return UsageError(f"option `program`: {element}, line {line}: {error}")


def _number(words: Sequence[str], what: str, bits: int = 32) -> int:
    if not words:
        raise ValueError(f"{what} is missing; write a number")
    if not (words[0].isascii() and words[0].isdigit() and int(words[0]) < 1 << bits):
        raise ValueError(f"{what} `{words[0]}` is not a number in range; write one")
    return int(words[0])


def _option(word: str) -> dict[str, object]:
    """`tag=3`, `fence` and other options of a DMA."""
    name, equals, text = word.partition("=")
    match name:
        case "tag" if equals:
            return {"tag": _number([text], "tag", 8)}
        case "local" if equals:
            return {"local": _number([text], "local address")}
        case "at" if equals:
            return {"at": _number([text], "effective address", 64)}
        case "fence" | "barrier" if not equals:
            return {"order": name}
    raise ValueError(f"unknown word `{word}`; known: tag=, local=, at=, fence, barrier")


def _word(element: int) -> dict[str, object]:
    """The command of a mailbox word or a signal."""
    return {"kind": "put", "other": element, "bytes": SIGNAL_BYTES}
