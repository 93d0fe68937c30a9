"""Run folders: what is measured is written whole or not at all, and survives an interruption."""
