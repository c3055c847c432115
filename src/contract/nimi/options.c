#include "contract/nimi/options.h"

#include "config/rows.h"

#define ROW_OF struct nimi_options

/* clang-format off */
static const struct setting rows[] = {
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
};
/* clang-format on */

const struct setting_rows nimi_rows = {rows, ARRAY_LEN(rows), sizeof(struct nimi_options)};

const struct nimi_options *nimi_options(const struct config *config) {
    static const struct nimi_options none = {.slots = 0};
    const struct nimi_options *options = config_values(config, &nimi_rows);
    return options ? options : &none;
}
