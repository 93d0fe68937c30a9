"""Claims of the report as checks, one file per chapter with a function `check(found) -> list[Claim]`."""
