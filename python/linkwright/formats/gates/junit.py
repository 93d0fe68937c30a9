"""A JUnit report: one test case for each collective and size, which fails if the log is below the floor.

Continuous integration systems read it. A size that the log lacks is skipped, not passed.

Source: the schema that Jenkins and GitLab document (testsuites, testsuite, testcase, failure, skipped).
"""

from __future__ import annotations

from xml.etree import ElementTree

from linkwright.base.units import US_PER_S

from .gate import Expected, GateFormat, Judged


def render(expected: Expected) -> str:
    """The report."""
    root = ElementTree.Element("testsuites")
    for collective in dict.fromkeys(one.expectation.collective for one in expected.judged):
        its = [one for one in expected.judged if one.expectation.collective == collective]
        counts = {
            "tests": str(len(its)),
            "failures": str(sum(one.failed for one in its)),
            "errors": "0",
        }
        suite = ElementTree.SubElement(root, "testsuite", {"name": f"linkwright expect {collective}", **counts})
        for one in its:
            _case(suite, expected, one)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, expected: Expected, one: Judged) -> None:
    seconds = "0" if one.time_us is None else f"{one.time_us / US_PER_S:.9f}"
    case = ElementTree.SubElement(
        suite, "testcase", {"classname": expected.machine, "name": one.expectation.label, "time": seconds}
    )
    if one.failed:
        floor = f"floor {one.expectation.floor:.4g} GB/s, {one.expectation.tolerance:.1%} below the model"
        measured = f"measured {one.busbw:.4g} GB/s" if one.busbw is not None else "no rate"
        ElementTree.SubElement(case, "failure", {"message": f"{one.standing}: {measured}; {floor}"})


JUNIT = GateFormat(
    "junit", "a JUnit report on a measured log",
    "A test case for each collective and size of the log, which fails below the floor or with wrong results. "
    "Needs --log.",
    "Jenkins and GitLab: testsuites, testsuite, testcase, failure, skipped", render, judges=True, needs_log=True,
)  # fmt: skip
