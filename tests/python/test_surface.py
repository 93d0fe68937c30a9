"""What a user of the Python interface relies on: types, docstrings with examples that run, and errors with codes."""

import ast
import doctest
import inspect
import re
from pathlib import Path

import pytest

import linkwright as lw
from linkwright import _native, api
from linkwright.base import errors
from linkwright_cases import BRIEF, invoke

PACKAGE = Path(lw.__file__).parent
STUB = ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8"))


def public(names):
    return {name for name in names if not name.startswith("_")}


# Types of the native module.


def shape_of(arguments):
    """(kind, name, default) of each parameter of a stub."""
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(map(ast.unparse, arguments.defaults))
    plain += [arguments.vararg] if arguments.vararg else []
    defaults += [None] if arguments.vararg else []
    rows = [("plain", a.arg, d) for a, d in zip(plain, defaults, strict=True) if a.arg not in ("self", "cls")]
    rows += [("plain", arguments.kwarg.arg, None)] if arguments.kwarg else []
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return rows + [("keyword", a.arg, d and ast.unparse(d)) for a, d in keyword]


def shape_of_native(function):
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        ("keyword" if p.kind is keyword else "plain", p.name, None if p.default is p.empty else repr(p.default))
        for p in inspect.signature(function).parameters.values()
        if p.name not in ("self", "cls")
    ]


def named(part):
    """The name of a member of a class of the stub: of a function, or of an attribute that nobody can set."""
    return part.name if isinstance(part, ast.FunctionDef) else part.target.id


STUB_FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
STUB_CLASSES = {
    node.name: {named(part): part for part in node.body}
    for node in STUB.body
    if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
}


def test_the_stub_names_what_the_native_module_has():
    native = public(vars(_native))
    constants = public(node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign))
    assert set(STUB_FUNCTIONS) | set(STUB_CLASSES) | constants == native
    for name, members in STUB_CLASSES.items():
        assert public(members) == public(vars(getattr(_native, name))), name


@pytest.mark.parametrize("name", STUB_FUNCTIONS)
def test_a_native_function_has_the_parameters_of_its_stub(name):
    assert shape_of(STUB_FUNCTIONS[name].args) == shape_of_native(getattr(_native, name))


@pytest.mark.parametrize("name", STUB_CLASSES)
def test_a_native_class_has_the_members_of_its_stub(name):
    kind = getattr(_native, name)
    for member, stub in STUB_CLASSES[name].items():
        found = inspect.getattr_static(kind, member)
        if member == "__new__":
            assert shape_of(stub.args) == shape_of_native(kind)
        elif member.startswith("__"):
            continue
        elif isinstance(stub, ast.AnnAssign):
            assert ast.unparse(stub.annotation).startswith("Final["), member
            assert inspect.isdatadescriptor(found), member
        elif stub.decorator_list and ast.unparse(stub.decorator_list[0]) == "property":
            assert inspect.isdatadescriptor(found), member
        else:
            assert not inspect.isdatadescriptor(found), member
            assert shape_of(stub.args) == shape_of_native(getattr(kind, member)), member


def typed_dict(name):
    """The keys of a TypedDict of the stub, those of its bases included."""
    for node in STUB.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            own = {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
            return own.union(*(typed_dict(base.id) for base in node.bases if base.id.startswith("_")))
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return {key.value for key in node.value.args[1].keys}
    raise AssertionError(name)


def test_the_stub_names_the_columns_of_native_tables():
    schedule, machine = lw.schedule("allreduce", "ring", ranks=2, size="4K"), lw.machine("loggp", ranks=2)
    tables = {
        "_Operations": schedule.operations(),
        "_Proved": schedule.verify(),
        "_RankPrograms": _native.rank_programs(schedule),
        "_Launch": _native.run_threads(schedule, {"samples": 3}),
        "_Stream": _native.instruction_stream(schedule),
        "_Memory": _native.schedule_memory(schedule),
        "_Sampled": _native.sample_work(lambda _: None, {"samples": 3}),
        "_Endpoint": machine.endpoints()[0],
        "_Number": machine.numbers()[0],
        "_Device": _native.devices(lw.machine("ipu-c2-server"))[0],
        "_Algorithm": _native.algorithms()[0],
        "_Pattern": _native.patterns()[0],
        "_Fabric": _native.fabrics()[0],
        "_Collective": _native.collectives()[0],
        "_Probe": _native.probes()[0],
        "_Axis": _native.probes()[0]["axes"][0],
        "_Metric": _native.probes()[0]["metrics"][0],
        "_Layer": _native.convolution_layers()[0],
        "_ErrorEntry": _native.errors()[0],
    }
    for name, table in tables.items():
        assert typed_dict(name) == set(table), name


# Docstrings.


def documented():
    """Every public name with its object: what `lw` exports, and the public members of its classes."""
    for name in lw.__all__:
        found = getattr(lw, name)
        yield name, found
        if inspect.isclass(found) and not issubclass(found, Exception):
            for kind in reversed(found.__mro__[:-1]):
                for member in sorted(public(vars(kind)) - public(getattr(kind, "__dataclass_fields__", ()))):
                    yield f"{name}.{member}", getattr(found, member)


DOCUMENTED = dict(documented())
CALLABLE = {name: found for name, found in DOCUMENTED.items() if callable(found)}
# A section is a word at the margin with a colon, and what is indented below it.
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Example):\n((?:[ ]{4}.*\n?)+)", re.MULTILINE)


# Methods that only add to a builder.
WRITING = ("buffer", "step", "put", "put_blocks", "multicast", "aggregate", "local", "compute")


def sections(found):
    return dict(SECTION.findall(inspect.getdoc(found)))


@pytest.mark.parametrize("name", CALLABLE)
def test_a_public_name_says_how_to_use_it(name):
    found = CALLABLE[name]
    if inspect.isclass(found) and issubclass(found, Exception):
        assert inspect.getdoc(found)
        return
    said = sections(found)
    assert "Example" in said
    if inspect.isclass(found) and name != "Builder":
        fields = getattr(found, "__dataclass_fields__", {})
        assert list(fields) == re.findall(r"^ {4}(\w+):", said.get("Attributes", ""), re.MULTILINE)
        return
    wanted = [p for p in inspect.signature(found).parameters if p not in ("self", "cls")]
    assert wanted == re.findall(r"^ {4}(\w+):", said.get("Args", ""), re.MULTILINE)
    assert not wanted or "Raises" in said
    writes = name in {f"Builder.{verb}" for verb in WRITING}
    assert ("Returns" in said) is not (writes or name == "Builder")
    for raised in re.findall(r"^ {4}(\w+):", said.get("Raises", ""), re.MULTILINE):
        assert issubclass(getattr(errors, raised), errors.LinkwrightError)


def test_every_property_is_described_and_used_in_an_example():
    examples = "\n".join(sections(found)["Example"] for found in CALLABLE.values() if "Example" in sections(found))
    for name, found in DOCUMENTED.items():
        if not callable(found):
            assert inspect.getdoc(found), name
            assert f".{name.rpartition('.')[2]}" in examples, name


@pytest.fixture(scope="module")
def stored_run(tmp_path_factory):
    """A folder with a stored run in `runs`, for the example of `results`."""
    folder = tmp_path_factory.mktemp("examples")
    asked = ("-a", "ring", "--ranks", "2", "--sizes", "4K", "--iters", "8", *BRIEF)
    assert invoke("run", "allreduce", *asked, "--runs", str(folder / "runs")).status == 0
    return folder


@pytest.mark.parametrize("name", ["api", *CALLABLE])
def test_an_example_runs(name, stored_run, monkeypatch):
    monkeypatch.chdir(stored_run)
    text = inspect.getdoc(api if name == "api" else CALLABLE[name])
    said = []
    doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(text, {}, name, None, 0), out=said.append)
    assert not said, "".join(said)


# Errors.


def test_every_error_has_one_documented_code():
    rows = list(errors.entries())
    codes = [row["key"] for row in rows]
    assert len(codes) == len(set(codes))
    for row in rows:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*", row["key"])
        assert row["summary"].endswith(".")
        assert issubclass(getattr(errors, row["class"]), errors.LinkwrightError)


def test_codes_that_python_names_are_documented():
    codes = {row["key"] for row in errors.entries()}
    named = [
        code
        for path in PACKAGE.rglob("*.py")
        for code in re.findall(r"""\bcode(?: ==|=) ?"([^"]+)\"""", path.read_text(encoding="utf-8"))
    ]
    assert named
    assert set(named) <= codes


@pytest.mark.parametrize(
    ("call", "kind", "code"),
    [
        (lambda: lw.machine("loggq"), errors.UnknownNameError, "usage.unknown-name"),
        (lambda: lw.Machine.parse("[", "a.toml"), errors.FileError, "machine.syntax"),
        (lambda: lw.Schedule.parse("ranks"), errors.FileError, "schedule.syntax"),
        (lambda: lw.Schedule.build("allreduce/rung", 2, 4), errors.UnknownNameError, "schedule.unknown-algorithm"),
        (lambda: lw.schedule("broadcast", "ring", ranks=2, size=4, root=2), errors.ShapeError, "schedule.shape"),
        (lambda: unfinished().finish().verify(), errors.VerifyError, "verify.semantics"),
        (lambda: lw.simulate(ring(128), "wormhole-n150"), errors.UnsuitedError, "sim.too-few-endpoints"),
        (lambda: lw.simulate(ring(4), "loggp", path="x"), errors.UnknownNameError, "sim.unknown-path"),
        (lambda: lw.simulate(ring(4), "loggp", issue="x"), errors.UsageError, "issue.syntax"),
        (lambda: lw.simulate(ring(4), "loggp", placement=(0, 1)), errors.UsageError, "sim.option"),
    ],
)
def test_an_error_has_the_class_and_the_code_of_its_kind(call, kind, code):
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind
    assert raised.value.code == code


def ring(ranks):
    return lw.schedule("allreduce", "ring", ranks=ranks, size=4 * ranks)


def unfinished():
    builder = lw.Builder("broadcast", 2, "4K")
    builder.buffer("output")
    builder.step()
    return builder


@pytest.mark.parametrize("call", [lw.verify, lambda wrong: lw.simulate(wrong, "loggp"), lambda wrong: lw.run(wrong)])
@pytest.mark.parametrize("wrong", ["allreduce", 3, None])
def test_what_is_not_a_schedule_is_refused_with_the_cure(call, wrong):
    with pytest.raises(errors.UsageError, match=r"is not a schedule; make one with lw\.schedule"):
        call(wrong)
