"""The search behind `linkwright synthesize`: improvements, stops, bad input."""

import pytest

import linkwright as lw
from linkwright import _native
from linkwright.base.errors import LinkwrightError


def search(collective: str, ranks: int, size: int, machine: str = "dgx1-p100", **options: object) -> list[dict]:
    options.setdefault("methods", ["library"])
    return list(_native.synthesize(lw.machine(machine), collective, ranks, size, **options))


def test_improvements_end_with_the_best_which_simulates_to_its_time() -> None:
    found = search("allreduce", 8, 65536)
    times = [row["time_ps"] for row in found]
    assert times == sorted(times, reverse=True)
    best = found[-1]
    result = lw.simulate(best["schedule"], lw.machine("dgx1-p100"), issue=best["issue"])
    assert round(result.time_us * 1e6) == best["time_ps"]
    assert best["method"] == "library"
    assert best["recipe"].startswith("allreduce/")


def test_the_same_on_any_number_of_threads() -> None:
    words = ("method", "recipe", "time_ps", "issue")
    one, three = (
        [tuple(row[word] for word in words) for row in search("allgather", 8, 4096, threads=threads)]
        for threads in (1, 3)
    )
    assert one == three


def test_the_answer_is_there_when_the_search_has_ended() -> None:
    running = _native.synthesize(lw.machine("dgx1-p100"), "reduce_scatter", 8, 65536, methods=["library", "portfolio"])
    assert running.answer is None
    fastest = list(running)[-1]
    answer = running.answer
    assert answer["lasting"]["lasts"]
    assert (answer["time_ps"] > fastest["time_ps"]) == (running.fastest is not None)


def test_drawn_machines() -> None:
    machine = lw.machine("dgx1-p100")
    numbers = [[row["value"] for row in machine.varied(0.2, seed=seed).numbers()] for seed in (1, 1, 2)]
    assert numbers[0] == numbers[1] != numbers[2]
    for share in (-0.1, 1.0, float("nan")):
        with pytest.raises(LinkwrightError, match="give a share of 0 or more and below 1"):
            machine.varied(share)


def test_a_search_without_time_answers_and_a_stopped_one_ends() -> None:
    assert search("allreduce", 8, 1024, budget_s=0.0)
    running = _native.synthesize(lw.machine("dgx1-p100"), "alltoall", 8, 65536)
    running.stop()
    assert list(running)
    assert running.tried >= 1
    assert list(running) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("allreduces", 8, 1024, {}), "unknown collective"),
        (("allreduce", 9, 1024, {}), "9 ranks"),
        (("allgather", 8, 28, {}), "less than one for each of 8 ranks"),
        (("allreduce", 8, 1024, {"methods": ["guess"]}), "no method `guess`; known: library"),
        (("allreduce", 8, 1024, {"path": "rings"}), "no path `rings`, did you mean `ring`"),
        (("allreduce", 8, 1024, {"budget_s": -1.0}), "a budget of -1 s is no time"),
    ],
)
def test_what_cannot_be_searched_is_refused(call: tuple, message: str) -> None:
    collective, ranks, size, options = call
    with pytest.raises(LinkwrightError, match=message):
        search(collective, ranks, size, **options)


def test_methods_describe_themselves() -> None:
    for row in _native.synthesis_methods():
        assert set(row) == {"key", "summary", "description", "source"}
        assert all(row.values())
