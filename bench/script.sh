#!/bin/sh
# Write the script that weir plays under measurement: the turn of bench/turn.h, unpaced, and
# one paced scene for each number of chunks named on the command line. Every chunk carries its
# number, so the text is too long to keep by hand.
#
#   bench/script.sh 150 200 > script.yaml
set -eu

chunks() { # first line of the text block's indent, then count chunks on one line
    awk -v count="$1" 'BEGIN {
        tail = " the water goes on over the weir, to the mill, to sea..."
        for (n = 0; n < count; n++) printf "%08u%s", n, tail
    }'
}

scene() { # chunks, pace
    printf '        - text: "%s"\n          pace: {every: %s, chunk: 64}\n' "$(chunks "$1")" "$2"
    printf '        - usage: {prompt: 10, completion: %s, total: %s}\n' "$1" "$(($1 + 10))"
}

cat <<'HEAD'
script: 1
model: script
agents:
  - slug: manager
    description: Says the same numbered words to everyone.
scenes:
HEAD
for count in "$@"; do
    printf '  - exact: paced %s\n    replies:\n      -\n' "$count"
    scene "$count" 20ms
done
printf '  - replies:\n      -\n'
scene 64 0
