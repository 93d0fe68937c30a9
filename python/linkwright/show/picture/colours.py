"""The colours of pictures, in light and in dark; the canvas and the drawings share them.

Loads are a ramp whose lightness only falls (in dark: rises), so it can be ordered without seeing hues. Classes of links
and states of ranks are hues that colour-blind readers tell apart (after Okabe and Ito).
"""

from __future__ import annotations

Palette = dict[str, str]

STEPS = 8  # of load: idle, then equal ones
IDLE = 0.002  # of the time
KINDS = 8  # colours of link classes; further ones share the last

_LIGHT_RAMP = ("#c9d1da", "#aebbdf", "#969fd9", "#8a7dcb", "#8757b4", "#823394", "#6f126f", "#4d0043")
_DARK_RAMP = ("#3d4753", "#4c5490", "#7058ad", "#9b5cb0", "#c9639f", "#ec7a86", "#fca56e", "#fde272")
_LIGHT_KINDS = ("#0072b2", "#d55e00", "#009e73", "#8a6d00", "#b0578f", "#3f97cf", "#7a4a1e", "#6b7480")
_DARK_KINDS = ("#4fb0ee", "#ff9a56", "#3fd3a5", "#e6cc4c", "#f09ccb", "#9bd7ff", "#d3a06a", "#a3acb6")


def _palette(ground: str, ink: str, ramp: tuple[str, ...], kinds: tuple[str, ...], **others: str) -> Palette:
    numbered = {f"b{k}": colour for k, colour in enumerate(ramp)} | {f"k{k}": colour for k, colour in enumerate(kinds)}
    return {"ground": ground, "ink": ink, **numbered, **others}


LIGHT = _palette(
    "#ffffff", "#1b1f24", _LIGHT_RAMP, _LIGHT_KINDS, quiet="#59616b", line="#b9c0c9", frame="#f5f6f8", node="#e3e8ef",
    switch="#ffffff", path="#e06000", on="#ffffff", send="#0072b2", receive="#86c5ee", wait="#d6dae0", reduce="#00664b",
)  # fmt: skip
DARK = _palette(
    "#191d22", "#e7e9ec", _DARK_RAMP, _DARK_KINDS, quiet="#9ba4ae", line="#4a535e", frame="#20252b", node="#303944",
    switch="#191d22", path="#2ee6d6", on="#101317", send="#4fb0ee", receive="#f2b430", wait="#3a424c", reduce="#3fd3a5",
)  # fmt: skip
_DARK_INK_FROM = 4  # in light, text is white on these steps of load and darker ones


def style(dark: bool | None) -> str:
    """The style of a drawing in light, in dark, or (None) as the reader prefers."""
    if dark is None:
        return f"{_rules(LIGHT)}@media (prefers-color-scheme:dark){{{_rules(DARK)}}}"
    return _rules(DARK if dark else LIGHT)


def step(share: float) -> int:
    """The step of a busy share of 0 to 1; the first one is that of what is as good as idle."""
    return 0 if share < IDLE else min(STEPS - 1, 1 + int(share * (STEPS - 1)))


def edge(step: int) -> str:
    """A step in words."""
    low, high = (100 * (step - 1 + k) / (STEPS - 1) for k in (0, 1))
    return "idle" if step == 0 else f"busy {low:.0f} to {high:.0f} %"


def _rules(colours: Palette) -> str:
    rules = [
        f".ground{{fill:{colours['ground']}}}text{{fill:{colours['ink']}}}.quiet{{fill:{colours['quiet']}}}",
        f".link{{fill:none;stroke:{colours['line']};stroke-linecap:round}}",
        f".frame{{fill:{colours['frame']};stroke:{colours['line']}}}",
        f".endpoint,.group{{fill:{colours['node']};stroke:{colours['quiet']}}}",
        f".switch,.memory{{fill:{colours['switch']};stroke:{colours['quiet']}}}.memory{{stroke-dasharray:3 2}}",
    ]
    for name, colour in colours.items():
        if name[0] in "bk" and name[1:].isdigit():
            rules.append(f".link.{name}{{stroke:{colour}}}rect.{name}{{fill:{colour}}}")
            if name[0] == "b" and int(name[1:]) >= _DARK_INK_FROM:
                rules.append(f".on.{name}{{fill:{colours['on']}}}")
    return "".join(rules)
