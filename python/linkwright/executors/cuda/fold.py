"""Combinations one after the other into the same place, as one instruction for `schedule_walk.cu`.

A rank that combines n vectors into one has an instruction for each; walked so, each waits for an access of the L2
before the next one begins. Where nobody waits or raises in between, they are one instruction, FOLD, with n pieces: all
are loaded at once and combined in any order, which changes no bit of the data (docs/executors.md, Data).

    combine a -> x,  combine b -> x,  combine c -> x      becomes      fold a, b, c -> x

Only pieces of whole packs of 16 bytes are folded, and none that lies in x itself.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from .stream import CODES, Stream

FOLD = max(CODES.values()) + 1
_PACK_BYTES = 16
_WAITS, _PIECES, _RAISES = 1, 2, 3


def folded(stream: Stream) -> Stream:
    """The same program, shorter."""
    ends = stream.instructions.astype(np.int64)
    counts = np.diff(ends, axis=0, prepend=np.zeros((1, 4), np.int64))
    follows = _follows(stream, ends, counts)
    last = ~np.append(follows[1:], False)
    # The tables stay as they are: an instruction ends where the last one that it is made of ended.
    instructions = stream.instructions[last].copy()
    instructions[follows[last], 0] = FOLD
    kept = np.concatenate([[0], np.cumsum(last)])
    return dataclasses.replace(
        stream, instructions=instructions, rank_first=kept[stream.rank_first].astype(stream.rank_first.dtype)
    )


def _follows(stream: Stream, ends: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """By instruction whether it is folded together with the one before it."""
    alone = (ends[:, 0] == CODES["combine"]) & (counts[:, _PIECES] == 1)
    pieces = np.zeros((len(ends), 5), np.int64)
    pieces[alone] = stream.pieces[ends[alone, _PIECES] - 1]
    source, offset, target, at, length = pieces.T
    whole = (offset % _PACK_BYTES == 0) & (at % _PACK_BYTES == 0) & (length % _PACK_BYTES == 0)
    apart = (source != target) | (abs(offset - at) >= length)
    fit = alone & whole & apart
    found = np.zeros(len(ends), bool)
    same = (pieces[1:, 2:] == pieces[:-1, 2:]).all(axis=1)
    quiet = (counts[1:, _WAITS] == 0) & (counts[:-1, _RAISES] == 0)
    found[1:] = fit[1:] & fit[:-1] & same & quiet
    found[stream.rank_first[:-1]] = False
    return found
