/* The default limits, apart from the server: settings need no connections. */
#include "server/server.h"

const struct server_limits server_limits_default = {
    .fields_max = 100,
    .fields_max_bytes = 16 * KIB,
    .target_max_bytes = 8 * KIB,
    .streams_max = 1000,
    .streams_max_stranger = 100,
    .connections_max = 1024,
    .connection_max_bytes = 1 * MIB,
    .header_timeout_ms = 10 * 1000,
    .write_stall_ms = 30 * 1000,
    .answer_bytes_per_s = 1 * KIB,
    .idle_timeout_ms = 300 * 1000,
    .keepalive_ms = 30 * 1000,
    .keepalive_timeout_ms = 10 * 1000,
    .ping_apart_ms = 15 * 1000,
};
