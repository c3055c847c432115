# model_lib: what model.sh, openai.sh and instructions.sh share: the model, and LiteLLM in front of it.
# shellcheck shell=bash disable=SC2034  # the scripts use what is set here

MOCK='' MOCK_PORT='' PORT=''

compile_mock() { compile_c model_mock bench/{model_mock,mock_h2}.c src/base/*.c -lssl -lcrypto; }

# For localhost, and its own authority: mock.pem and mock.key.
certify_mock() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=mock \
        -addext subjectAltName=DNS:localhost -keyout "$OUT/mock.key" -out "$OUT/mock.pem" 2>/dev/null
}

# Callers share connections to the model: HTTP/2 over TLS, and without it for an address with http:.
sharing_settings() { sed 's/# http2: /http2: /' bench/model.yaml; }

start_mock() { # tokens of an answer, of them a second
    rm -f "$OUT/mock.json"
    certify_mock
    "${FIRST[@]}" taskset -c 1 "$OUT/model_mock" "$OUT/mock.json" "$1" "${2:-100}" "$OUT/mock.pem" "$OUT/mock.key" &
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
