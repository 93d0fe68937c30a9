from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwright.ask.question import DTYPES, OPS, Collective, Pattern, of_json
from linkwright.base import registry
from linkwright.base.errors import FileError, UnknownNameError
from linkwright.executors.protocol import Extent
from linkwright.libraries.questions import collective_question
from linkwright.session.suite import load
from linkwright.session.suite.expand import expand
from linkwright.store.schema import METRICS

HEAD = '[suite]\nformat = 1\nname = "s"\nsummary = "a suite"\n'
PART = '[[part]]\nname = "p"\nsummary = "a part"\npattern = "pairs"\nsizes = ["8", "1K"]\nranks = [2]\n'


def parse(text):
    return load.parse(text, "mine.toml")


@pytest.mark.parametrize("name", registry.keys("suites"))
@pytest.mark.parametrize("extent", [Extent("measured", 2), Extent("modelled", 64, (8, 8)), Extent("measured", 1)])
def test_every_suite_expands_on_every_kind_of_machine(name, extent):
    suite = load.load(registry.suite_path(name))
    assert suite.name == name
    experiments = expand(suite, extent)
    assert all(e.ranks <= extent.ranks for e in experiments)
    assert [of_json(e.to_json()) for e in experiments] == experiments


def test_every_pair_is_every_ordered_pair():
    suite = parse(HEAD + PART.replace("ranks = [2]", 'ranks = [2]\nplacement = "every_pair"').replace(', "1K"', ""))
    keys = [e.key for e in expand(suite, Extent("modelled", 3))]
    assert keys[0] == "p/pattern/pairs/p2/8/f32/0->1"
    assert len(keys) == 6


@pytest.mark.parametrize(
    ("ranks", "found"), [(1, []), (2, [2]), (6, [2, 4, 6]), (7, [2, 4]), (64, [2, 4, 8, 16, 32, 64])]
)
def test_doubling_pairs(ranks, found):
    suite = parse(HEAD + PART.replace("[2]", '"doubling"').replace(', "1K"', ""))
    assert [e.ranks for e in expand(suite, Extent("measured", ranks))] == found


def test_modelled_and_measured_machines_may_differ():
    suite = parse(HEAD + PART + 'modelled = { sizes = ["64"] }\n')
    assert [e.size_bytes for e in expand(suite, Extent("modelled", 2))] == [64]
    assert [e.size_bytes for e in expand(suite, Extent("measured", 2))] == [8, 1024]


def test_blocks_are_whole_elements_of_every_rank():
    made = collective_question("c", "allgather", "ring", 3, 100, "f64", "sum")
    assert (made.size_bytes, made.op) == (96, None)
    assert collective_question("c", "allreduce", "ring", 3, 104, "f64", "sum").op == "sum"
    assert collective_question("c", "allgather", "ring", 3, 8, "f64", "sum").size_bytes == 24  # not nothing


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            HEAD + PART.replace("pattern", "patern"),
            UnknownNameError,
            r"part\[0\]: unknown key `patern`; did you mean",
        ),
        (HEAD + PART.replace('"8"', '"8 bytes"'), FileError, r"sizes\[0\]: size `8 bytes`"),
        (HEAD + PART + 'collectives = "all"\n', FileError, "name exactly one of `pattern`"),
        (HEAD + PART + 'placement = "nowhere"\n', UnknownNameError, "unknown placement `nowhere`"),
        (HEAD + PART.replace('name = "p"\n', ""), FileError, "missing key `name`"),
        (HEAD + PART + PART, FileError, "same name"),
        (HEAD.replace("format = 1", "format = 2") + PART, FileError, "format is 2; write 1"),
        (HEAD + PART.replace('["8", "1K"]', "8"), FileError, "sizes is 8; write a list"),
        (HEAD + PART.replace('["8", "1K"]', "[8]"), FileError, r'sizes\[0\] is 8; write a text such as "64K"'),
        (HEAD + PART.replace("[2]", '["2"]'), FileError, r"ranks\[0\] is '2'; write a whole number, at least 1"),
        (HEAD + PART.replace('"pairs"', "5"), FileError, "pattern is 5; write one of"),
        (HEAD + PART + 'arithmetic = "no"\n', FileError, "arithmetic is 'no'; write true or false"),
        (HEAD + PART + 'root = "x"\n', FileError, "root is 'x'; write a whole number"),
        (HEAD + PART + 'metrics = ["speed"]\n', UnknownNameError, r"unknown metrics\[0\] `speed`"),
        (HEAD + PART + "modelled = 1\n", FileError, "modelled is 1; write a table"),
        (HEAD + "[[part", FileError, "not valid TOML"),
    ],
)
def test_a_wrong_suite_is_named(text, error, message):
    with pytest.raises(error, match=message):
        parse(text)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True)
LINES = TEXTS.filter(lambda text: text.isprintable() and len(text) <= 200)
PATTERNS, PROBES = ([key.rpartition("/")[2] for key in registry.keys(kind)] for kind in ("patterns", "probes"))
# Whole elements of every type.
SIZES = st.lists(st.integers(0, 1 << 47).map(lambda words: 8 * words), min_size=1, max_size=5).map(tuple)
COMMON = {
    "ranks": st.sampled_from(load.RANKS) | st.lists(st.integers(1, 1 << 20), min_size=1).map(tuple),
    "dtype": st.sampled_from(list(DTYPES)),
    "root": st.integers(0, 100),
    "issue": st.sampled_from(("blocking", "window(3)", "batch(2)", "unlimited")),
    "arithmetic": st.booleans(),
    "level": st.sampled_from(load.LEVELS),
    "metrics": st.lists(st.sampled_from(sorted(METRICS.keys() - {"latency", "bandwidth"})), min_size=1).map(tuple),
}
OF_PATTERNS = {**COMMON, "messages": st.integers(1, 64), "placement": st.sampled_from(load.PLACEMENTS)}
OF_COLLECTIVES = {**COMMON, "op": st.sampled_from(OPS)}
VALUES = st.lists(TEXTS | st.integers(0, 99), min_size=1).map(tuple)
SWEEPS = st.fixed_dictionaries({"min": TEXTS, "max": TEXTS | st.integers(0, 99), "factor": st.integers(2, 9)})
COLLECTIVES = st.lists(TEXTS, min_size=1).map(tuple)
# The values of a part, and what differs on described machines.
PARTS = st.one_of(
    st.tuples(
        st.fixed_dictionaries({"pattern": st.sampled_from(PATTERNS), "sizes": SIZES}, optional=OF_PATTERNS),
        st.fixed_dictionaries({}, optional={"sizes": SIZES, **OF_PATTERNS}),
    ),
    st.tuples(
        st.fixed_dictionaries({"collectives": COLLECTIVES, "sizes": SIZES}, optional=OF_COLLECTIVES),
        st.fixed_dictionaries({}, optional={"sizes": SIZES, **OF_COLLECTIVES}),
    ),
    st.tuples(
        st.fixed_dictionaries({"probe": st.sampled_from(PROBES), "axes": st.dictionaries(TEXTS, VALUES | SWEEPS)}),
        st.none(),
    ),
)


@given(NAMES, LINES, PARTS)
def test_a_printed_suite_reads_back(name, summary, values_and_override):
    values, override = values_and_override
    suite = load.one_part("printed", summary, part=name, **values)
    if override is not None:
        (part,) = suite.parts
        suite = replace(suite, parts=(replace(part, overrides={"modelled": override}),), machines=(name,))
    assert load.parse(suite.text, "printed.toml") == suite


@pytest.mark.parametrize("name", registry.keys("suites"))
def test_every_shipped_suite_prints_and_reads_back(name):
    suite = load.load(registry.suite_path(name))
    assert load.parse(suite.text, name) == suite


def test_values_are_checked_as_files_are():
    with pytest.raises(FileError, match="sizes is 8; write a list"):
        load.one_part("p", "s", pattern="pairs", sizes=8)
    with pytest.raises(FileError, match="no `sizes` for modelled"):
        load.one_part("p", "s", pattern="pairs")


def test_keys_differ_where_experiments_differ():
    base = Collective("p", "ring", 4, 1024, op="sum", collective="allreduce")
    changed = {
        "ranks": 5, "size_bytes": 8, "dtype": "u8", "op": "max", "root": 1, "grid": (2, 2),
        "placement": (1, 0, 2, 3), "issue": "window(2)", "path": "read", "skew": "uniform:1us",
        "arithmetic": False, "collective": "reduce", "algorithm": "direct",
    }  # fmt: skip
    keys = {replace(base, **{name: value}).key for name, value in changed.items()}
    assert len(keys | {base.key}) == len(changed) + 1
    pairs = Pattern("p", "pairs", 4, 1024)
    assert len({pairs.key, replace(pairs, messages=2).key, replace(pairs, both_ways=True).key}) == 3
