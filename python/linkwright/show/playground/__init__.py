"""The playground: one page that holds the engine as WebAssembly, every shipped machine, and nothing to load.

    page()  ->  HTML that works from a file, without a server and without a network

`make play` compiles `crates/linkwright-web` into `engine.wasm` here; git ignores it. The page's policy lets its own
scripts and its own worker run and forbids every request, so what is typed there stays there.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from importlib import resources
from pathlib import Path

from linkwright import machines
from linkwright.base import registry
from linkwright.base.errors import FileError

ENGINE = Path(__file__).parent / "engine.wasm"
# In a checkout, the sources of the engine; an installation has none.
SOURCES = Path(__file__).parents[4] / "crates"
_STYLES = (("linkwright.show.report", "report.css"), (__package__, "play.css"))


def page() -> str:
    """The whole page.

    Raises:
        FileError: the engine has not been compiled.
    """
    if not ENGINE.is_file():
        raise FileError(
            "the playground needs the engine as WebAssembly, which this installation does not hold: run `make play` "
            "in the sources of linkwright; the documentation site has the page as playground.html"
        )
    script = "".join(_asset(__package__, name) for name in ("play.js", "search.js"))
    text = _asset(__package__, "page.html")
    for name, value in {
        "policy": _policy(script),
        "style": "".join(_asset(package, name) for package, name in _STYLES),
        "data": _json(_files()),
        "worker": _json(_asset(__package__, "worker.js")),
        "engine": base64.b64encode(gzip.compress(ENGINE.read_bytes(), mtime=0)).decode(),
        "script": script,
    }.items():
        text = text.replace(f"{{{{ {name} }}}}", value)
    return text


def outdated() -> str | None:
    """Return a remark if sources of the native half are newer than the engine; None in an installation."""
    built = ENGINE.stat().st_mtime
    if all(path.stat().st_mtime <= built for path in SOURCES.glob("*/src/**/*.rs")):
        return None
    return f"{ENGINE.name} is older than sources in {SOURCES.name}/: `make play` builds it again"


def _files() -> dict[str, object]:
    """Texts of machines, parts and networks by name, and the machines that can be nodes."""
    kinds = {"parts": registry.part_path, "networks": registry.network_path}
    names = machines.names()
    return {
        "machines": {name: machines.described(name)[1] for name in names},
        **{
            kind: {name: path(name).read_text(encoding="utf-8") for name in registry.keys(kind)}
            for kind, path in kinds.items()
        },
        "nodes": [name for name in names if not name.startswith(machines.ASSUMED) and machines.load(name).cluster],
    }


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}' 'wasm-unsafe-eval'; worker-src blob:; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(package: str, name: str) -> str:
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")
