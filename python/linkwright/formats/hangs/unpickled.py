"""Pickles of plain containers, numbers and texts. Nothing else of a pickle is carried out.

A pickle is a program for a small stack machine. Some of its instructions import and call whatever they name, so the
interpreter here has only those that build dictionaries, lists, tuples, numbers, texts, true, false and None; another
instruction is an error before anything of it happens. Keys are texts or numbers, numbers have 64 bits, and memory stays
in proportion to the file.

Source: CPython, Lib/pickletools.py (the instructions of protocols 2 to 5); PyTorch, torch/csrc/jit/serialization/
pickler.cpp (those that C++ writes).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from linkwright.base.errors import FileError

MOST_BYTES = 256 << 20
_MOST_OF_NUMBER = 8  # bytes
# Instructions that import or call, by the names of pickletools.
_REFUSED = {
    "c": "GLOBAL", "i": "INST", "o": "OBJ", "R": "REDUCE", "b": "BUILD", "P": "PERSID", "Q": "BINPERSID",
    "\x81": "NEWOBJ", "\x92": "NEWOBJ_EX", "\x93": "STACK_GLOBAL", "\x82": "EXT1", "\x83": "EXT2", "\x84": "EXT4",
}  # fmt: skip
_KEYS = {str, int}
_STOP = ord(".")


class _Machine:
    """The stack with its marks, what was remembered, and the place in the file."""

    def __init__(self, data: bytes):
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.remembered: dict[int, Any] = {}

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise EOFError
        found = self.data[self.at : end]
        self.at = end
        return found

    def number(self, form: str) -> Any:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return value

    def text(self, form: str) -> None:
        self.stack.append(self.take(self.number(form)).decode("utf-8", "replace"))

    def long(self, form: str) -> None:
        count = self.number(form)
        if not 0 <= count <= _MOST_OF_NUMBER:
            raise ValueError(f"a number of {count} bytes")
        self.stack.append(int.from_bytes(self.take(count), "little", signed=True))

    def since_mark(self) -> list[Any]:
        at = self.marks.pop()
        found = self.stack[at:]
        del self.stack[at:]
        return found

    def last(self, count: int) -> list[Any]:
        left = len(self.stack) - count
        if left < (self.marks[-1] if self.marks else 0):
            raise ValueError("too few values")
        found = self.stack[left:]
        del self.stack[left:]
        return found

    def tuple_of(self, items: list[Any]) -> None:
        self.stack.append(tuple(items))

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError("items for what is not a list")
        target.extend(items)

    def update(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise ValueError("keys for what is not a dictionary")
        keys = items[::2]
        if not _KEYS.issuperset(map(type, keys)):
            raise ValueError("a key that is neither a text nor a number")
        target.update(zip(keys, items[1::2], strict=True))

    def dictionary(self, items: list[Any]) -> None:
        self.stack.append({})
        self.update(items)

    def run_frequent(self) -> int:
        """Carry out instructions as long as they are of the most frequent kinds; return the next one."""
        data, stack, remembered, at = self.data, self.stack, self.remembered, self.at
        marks, push, end = self.marks, self.stack.append, len(self.data)
        while True:
            byte = data[at]
            if byte == 0x68:  # BINGET
                push(remembered[data[at + 1]])
                at += 2
            elif byte == 0x8C or byte == 0x58:  # SHORT_BINUNICODE, BINUNICODE
                begin = at + (2 if byte == 0x8C else 5)
                at = begin + (data[at + 1] if byte == 0x8C else int.from_bytes(data[at + 1 : begin], "little"))
                if at > end:
                    raise EOFError
                push(data[begin:at].decode("utf-8", "replace"))
            elif byte == 0x6A:  # LONG_BINGET
                push(remembered[int.from_bytes(data[at + 1 : at + 5], "little")])
                at += 5
            elif byte == 0x71:  # BINPUT
                remembered[data[at + 1]] = stack[-1]
                at += 2
            elif byte == 0x72:  # LONG_BINPUT
                remembered[int.from_bytes(data[at + 1 : at + 5], "little")] = stack[-1]
                at += 5
            elif byte == 0x94:  # MEMOIZE
                remembered[len(remembered)] = stack[-1]
                at += 1
            elif byte == 0x4B:  # BININT1
                push(data[at + 1])
                at += 2
            elif byte == 0x4D:  # BININT2
                push(data[at + 1] | data[at + 2] << 8)
                at += 3
            elif byte == 0x7D:  # EMPTY_DICT
                push({})
                at += 1
            elif byte == 0x28:  # MARK
                marks.append(len(stack))
                at += 1
            elif byte == 0x75:  # SETITEMS
                self.update(self.since_mark())
                at += 1
            else:
                self.at = at + 1
                return byte


def _frame(machine: _Machine) -> None:
    machine.number("<Q")  # how much follows; the instructions themselves say it, too


_KNOWN: dict[str, Callable[[_Machine], object]] = {
    "\x80": lambda m: m.number("<B"), "\x95": _frame,
    "]": lambda m: m.stack.append([]), ")": lambda m: m.stack.append(()), "N": lambda m: m.stack.append(None),
    "\x88": lambda m: m.stack.append(True), "\x89": lambda m: m.stack.append(False),
    "J": lambda m: m.stack.append(m.number("<i")),
    "G": lambda m: m.stack.append(m.number(">d")), "\x8a": lambda m: m.long("<B"), "\x8b": lambda m: m.long("<i"),
    "\x8d": lambda m: m.text("<Q"),
    "\x85": lambda m: m.tuple_of(m.last(1)), "\x86": lambda m: m.tuple_of(m.last(2)),
    "\x87": lambda m: m.tuple_of(m.last(3)), "t": lambda m: m.tuple_of(m.since_mark()),
    "d": lambda m: m.dictionary(m.since_mark()), "l": lambda m: m.stack.append(m.since_mark()),
    "a": lambda m: m.extend(m.last(1)), "e": lambda m: m.extend(m.since_mark()), "s": lambda m: m.update(m.last(2)),
    "0": lambda m: m.last(1), "1": lambda m: m.since_mark(),
    "2": lambda m: m.stack.append(m.stack[-1]),
}  # fmt: skip
_BY_BYTE = [_KNOWN.get(chr(byte)) for byte in range(256)]


def begins_pickle(data: bytes) -> bool:
    """Whether a file begins as pickles of protocols 2 to 5 do."""
    return len(data) > 1 and data[0] == 0x80 and 2 <= data[1] <= 5


def unpickled(data: bytes, name: str) -> Any:
    """The value that a pickle holds.

    Args:
        data: the bytes of the file.
        name: its name, for messages.

    Returns:
        Dictionaries, lists, tuples, numbers, texts, true, false and None.

    Raises:
        FileError: it holds anything else, is cut, or is not a pickle.

    Example:
        >>> import pickle
        >>> from linkwright.formats.hangs.unpickled import unpickled
        >>> unpickled(pickle.dumps({"a": [1, 2.5]}), "a.pickle")
        {'a': [1, 2.5]}

    """
    if len(data) > MOST_BYTES:
        raise FileError(f"{name}: a pickle of more than {MOST_BYTES >> 20} MiB; record fewer operations")
    machine = _Machine(data)
    try:
        while (byte := machine.run_frequent()) != _STOP:
            step = _BY_BYTE[byte]
            if step is None:
                said = _REFUSED.get(chr(byte), f"{byte:#04x}")
                raise FileError(
                    f"{name}: byte {machine.at - 1}: the pickle holds more than containers, numbers and texts "
                    f"(instruction {said}), and nothing else is read; dump the trace as JSON"
                )
            step(machine)
        (value,) = machine.stack
        return value
    except (EOFError, IndexError):
        raise FileError(f"{name}: byte {machine.at}: the pickle is cut; copy the file again") from None
    except (ValueError, KeyError, struct.error) as error:
        raise FileError(f"{name}: byte {machine.at}: not a pickle of a trace ({error}); copy the file again") from None
