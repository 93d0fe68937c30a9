#!/usr/bin/env bash
# each.sh VERB [OPTION...] -- FILE...: run `linkwright VERB OPTION... FILE` for each file, and fail if any fails. What the
# GitHub Action and the pre-commit hooks run: several files of one `explain` would be the ranks of one job.
set -u
words=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do words+=("$1"); shift; done
if [ $# -eq 0 ] || [ ${#words[@]} -eq 0 ]; then
    echo "each.sh: name a verb, its options, then -- and the files" >&2
    exit 2
fi
shift
worst=0
for file; do
    linkwright "${words[@]}" "$file"
    status=$?
    [ "$status" -gt "$worst" ] && worst=$status
done
exit "$worst"
