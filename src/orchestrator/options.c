#include "orchestrator/options.h"

#include "config/rows.h"

#define ROW_OF struct orchestrator_options

const char *const orchestrator_drivers[] = {"fake", "address", "child", NULL};

/* clang-format off */
static const struct setting rows[] = {
    {.group = "Orchestrator", .key = "listen.orchestrator", .flag = "listen",
     .env = {"WEIR_ORCHESTRATOR"}, ADDRESS(listen), .preset = "127.0.0.1:7171", .fixed = true,
     .help = "weir orchestrate: REST and Socket.IO for clients"},
    {.key = "orchestrator.database_file", .env = {"WEIR_ORCHESTRATOR_DATABASE"},
     SECRET(database), .shown = "none", .fixed = true,
     .help = "the PostgreSQL database: postgres://user:password@host/name"},
    {.key = "orchestrator.schema", .flag = "schema", .env = {"WEIR_ORCHESTRATOR_SCHEMA"},
     TEXT(schema), .shown = "the server's search path", .fixed = true,
     .help = "the schema in it that has our tables"},
    {.key = "orchestrator.gateway", .flag = "gateway", .env = {"WEIR_ORCHESTRATOR_GATEWAY"},
     BOOL(gateway), .preset = "false", .fixed = true,
     .help = "believe X-Firebase-UID, which a gateway in front sets; else callers bring a token"},
    {.key = "orchestrator.key_file", .env = {"WEIR_ORCHESTRATOR_KEY"},
     SECRET(key), .shown = "none", .fixed = true,
     .help = "the key that signs tokens for runtimes, and that callers' tokens are signed with"},
    {.key = "orchestrator.driver", .flag = "driver",
     .env = {"WEIR_ORCHESTRATOR_DRIVER", "CRAWBL_RUNTIME_DRIVER"}, CHOICE(driver),
     .choices = orchestrator_drivers, .preset = "fake", .fixed = true,
     .help = "where runtimes come from: address, child (a program for each workspace), or fake"},
    {.key = "orchestrator.runtime.address", .flag = "runtime-address",
     .env = {"WEIR_ORCHESTRATOR_RUNTIME_ADDRESS"}, TEXT(address), .shown = "none", .fixed = true,
     .help = "host:port of runtimes; {service} and {workspace} are replaced"},
    {.key = "orchestrator.runtime.command", .flag = "runtime-command",
     .env = {"WEIR_ORCHESTRATOR_RUNTIME_COMMAND"}, TEXT(command), .shown = "none", .fixed = true,
     .help = "a runtime's program; {port}, {workspace} and {user} are replaced"},
    {.key = "orchestrator.runtime.tls", .flag = "runtime-tls",
     .env = {"WEIR_ORCHESTRATOR_RUNTIME_TLS"}, BOOL(tls), .preset = "false", .fixed = true,
     .help = "ask runtimes over TLS"},
    {.key = "orchestrator.runtime.stream_per_turn", .flag = "stream-per-turn",
     .env = {"WEIR_ORCHESTRATOR_STREAM_PER_TURN"}, BOOL(per_turn), .preset = "false",
     .fixed = true, .help = "a stream for each turn, not one for a conversation"},
    {.key = "orchestrator.runtime.start", .flag = "runtime-start",
     .env = {"WEIR_ORCHESTRATOR_RUNTIME_START"}, DURATION(start_ms), .preset = "60s",
     .least = 100, .most = 3600000, .fixed = true,
     .help = "how long a runtime's program may take until it serves"},
    {.key = "orchestrator.runtime.idle", .flag = "runtime-idle",
     .env = {"WEIR_ORCHESTRATOR_RUNTIME_IDLE"}, DURATION(idle_ms), .preset = "10m",
     .least = 100, .most = 86400000, .fixed = true,
     .help = "how long it stays without a turn"},
    {.key = "orchestrator.runtime.silence", .flag = "runtime-silence",
     .env = {"WEIR_ORCHESTRATOR_RUNTIME_SILENCE"}, DURATION(silence_ms), .preset = "10m",
     .least = 100, .most = 86400000, .fixed = true,
     .help = "the longest silence of a runtime in a turn"},
    {.key = "orchestrator.turns", .flag = "turns", .env = {"WEIR_ORCHESTRATOR_TURNS"},
     COUNT(turns), .preset = "16", .least = 1, .most = 10000, .fixed = true,
     .help = "turns of a workspace at once"},
    {.key = "orchestrator.wait", .flag = "turn-wait", .env = {"WEIR_ORCHESTRATOR_WAIT"},
     DURATION(wait_ms), .preset = "30s", .least = 1, .most = 3600000, .fixed = true,
     .help = "how long a turn waits for a place"},
    {.key = "orchestrator.stale", .flag = "stale", .env = {"WEIR_ORCHESTRATOR_STALE"},
     DURATION(stale_ms), .preset = "5m", .least = 400, .most = 86400000, .fixed = true,
     .help = "a message that no process works on is ended after this long"},
    {.key = "orchestrator.nats", .flag = "nats", .env = {"WEIR_ORCHESTRATOR_NATS", "CRAWBL_NATS_URL"},
     TEXT(nats), .shown = "off", .fixed = true,
     .help = "publish usage to this NATS server: nats://host:4222"},
};
/* clang-format on */

const struct setting_rows orchestrator_rows = {
    .rows = rows, .count = ARRAY_LEN(rows), .size = sizeof(struct orchestrator_options)};

const struct orchestrator_options *orchestrator_options(const struct config *config) {
    static const struct orchestrator_options none = {.listen = STR_INIT("")};
    const struct orchestrator_options *options = config_values(config, &orchestrator_rows);
    return options ? options : &none;
}
