"""Pictures of machines: where everything stands, what happens there over time.

graph.py     nodes and edges of a machine; which link of the simulator is where
collapse.py  large machines, with several nodes as one
layouts/     places of nodes, paths of edges
scene.py     all of it as plain values                 times.py   a simulated schedule over time
svg.py       a drawing                                 page.py    a page with a slider, and its parts
assets/      the renderer of such pages, on canvases   colours.py
"""

from .scene import Scene, scene
from .svg import svg

__all__ = ["Scene", "scene", "svg"]
