"""The tolerances of `expect`: derived from the healthy tables of the study `modern`, and up to date."""

import tomllib

import pytest

from linkwright.libraries.settings import Setup
from linkwright.libraries.tolerance import of
from linkwright_evidence import Options
from linkwright_evidence.modern import tolerance
from linkwright_evidence.modern.tolerance import FILE, Measured

GIB = 1 << 30
NODE = Setup("box", 1, 8, None, "nccl-2.27", "allreduce")


def cell(shortfall, table="A", site="here", size=GIB, setup=NODE, time=1.0):
    return Measured(setup, site, table, size, setup.ranks, shortfall, time, "us")


def made(*its):
    return tomllib.loads(tolerance.text(its))


def test_a_group_states_what_nineteen_cells_in_twenty_do_not_exceed():
    cells = [cell(at / 100) for at in range(20)] + [cell(0.9, "B", "there")]
    (group,) = made(*cells)["groups"]
    assert (group["shortfall"], group["tables"], group["sites"]) == (0.19, 2, 2)
    assert (group["machine"], group["fabric"], group["nodes"], group["size"]) == ("box", "", 0, 2)


def test_machines_networks_collectives_nodes_and_sizes_are_groups_of_their_own():
    pair = Setup("box", 2, 8, "net,taper=2", "nccl-2.27", "allreduce")
    setups = (NODE, pair, Setup("box", 8, 8, "net", "nccl-2.27", "allreduce"),
              Setup("box", 2, 8, "net", "nccl-2.27", "alltoall"))  # fmt: skip
    found = made(*(cell(0.1, size=size, setup=setup) for setup in setups for size in (8, 1 << 20, GIB)))["groups"]
    assert len(found) == 12
    assert {one["fabric"] for one in found} == {"", "net"}


def test_the_scatter_is_that_of_tables_of_one_condition():
    """Tables of 1.0, 1.0 and 1.25 us: the last has four fifths of the middle rate. Another size stands alone."""
    cells = [cell(0, table, time=time) for table, time in (("A", 1.0), ("B", 1.0), ("C", 1.25))]
    assert made(*cells, cell(0, size=8, time=9.0))["scatter"] == {"one": [0, 0, 0.2], "several": [0, 0, 0]}


def test_the_shipped_rows_of_a_machine_are_those_of_this_model():
    found = tomllib.loads(tolerance.text(tolerance.measured(Options(machines=("l40s", "b300")))))["groups"]
    shipped = [
        row for row in tomllib.loads(FILE.read_text(encoding="utf-8"))["groups"] if row["machine"] in ("l40s", "b300")
    ]
    assert found == shipped, "run `python -m linkwright_evidence.modern.tolerance`"


@pytest.mark.slow
def test_nineteen_healthy_cells_in_twenty_are_above_their_floors():
    found = tolerance.measured(Options())
    assert tolerance.text(found) == FILE.read_text(encoding="utf-8"), (
        "run `python -m linkwright_evidence.modern.tolerance`"
    )
    its = [(one, of(*one.group[:3], one.setup.nodes, one.size_bytes)) for one in found]
    assert sum(one.shortfall <= most.share for one, most in its) / len(its) >= 0.95
