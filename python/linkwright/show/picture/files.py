"""Pictures as files; the suffix chooses the form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from linkwright.base import extras
from linkwright.base.errors import UsageError
from linkwright.base.files import make_folder, write_text, write_whole

from .page import page
from .scene import Scene
from .svg import svg

FORMS = (".svg", ".png", ".html")


def check(out: Path, count: int, dark: bool) -> None:
    """Refuse, before anything is simulated, what cannot be written."""
    if out.suffix.lower() not in FORMS:
        raise UsageError(f"--out {out}: choose a name that ends in {', '.join(FORMS)}")
    if count > 1 and out.suffix.lower() != ".html":
        raise UsageError(f"--out {out}: {count} pictures side by side need a page; write to a file that ends in .html")
    if dark and out.suffix.lower() == ".html":
        raise UsageError(f"--dark: {out} follows the browser's setting; omit --dark")
    if out.suffix.lower() == ".png":
        extras.load("resvg_py", "png", "a picture as .png")


def write(out: Path, scenes: Sequence[Scene], *, dark: bool = False) -> Path:
    """Write the scenes to a file, whole or not at all."""
    make_folder(out.parent)
    if out.suffix.lower() == ".html":
        write_text(out, page(*scenes))
    elif out.suffix.lower() == ".svg":
        write_text(out, svg(scenes[0], dark=dark))
    else:
        data = _png(svg(scenes[0], dark=dark))
        write_whole(out, lambda path: path.write_bytes(data))
    return out


def _png(drawing: str) -> bytes:
    """Twice as large as the drawing, for dense screens."""
    resvg = extras.load("resvg_py", "png", "a picture as .png")
    return bytes(resvg.svg_to_bytes(svg_string=drawing, zoom=2, font_family="DejaVu Sans"))
