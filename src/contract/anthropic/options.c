/* options: the settings of this contract, a struct guest_options. */
#include "contract/anthropic/contract.h"

#include "config/rows.h"
#include "contract/guest.h"

#define ROW_OF struct guest_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "Anthropic API", .key = "anthropic_api.enabled", .flag = "anthropic-api",
     .env = {"WEIR_ANTHROPIC_API"}, BOOL(enabled), .preset = "true", .fixed = true,
     .help = "serve the agents as models of Anthropic's API, at /v1/messages on the HTTP listener"},
    {.key = "anthropic_api.workspace", .flag = "anthropic-api-workspace",
     .env = {"WEIR_ANTHROPIC_API_WORKSPACE"}, ID(workspace), .preset = "default",
     .help = "the workspace of callers of Anthropic's API without a token"},
    {.key = "anthropic_api.on_disconnect", .flag = "anthropic-api-on-disconnect",
     .env = {"WEIR_ANTHROPIC_API_ON_DISCONNECT"}, LEAVING(on_disconnect), .preset = "cancel",
     .help = "a caller of Anthropic's API who leaves: cancel, detach or detach-for=30s; a request "
             "may say it itself, in X-Weir-On-Disconnect"},
};
/* clang-format on */

const struct setting_rows anthropic_rows = {
    .rows = rows, .count = ARRAY_LEN(rows), .size = sizeof(struct guest_options)};
