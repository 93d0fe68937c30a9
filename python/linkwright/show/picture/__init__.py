"""Pictures of machines: where everything stands, and what happens there over time.

    graph.py     nodes and edges of a machine; which link of the simulator is where
    collapse.py  large machines, with several nodes as one
    layouts/     places of nodes, paths of edges
    scene.py     all of it as plain values                 times.py   a simulated schedule over time
    svg.py       a drawing                                 page.py    figures that move, and pages of them
    assets/      the renderer of figures, on canvases      colours.py

A page that embeds figures needs `style()` and `script()` once, and `html(scene)` for each figure.
"""

from .page import html, page, script, style
from .scene import Scene, scene
from .svg import svg

__all__ = ["Scene", "html", "page", "scene", "script", "style", "svg"]
