#!/bin/sh
# A step of a CI job: does this agent server keep the Runtime Contract?
#
#     examples/validate/ci.sh ./server --port '{port}'
#
# The server is started on a free port, asked, and ended. What it breaks is printed, and
# contract.xml has the same for the CI system. The step fails when a MUST is broken.
set -eu

"${WEIR:-weir}" validate --strict --format junit -- "$@" > contract.xml || code=$?

if [ "${code:-0}" -ne 0 ]; then
    # Once more for people, with what was expected, what was seen, and what to change.
    "${WEIR:-weir}" validate --strict -- "$@" || true
fi
exit "${code:-0}"
