"""Write golden texts, schemas and the generated tables of documents again; `make generate` calls this."""

from pathlib import Path

from generated import filled, machine_files, marked_documents
from golden import FOLDER, TEXTS
from linkwright import _native, schemas

RUST_FOLDER = Path(__file__).parent.parent.parent / "crates" / "linkwright-schedule" / "tests" / "golden"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.name not in TEXTS:
            path.unlink()
    for name, make in TEXTS.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")
    lists = {
        "algorithms": [algorithm["key"] for algorithm in _native.algorithms()],
        "patterns": [pattern["name"] for pattern in _native.patterns()],
    }
    for name, lines in lists.items():
        (RUST_FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in schemas.NAMES:
        schemas.path(name).write_text(schemas.made(name, machine_files()), encoding="utf-8")
    for path in marked_documents():
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
