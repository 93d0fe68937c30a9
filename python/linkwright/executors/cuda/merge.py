"""Consecutive instructions that can be in flight together, merged into one instruction for `schedule_walk.cu`.

Walked separately, each waits for an access of the L2 before the next one begins. Without waits and raises in between
they become one, with a piece for each:

    combine a -> x,  combine b -> x,  combine c -> x      becomes      fold a, b, c -> x
    copy a -> x,  copy b -> y,  copy c -> z               becomes      copy a -> x, b -> y, c -> z

A fold loads all pieces and combines them in any order, which changes no bit of the data (docs/executors.md, Data); its
pieces lie outside x itself. It takes packs of 16 bytes where all pieces are whole packs, else single elements. Copies
are merged if they come from other participants and their destinations do not overlap.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from .stream import CODES, Stream

FOLD, FOLD_ELEMENTS = (max(CODES.values()) + extra for extra in (1, 2))
_PACK_BYTES = 16
_WAITS, _PIECES, _RAISES = 1, 2, 3


def merged(stream: Stream) -> Stream:
    """The same program with fewer instructions."""
    return _joined(_without_empty(stream))


def _without_empty(stream: Stream) -> Stream:
    """Without instructions that wait for nothing, move nothing and raise nothing, as those of empty chunks; each rank
    keeps its last one."""
    ends = stream.instructions[:, 1:].astype(np.int64)
    kept = np.diff(ends, axis=0, prepend=np.zeros((1, 3), np.int64)).any(axis=1)
    kept[stream.rank_first[1:].astype(np.int64) - 1] = True
    first = np.append(0, np.cumsum(kept)).astype(stream.rank_first.dtype)
    return dataclasses.replace(stream, instructions=stream.instructions[kept], rank_first=first[stream.rank_first])


def _joined(stream: Stream) -> Stream:
    ends = stream.instructions.astype(np.int64)
    counts = np.diff(ends, axis=0, prepend=np.zeros((1, 4), np.int64))
    pieces = np.zeros((len(ends), 5), np.int64)  # from, offset, to, offset, bytes
    single = counts[:, _PIECES] == 1
    pieces[single] = stream.pieces[ends[single, _PIECES] - 1]
    combines, copies = (single & (ends[:, 0] == CODES[code]) for code in ("combine", "copy"))
    quiet = (counts[1:, _WAITS] == 0) & (counts[:-1, _RAISES] == 0)
    quiet[stream.rank_first[1:-1] - 1] = False
    folds = _folds(pieces, combines)
    follows = np.append(False, quiet & folds | _copies(pieces, copies, quiet))
    last = ~np.append(follows[1:], False)
    # The tables stay as they are: a merged instruction ends where its last part ended.
    instructions = stream.instructions[last].copy()
    whole = np.logical_and.reduceat((pieces[:, [1, 3, 4]] % _PACK_BYTES == 0).all(axis=1), np.flatnonzero(~follows))
    instructions[(follows & combines)[last], 0] = np.where(whole, FOLD, FOLD_ELEMENTS)[(follows & combines)[last]]
    kept = np.append(0, np.cumsum(last)).astype(stream.rank_first.dtype)
    return dataclasses.replace(stream, instructions=instructions, rank_first=kept[stream.rank_first])


def _folds(pieces: np.ndarray, combines: np.ndarray) -> np.ndarray:
    """For every instruction but the first: whether it and the one before combine into the same place."""
    source, offset, target, at, length = pieces.T
    fit = combines & ((source != target) | (abs(offset - at) >= length))
    return fit[1:] & fit[:-1] & (pieces[1:, 2:] == pieces[:-1, 2:]).all(axis=1)


def _copies(pieces: np.ndarray, copies: np.ndarray, quiet: np.ndarray) -> np.ndarray:
    """For every instruction but the first: whether it and the one before copy from others to separate places of one."""
    source, _, target, _, _ = pieces.T
    fit = copies & (source != target)
    found = quiet & fit[1:] & fit[:-1] & (target[1:] == target[:-1])
    borders = np.flatnonzero(np.diff(np.concatenate([[False], found, [False]]).astype(int)))
    for first, end in borders.reshape(-1, 2).tolist():
        places = pieces[first : end + 1, 3:]
        places = places[np.argsort(places[:, 0], kind="stable")]
        if (places[1:, 0] < places[:-1].sum(axis=1)).any():
            found[first:end] = False
    return found
