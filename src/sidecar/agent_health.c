#include "sidecar/agent_health.h"

#include "base/mem.h"
#include "base/text.h"
#include "wire/json.h"

#include <stdlib.h>

#define ANSWER_MAX_BYTES (16 * KIB)
#define ANSWER_MS 5000

struct agent_health {
    struct http_pool *pool;
    struct loop *loop;
    struct text url;
    struct http_call *call;
    unsigned status;
    struct buf body;
    bool healthy;
    struct timer again;
};

static void agent_health_on_head(const struct http_head *head, void *ctx) {
    struct agent_health *health = ctx;
    health->status = head->status;
}

static void agent_health_on_body(struct lent bytes, void *ctx) {
    struct agent_health *health = ctx;
    buf_append(&health->body, lent_read(bytes));
}

/* Every status but `loading` is healthy: readers of this contract look at the 200 only. */
static bool says_loading(struct str body) {
    struct json json;
    struct err e;
    return json_read(body, &json, &e) &&
           json_is(json_find(json, STR("status")), STR("loading"));
}

static void agent_health_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct agent_health *health = ctx;
    (void)stage;
    health->call = NULL;
    health->healthy = !failed && health->status == 200 && !says_loading(buf_str(&health->body));
    timer_start(&health->again,
                health->healthy ? AGENT_HEALTH_HEALTHY_MS : AGENT_HEALTH_LOADING_MS);
}

static const struct http_sink sink = {agent_health_on_head, agent_health_on_body,
                                      agent_health_on_end};

static void agent_health_ask(void *ctx) {
    struct agent_health *health = ctx;
    buf_clear(&health->body);
    health->status = 0;
    const struct http_request request = {.method = STR("GET"),
                                         .url = text_str(health->url),
                                         .total_ms = ANSWER_MS,
                                         .body_max_bytes = ANSWER_MAX_BYTES};
    health->call = http_start(health->pool, health->loop, &request, &sink, health);
}

struct agent_health *agent_health_new(struct http_pool *pool, struct loop *loop,
                                      struct str url) {
    struct agent_health *health = MEM_NEW(struct agent_health);
    struct buf whole;
    buf_init(&whole, 64 * KIB);
    while (str_ends(url, STR("/"))) url = str_head(url, url.len - 1);
    buf_append(&whole, url);
    buf_append(&whole, STR("/health"));
    health->pool = pool;
    health->loop = loop;
    health->url = text_copy(buf_str(&whole));
    buf_init(&health->body, ANSWER_MAX_BYTES);
    timer_init(&health->again, loop, agent_health_ask, health);
    timer_start(&health->again, 0);
    buf_done(&whole);
    return health;
}

void agent_health_free(struct agent_health *health) {
    if (!health) return;
    timer_stop(&health->again);
    if (health->call) http_cancel(health->call);
    buf_done(&health->body);
    text_done(&health->url);
    free(health);
}

bool agent_health_is_healthy(const struct agent_health *health) {
    return health->healthy;
}

void agent_health_doubt(struct agent_health *health) {
    health->healthy = false;
    if (!health->call) timer_start(&health->again, AGENT_HEALTH_LOADING_MS);
}
