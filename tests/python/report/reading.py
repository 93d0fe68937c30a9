"""A page as a reader sees it: one line per heading, paragraph or table row, folded parts left out."""

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

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.hidden += tag in _HIDDEN
        if tag in _LINES:
            self.lines.append("")
        elif tag in _CELLS:
            self.lines[-1] += " | " if tag in ("td", "th") else " "

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in _HIDDEN

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.lines[-1] += data


def words(page: str) -> str:
    reader = _Words()
    reader.feed(page)
    lines = (re.sub(r"\s+", " ", line).strip(" |") for line in reader.lines)
    return "\n".join(line for line in lines if line) + "\n"
