#include "contract/crawbl/workspace_fetch.h"

#include "base/clock.h"
#include "base/mem.h"
#include "contract/crawbl/blueprint.h"

#include <stdlib.h>

bool workspace_fetch_authorize(const struct token_keys *keys, const struct mcp_caller *caller,
                               struct buf *out, struct err *e) {
    buf_append(out, STR("Bearer "));
    return token_mint(keys, caller->user, caller->workspace, clock_unix_ms() / 1000, out, e);
}

/* --- both --------------------------------------------------------------------------------- */

static void go_home_if_done(struct workspace_fetch *fetch) {
    if (fetch->wants_agents || fetch->wants_tools) return;
    timer_stop(&fetch->late);
    fetch->back(fetch, fetch->ctx);
}

static void workspace_fetch_on_late(void *ctx) {
    struct workspace_fetch *fetch = ctx;
    if (fetch->call) http_cancel(fetch->call);
    fetch->call = NULL;
    if (fetch->wants_agents)
        err_set(&fetch->blueprint_failed, ERR_DEADLINE_EXCEEDED,
                "the orchestrator did not answer in time");
    if (fetch->wants_tools) {
        err_set(&fetch->tools_failed, ERR_DEADLINE_EXCEEDED,
                "the MCP server did not answer in time");
        mcp_listing_free(fetch->tools);
        fetch->tools = NULL;
    }
    fetch->wants_agents = fetch->wants_tools = false;
    go_home_if_done(fetch);
}

/* --- tools -------------------------------------------------------------------------------- */

static void workspace_fetch_on_listed(const struct err *failed, void *ctx) {
    struct workspace_fetch *fetch = ctx;
    fetch->wants_tools = false;
    if (failed) fetch->tools_failed = *failed;
    go_home_if_done(fetch);
}

/* --- the blueprint ------------------------------------------------------------------------ */

static bool workspace_fetch_judge(struct workspace_fetch *fetch, const struct err *failed) {
    struct err *e = &fetch->blueprint_failed;
    struct blueprint blueprint;
    if (failed)
        return err_set(e, failed->code, "the orchestrator %s",
                       failed->code == ERR_TOO_LARGE ? "answered with more than 1 MiB"
                                                     : "cannot be reached");
    if (fetch->status != 200)
        return err_set(e, ERR_UNAVAILABLE, "the orchestrator answered %u", fetch->status);
    struct arena *arena = arena_new(BLUEPRINT_ARENA_BYTES);
    bool good = blueprint_read(buf_str(&fetch->blueprint), str_from(fetch->workspace), arena,
                               &blueprint, e);
    arena_free(arena);
    return good;
}

static void workspace_fetch_on_head(const struct http_head *head, void *ctx) {
    ((struct workspace_fetch *)ctx)->status = head->status;
}

static void workspace_fetch_on_body(struct lent bytes, void *ctx) {
    buf_append(&((struct workspace_fetch *)ctx)->blueprint, lent_read(bytes));
}

static void workspace_fetch_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct workspace_fetch *fetch = ctx;
    (void)stage;
    fetch->call = NULL;
    fetch->wants_agents = false;
    if (!workspace_fetch_judge(fetch, failed)) buf_release(&fetch->blueprint);
    go_home_if_done(fetch);
}

static const struct http_sink sink = {workspace_fetch_on_head, workspace_fetch_on_body,
                                      workspace_fetch_on_end};

static void workspace_fetch_on_refused(void *ctx) {
    struct workspace_fetch *fetch = ctx;
    fetch->wants_agents = false;
    go_home_if_done(fetch);
}

/* The endpoint's host with another path. */
static void put_url(struct str endpoint, struct str workspace, struct buf *out) {
    size_t scheme = str_find(endpoint, STR("://"));
    size_t len = scheme == endpoint.len ? 0 : scheme + 3;
    while (len < endpoint.len && !strchr("/?#", endpoint.at[len])) len++;
    buf_append(out, str_head(endpoint, len));
    buf_append(out, STR("/v1/internal/agents?workspace_id="));
    buf_append_percent(out, workspace, "-._~");
}

static void ask_for_agents(struct workspace_fetch *fetch,
                           const struct workspace_fetch_options *options) {
    struct buf url, authorization;
    buf_init(&url, SIZE_MAX);
    buf_init(&authorization, 8 * KIB);
    put_url(options->endpoint, options->caller.workspace, &url);
    if (workspace_fetch_authorize(options->keys, &options->caller, &authorization,
                                  &fetch->blueprint_failed)) {
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
        fetch->call = http_start(options->pool, options->loop, &request, &sink, fetch);
    } else {
        timer_start(&fetch->refused, 0);
    }
    buf_done(&url);
    buf_done(&authorization);
}

/* --- public functions --------------------------------------------------------------------- */

struct workspace_fetch *workspace_fetch_new(const struct workspace_fetch_options *options) {
    struct workspace_fetch *fetch = MEM_NEW(struct workspace_fetch);
    fetch->back = options->back;
    fetch->ctx = options->ctx;
    fetch->workspace = str_dup(options->caller.workspace);
    fetch->wants_agents = options->blueprint;
    fetch->wants_tools = true;
    buf_init(&fetch->blueprint, BLUEPRINT_MAX_BYTES);
    timer_init(&fetch->late, options->loop, workspace_fetch_on_late, fetch);
    timer_init(&fetch->refused, options->loop, workspace_fetch_on_refused, fetch);
    timer_start(&fetch->late, options->total_ms);
    if (options->blueprint) ask_for_agents(fetch, options);
    fetch->tools =
        mcp_list(options->client, &options->caller, workspace_fetch_on_listed, fetch);
    return fetch;
}

void workspace_fetch_free(struct workspace_fetch *fetch) {
    if (!fetch) return;
    if (fetch->call) http_cancel(fetch->call);
    timer_stop(&fetch->late);
    timer_stop(&fetch->refused);
    mcp_listing_free(fetch->tools);
    buf_done(&fetch->blueprint);
    free(fetch->workspace);
    free(fetch);
}
