"""Imports run one way, in Rust and in Python, and every room of the house in ARCHITECTURE.md keeps to its budget.

The tables there list rooms and crates from the top down. Each imports only what stands below it, also in functions and
for types. Parts of a room, the files and folders in it, know each other only where `SIBLINGS` lists it. No files of a
crate and no modules that load each other form a circle; in functions and for types, three at the most may.

A path such as `crate::fabric::Msg`, in a `use` or in the code, is followed through re-exports to the file that defines
it. A `mod.rs` and the files below it may know each other: a registry lists its entries, which use its types. So each
crate is checked twice, without the imports of a `mod.rs` from below it, and without those from below of a `mod.rs`.
"""

import ast
import functools
import re
import tomllib
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/linkwright"
# A row of the tables of rooms and crates: name, places, what stands there, budget.
ROW = re.compile(r"^\| (\w+) \| ((?:`[^`]+` ?)+)\| [^|]+\| *([\d,]+) *\|$", re.M)
# Rooms and crates from the top down -> their places (a folder, or with `*` its files alone), and their most lines.
HOUSE = {
    name: (re.findall("`(.+?)`", places), int(most.replace(",", "")))
    for name, places, most in ROW.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
}
ROOMS = [name for name, (places, _) in HOUSE.items() if places[0].startswith("python/")]
CRATES = [name for name, (places, _) in HOUSE.items() if places[0].startswith("crates/")]
# Imports (importer, imported) of Rust files that close a circle, each with its reason.
ALLOWED: dict[tuple[str, str], str] = {}
# Imports (importer, imported) of Python modules from a room above, each with its reason.
UPWARD: dict[tuple[str, str], str] = {
    ("linkwright.__main__", "linkwright.cli.main"): "`python -m linkwright` is the command line",
}
# Part of a room -> the parts beside it that it imports. Rooms that are one whole (cli, executors, ...) are not listed.
# begin of siblings
SIBLINGS: dict[str, str] = {
    "advise/cost_table": "cost_curve",
    "advise/costs": "cost_curve cost_table costs_build",
    "advise/costs_build": "cost_curve",
    "advise/expect": "explain",
    "advise/explain": "synthesis",
    "advise/fit": "locate",
    "advise/locate": "plans",
    "ask/answer": "exchange question",
    "ask/ask": "answer",
    "ask/question": "exchange",
    "ask/schedules": "answer question",
    "ask/sources": "question",
    "ask/writing": "question",
    "base/extras": "errors",
    "base/files": "errors",
    "base/plugins": "errors",
    "base/registry": "errors studies",
    "base/rows": "lazy",
    "base/stats": "lazy rows units",
    "base/studies": "errors extras",
    "base/toml": "errors units",
    "base/units": "errors",
    "formats/discovery": "interop",
    "formats/hangs": "logs",
    "formats/interop": "logs tuning",
    "libraries/questions": "library",
    "libraries/library": "nccl rccl tolerance",
    "libraries/rccl": "nccl",
    "libraries/times": "library mpi questions settings",
    "session/compare": "suite",
    "session/insight": "timeline",
    "show/explanations": "picture report",
    "show/report": "picture shown",
    "show/wide": "shown",
}
# end of siblings
# Python modules that may know each other in functions and for types.
MOST_IN_A_CIRCLE = 3
# What counts as code, as far as it is ours.
CODE = {".rs", ".py", ".js", ".cu", ".cuh", ".css", ".j2"}

Graph = dict[str, set[str]]

COMMENTS_AND_TEXTS = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\[^\']+|[^\'\\])\'', re.DOTALL
)
TEST_MODULE = re.compile(r"#\[cfg\((?:test|all\(test[^]]*|loom)\)\]\s*(?:pub(?:\([^)]*\))? )?mod \w+\s*(?=[;{])")
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])(?:\w+::)+\w+")


class Source:
    """One Rust file: the modules that it declares, the names that it brings in, and the paths that it mentions."""

    def __init__(self, file: Path, name: str):
        self.name = name
        text = without_tests(COMMENTS_AND_TEXTS.sub(" ", file.read_text(encoding="utf-8")))
        uses = [(bool(public), *used) for public, tree in USE.findall(text) for used in expanded(tree)]
        code = re.sub(r"pub\(in [^)]*\)", "", USE.sub(" ", text))
        words = set(re.findall(r"\w+", code))
        self.modules = re.findall(r"\bmod (\w+);", text)
        self.names = {alias: path for _, path, alias in uses}
        # A re-export that the file itself does not use is a signpost, not an import.
        self.paths = [path for public, path, alias in uses if not public or alias in words]
        self.paths += [match.split("::") for match in PATH.findall(code)]


class Crate:
    """The files of one crate by module."""

    def __init__(self, src: Path, name: str = ""):
        self.sources: dict[tuple[str, ...], Source] = {}
        self._add((), src / "lib.rs", src, name)

    def _add(self, module: tuple[str, ...], file: Path, src: Path, name: str) -> None:
        source = self.sources[module] = Source(file, f"{name}/src/{file.relative_to(src).as_posix()}")
        for child in source.modules:
            below = src.joinpath(*module, child)
            found = below / "mod.rs" if below.is_dir() else below.with_suffix(".rs")
            self._add((*module, child), found, src, name)

    def imports(self) -> Graph:
        """The files that each file imports."""
        found = {module: {self.defines(module, path) for path in s.paths} for module, s in self.sources.items()}
        return {self.sources[module].name: files - {None, self.sources[module].name} for module, files in found.items()}

    def defines(self, module: tuple[str, ...], path: list[str], hops: int = 9) -> str | None:
        """The file that defines what `path` means inside `module`; None for what stands outside the crate."""
        head, *rest = path
        known = self.sources[module]
        if head == "crate":
            return self.inside((), rest, hops)
        if head == "self":
            return self.inside(module, rest, hops)
        if head == "super":
            return self.defines(module[:-1], ["self", *rest], hops)
        if head in known.modules:
            return self.inside((*module, head), rest, hops)
        if head in known.names and known.names[head] != path and hops:
            return self.defines(module, [*known.names[head], *rest], hops - 1)
        return None

    def inside(self, module: tuple[str, ...], path: list[str], hops: int) -> str | None:
        """The same of a path that begins inside `module`; None for a bare module."""
        while path and (*module, path[0]) in self.sources:
            module, path = (*module, path[0]), path[1:]
        if path[:1] == ["super"]:
            return self.defines(module, path, hops)
        reexported = path and self.sources[module].names.get(path[0])
        if reexported and hops:
            return self.defines(module, [*reexported, *path[1:]], hops - 1)
        return self.sources[module].name if path else None


def without_tests(text: str) -> str:
    """Cut what is compiled for tests only: modules with their bodies, or their declarations."""
    while found := TEST_MODULE.search(text):
        end = found.end() if text[found.end()] == ";" else closing(text, found.end())
        text = text[: found.start()] + text[end + 1 :]
    return text


def closing(text: str, start: int) -> int:
    """Where the brace at `start` is closed."""
    depth = 0
    for at, character in enumerate(text[start:], start):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return at
    raise ValueError("a brace is not closed")


def expanded(tree: str, before: tuple[str, ...] = ()) -> Iterator[tuple[list[str], str]]:
    """The paths of `a::{b, c as d}`, each with the name that it brings in."""
    head, brace, inner = tree.partition("{")
    if brace:
        stem = (*before, *(word.strip() for word in head.split("::") if word.strip()))
        for branch in branches(inner[: inner.rindex("}")]):
            yield from expanded(branch, stem)
        return
    path, _, alias = (word.strip() for word in tree.partition(" as "))
    words = [*before, *path.split("::")]
    if words[-1] == "self":
        words.pop()
    yield words, alias or words[-1]


def branches(text: str) -> list[str]:
    """The parts of a tree between its commas, not those inside further braces."""
    depth, found = 0, [""]
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [branch for branch in found if branch.strip()]


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements of a Python module that run as it is imported itself."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending += [
                child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt | ast.excepthandler)
            ]


def imported(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    """Modules that statements import, and names in them; `package` is what the dots of `from . import` mean."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            near = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            start = ".".join([*near, *filter(None, [node.module])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


@functools.cache
def modules(root: Path) -> dict[str, tuple[str, ast.Module]]:
    """Every module of the package at `root`: the package that it is in, and its tree."""
    found = {}
    for file in [*root.rglob("*.py"), *root.rglob("*.pyi")]:
        name = ".".join(file.relative_to(root.parent).with_suffix("").parts)
        package = name.rpartition(".")[0]
        found[name.removesuffix(".__init__")] = package, ast.parse(file.read_text(encoding="utf-8"))
    return found


def python_imports(root: Path, everywhere: bool = False) -> Graph:
    """The modules that each module of the package at `root` imports: as it is imported itself, or `everywhere`."""
    known = modules(root)
    graph = {}
    for module, (package, tree) in known.items():
        names = set(imported(ast.walk(tree) if everywhere else statements(tree), package))
        found = {name if name in known else name.rpartition(".")[0] for name in names}
        graph[module] = (found & known.keys()) - {module}
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """The modules that reach each other, more than one, the most first."""
    reached = {module: reachable(graph, module) for module in graph}
    found = {tuple(sorted(other for other in reached[module] if module in reached[other])) for module in graph}
    return sorted((list(group) for group in found if len(group) > 1), key=len, reverse=True)


def reachable(graph: Graph, start: str) -> set[str]:
    """What `start` imports, and what that imports."""
    found: set[str] = set()
    pending = [start]
    while pending:
        more = graph[pending.pop()] - found
        found |= more
        pending += more
    return found


def place_of(module: str) -> tuple[str, str]:
    """The room of a Python module and its part of that room; the native half, whose stub names types, is below all."""
    _, *names = module.split(".")
    if names == ["_native"]:
        return "", ""
    folder = f"python/linkwright/{names[0]}/" if names and (PACKAGE / names[0]).is_dir() else "python/linkwright/*"
    room = next((room for room in ROOMS if folder in HOUSE[room][0]), None)
    assert room, f"{module} is in no room; move it into one, or give its folder a row in ARCHITECTURE.md"
    inside = folder == HOUSE[room][0][0] and len(names) > 1
    return room, names[1] if inside else names[0] if names else ""


def parts(graph: Graph) -> Graph:
    """The imports between parts of the same room."""
    found: Graph = {}
    for module, others in graph.items():
        room, part = place_of(module)
        same = {other_part for other_room, other_part in map(place_of, others) if other_room == room}
        found.setdefault(f"{room}/{part}", set()).update(f"{room}/{other}" for other in same - {part})
    return found


def lines_of_code(file: Path) -> int:
    """Lines of a file without comments, blank lines, docstrings and inline tests."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".rs":
        found = re.search(r"^#\[cfg\((?:all\()?test", text, re.M)
        text = text[: found.start()] if found else text
    elif file.suffix == ".py":
        text = re.sub(r'"""(?:.|\n)*?"""', "", text)
    lines = map(str.strip, text.splitlines())
    return sum(bool(line) and not line.startswith(("//", "#", "/*", "* ")) for line in lines)


def code_files(place: str) -> Iterator[Path]:
    """The files of code at a place of the table."""
    for file in ROOT.glob(place if place.endswith("*") else f"{place}**/*"):
        names = file.relative_to(ROOT).parts
        if file.suffix in CODE and not {"vendor", "test", "tests", "test.rs", "tests.rs"}.intersection(names):
            yield file


def below(file: str, other: str) -> bool:
    """Whether `file` is a part of the module whose `mod.rs` or `lib.rs` is `other`."""
    folder = PurePosixPath(other).parent
    return PurePosixPath(other).name in ("mod.rs", "lib.rs") and folder in PurePosixPath(file).parents


def circle(graph: Graph) -> str | None:
    """A circle spelled out, importer first; None where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return None


def circle_of_files(graph: Graph) -> str | None:
    """The same of the files of a crate, among which a `mod.rs` and the files below it may know each other."""
    down = {file: {other for other in found if not below(file, other)} for file, found in graph.items()}
    up = {file: {other for other in found if not below(other, file)} for file, found in graph.items()}
    return circle(down) or circle(up)


def crate_imports(name: str) -> Graph:
    return Crate(ROOT / f"crates/linkwright-{name}/src", name).imports()


@pytest.mark.parametrize("name", CRATES)
def test_files_of_a_crate_import_one_another_in_no_circle(name):
    graph = crate_imports(name)
    assert len(graph) >= 4
    for importer, imported in ALLOWED:
        graph.get(importer, set()).discard(imported)
    assert circle_of_files(graph) is None


def test_every_exception_is_still_needed():
    graph = {file: found for name in CRATES for file, found in crate_imports(name).items()}
    assert [pair for pair in ALLOWED if pair[1] not in graph.get(pair[0], ())] == []


def test_crates_depend_on_crates_before_them_only():
    assert {f"linkwright-{name}" for name in CRATES} == {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")}
    for place, name in enumerate(CRATES):
        manifest = tomllib.loads((ROOT / f"crates/linkwright-{name}/Cargo.toml").read_text(encoding="utf-8"))
        inside = {key.removeprefix("linkwright-") for key in manifest["dependencies"] if key.startswith("linkwright-")}
        assert inside <= set(CRATES[place + 1 :]), name


def test_modules_of_the_package_import_one_another_in_no_circle():
    graph = python_imports(PACKAGE)
    assert len(graph) > 100
    assert circle(graph) is None
    assert circle(parts(graph)) is None


def test_few_modules_know_each_other_even_in_functions_and_for_types():
    graph = python_imports(PACKAGE, everywhere=True)
    assert [group for group in circles(graph) if len(group) > MOST_IN_A_CIRCLE] == []


def test_rooms_import_only_rooms_below_them():
    upward = {
        (module, other)
        for module, others in python_imports(PACKAGE, everywhere=True).items()
        for other in (others - {"linkwright._native"} if module != "linkwright._native" else ())
        if ROOMS.index(place_of(other)[0]) < ROOMS.index(place_of(module)[0])
    }
    assert upward - UPWARD.keys() == set(), "move what is imported down, or what imports it up"
    assert UPWARD.keys() - upward == set(), "no exception any more"


def test_parts_of_a_room_know_each_other_only_where_that_is_listed():
    found = {part: others for part, others in parts(python_imports(PACKAGE, everywhere=True)).items() if others}
    flat = {room for room in ROOMS if not any(part.startswith(f"{room}/") for part in SIBLINGS)}
    beside = {
        part: " ".join(sorted(other.partition("/")[2] for other in others))
        for part, others in found.items()
        if part.partition("/")[0] not in flat
    }
    assert beside == SIBLINGS


def test_the_product_imports_none_of_the_packages_that_build_on_it():
    names = {name for package, tree in modules(PACKAGE).values() for name in imported(ast.walk(tree), package)}
    assert [name for name in names if name.startswith("linkwright_")] == []


@pytest.mark.parametrize("name", HOUSE)
def test_a_room_keeps_to_its_budget(name):
    places, most = HOUSE[name]
    lines = sum(lines_of_code(file) for place in places for file in code_files(place))
    assert lines <= most, (
        f"{name} has {lines:,} lines of code, its budget is {most:,}: make it simpler, move what belongs elsewhere, or "
        "raise the budget in ARCHITECTURE.md and say in the commit what the lines are worth"
    )


def test_the_places_of_changes_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("## Where a change goes")[2].partition("\n## ")[0]
    named = re.findall(r"`((?:crates|python|tests|docs)/[^`]*)`", table)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name.partition("<")[0]).exists()] == []


def write_crate(folder: Path, **files: str) -> Graph:
    """The imports of a made-up crate; `a__b` is the file `a/b.rs`."""
    for name, text in files.items():
        file = folder / f"{name.replace('__', '/')}.rs"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Crate(folder).imports()


def test_a_circle_through_a_reexport_is_spelled_out(tmp_path):
    graph = write_crate(
        tmp_path,
        lib="pub mod low; mod high; pub use high::{sub::Top, other as renamed};",
        low='/// Not `crate::nothing`.\nuse crate::Top;\nconst TEXT: &str = "use crate::high::Never;";',
        high__mod="pub mod sub; pub fn other() {}",
        high__sub="use crate::{low::{self, Lowest}, renamed}; fn f() -> low::Least { super::other() }",
    )
    assert graph["/src/low.rs"] == {"/src/high/sub.rs"}
    assert graph["/src/high/sub.rs"] == {"/src/low.rs", "/src/high/mod.rs"}
    assert circle_of_files(graph) in (
        "/src/low.rs -> /src/high/sub.rs -> /src/low.rs",
        "/src/high/sub.rs -> /src/low.rs -> /src/high/sub.rs",
    )


def test_a_registry_and_its_entries_are_no_circle_but_a_way_around_through_others_is(tmp_path):
    files = {
        "lib": "mod common; mod kinds;",
        "kinds__mod": "mod ring; pub struct Kind; static ALL: &[Kind] = &[ring::KIND];",
        "kinds__ring": "use super::Kind; use crate::common::help; #[cfg(test)] mod tests { use crate::kinds; }",
    }
    assert circle_of_files(write_crate(tmp_path, common="pub fn help() {}", **files)) is None
    around = circle_of_files(write_crate(tmp_path, common="use crate::kinds; fn help() { kinds::all() }", **files))
    assert set(around.split(" -> ")) == {"/src/common.rs", "/src/kinds/mod.rs", "/src/kinds/ring.rs"}


def test_a_circle_at_import_is_found_and_one_in_functions_or_for_types_is_none(tmp_path):
    package = tmp_path / "made"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "late.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made import user\n")
    (package / "user.py").write_text("from made.late import thing\ndef f():\n    import made.late\n")
    assert circle(python_imports(package)) is None
    assert circles(python_imports(package, everywhere=True)) == [["made.late", "made.user"]]
    modules.cache_clear()
    (package / "late.py").write_text("class A:\n    from . import user\n")
    assert circle(python_imports(package)) is not None
