/* options: the settings of this contract, a struct guest_options. */
#include "contract/agui/contract.h"

#include "config/rows.h"
#include "contract/guest.h"

#define ROW_OF struct guest_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "AG-UI", .key = "agui.enabled", .flag = "agui",
     .env = {"WEIR_AGUI"}, BOOL(enabled), .preset = "true", .fixed = true,
     .help = "serve the agents to clients of AG-UI, at /agui and /agui/AGENT on the HTTP listener"},
    {.key = "agui.workspace", .flag = "agui-workspace",
     .env = {"WEIR_AGUI_WORKSPACE"}, ID(workspace), .preset = "default",
     .help = "the workspace of callers of AG-UI without a token"},
    {.key = "agui.on_disconnect", .flag = "agui-on-disconnect",
     .env = {"WEIR_AGUI_ON_DISCONNECT"}, LEAVING(on_disconnect), .preset = "cancel",
     .help = "a caller of AG-UI who leaves: cancel, detach or detach-for=30s; a request "
             "may say it itself, in X-Weir-On-Disconnect"},
};
/* clang-format on */

const struct setting_rows agui_rows = {
    .rows = rows, .count = ARRAY_LEN(rows), .size = sizeof(struct guest_options)};
