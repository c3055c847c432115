#include "contract/openai/options.h"

#include "config/rows.h"

#define ROW_OF struct openai_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "OpenAI API", .key = "openai_api.enabled", .flag = "openai-api",
     .env = {"WEIR_OPENAI_API"}, BOOL(guest.enabled), .preset = "true", .fixed = true,
     .help = "serve the agents as models of OpenAI's API, at /v1 on the HTTP listener"},
    {.key = "openai_api.media", .flag = "openai-api-media", .env = {"WEIR_OPENAI_API_MEDIA"},
     BOOL(media), .preset = "false", .fixed = true,
     .help = "also serve /v1/embeddings and /v1/audio/speech, with the models of `connectors`, "
             "or those of this machine"},
    {.key = "openai_api.workspace", .flag = "openai-api-workspace",
     .env = {"WEIR_OPENAI_API_WORKSPACE"}, ID(guest.workspace), .preset = "default",
     .help = "the workspace of callers of OpenAI's API without a token"},
    {.key = "openai_api.on_disconnect", .flag = "openai-api-on-disconnect",
     .env = {"WEIR_OPENAI_API_ON_DISCONNECT"}, LEAVING(guest.on_disconnect), .preset = "cancel",
     .help = "a caller of OpenAI's API who leaves: cancel, detach or detach-for=30s; a request "
             "may say it itself, in X-Weir-On-Disconnect"},
};
/* clang-format on */

const struct setting_rows openai_rows = {
    .rows = rows, .count = ARRAY_LEN(rows), .size = sizeof(struct openai_options)};

const struct openai_options *openai_options(const struct config *config) {
    static const struct openai_options none = {.guest.workspace = STR_INIT("")};
    const struct openai_options *options = config_values(config, &openai_rows);
    return options ? options : &none;
}
