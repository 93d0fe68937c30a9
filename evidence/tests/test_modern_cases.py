"""Numbers that people found bad: the healthy model, the faulty one, and what the study says of both."""

import pytest

from linkwright.machines import Variant
from linkwright_evidence.modern import cases


@pytest.fixture(scope="module")
def rows():
    return cases.rows()


def test_a_fault_is_what_the_command_line_would_say(rows):
    half = next(row for row in rows if row["case"] == 38)
    assert half["fault"] == '--without "NIC 4" --without "NIC 5" --without "NIC 6" --without "NIC 7"'
    case = next(case for case in cases.known() if case.number == 9)
    assert case.variant(faulty=False) == Variant.of(2, "slingshot-11", [], {})
    assert case.variant(faulty=True) == Variant.of(2, "sockets", [], {})


def test_half_of_the_rails_carry_half(rows):
    half = next(row for row in rows if row["case"] == 38)
    assert half["modelled"] == pytest.approx(half["expected"] / 2, rel=0.06)
    assert half["reproduced"]
    assert half["says"].startswith("expected 370 GB/s, you have 196.5: 53%")


def test_every_fault_makes_its_machine_slower(rows):
    assert len(rows) == len(cases.known())
    assert all(row["modelled"] < 0.7 * row["expected"] for row in rows if row["fault"])


def test_without_a_fault_a_case_only_says_what_to_expect(rows):
    plain = [row for row in rows if row["fault"] is None]
    assert {row["case"] for row in plain} == {15, 28, 29, 32}
    assert all(row["modelled"] is None and row["reproduced"] is None for row in plain)
    container = next(row for row in plain if row["case"] == 15)
    assert container["says"].endswith("you have 15.1: 3%")


def test_a_case_that_gave_a_number_is_not_counted(rows):
    (given,) = (row for row in rows if row["case"] == 27)
    assert given["modelled"]
    assert given["reproduced"] is None


def test_the_claim_fails_as_soon_as_one_case_does():
    good, bad, other = {"reproduced": True}, {"reproduced": False}, {"reproduced": None}
    assert cases.claim([good, other])[1:] == (True, "1 of 1 cases")
    assert cases.claim([good, good])[1:] == (True, "2 of 2 cases")
    assert cases.claim([good, bad])[1:] == (False, "1 of 2 cases")
