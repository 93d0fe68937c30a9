"""Write the golden texts again; `make generate` calls this."""

from golden import FOLDER, TEXTS


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.name not in TEXTS:
            path.unlink()
    for name, make in TEXTS.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
