"""One name, one meaning: public types that are defined more than once, in Python or in a crate, only become fewer."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUST_TYPE = re.compile(r"^ *pub (?:struct|enum|trait|union|type) (\w+)", re.M)
INLINE_TESTS = re.compile(r"^#\[cfg\((?:all\()?test", re.M)
# Name -> how many public types have it. Rename one of them, and lower its number here; never raise it.
SHARED_IN_PYTHON: dict[str, int] = {
    "Axis": 4, "Box": 2, "Choice": 5, "Clocks": 2, "Column": 2, "Finding": 2, "Graph": 3, "Group": 3,
    "Host": 3, "Level": 4, "Line": 5, "Log": 2, "Measurer": 3, "Model": 3, "Node": 5, "Operation": 2,
    "Outcome": 3, "Part": 3, "Place": 2, "Plan": 3, "Point": 3, "Predicted": 2, "Program": 3,
    "Request": 2, "Room": 2, "Row": 2, "Rule": 2, "Run": 2, "Setting": 2, "Source": 2, "State": 2,
    "Step": 2, "Stream": 2, "Table": 4, "Task": 2, "Time": 2, "Tuner": 2,
}  # fmt: skip
SHARED_IN_RUST: dict[str, int] = {
    "Answer": 4, "Axis": 2, "Buffers": 2, "Cache": 2, "Chip": 2, "Clock": 2, "Completion": 2, "Config": 2,
    "Demand": 2, "Draft": 2, "Edge": 2, "Fill": 2, "Found": 3, "Group": 3, "Kind": 2, "Layout": 2, "Library": 2,
    "Message": 2, "Method": 2, "Passage": 2, "Phase": 2, "Plan": 3, "Precision": 2, "Prepared": 2,
    "Program": 2, "Random": 2, "Recipe": 2, "Result": 5, "Search": 2, "Source": 2, "Stream": 2, "Tree": 2,
    "Way": 3, "Wish": 2, "Written": 2,
}  # fmt: skip


def python_types() -> Counter[str]:
    """Public classes at the top of a module of the product."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in ROOT.glob("python/linkwright/**/*.py"))
    classes = (node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    return Counter(name for name in classes if not name.startswith("_"))


def rust_types() -> Counter[str]:
    """Public types of all crates but the binding, whose classes are those of Python; no tests."""
    found: Counter[str] = Counter()
    for file in ROOT.glob("crates/*/src/**/*.rs"):
        if file.relative_to(ROOT).parts[1] != "linkwright-py" and "tests" not in file.with_suffix("").parts:
            found.update(RUST_TYPE.findall(INLINE_TESTS.split(file.read_text(encoding="utf-8"))[0]))
    return found


def shared(found: Counter[str]) -> dict[str, int]:
    """The names that several types have."""
    return {name: count for name, count in sorted(found.items()) if count > 1}


def test_no_name_gets_a_second_meaning():
    cure = "a new type needs a name of its own; where there are fewer now, lower the number in this file"
    assert shared(python_types()) == SHARED_IN_PYTHON, cure
    assert shared(rust_types()) == SHARED_IN_RUST, cure
