"""What a user of the Python interface relies on: types, docstrings with examples that run, and errors with codes."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import linkwright as lw
from linkwright import _native, api
from linkwright.base import errors, native_types
from linkwright_cases import BRIEF, invoke

PACKAGE = Path(lw.__file__).parent


def public(names):
    return {name for name in names if not name.startswith("_")}


# Types of the native module, whose stub the build writes.


def test_native_types_have_the_keys_of_native_tables():
    schedule, machine = lw.schedule("allreduce", "ring", ranks=2, size="4K"), lw.machine("loggp", ranks=2)
    tables = [
        (native_types.OperationColumns, schedule.operations()),
        (native_types.ProvedRow, schedule.verify()),
        (native_types.RankProgramColumns, _native.rank_programs(schedule)),
        (native_types.LaunchColumns, _native.run_threads(schedule, {"samples": 3})),
        (native_types.StreamColumns, _native.instruction_stream(schedule)),
        (native_types.MemoryColumns, _native.schedule_memory(schedule)),
        (native_types.SampledColumns, _native.sample_work(lambda _: None, {"samples": 3})),
        (native_types.EndpointRow, machine.endpoints()[0]),
        (native_types.NumberRow, machine.numbers()[0]),
        (native_types.DeviceRow, _native.devices(lw.machine("ipu-c2-server"))[0]),
        (native_types.AlgorithmRow, _native.algorithms()[0]),
        (native_types.PatternRow, _native.patterns()[0]),
        (native_types.DescribedRow, _native.fabrics()[0]),
        (native_types.CollectiveRow, _native.collectives()[0]),
        (native_types.ProbeRow, _native.probes()[0]),
        (native_types.AxisRow, _native.probes()[0]["axes"][0]),
        (native_types.MetricRow, _native.probes()[0]["metrics"][0]),
        (native_types.LayerRow, _native.convolution_layers()[0]),
        (native_types.ErrorRow, _native.errors()[0]),
        (native_types.DescribedRow, _native.synthesis_methods()[0]),
        (native_types.FormatRow, _native.plan_formats()[0]),
        (native_types.LibraryRow, lw.machine("dgx1-p100").library()),
        (native_types.MachineNumbers, _native.machine_numbers()),
    ]
    for kind, table in tables:
        assert kind.__annotations__.keys() == table.keys(), kind


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
    with pytest.raises(errors.UsageError, match=r"is not a schedule; create one with lw\.schedule"):
        call(wrong)
