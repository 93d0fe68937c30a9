import pytest

from generated import filled, marked_documents
from golden import FOLDER, TEXTS


@pytest.mark.parametrize("name", TEXTS)
def test_golden_text(name):
    assert TEXTS[name]() == (FOLDER / name).read_text(encoding="utf-8"), "if this is meant, run `make generate`"


def test_no_golden_text_is_left_over():
    assert {path.name for path in FOLDER.glob("*.txt")} == set(TEXTS)


@pytest.mark.parametrize("path", marked_documents(), ids=lambda path: path.name)
def test_generated_tables(path):
    text = path.read_text(encoding="utf-8")
    assert filled(text) == text, "run `make generate`"
