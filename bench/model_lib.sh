# model_lib: what model.sh and openai.sh share: the model, and LiteLLM in front of it.
# shellcheck shell=bash disable=SC2034  # the scripts use what is set here

MOCK='' MOCK_PORT='' PORT=''

start_mock() { # tokens of an answer, of them a second
    rm -f "$OUT/mock.json"
    taskset -c 1 "$OUT/model_mock" "$OUT/mock.json" "$1" "${2:-100}" &
    MOCK=$!
    MOCK_PORT=$(port_in "$OUT/mock.json" http)
}

start_litellm() {
    PORT=$(free_port)
    cat >"$OUT/litellm.yaml" <<END
model_list:
  - model_name: mock-1
    litellm_params: {model: openai/mock-1, api_base: "http://127.0.0.1:$MOCK_PORT/v1", api_key: none}
litellm_settings: {telemetry: false}
general_settings: {dangerously_permit_weak_or_unset_master_key: true} # on loopback
END
    taskset -c 0 "$OUT/litellm/bin/litellm" --config "$OUT/litellm.yaml" --host 127.0.0.1 \
        --port "$PORT" --num_workers 1 >"$OUT/litellm.log" 2>&1 &
    PID=$!
    await_port "$PORT" 1200
}
