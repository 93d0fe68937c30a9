"""What is linked or installed has a licence that is allowed; what is not is named."""

import pytest

import licences


def test_all_is_allowed_and_listed():
    assert licences.wrong_packages() == []
    assert licences.main() == 0


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("GPL-3.0 OR MIT", True),
        ("GPL-3.0", False),
        ("MIT AND GPL-3.0", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("(GPL-3.0 OR AGPL-3.0) AND MIT", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        (None, False),
        ("", False),
    ],
)
def test_an_expression_must_leave_a_choice_that_is_allowed(expression, allowed):
    assert licences.is_allowed(expression) is allowed


def test_versions_and_licences_that_drift_are_named():
    rows = [("a", "1.0", "MIT"), ("a", "2.0", "MIT"), ("b", "1.0", "GPL-3.0"), ("getrandom", "1", "MIT")]
    assert licences.wrong_crates(rows) == [
        "b 1.0: licence 'GPL-3.0' is not allowed",
        "a: in the wheel more than once; use one version, or say in DUPLICATES why not",
        "getrandom: no longer in the wheel more than once; take it out of DUPLICATES",
        "hashbrown: no longer in the wheel more than once; take it out of DUPLICATES",
    ]


def test_packages_that_drift_are_named(monkeypatch):
    assert "`png`" in {name: extras for name, extras, _ in licences.packages()}["resvg-py"]
    assert "says MIT" in licences.disagreement("click", "MIT")
    assert licences.disagreement("no-such-package", "MIT") is None
    monkeypatch.delitem(licences.PACKAGES, "numpy")
    monkeypatch.setitem(licences.PACKAGES, "left-pad", "MIT")
    assert licences.wrong_packages() == [
        "numpy: pyproject.toml asks for it; add its licence to PACKAGES",
        "left-pad: pyproject.toml no longer asks for it; take it out of PACKAGES",
    ]
