"""A page as a reader sees it who has opened its sections: one line per heading, paragraph or table row; other folded
parts are left out."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_LINES = ("h1", "h2", "h3", "h4", "p", "tr", "li", "figcaption", "dt", "section")
_CELLS = ("td", "th", "small", "dd", "span")
_HIDDEN = ("script", "style", "details", "caption", "nav", "svg")


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = [""]
        self.hidden = 0
        self.sections: list[bool] = []  # whether an open <details> is that of a section

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag == "details":
            self.sections.append(("class", "folded") in attrs)
        self.hidden += tag in _HIDDEN and not (tag == "details" and self.sections[-1])
        if tag in _LINES:
            self.lines.append("")
        elif tag in _CELLS:
            self.lines[-1] += " | " if tag in ("td", "th") else " "

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in _HIDDEN and not (tag == "details" and self.sections.pop())

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.lines[-1] += data


def words(page: str) -> str:
    reader = _Words()
    reader.feed(page)
    lines = (re.sub(r"\s+", " ", line).strip(" |") for line in reader.lines)
    return "\n".join(line for line in lines if line) + "\n"


def until(page, true: str) -> None:
    """Waits for a condition; the page's policy forbids the waiting of Playwright, which evaluates text in the page."""
    assert any(page.evaluate(true) or page.wait_for_timeout(50) for _ in range(600)), true
