#include "contract/agentbreeder/options.h"

#include "config/rows.h"

static const char *const histories[] = {
    [BROUGHT_MERGE] = "session", [BROUGHT_WHOLE] = "caller", [BROUGHT_STRICT] = "strict", NULL};

#define ROW_OF struct agentbreeder_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "Runtime Contract", .key = "http.on_disconnect", .flag = "http-on-disconnect",
     .env = {"WEIR_HTTP_ON_DISCONNECT"}, LEAVING(on_disconnect), .preset = "cancel",
     .help = "a caller of the Runtime Contract who leaves: cancel, detach or detach-for=30s; "
             "a request may say it itself, in X-Weir-On-Disconnect"},
    {.key = "http.history", .flag = "http-history", .env = {"WEIR_HTTP_HISTORY"},
     CHOICE(history), .choices = histories, .preset = "session",
     .help = "a message list that a caller of the Runtime Contract brings: session adds what "
             "is new in it, caller takes it for the whole conversation, strict refuses one "
             "that tells of another past"},
    {.key = "http.hosts", .flag = "http-hosts", .env = {"WEIR_HTTP_HOSTS"}, HOSTS(hosts), .shown = "none",
     .help = "names that a loopback listener without a token answers to, beside localhost "
             "and loopback addresses: a list, or with ; between them"},
    {.key = "http.origins", .flag = "http-origins", .env = {"WEIR_HTTP_ORIGINS"},
     ORIGINS(origins), .shown = "none",
     .help = "web pages of other places that may use the HTTP listener, "
             "https://studio.example: a list, or with ; between them; switches CORS on for "
             "them"},
    {.key = "http.sidecar", .flag = "http-sidecar",
     .env = {"WEIR_HTTP_SIDECAR", "AGENTBREEDER_SIDECAR_ACTIVE"}, BOOL(sidecar),
     .preset = "false",
     .help = "a sidecar stands in front and keeps its client's Host: without a token any "
             "name is answered"},
    {.key = "http.workspace", .flag = "http-workspace", .env = {"WEIR_HTTP_WORKSPACE"},
     ID(workspace), .preset = "default",
     .help = "the workspace of callers of the Runtime Contract"},
};
/* clang-format on */

const struct setting_rows agentbreeder_rows = {rows, ARRAY_LEN(rows),
                                               sizeof(struct agentbreeder_options)};

const struct agentbreeder_options *agentbreeder_options(const struct config *config) {
    static const struct agentbreeder_options none = {.history = BROUGHT_MERGE};
    const struct agentbreeder_options *options = config_values(config, &agentbreeder_rows);
    return options ? options : &none;
}
