"""Where everything stands: the first layout that fits a machine places its nodes and draws its edges.

    blocks.py   groups with the network between them       tiers.py   endpoints in a row, switches by distance
    grid.py     coordinates, with links around the edges   ring.py    a ring bus; a few endpoints around a switch
    cells.py    endpoints of which no link leads to another

Letters have the same size in drawings of any width, so a narrow one has shorter names.
"""

from __future__ import annotations

from collections.abc import Callable

from ..graph import Graph
from . import blocks, cells, grid, ring, tiers
from .placed import WIDTH, Box, Layout

__all__ = ["LAYOUTS", "WIDTH", "Box", "Layout", "layout"]

# The layout's own name -> what places a machine, or is None where it does not fit.
LAYOUTS: dict[str, Callable[[Graph, float], Layout | None]] = {
    "grid": grid.place,
    "ring": ring.place,
    "blocks": blocks.place,
    "cells": cells.place,
    "hub": ring.hub,
    "tiers": tiers.place,
}


def layout(graph: Graph, width: float = WIDTH) -> Layout:
    """The layout of a machine in a drawing of a width; `tiers` takes every graph."""
    found = (place(graph, width) for place in LAYOUTS.values())
    return next(placed for placed in found if placed is not None)
