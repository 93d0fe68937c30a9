"""Imports run one way: no circle among the files of a crate or among crates, none among Python modules as they load.

In functions and for types, Python modules may know each other, as a form and what it makes do, but three at the most.

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
# Each crate depends only on crates before it.
CRATES = ["core", "schedule", "plans", "sim", "synthesis", "exec", "tables", "py"]
# Imports (importer, imported) that close a circle, each with its reason.
ALLOWED: dict[tuple[str, str], str] = {
    ("sim/src/network.rs", "sim/src/fabric.rs"): "a fabric has a network, which is asked about messages of the fabric",
}
# Python modules that may know each other in functions and for types.
MOST_IN_A_CIRCLE = 3

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


def packages(graph: Graph) -> Graph:
    """The same between the parts of the package: a folder or a file at its top."""
    found: Graph = {}
    for module, imported in graph.items():
        top = ".".join(module.split(".")[:2])
        found.setdefault(top, set()).update({".".join(other.split(".")[:2]) for other in imported} - {top})
    return found


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
    for place, name in enumerate(CRATES):
        manifest = tomllib.loads((ROOT / f"crates/linkwright-{name}/Cargo.toml").read_text(encoding="utf-8"))
        inside = {key.removeprefix("linkwright-") for key in manifest["dependencies"] if key.startswith("linkwright-")}
        assert inside <= set(CRATES[:place]), name


def test_modules_of_the_package_import_one_another_in_no_circle():
    graph = python_imports(ROOT / "python/linkwright")
    assert len(graph) > 100
    assert circle(graph) is None
    assert circle(packages(graph)) is None


def test_few_modules_know_each_other_even_in_functions_and_for_types():
    graph = python_imports(ROOT / "python/linkwright", everywhere=True)
    assert [group for group in circles(graph) if len(group) > MOST_IN_A_CIRCLE] == []


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
