#include "contract/nimi/options.h"

#include "config/rows.h"
#include "contract/nimi/scheduler.h"

#define ROW_OF struct nimi_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "Listening", .key = "listen.nimi_grpc", .flag = "nimi-grpc",
     .env = {"WEIR_NIMI_GRPC", "NIMI_RUNTIME_GRPC_ADDR"}, ADDRESS(grpc),
     .preset = "off", .fixed = true,
     .help = "the gRPC listener of nimi.runtime.v1, 127.0.0.1:46371 by habit: models, health"},
    {.key = "listen.nimi_http", .flag = "nimi-http",
     .env = {"WEIR_NIMI_HTTP", "NIMI_RUNTIME_HTTP_ADDR"}, ADDRESS(http),
     .preset = "off", .fixed = true,
     .help = "its HTTP health endpoints, 127.0.0.1:46372 by habit"},

    {.group = "nimi.runtime.v1", .key = "nimi.allow_loopback_provider_endpoint", .flag = "nimi-allow-loopback",
     .env = {"WEIR_NIMI_ALLOW_LOOPBACK"}, BOOL(allow_loopback), .preset = "false",
     .help = "let connectors ask providers on this machine over plain http"},
    {.key = "nimi.probe_interval", .flag = "nimi-probe-interval",
     .env = {"WEIR_NIMI_PROBE_INTERVAL"}, DURATION(probe_ms), .preset = "8s",
     .help = "how often the providers of connectors are asked whether they are there; 0 = "
             "never"},
    {.key = "nimi.slots", .flag = "nimi-slots", .env = {"WEIR_NIMI_SLOTS"}, COUNT(slots),
     .preset = "8", .fixed = true,
     .help = "how many calls of nimi.runtime.v1 ask models at once, the others wait; 0 = all"},
    {.key = "nimi.slots_per_app", .flag = "nimi-slots-per-app",
     .env = {"WEIR_NIMI_SLOTS_PER_APP"}, COUNT(slots_per_app), .preset = "2",
     .fixed = true, .help = "and how many of one app; 0 = all"},
    {.key = "nimi.slots_background", .flag = "nimi-slots-background",
     .env = {"WEIR_NIMI_SLOTS_BACKGROUND"}, COUNT(slots_background), .preset = "0",
     .fixed = true,
     .help = "how many of nimi.slots jobs and workflows may have; 0 = three quarters"},
    {.key = "nimi.queue_per_app", .flag = "nimi-queue-per-app",
     .env = {"WEIR_NIMI_QUEUE_PER_APP"}, COUNT(queue_per_app), .preset = "128", .least = 1,
     .most = SCHEDULER_QUEUE_MAX, .fixed = true,
     .help = "how many calls of one app may wait for a slot, and how many of its jobs"},
    {.key = "nimi.require_token", .flag = "nimi-require-token",
     .env = {"WEIR_NIMI_REQUIRE_TOKEN"}, BOOL(require_token), .preset = "false",
     .help = "with issuers: refuse callers without a token, except where an app asks what is "
             "here"},
    {.key = "nimi.token_skew", .flag = "nimi-token-skew", .env = {"WEIR_NIMI_TOKEN_SKEW"},
     DURATION(token_skew_ms), .preset = "60s",
     .help = "how much an issuer's clock may differ from this one"},
    {.key = "nimi.keys_refresh", .flag = "nimi-keys-refresh",
     .env = {"WEIR_NIMI_KEYS_REFRESH"}, DURATION(keys_refresh_ms), .preset = "10m",
     .help = "age at which an issuer's keys are fetched again; 0 = never"},
    {.key = "nimi.keys_pause", .flag = "nimi-keys-pause", .env = {"WEIR_NIMI_KEYS_PAUSE"},
     DURATION(keys_pause_ms), .preset = "30s",
     .help = "shortest time between two fetches of an issuer's keys, also for tokens with an "
             "unknown key"},
    {.key = "nimi.realtime_idle", .flag = "nimi-realtime-idle",
     .env = {"WEIR_NIMI_REALTIME_IDLE"}, DURATION(realtime_idle_ms), .preset = "30m",
     .help = "a realtime session without a turn ends after this; 0 = never"},
    {.key = "nimi.transfer_silence", .flag = "nimi-transfer-silence",
     .env = {"WEIR_NIMI_TRANSFER_SILENCE"}, DURATION(transfer_silence_ms), .preset = "10m",
     .help = "a local model server that downloads a model and says nothing for this long has "
             "failed; 0 = never"},
    {.key = "nimi.app_weights", .flag = "nimi-app-weights", .env = {"WEIR_NIMI_APP_WEIGHTS"},
     TEXT(weights), .shown = "none", .fixed = true,
     .help = "apps that get more slots while calls wait, as in desktop=2,studio=3; the "
             "others have 1"},
};
/* clang-format on */

/* Take the next of "app=2, other=3" from *rest; an app id may hold '=' itself. False:
 * malformed, or the end. */
static bool weight_next(struct str *rest, struct str *ret_entry, struct str *ret_app,
                        uint64_t *ret) {
    size_t len = str_find_byte(*rest, ',');
    struct str entry = *ret_entry = str_trim(str_head(*rest, len));
    *rest = str_skip(*rest, len < rest->len ? len + 1 : len);
    size_t at = entry.len;
    while (at > 0 && entry.at[at - 1] != '=') at--;
    if (at < 2 || !str_to_u64(str_skip(entry, at), ret)) return false;
    *ret_app = str_head(entry, at - 1);
    return *ret >= 1 && *ret <= FAIR_WEIGHT_MAX;
}

bool nimi_options_check(const struct nimi_options *options, struct err *e) {
    struct str rest = options->weights, entry, app;
    uint64_t weight;
    while (rest.len) {
        if (!weight_next(&rest, &entry, &app, &weight))
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "nimi.app_weights: '" STR_FMT "' is no weight; write the app's id, "
                           "'=' and a number from 1 to %d, such as desktop=2",
                           STR_ARG(entry), FAIR_WEIGHT_MAX);
    }
    return true;
}

static bool nimi_settle(void *values, struct config *config, const struct config_input *input,
                        struct err *e) {
    const struct nimi_options *options = values;
    (void)input;
    if (!config_is_loopback(options->grpc))
        config_warn(config,
                    "listening on " STR_FMT " for nimi.runtime.v1: callers are who they say "
                    "they are. Listen on 127.0.0.1",
                    STR_ARG(options->grpc));
    config_warn_of_limit(config, "nimi.slots_per_app", "nimi.slots",
                         "an app's calls are among all calls");
    return nimi_options_check(options, e);
}

const struct setting_rows nimi_rows = {.rows = rows,
                                       .count = ARRAY_LEN(rows),
                                       .size = sizeof(struct nimi_options),
                                       .settle = nimi_settle};

const struct nimi_options *nimi_options(const struct config *config) {
    static const struct nimi_options none = {
        .grpc = STR_INIT(""), .http = STR_INIT(""), .queue_per_app = SCHEDULER_QUEUE_PER_APP};
    const struct nimi_options *options = config_values(config, &nimi_rows);
    return options ? options : &none;
}

unsigned nimi_options_weight(const struct nimi_options *options, struct str app) {
    struct str rest = options->weights, entry, name;
    uint64_t weight;
    while (rest.len) {
        if (weight_next(&rest, &entry, &name, &weight) && str_equal(name, app))
            return (unsigned)weight;
    }
    return 1;
}
