#include "contract/crawbl/options.h"

#include "config/rows.h"
#include "contract/crawbl/pod.h"

#define ROW_OF struct crawbl_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "Listening", .key = "listen.grpc", .flag = "grpc",
     .env = {"WEIR_GRPC", "CRAWBL_GRPC_LISTEN"}, ADDRESS(listen),
     .shown = ":42618 with a signing key, else 127.0.0.1:42618", .fixed = true,
     .also = {.flag = "grpc-listen", .before = ""},
     .help = "the gRPC listener: Converse, health"},

    {.group = "Callers", .key = "tokens.key_file", .env = {"CRAWBL_MCP_SIGNING_KEY"},
     SECRET(key), .shown = "none: callers are believed",
     .help = "the key that signs tokens of Converse"},
    {.key = "tokens.previous_key_file", .env = {"CRAWBL_MCP_SIGNING_KEY_PREVIOUS"},
     SECRET(key_previous), .shown = "none",
     .help = "a second key that is still accepted, for rotation"},
    {.key = "tokens.strict", .flag = "strict-tokens", .env = {"WEIR_STRICT_TOKENS"},
     BOOL(strict), .preset = "false",
     .help = "refuse tokens without a date, and those signed over the raw ids"},

    {.key = "converse.mcp_endpoint", .flag = "mcp-endpoint",
     .env = {"WEIR_MCP_ENDPOINT", "CRAWBL_MCP_ENDPOINT"}, URL(mcp_endpoint),
     .shown = "none: local tools",
     .help = "the orchestrator's MCP server: tools for the turns of Converse; asked with "
             "tokens of the signing key"},
    {.key = "converse.blueprint", .flag = "blueprint", .env = {"WEIR_BLUEPRINT"},
     BOOL(blueprint), .preset = "true",
     .help = "with an MCP endpoint, ask its host for the agents of each workspace, too"},
    {.key = "converse.orchestrator_endpoint", .flag = "orchestrator-endpoint",
     .env = {"CRAWBL_ORCHESTRATOR_ENDPOINT"}, TEXT(orchestrator), .shown = "none",
     .help = "not asked; with it weir stands in for the pod of a Crawbl workspace "
             "(docs/operations.md)"},
    {.key = "converse.searxng_endpoint", .flag = "searxng-endpoint",
     .env = {"WEIR_SEARXNG_ENDPOINT", "CRAWBL_SEARXNG_ENDPOINT"}, URL(searxng), .shown = "none",
     .help = "a SearXNG; gives agents of a blueprint web_fetch and web_search_tool"},

    {.group = "Limits of the process", .key = "limits.token_window",
     .flag = "limit-token-window", .env = {"WEIR_LIMIT_TOKEN_WINDOW"},
     DURATION(token_window_ms), .preset = "5m",
     .help = "how far a token's date may be from ours"},

    {.group = "Converse", .key = "converse.workspace", .flag = "workspace-id",
     .env = {"WEIR_WORKSPACE_ID", "CRAWBL_WORKSPACE_ID"}, ID(workspace), .shown = "any",
     .help = "serve this workspace only"},
    {.key = "converse.user", .flag = "user-id", .env = {"WEIR_USER_ID", "CRAWBL_USER_ID"},
     ID(user), .shown = "any", .help = "serve this user only"},
    {.key = "converse.lenient", .flag = "lenient", .env = {"WEIR_LENIENT"},
     BOOL(lenient), .preset = "false",
     .help = "fall back where a request lacks an agent, a session or ids, as upstream does"},
    {.key = "converse.errors_as_text", .flag = "errors-as-text", .env = {"WEIR_ERRORS_AS_TEXT"},
     BOOL(errors_as_text), .preset = "false",
     .help = "also send a failed turn's reason as text, for clients that show nothing else"},
    {.key = "converse.sticky", .flag = "sticky", .env = {"WEIR_STICKY"}, BOOL(sticky),
     .preset = "false",
     .help = "let the agent that spoke last take the next turn, not the Manager"},
    {.key = "converse.on_disconnect", .flag = "converse-on-disconnect",
     .env = {"WEIR_CONVERSE_ON_DISCONNECT"}, LEAVING(on_disconnect),
     .preset = "cancel",
     .help = "a caller of Converse who leaves: cancel the turn, detach it (it goes on), or "
             "detach-for=30s without a reader"},
};
/* clang-format on */

/* A signing key opens the listener to other machines, except in the demo (K17). */
static struct str usual_address(const struct crawbl_options *options, bool demo) {
    return options->key.len > 0 && !demo ? STR(":42618") : STR("127.0.0.1:42618");
}

static void warn_of_keys(const struct crawbl_options *options, struct config *config) {
    size_t len = options->key.len;
    if (len == 0 && !config_is_loopback(options->listen))
        config_warn(config,
                    "listening on " STR_FMT
                    " without CRAWBL_MCP_SIGNING_KEY: callers are who they "
                    "say they are. Set it, or listen on 127.0.0.1",
                    STR_ARG(options->listen));
    if (len == 0 && options->key_previous.len)
        config_warn(config,
                    "CRAWBL_MCP_SIGNING_KEY_PREVIOUS means nothing to weir serve without "
                    "CRAWBL_MCP_SIGNING_KEY");
    if (len && len < CRAWBL_KEY_MIN_BYTES)
        config_warn(config,
                    "the signing key has %zu bytes and can be guessed; use %d or more: openssl "
                    "rand -hex 32",
                    len, CRAWBL_KEY_MIN_BYTES);
}

static bool crawbl_settle(void *values, struct config *config, const struct config_input *input,
                          struct err *e) {
    struct crawbl_options *options = values;
    if (!config_is_set(config, &options->listen))
        options->listen = usual_address(options, input->demo && !config->remote.pod);
    warn_of_keys(options, config);
    if (options->mcp_endpoint.len && options->key.len == 0 && !input->demo &&
        !config->tape.play.len)
        config_warn(config, "the MCP endpoint is not asked: there is no signing key to ask it "
                            "with; set CRAWBL_MCP_SIGNING_KEY");
    if (config->remote.pod && !pod_data(config, e)) return false;
    pod_warn(config, input);
    return true;
}

static void crawbl_complete(const void *values, struct config *config) {
    const struct crawbl_options *options = values;
    config->remote.pod = options->orchestrator.len > 0;
    config->tokens.previous = options->key_previous;
    config->tokens.strict = options->strict;
    config->tokens.window_ms = options->token_window_ms;
    config->remote.tools = options->mcp_endpoint.len > 0;
    config->remote.agents = config->remote.tools && options->blueprint;
    if (config->remote.pod) pod_model(config);
    pod_search(options->searxng, config);
}

const struct setting_rows crawbl_rows = {.rows = rows,
                                         .count = ARRAY_LEN(rows),
                                         .size = sizeof(struct crawbl_options),
                                         .unused_flags = pod_unused_flags,
                                         .complete = crawbl_complete,
                                         .settle = crawbl_settle};

const struct crawbl_options *crawbl_options(const struct config *config) {
    static const struct crawbl_options none = {.listen = STR_INIT(""),
                                               .key = STR_INIT(""),
                                               .key_previous = STR_INIT(""),
                                               .mcp_endpoint = STR_INIT("")};
    const struct crawbl_options *options = config_values(config, &crawbl_rows);
    return options ? options : &none;
}

struct token_keys *crawbl_keys_new(const struct crawbl_options *options) {
    return token_keys_new(options->strict ? TOKEN_STRICT : TOKEN_LENIENT,
                          (int64_t)options->token_window_ms / 1000);
}
