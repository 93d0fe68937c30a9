"""Tables of results and of facts: what they show, how wide they are, and how they are coloured."""

import io
import re

import click
import pytest

from golden import FOLDER
from linkwright.cli import columns, groups
from linkwright.cli.main import status_of
from linkwright.cli.options import View
from linkwright.cli.progress import Progress
from linkwright.store import tally
from linkwright_cases import invoke
from tables import BUDGET, RESULTS, collective, measured, pattern, shown, without

# Help is as wide as click makes it, --wide and a file for an engine as they need to be; keys of questions stand in no
# table.
OTHERS = ("help.txt", "predict-resnet.txt", "questions.txt", "table-wide.txt", "tune-engines.txt")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.name)
def test_default_tables_are_at_most_80_columns_wide(path):
    if path.name not in OTHERS:
        assert [line for line in path.read_text(encoding="utf-8").splitlines() if len(line) > 80] == []


def lines_of(text):
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


def test_the_fastest_algorithm_of_a_size_stands_first_and_sizes_ascend():
    assert [(words[0], words[1]) for words in lines_of(shown(*RESULTS[:8]))] == [
        ("8", "swing_latency"), ("8", "ring"), ("8", "shared_memory"),
        ("64K", "swing_latency"), ("64K", "ring"), ("64K", "hamiltonian_rin…"),
    ]  # fmt: skip


def test_what_was_not_started_has_a_line_and_what_was_waived_a_reason_with_a_count():
    text = shown(*RESULTS[:8])
    assert ["64K", "hamiltonian_rin…", *"----", "out-of-time"] in lines_of(text)
    assert ["8", "shared_memory", *"----", "failed"] in lines_of(text)
    assert "hierarchical" not in [words[1] for words in lines_of(text)]
    said = "# waived: 2 experiments such as run/allreduce/hierarchical/p4/8/f32/sum: ranks in a line have no nodes"
    assert text.replace("\n#  ", "").count(said) == 1


def test_a_flag_of_all_lines_stands_in_the_heading_only():
    text = shown(*RESULTS[:4])
    assert "# run: allreduce, 4 ranks, f32 sum; unpinned\n" in text
    assert [words[-1] for words in lines_of(text)] == ["tight", "tight", "single,disturbed", "wide"]


def test_what_experiments_differ_in_has_a_column():
    text = shown(*(measured(pattern(8, issue=issue), 100.0 + n) for n, issue in enumerate(["blocking", "window(4)"])))
    assert [words[1] for words in lines_of(text)] == ["issue=blocking", "issue=window(4)"]
    one = shown(measured(pattern(8, issue="window(4)"), 100.0))
    assert "# latency_by_size: ping_pong, 2 ranks, u8, issue=window(4)\n" in one


def test_long_names_give_way_and_numbers_do_not():
    names = [f"{'an_algorithm_with_a_name_of_its_own_' * 3}{n}" for n in range(2)]
    text = shown(*(measured(collective(name, 8), 123456789.0 + n, 0.02) for n, name in enumerate(names)))
    assert max(map(len, text.splitlines()[:5])) == 80
    assert all(words[1].endswith("…") and words[2] == "123.5" for words in lines_of(text))


def test_a_wider_terminal_shows_more(monkeypatch):
    name = "an_algorithm_with_a_name_of_its_own_" * 2
    assert name not in shown(measured(collective(name, 8), 100.0))
    monkeypatch.setenv("COLUMNS", "140")
    assert name in shown(measured(collective(name, 8), 100.0))
    monkeypatch.setenv("COLUMNS", "40")  # narrower than tables are made for
    assert columns.terminal_columns() == 80


ANSI = re.compile("\x1b\\[[0-9;]*m")
SIMULATED = ("simulate", "allreduce", "-a", "ring,swing_latency", "--on", "wormhole-n150", "--sizes", "1K")


def test_colour_is_for_terminals_and_for_those_who_force_it(monkeypatch):
    plain = invoke(*SIMULATED).out
    assert "\x1b" not in plain
    coloured = invoke(*SIMULATED, "--color", "always").out
    assert "\x1b[1mswing_latency\x1b[0m" in coloured  # the fastest
    assert ANSI.sub("", coloured) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert invoke(*SIMULATED).out == plain
    assert invoke(*SIMULATED, "--color", "never").out == plain


def test_amber_is_for_wide_red_for_failed_and_grey_for_single():
    with click.Context(click.Command("run"), color=True):
        text = shown(*RESULTS[:8])
    assert "\x1b[33mwide\x1b[0m" in text
    assert "\x1b[33m12.0\x1b[0m" in text
    assert "\x1b[31mfailed\x1b[0m" in text
    assert "\x1b[90msingle,disturbed\x1b[0m" in text
    assert "tight\x1b" not in text


@pytest.mark.parametrize(("value", "colour"), [("1", False), ("", None)])
def test_no_color_in_the_environment_forbids_colour_on_a_terminal(monkeypatch, value, colour):
    seen = []

    def table(**_kept):
        seen.append(click.get_current_context().color)
        raise click.Abort

    monkeypatch.setattr("linkwright.cli.simulations.LiveTable", table)
    monkeypatch.setenv("NO_COLOR", value)
    invoke(*SIMULATED)
    assert seen == [colour]


def test_columns_choose_and_name_what_there_is():
    text = invoke(*SIMULATED, "--columns", "algorithm,time,hops_max,limit").out
    assert [len(words) for words in lines_of(text)] == [6, 6]
    assert invoke(*SIMULATED, "--wide", "--columns", "time").status == 2
    wrong = invoke(*SIMULATED, "--columns", "size,tme")
    assert wrong.status == 2
    assert "there is no column `tme`; choose from size, ranks, algorithm," in wrong.err
    assert all(name in wrong.err for name in groups.COLUMNS)


def test_wide_lines_begin_as_those_of_nccl_tests():
    text = invoke(*SIMULATED, "--wide").out
    heads = [line.split() for line in text.splitlines() if line.startswith("#  ")]
    assert ["#", "size", "count", "type", "redop", "root", "time", "algbw", "busbw"] in [words[:9] for words in heads]
    assert [words[:5] for words in lines_of(text)] == [["1024", "256", "f32", "sum", "-1"]] * 2


def test_an_axis_that_was_asked_for_is_shown_at_its_default():
    with click.Context(click.Command("probe")):
        View.current().axes = ("working_set", "order")
        assert ["4K", "random", "1.03"] in [words[:3] for words in lines_of(shown(RESULTS[11]))]
    assert "random" not in shown(RESULTS[11])


def test_counts_are_those_of_grades_and_statuses():
    counts = tally.tally(row for _, its in RESULTS for row in its)
    assert counts == {"tight": 6, "fair": 1, "wide": 2, "single": 1, "failed": 1, "waived": 2, "out-of-time": 2}
    words = "15 experiments: 6 tight, 1 fair, 2 wide, 1 single; 1 failed, 2 waived, 2 out of time"
    assert tally.sentence(counts) == words
    assert tally.sentence(tally.tally(RESULTS[0][1])) == "1 experiment: 1 tight"
    assert tally.sentence({}) == "0 experiments: none"


# --- facts ---------------------------------------------------------------------------------------------


def test_the_last_text_goes_on_in_more_lines_or_below_its_row():
    rows = [["a", "1", "one two three four five six seven"], ["b", "22", "eight"]]
    assert columns.wrapped(["key", "n", "source"], rows, (0, 2), 28) == [
        "key   n  source",
        "a     1  one two three four",
        "         five six seven",
        "b    22  eight",
    ]
    assert columns.wrapped(["a long heading", "n", "source"], rows, (0, 2), 24) == [
        "a long heading   n",
        "    source",
        "a                1",
        "    one two three four",
        "    five six seven",
        "b               22",
        "    eight",
    ]


def test_a_query_is_as_wide_as_the_terminal(tmp_path):
    dissected = ("dissect", "--on", "crossbar", "--ranks", "4", "--runs", str(tmp_path))
    assert invoke(*dissected).status == 0
    sql = "select metric, value, repeat('word ', 30) as words from results limit 2"
    lines = invoke("query", sql, "--runs", str(tmp_path)).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).count("word") == 61


# --- the live line -------------------------------------------------------------------------------------


class Terminal:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def test_a_live_line_shows_elapsed_and_remaining_time_from_the_first_second(monkeypatch):
    terminal = Terminal()
    now = 1000.0
    monkeypatch.setattr("linkwright.cli.progress.time.monotonic", lambda: now)
    monkeypatch.setattr("sys.stderr", terminal)
    progress = Progress(4, "threads")
    assert terminal.text == "\r0:00  threads\x1b[K"
    now += 75
    progress.show(1, "launch 1: 1 of 4")
    assert terminal.text.endswith("\r1:15, about 3:45 left  launch 1: 1 of 4\x1b[K")
    progress.end_in(15.0)
    progress.show(2, "launch 2")
    assert progress.text() == "1:15, about 0:15 left  launch 2"
    progress.close()
    assert terminal.text.endswith("\r\x1b[K")


def test_a_pipe_sees_no_live_line():
    assert invoke(*SIMULATED).err == ""


def test_what_was_not_started_names_the_reason_once():
    late = [without(collective("ring", size), "out-of-time", BUDGET) for size in (8, 16, 32)]
    assert shown(*late).replace("\n#  ", "").count(f"3 experiments such as {late[0][0].key}: {BUDGET}") == 1


# --- nothing found, wrong verb -------------------------------------------------------------------------


def test_a_probe_that_nothing_answers_fails_and_says_so(tmp_path):
    result = invoke("run", "memory_latency", "--on", "cell-be", "--runs", str(tmp_path))
    assert (result.status, result.err) == (1, "linkwright: no experiment gave a value; the lines above say why\n")
    assert "add [probe.memory] to its file" in " ".join(result.out.replace("\n# ", "").split())


def test_the_remark_about_rounded_sizes_names_what_was_asked_for():
    """Blocks of 8 ranks are whole elements of 4 bytes: multiples of 32; 12 is nearer to 0, and 36 became the same."""
    found = invoke("simulate", "alltoall/pairwise", "--on", "crossbar", "--ranks", "8", "--sizes", "12,36,100,4096").out
    assert "rounded to whole elements for each rank: 12 to 32 B, 100 to 96 B\n" in found
    assert "rounded" not in invoke("simulate", "allreduce/ring", "--on", "crossbar", "-p", "8", "--sizes", "12,36").out


def test_simulate_sends_what_measures_to_run():
    result = invoke("simulate", "allreduce", "--on", "threads")
    assert result.status == 2
    assert "use `linkwright run`" in result.err


def test_rates_too_low_for_gb_per_s_have_their_units():
    low = shown(*RESULTS[:8])
    assert " 39.87 MB/s " in low
    assert "(GB/s)" not in low


@pytest.mark.parametrize(
    "line",
    [
        "explain examples/logs/hang.log",
        "plan cost allreduce --on hgx-h100 -a ring --sizes 1M",
        "plan order --on hgx-h100 --tensor 8:1M",
        "plan experts --on hgx-h100 --tokens 8 --experts 8 --topk 2 --hidden 64",
        "predict llm llama3-8b --on hgx-h100 --tp 8",
        "expect allreduce --on hgx-h100 --sizes 1M",
    ],
)
def test_a_verb_that_may_take_long_says_so_on_a_terminal(monkeypatch, line):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert status_of(line.split()) == 0
    assert terminal.text.startswith("\r0:00  ")
    assert terminal.text.endswith("\r\x1b[K")
