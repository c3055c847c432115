#include "orchestrator/options.h"

#include "config/rows.h"
#include "orchestrator/readers.h"

#define ROW_OF struct orchestrator_options

const char *const orchestrator_drivers[] = {"fake", "address", "child", "kubernetes", NULL};

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
     .help = "where runtimes come from: address, child (a program for each workspace), kubernetes (a "
             "Deployment for each), or fake"},
    {.key = "orchestrator.runtime.address", .flag = "runtime-address",
     .env = {"WEIR_ORCHESTRATOR_RUNTIME_ADDRESS"}, TEXT(address), .shown = "none", .fixed = true,
     .help = "host:port of runtimes; {service} and {workspace} are replaced"},
    {.key = "orchestrator.runtime.command", .flag = "runtime-command",
     .env = {"WEIR_ORCHESTRATOR_RUNTIME_COMMAND"}, TEXT(command), .shown = "none", .fixed = true,
     .help = "a runtime's program; {port}, {workspace} and {user} are replaced"},
    {.key = "orchestrator.kubernetes.url", .flag = "kubernetes-url",
     .env = {"WEIR_ORCHESTRATOR_KUBERNETES_URL"}, TEXT(kubernetes.url),
     .shown = "the cluster of this pod", .fixed = true, .help = "the API server of Kubernetes"},
    {.key = "orchestrator.kubernetes.namespace", .flag = "kubernetes-namespace",
     .env = {"WEIR_ORCHESTRATOR_KUBERNETES_NAMESPACE"}, TEXT(kubernetes.namespace),
     .shown = "that of this pod", .fixed = true, .help = "where runtimes are made"},
    {.key = "orchestrator.kubernetes.token_file", .flag = "kubernetes-token-file",
     .env = {"WEIR_ORCHESTRATOR_KUBERNETES_TOKEN_FILE"}, PATH(kubernetes.token_file),
     .shown = "that of this pod", .fixed = true,
     .help = "the token of a service account; read again for each request"},
    {.key = "orchestrator.kubernetes.ca_file", .flag = "kubernetes-ca-file",
     .env = {"WEIR_ORCHESTRATOR_KUBERNETES_CA_FILE"}, PATH(kubernetes.ca_file),
     .shown = "that of this pod", .fixed = true,
     .help = "the authority that the API server is checked with, PEM"},
    {.key = "orchestrator.kubernetes.image", .flag = "kubernetes-image",
     .env = {"WEIR_ORCHESTRATOR_KUBERNETES_IMAGE"}, TEXT(kubernetes.image), .shown = "none",
     .fixed = true, .help = "the image of a runtime"},
    {.key = "orchestrator.kubernetes.arguments", .flag = "kubernetes-arguments",
     .env = {"WEIR_ORCHESTRATOR_KUBERNETES_ARGUMENTS"}, TEXT(kubernetes.arguments),
     .preset = "--grpc-listen :42618 --workspace-id {workspace} --user-id {user}",
     .fixed = true, .help = "its arguments; {workspace} and {user} are replaced"},
    {.key = "orchestrator.kubernetes.secret", .flag = "kubernetes-secret",
     .env = {"WEIR_ORCHESTRATOR_KUBERNETES_SECRET"}, TEXT(kubernetes.secret), .shown = "none",
     .fixed = true,
     .help = "a Secret of that namespace, whose keys are files in its SECRETS_DIR"},
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
    {.key = "orchestrator.connections", .flag = "connections",
     .env = {"WEIR_ORCHESTRATOR_CONNECTIONS"}, COUNT(connections), .preset = "4", .least = 1,
     .most = READERS_CONNECTIONS_MAX, .fixed = true,
     .help = "connections to the database for lists and searches, beside the one for turns; a "
             "workspace has half of them at most"},
    {.key = "orchestrator.reads", .flag = "reads", .env = {"WEIR_ORCHESTRATOR_READS"},
     COUNT(reads), .preset = "32", .least = 1, .most = 10000, .fixed = true,
     .help = "lists and searches of a workspace that run or wait at once; more are refused"},
    {.key = "orchestrator.stale", .flag = "stale", .env = {"WEIR_ORCHESTRATOR_STALE"},
     DURATION(stale_ms), .preset = "5m", .least = 400, .most = 86400000, .fixed = true,
     .help = "a message that no process works on is ended after this long"},
    {.key = "orchestrator.nats", .flag = "nats", .env = {"WEIR_ORCHESTRATOR_NATS"},
     TEXT(nats_open), .shown = "off", .fixed = true,
     .help = "publish usage to this NATS server: nats://host:4222"},
    {.key = "orchestrator.nats_file", .env = {"CRAWBL_NATS_URL"},
     SECRET(nats_secret), .shown = "none", .fixed = true,
     .help = "the same with a user or a password: nats://user:password@host:4222"},
};
/* clang-format on */

const struct setting_rows orchestrator_rows = {
    .rows = rows, .count = ARRAY_LEN(rows), .size = sizeof(struct orchestrator_options)};

struct str orchestrator_nats(const struct orchestrator_options *options) {
    return options->nats_secret.len ? options->nats_secret : options->nats_open;
}

bool orchestrator_nats_check(const struct orchestrator_options *options, struct err *e) {
    struct str open = options->nats_open;
    return str_find_byte(open, '@') == open.len ||
           err_set(
               e, ERR_INVALID_ARGUMENT,
               "orchestrator.nats (--nats) is printed with the settings and cannot hold a "
               "user or a password: set CRAWBL_NATS_URL, or name a file with the address in "
               "orchestrator.nats_file");
}

const struct orchestrator_options *orchestrator_options(const struct config *config) {
    static const struct orchestrator_options none = {.listen = STR_INIT("")};
    const struct orchestrator_options *options = config_values(config, &orchestrator_rows);
    return options ? options : &none;
}
