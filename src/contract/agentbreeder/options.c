#include "contract/agentbreeder/options.h"

#include "config/rows.h"

static const char *const histories[] = {
    [BROUGHT_MERGE] = "session", [BROUGHT_WHOLE] = "caller", [BROUGHT_STRICT] = "strict", NULL};

#define ROW_OF struct agentbreeder_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "Listening", .key = "listen.http", .flag = "http", .env = {"WEIR_HTTP", "PORT"},
     ADDRESS(listen), .preset = "127.0.0.1:8080",
     .shown = "127.0.0.1:8080; 0.0.0.0:$PORT when PORT is set", .fixed = true,
     .also = {.env = "PORT", .before = "0.0.0.0:"},
     .help = "the HTTP listener: Runtime Contract"},

    {.group = "Callers", .key = "tokens.auth_token_file", .env = {"AGENT_AUTH_TOKEN"},
     SECRET(token), .shown = "none: open", .fixed = true,
     .help = "the bearer token of the Runtime Contract"},

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
             "name is answered; answers tell it their usage, in metadata.usage"},
    {.key = "http.workspace", .flag = "http-workspace", .env = {"WEIR_HTTP_WORKSPACE"},
     ID(workspace), .preset = "default",
     .help = "the workspace of callers of the Runtime Contract"},
};
/* clang-format on */

static bool options_check_token(struct str token, struct err *e) {
    for (size_t i = 0; i < token.len; i++) {
        unsigned char byte = (unsigned char)token.at[i];
        if (byte <= ' ' || byte > '~')
            return err_set(
                e, ERR_INVALID_ARGUMENT,
                "AGENT_AUTH_TOKEN holds a space or a character that no header carries; "
                "use letters and digits");
    }
    return true;
}

/* Warn of settings that may be intended but are dangerous (K6). */
static bool agentbreeder_settle(void *values, struct config *config,
                                const struct config_input *input, struct err *e) {
    struct agentbreeder_options *options = values;
    (void)input;
    if (config->remote.pod && !config_is_set(config, &options->listen))
        options->listen = STR_EMPTY;
    if (!config_is_loopback(options->listen) && options->token.len == 0)
        config_warn(config,
                    "listening on " STR_FMT
                    " without AGENT_AUTH_TOKEN: anyone who can reach this "
                    "host can run your agents. Set it: export AGENT_AUTH_TOKEN=$(openssl rand "
                    "-hex 32)",
                    STR_ARG(options->listen));
    if (config->tools.exec.limits.network && options->token.len == 0)
        config_warn(config,
                    "tools.exec.network lets a command call this program's own listeners; "
                    "set AGENT_AUTH_TOKEN: export AGENT_AUTH_TOKEN=$(openssl rand -hex 32)");
    return options_check_token(options->token, e);
}

const struct setting_rows agentbreeder_rows = {.rows = rows,
                                               .count = ARRAY_LEN(rows),
                                               .size = sizeof(struct agentbreeder_options),
                                               .settle = agentbreeder_settle};

const struct agentbreeder_options *agentbreeder_options(const struct config *config) {
    static const struct agentbreeder_options none = {
        .listen = STR_INIT(""), .token = STR_INIT(""), .history = BROUGHT_MERGE};
    const struct agentbreeder_options *options = config_values(config, &agentbreeder_rows);
    return options ? options : &none;
}
