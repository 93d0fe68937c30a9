"""Scenes as part of a page, or as a page of their own: a figure, its style and its script.

A figure works without scripts, too: it holds the drawing, and tables of the busiest links and the critical path. All
names are escaped, and the script writes names as text only.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

from linkwright.base import units
from linkwright.session.timeline import STATES

from . import colours
from .scene import Scene
from .svg import svg, words

_SCRIPTS = ("base.js", "network.js", "strips.js", "deck.js")
_BUSIEST = 20
_STEPS = 100


def html(*scenes: Scene, title: str = "") -> str:
    """A figure for a page that also holds `style` and `script`; several scenes are played in step."""
    first = scenes[0]
    head = f"<b>{words(title or _title(scenes))}</b>"
    told = f"<span>{words(first['about'])}</span>" if len(scenes) == 1 else ""
    drawn = "".join(svg(scene, dark=None) for scene in scenes)
    return (
        f'<figure class="lwp"><figcaption>{head}{told}</figcaption><div class="lwp-bar"></div>'
        f'<div class="lwp-panels"></div><noscript>{drawn}</noscript>{"".join(_keys(scenes))}'
        f'<details><summary>The same as tables</summary><div class="lwp-scroll">{"".join(_tables(scenes))}</div>'
        f'</details><script type="application/json">{_json(scenes)}</script></figure>'
    )


@cache
def style() -> str:
    """The style sheet of figures: colours in light and in dark, as the page or the reader says."""
    light, dark = (
        ";".join(f"--lwp-{name}:{value}" for name, value in p.items()) for p in (colours.LIGHT, colours.DARK)
    )
    return (
        f".lwp{{color-scheme:light;{light}}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]) .lwp{{color-scheme:dark;{dark}}}}}"
        f":root[data-theme=dark] .lwp{{color-scheme:dark;{dark}}}{_asset('picture.css')}"
    )


@cache
def script() -> str:
    """The renderer; it begins with all figures of its page."""
    return f'"use strict";const LWPicture={{decks:[]}};(()=>{{{"".join(map(_asset, _SCRIPTS))}}})();'


def page(*scenes: Scene, title: str = "") -> str:
    """A whole page, which loads nothing."""
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'; base-uri 'none'"
    )
    body = "body{margin:0;padding:16px;background:#f7f7f5}@media (prefers-color-scheme:dark){body{background:#121519}}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{words(title or _title(scenes))}</title><style>{body}{style()}</style></head>"
        f"<body><main>{html(*scenes, title=title)}</main><script>{script()}</script></body></html>\n"
    )


def _title(scenes: Sequence[Scene]) -> str:
    return scenes[0]["title"] if len(scenes) == 1 else f"{len(scenes)} schedules on {scenes[0]['machine']}, in step"


def _json(scenes: Sequence[Scene]) -> str:
    text = json.dumps(scenes, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _keys(scenes: Sequence[Scene]) -> Iterator[str]:
    """What colours mean."""
    timed = any(scene["time"] for scene in scenes)
    keys = [(f"b{step}", colours.edge(step)) for step in (0, 1, 3, 5, 7)]
    keys += [(state, state) for state in STATES] + [("path", "critical path")]
    yield '<ul class="lwp-keys">'
    for colour, told in keys if timed else _classes(scenes):
        yield f'<li><i style="background:var(--lwp-{colour})"></i>{words(told)}</li>'
    yield "</ul>"


def _classes(scenes: Sequence[Scene]) -> list[tuple[str, str]]:
    return [(f"k{min(k, colours.KINDS - 1)}", kind) for k, kind in enumerate(scenes[0]["classes"]) if kind != "link"]


def _tables(scenes: Sequence[Scene]) -> Iterator[str]:
    for scene in scenes:
        if len(scenes) > 1:
            yield f"<h4>{words(scene['title'])}</h4>"
        yield f"<p>{words(scene['about'])}</p>"
        yield from _timed(scene) if scene["time"] else _links(scene)


def _links(scene: Scene) -> Iterator[str]:
    rows = []
    for a, b, kind, rate, _ in scene["links"][:200]:
        ends = f"{scene['nodes'][a][0]} – {scene['nodes'][b][0]}"
        rows.append((ends, scene["classes"][kind], units.format_rate(rate) if rate else ""))
    if rows:
        yield from _table(("link", "class", "rate each way"), rows)


def _timed(scene: Scene) -> Iterator[str]:
    time = scene["time"] or {}
    busiest = sorted(time["channels"], key=lambda row: -row[4])[:_BUSIEST]
    rows = [(name, f"{carried:,}", f"{share:.1%}") for name, _, _, carried, share in busiest]
    yield from _table(("busiest links", "bytes", "busy"), rows)
    names = {rank: name for rank, name, _ in time["ranks"]}
    steps = [
        (
            units.format_us(begin),
            units.format_us(end - begin),
            *(names.get(r, f"rank {r}") for r in ranks),
            spent,
        )
        for begin, end, *ranks, spent in time["path"][:_STEPS]
    ]
    yield from _table(("critical path: at", "takes", "from", "to", "spent on"), steps)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"<table><thead><tr>{''.join(f'<th>{words(head)}</th>' for head in heads)}</tr></thead><tbody>"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{words(cell)}</td>' for cell in row)}</tr>"
    yield "</tbody></table>"
