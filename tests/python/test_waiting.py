"""Per rank: transfer and waiting, from NCCL's Inspector and PyTorch's profiler."""

import pytest

import log_cases
from linkwright.advise.explain import waiting
from linkwright.base.errors import FileError
from linkwright.formats.logs import read_logs
from linkwright_cases import invoke


def write(folder, text_of, ranks=range(8), suffix=".log"):
    return [
        str(file)
        for rank in ranks
        if (file := folder / f"n0-rank{rank}{suffix}").write_text(text_of(rank), encoding="utf-8")
    ]


def test_the_last_to_come_shows_the_transfer(tmp_path):
    """The public table of an FSDP step: rank 4 is late, and rank 0 waits for six sevenths of its time."""
    log = read_logs(write(tmp_path, log_cases.inspector_rank))
    (found,) = waiting.arrivals(log.operations)
    assert (found.last.rank, found.last.last, found.count) == (4, 5, 5)
    assert found.transfer == pytest.approx(11_702)
    first = found.ranks[0]
    assert first.waiting / first.time == pytest.approx(60.1 / 71.8, rel=1e-3)
    assert found.chosen == "RING SIMPLE"


def test_a_table_has_the_transfer(tmp_path):
    """Sizes of a reduce-scatter are of one rank, as the plugin counts them."""
    (table,) = read_logs(write(tmp_path, log_cases.inspector_rank)).tables
    (row,) = table.rows
    assert (row.size, row.time, row.count) == (8 << 28, 11_702, 5)


def test_ranks_that_come_together_are_no_cause(tmp_path):
    times = [1000 + rank for rank in range(8)]
    log = read_logs(write(tmp_path, lambda rank: log_cases.inspector_rank(rank, times)))
    (found,) = waiting.arrivals(log.operations)
    assert found.last is None
    assert found.share < 0.01


def test_ranks_that_are_late_in_turn_are_not_blamed(tmp_path):
    def text(rank):
        return "".join(
            log_cases.inspector_rank(rank, [100 if at == late else 1000 for at in range(4)], 1).replace(
                '"coll_sn": 0', f'"coll_sn": {late}'
            )
            for late in range(4)
        )

    (found,) = waiting.arrivals(read_logs(write(tmp_path, text, range(4))).operations)
    assert found.last is None
    assert found.share > 0.5


def test_a_broadcast_is_left_out(tmp_path):
    log = read_logs(write(tmp_path, lambda rank: log_cases.inspector_rank(rank, coll="Broadcast")))
    assert waiting.arrivals(log.operations) == []


@pytest.mark.parametrize("with_seq", [True, False])
def test_traces_of_ranks_go_together(tmp_path, with_seq):
    log = read_logs(write(tmp_path, lambda rank: log_cases.kineto_rank(rank, with_seq=with_seq), suffix=".json"))
    (found,) = waiting.arrivals(log.operations)
    assert (found.last.rank, found.count, len(found.ranks)) == (4, 3, 8)


def test_traces_without_seq_and_with_other_counts_do_not_go_together(tmp_path):
    files = write(tmp_path, lambda r: log_cases.kineto_rank(r, count=3 + r % 2, with_seq=False), suffix=".json")
    assert waiting.arrivals(read_logs(files).operations) == []


def test_prometheus_is_a_log_of_rates(tmp_path):
    text = log_cases.prometheus() + log_cases.prometheus("AllGather", 300, "134-135MB")
    (file,) = write(tmp_path, lambda _: text, [0])
    one, two = read_logs([file]).tables
    assert (one.collective, one.ranks, one.nodes) == ("allreduce", 8, 1)
    assert [(row.size, row.busbw) for row in one.rows] == [(1 << 30, 400.0), (1 << 30, 401.0)]
    assert one.rows[0].time == pytest.approx((1 << 30) / (400 / 1.75) / 1e3)
    assert two.rows[0].size == 8 * 134 << 20
    result = invoke("explain", file, "--on", "hgx-h100", "--table", "1")
    assert "NCCL Prometheus metrics, allreduce, 8 ranks" in result.out
    assert "These times hold the waiting" in result.out


@pytest.mark.parametrize("size", ["", "x", "2-1GB", "1-2", "-1GB", "1e9B"])
def test_a_metric_without_a_size_is_named(tmp_path, size):
    (file,) = write(tmp_path, lambda _: log_cases.prometheus(size=size) + log_cases.prometheus(), [0])
    assert "no rate of a collective" in read_logs([file]).complaints[0][1]


def test_files_of_different_tools_are_refused(tmp_path):
    files = write(tmp_path, log_cases.inspector_rank, [0]) + write(tmp_path, log_cases.kineto_rank, [1], ".json")
    with pytest.raises(FileError, match="NCCL Inspector or PyTorch profiler"):
        read_logs(files)


def test_explain_answers_without_a_machine(tmp_path):
    write(tmp_path, log_cases.inspector_rank)
    result = invoke("explain", str(tmp_path))
    assert result.status == 0, result.err
    text = " ".join(result.out.split())
    assert "Rank 4 comes last in 5 of 5 and shows the transfer: 11.70 ms." in text
    assert "rank 0 waits 60.10 ms of 71.80 ms (84%)" in text
    assert "--on" in text


def test_explain_compares_the_transfer_with_a_machine(tmp_path):
    files = write(tmp_path, log_cases.inspector_rank)
    result = invoke("explain", *files, "--on", "hgx-h100")
    assert result.status == 0, result.err
    assert "Rank 4 comes last" in result.out
    assert "Verdict" in result.out


def test_files_that_are_missing_are_named(tmp_path):
    result = invoke("explain", *write(tmp_path, log_cases.inspector_rank, [0, 1]))
    assert "6 ranks not in these files may come later still" in " ".join(result.out.split())


def test_one_rank_is_told_to_be_one(tmp_path):
    (file,) = write(tmp_path, log_cases.inspector_rank, [0])
    result = invoke("explain", file, "--on", "hgx-h100")
    assert "These times hold the waiting" in result.out
