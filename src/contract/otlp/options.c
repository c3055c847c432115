#include "contract/otlp/options.h"

#include "config/rows.h"

#define ROW_OF struct otlp_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "Traces", .key = "otlp.endpoint", .flag = "otlp-endpoint",
     .env = {"WEIR_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}, URL(endpoint),
     .shown = "off", .fixed = true,
     .help = "an OpenTelemetry collector; spans of turns are sent to its /v1/traces as protobuf"},
    {.key = "otlp.headers", .flag = "otlp-headers",
     .env = {"WEIR_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"}, SECRET(headers),
     .shown = "none", .fixed = true, .help = "headers for it: name=value,name=value, 16 at most; %XX is one byte of a value"},
    {.key = "otlp.protocol", .flag = "otlp-protocol",
     .env = {"WEIR_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"}, TEXT(protocol), .preset = "http/protobuf",
     .fixed = true, .help = "how the collector is spoken to: http/protobuf is all there is, and anything else is warned of"},
    {.key = "otlp.service", .flag = "otlp-service",
     .env = {"WEIR_OTLP_SERVICE", "OTEL_SERVICE_NAME"}, TEXT(service), .preset = "weir",
     .fixed = true, .help = "the service.name of the spans"},
    {.key = "otlp.disabled", .flag = "otlp-disabled",
     .env = {"WEIR_OTLP_DISABLED", "OTEL_SDK_DISABLED", "AGENTBREEDER_SIDECAR_ACTIVE"}, BOOL(disabled), .preset = "false",
     .fixed = true, .help = "send no spans, whatever the endpoint: the sidecar does it"},
};
/* clang-format on */

const struct setting_rows otlp_rows = {
    .rows = rows, .count = ARRAY_LEN(rows), .size = sizeof(struct otlp_options)};

const struct otlp_options *otlp_options(const struct config *config) {
    static const struct otlp_options none = {.disabled = true};
    const struct otlp_options *options = config_values(config, &otlp_rows);
    return options ? options : &none;
}
