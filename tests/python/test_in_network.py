"""Aggregations: written, verified, simulated where a switch combines, and run as gets and puts where none does."""

from pathlib import Path

import pytest

import linkwright as lw
from generated import DOCUMENTS

MACHINES = DOCUMENTS.parent / "tests" / "cases" / "machines"
SWITCH = str(MACHINES / "flow-switch.toml")
PLAIN = str(MACHINES / "flow.toml")


def builder(ranks=4, size=4000):
    made = lw.Builder("allreduce", ranks, size)
    made.buffer("output", ranks)
    made.step()
    return made


def sharp(ranks=4, size=4000):
    """One aggregation from all to all."""
    made = builder(ranks, size)
    everyone = list(range(ranks))
    made.aggregate(everyone, everyone, "output", 0, count=ranks)
    return made.finish()


def nvls(ranks=4, size=4000):
    """Each rank aggregates its part, then writes it once for all."""
    made = builder(ranks, size)
    everyone = list(range(ranks))
    for rank in everyone:
        made.aggregate(everyone, [rank], "output", rank)
    made.step()
    for rank in everyone:
        made.multicast(rank, [other for other in everyone if other != rank], "output", rank)
    return made.finish()


def test_an_aggregation_names_its_sets():
    schedule = nvls()
    operations = schedule.operations()
    assert operations["kind"] == ["aggregate"] * 4 + ["multicast"] * 4
    sources, targets = schedule.aggregations[operations["to"][1]]
    assert (schedule.sets[sources], schedule.sets[targets]) == ([0, 1, 2, 3], [1])
    assert operations["from"][1] == 1
    assert schedule.sent_bytes().tolist() == [3 * 1000 + 3 * 1000] * 4  # to others: three parts up, one part to three


def test_the_text_is_read_back(tmp_path: Path):
    text = nvls().text()
    assert "t1 aggregate s0:output[1] -> s2:output[1] replace lane=0 src_after=- dst_after=-\n" in text
    path = tmp_path / "own.lw"
    path.write_text(text, encoding="utf-8")
    assert lw.load(path).text() == text


# Of tests/cases/flow-switch.toml: start 100 ns, two links of 50 ns, 1 ns per byte.
@pytest.mark.parametrize(
    ("schedule", "machine", "ns"),
    [
        (sharp, SWITCH, 100 + 4000 + 100),
        # A pull asks first; four parts share each link up, then three each link down.
        (nvls, SWITCH, 100 + 100 + 4000 + 100 + 100 + 3000 + 100),
        # Rank 0 gets three vectors one after another, then puts three, which share its link up. Two ranks are behind
        # a switch more, and each switch stores 100 bytes; see tests/cases/flow.toml.
        (sharp, PLAIN, (100 + 4300) + 2 * (150 + 4450) + 100 + 12000 + 350),
    ],
)
def test_times_are_those_derived_by_hand(schedule, machine, ns):
    result = lw.simulate(schedule(), machine, issue="unlimited")
    assert result.time_us * 1000 == pytest.approx(ns, rel=1e-6)


def test_a_row_says_that_no_switch_combines():
    assert "gets and puts aggregate" in lw.simulate(sharp(), PLAIN).row("time")["reason"]
    assert not lw.simulate(sharp(), SWITCH).row("time")["reason"]


def test_the_trace_and_the_critical_path_know_it():
    result = lw.simulate(nvls(), SWITCH, issue="unlimited", trace=True, links=True)
    assert set(result.critical_path.frame()["kind"]) == {"aggregate", "multicast"}
    loads = result.links.frame().set_index("link")["bytes"]
    assert (loads["rank 0 -> N"], loads["N -> rank 0"]) == (5000, 4000)


def test_threads_run_it_as_gets_and_puts():
    result = lw.run(nvls(2, 4096), launches=1, samples=5)
    assert result.row("time")["status"] == "ok"


@pytest.mark.parametrize(
    ("sources", "targets", "says"),
    [
        ([], [0], "without sources or targets"),
        ([0, 1], [], "without sources or targets"),
        ([0, 9], [0], "participant 9"),
        ([0, 0], [1], "names a participant twice"),
    ],
)
def test_mistakes_are_named(sources, targets, says):
    made = builder()
    made.aggregate(sources, targets, "output", 0)
    with pytest.raises(lw.LinkwrightError, match=says):
        lw.verify(made.finish())


def test_a_contribution_twice_is_explained():
    made = builder()
    everyone = [0, 1, 2, 3]
    made.aggregate(everyone, everyone, "output", 0, count=4, reduce=True)
    with pytest.raises(lw.VerifyError, match="contribution twice instead of once"):
        lw.verify(made.finish())


def test_files_name_the_operation(tmp_path: Path):
    text = nvls().text()
    for wrong, says in [
        ("aggregate s0:output[1] -> s9", "set s9 is not in the header"),
        ("aggregate 0:output[1] -> s2", "where a set such as s0 should stand"),
    ]:
        path = tmp_path / "own.lw"
        path.write_text(text.replace("aggregate s0:output[1] -> s2", wrong), encoding="utf-8")
        with pytest.raises(lw.LinkwrightError, match=says):
            lw.load(path)
