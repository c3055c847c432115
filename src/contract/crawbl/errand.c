#include "contract/crawbl/errand.h"

#include "base/clock.h"
#include "base/mem.h"
#include "contract/crawbl/blueprint.h"

#include <stdlib.h>

bool errand_authorize(const struct token_keys *keys, const struct mcp_caller *caller,
                      struct buf *out, struct err *e) {
    buf_append(out, STR("Bearer "));
    return token_mint(keys, caller->user, caller->workspace, clock_unix_ms() / 1000, out, e);
}

/* --- both --------------------------------------------------------------------------------- */

static void go_home_if_done(struct errand *errand) {
    if (errand->wants_agents || errand->wants_tools) return;
    timer_stop(&errand->late);
    errand->back(errand, errand->ctx);
}

static void on_late(void *ctx) {
    struct errand *errand = ctx;
    if (errand->call) http_cancel(errand->call);
    errand->call = NULL;
    if (errand->wants_agents)
        err_set(&errand->blueprint_failed, ERR_DEADLINE_EXCEEDED,
                "the orchestrator did not answer in time");
    if (errand->wants_tools) {
        err_set(&errand->tools_failed, ERR_DEADLINE_EXCEEDED,
                "the MCP server did not answer in time");
        mcp_listing_free(errand->tools);
        errand->tools = NULL;
    }
    errand->wants_agents = errand->wants_tools = false;
    go_home_if_done(errand);
}

/* --- tools -------------------------------------------------------------------------------- */

static void on_listed(const struct err *failed, void *ctx) {
    struct errand *errand = ctx;
    errand->wants_tools = false;
    if (failed) errand->tools_failed = *failed;
    go_home_if_done(errand);
}

/* --- the blueprint ------------------------------------------------------------------------ */

static bool judge(struct errand *errand, const struct err *failed) {
    struct err *e = &errand->blueprint_failed;
    struct blueprint blueprint;
    if (failed)
        return err_set(e, failed->code, "the orchestrator %s",
                       failed->code == ERR_TOO_LARGE ? "answered with more than 1 MiB"
                                                     : "cannot be reached");
    if (errand->status != 200)
        return err_set(e, ERR_UNAVAILABLE, "the orchestrator answered %u", errand->status);
    struct arena *arena = arena_new(BLUEPRINT_ARENA_BYTES);
    bool good = blueprint_read(buf_str(&errand->blueprint), str_from(errand->workspace), arena,
                               &blueprint, e);
    arena_free(arena);
    return good;
}

static void on_head(const struct http_head *head, void *ctx) {
    ((struct errand *)ctx)->status = head->status;
}

static void on_body(struct lent bytes, void *ctx) {
    buf_append(&((struct errand *)ctx)->blueprint, lent_read(bytes));
}

static void on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct errand *errand = ctx;
    (void)stage;
    errand->call = NULL;
    errand->wants_agents = false;
    if (!judge(errand, failed)) buf_release(&errand->blueprint);
    go_home_if_done(errand);
}

static const struct http_sink sink = {on_head, on_body, on_end};

static void on_refused(void *ctx) {
    struct errand *errand = ctx;
    errand->wants_agents = false;
    go_home_if_done(errand);
}

/* The host of the endpoint, another path. */
static void put_url(struct str endpoint, struct str workspace, struct buf *out) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    size_t scheme = str_find(endpoint, STR("://"));
    size_t len = scheme == endpoint.len ? 0 : scheme + 3;
    while (len < endpoint.len && !strchr("/?#", endpoint.at[len])) len++;
    buf_append(out, str_head(endpoint, len));
    buf_append(out, STR("/v1/internal/agents?workspace_id="));
    for (size_t i = 0; i < workspace.len; i++) {
        unsigned char byte = (unsigned char)workspace.at[i];
        if (byte && strchr(plain, byte)) {
            buf_append_byte(out, (char)byte);
        } else {
            buf_printf(out, "%%%02X", byte);
        }
    }
}

static void ask_for_agents(struct errand *errand, const struct errand_options *options) {
    struct buf url, authorization;
    buf_init(&url, SIZE_MAX);
    buf_init(&authorization, 8 * KIB);
    put_url(options->endpoint, options->caller.workspace, &url);
    if (errand_authorize(options->keys, &options->caller, &authorization,
                         &errand->blueprint_failed)) {
        const struct http_header headers[] = {
            {STR("authorization"), buf_str(&authorization)},
            {STR("accept"), STR("application/json")},
            {STR("user-agent"), STR("weir (blueprint)")},
        };
        struct http_request request = {.method = STR("GET"),
                                       .url = buf_str(&url),
                                       .headers = headers,
                                       .header_count = ARRAY_LEN(headers),
                                       .total_ms = options->total_ms,
                                       .body_max_bytes = BLUEPRINT_MAX_BYTES};
        errand->call = http_start(options->pool, options->loop, &request, &sink, errand);
    } else {
        timer_start(&errand->refused, 0);
    }
    buf_done(&url);
    buf_done(&authorization);
}

/* --- the public story --------------------------------------------------------------------- */

struct errand *errand_new(const struct errand_options *options) {
    struct errand *errand = MEM_NEW(struct errand);
    errand->back = options->back;
    errand->ctx = options->ctx;
    errand->workspace = str_dup(options->caller.workspace);
    errand->wants_agents = options->blueprint;
    errand->wants_tools = true;
    buf_init(&errand->blueprint, BLUEPRINT_MAX_BYTES);
    timer_init(&errand->late, options->loop, on_late, errand);
    timer_init(&errand->refused, options->loop, on_refused, errand);
    timer_start(&errand->late, options->total_ms);
    if (options->blueprint) ask_for_agents(errand, options);
    errand->tools = mcp_list(options->client, &options->caller, on_listed, errand);
    return errand;
}

void errand_free(struct errand *errand) {
    if (!errand) return;
    if (errand->call) http_cancel(errand->call);
    timer_stop(&errand->late);
    timer_stop(&errand->refused);
    mcp_listing_free(errand->tools);
    buf_done(&errand->blueprint);
    free(errand->workspace);
    free(errand);
}
