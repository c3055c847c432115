#!/usr/bin/env bash
# build: LiteLLM's proxy, at one version, in a virtual environment of its own.
#
#   bench/peers/litellm/build.sh OUT      makes OUT/litellm
set -euo pipefail

[ -x "$1/litellm/bin/litellm" ] && exit 0
python3 -m venv "$1/litellm"
"$1/litellm/bin/pip" install --quiet --disable-pip-version-check 'litellm[proxy]==1.106.2' </dev/null
