#!/usr/bin/env bash
# notes.sh VERSION CHANGELOG.md: print the notes of a version, the section below its heading; fail if it has none.
set -eu
awk -v version="$1" '
    /^## / { inside = ($2 == version); next }
    inside { print; if (NF) found = 1 }
    END { exit !found }' "$2" || { echo "notes.sh: $2 has no notes of version $1" >&2; exit 1; }
