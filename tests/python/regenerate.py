"""Write golden texts and the generated tables of documents again; `make generate` calls this."""

from generated import filled, marked_documents
from golden import FOLDER, TEXTS


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.name not in TEXTS:
            path.unlink()
    for name, make in TEXTS.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")
    for path in marked_documents():
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
