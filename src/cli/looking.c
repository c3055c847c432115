#include "cli/looking.h"

#include "mcp/pins.h"

#include <unistd.h>

/* Uses the store's folder if it exists; a command does not create one. */
struct mcp_hub *looking_hub(const struct config *config, struct http_pool *pool) {
    struct buf path;
    buf_init(&path, 8 * KIB);
    buf_printf(&path, STR_FMT, STR_ARG(config->data));
    bool there = path.len && access(path.at, W_OK) == 0;
    buf_clear(&path);
    if (there) pins_path(config->data, &path);
    struct mcp_hub *hub = mcp_hub_new(pool, buf_str(&path));
    buf_done(&path);
    return hub;
}

static bool asks_http(const struct config *config) {
    for (size_t i = 0; i < config->mcp_count; i++) {
        if (config->mcp[i].url.len) return true;
    }
    return false;
}

/* The first team starts the servers, the second one has their tools. */
bool looking_open(const struct config *config, struct looking *ret, struct err *e) {
    struct looking looking = {.pool = http_pool_new()};
    if (config->mcp_count) looking.hub = looking_hub(config, looking.pool);
    struct team_resources resources = {.mcp = looking.hub};
    bool done = (!asks_http(config) || http_pool_need(looking.pool, e)) &&
                team_assemble(config, &resources, &looking.team, e);
    if (done && looking.hub) {
        struct team first = looking.team;
        mcp_hub_wait(looking.hub, LOOKING_SERVERS_MS);
        done = team_assemble(config, &resources, &looking.team, e);
        team_done(&first);
    }
    if (!done) {
        mcp_hub_free(looking.hub);
        http_pool_free(looking.pool);
        return false;
    }
    *ret = looking;
    return true;
}

void looking_done(struct looking *looking) {
    team_done(&looking->team);
    mcp_hub_free(looking->hub);
    http_pool_free(looking->pool);
}
