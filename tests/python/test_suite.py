import pytest

from linkwright import registry
from linkwright.errors import SuiteError, UnknownNameError
from linkwright.executors.protocol import Extent
from linkwright.experiment import Experiment
from linkwright.suite import load
from linkwright.suite.expand import collective_experiment, expand
from linkwright.suite.measure import planned_launches

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
    assert [Experiment.from_json(e.to_json()) for e in experiments] == experiments


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
    made = collective_experiment("c", "allgather", "ring", 3, 100, "f64", "sum")
    assert (made.size_bytes, made.op) == (96, None)
    assert collective_experiment("c", "allreduce", "ring", 3, 104, "f64", "sum").op == "sum"
    assert collective_experiment("c", "allgather", "ring", 3, 8, "f64", "sum").size_bytes == 24  # not nothing


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            HEAD + PART.replace("pattern", "patern"),
            UnknownNameError,
            r"part\[0\]: unknown key `patern`; did you mean",
        ),
        (HEAD + PART.replace('"8"', '"8 bytes"'), SuiteError, "sizes: size `8 bytes`"),
        (HEAD + PART + 'collectives = "all"\n', SuiteError, "either a `pattern`, `collectives`"),
        (HEAD + PART + 'placement = "nowhere"\n', UnknownNameError, "unknown placement `nowhere`"),
        (HEAD + PART.replace('name = "p"\n', ""), SuiteError, "missing key `name`"),
        (HEAD + PART + PART, SuiteError, "same name"),
        (HEAD.replace("format = 1", "format = 2") + PART, SuiteError, "format is not 1"),
        (HEAD + "[[part", SuiteError, "no valid TOML"),
    ],
)
def test_a_wrong_suite_is_named(text, error, message):
    with pytest.raises(error, match=message):
        parse(text)


def test_keys_differ_where_experiments_differ():
    base = Experiment("p", "allreduce", "ring", 4, 1024, op="sum")
    changed = {
        "ranks": 5, "size_bytes": 8, "dtype": "u8", "op": "max", "root": 1, "grid": (2, 2),
        "placement": (1, 0, 2, 3), "issue": "window(2)", "path": "read", "skew": "uniform:1us",
        "arithmetic": False, "messages": 2, "both_ways": True,
    }  # fmt: skip
    keys = {Experiment(**{**base.__dict__, name: value}).key for name, value in changed.items()}
    assert len(keys | {base.key}) == len(changed) + 1


@pytest.mark.parametrize(
    ("budget_s", "experiments", "launches"), [(60, 261, 6), (300, 500, 9), (90, 140, 9), (10, 1, 6)]
)
def test_a_budget_is_shared_among_as_many_launches_as_have_time(budget_s, experiments, launches):
    assert planned_launches(budget_s, experiments) == launches
