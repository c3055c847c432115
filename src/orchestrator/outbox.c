#include "orchestrator/outbox.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "loop/job.h"
#include "orchestrator/jetstream.h"

#include <stdlib.h>

#define BATCH_MAX 100
#define BATCH_MAX_BYTES (4 * MIB)
#define SOON_MS 20
#define LOOK_MS 1000
#define AWAY_MS 2000

struct outbox_event {
    struct str id, workspace, payload;
};

struct outbox {
    struct loop *loop;
    struct queries *queries;
    struct text url;
    struct jetstream *jetstream; /* the worker's while the job runs */
    struct timer timer;
    struct job job;
    bool busy, more, stopped;
    bool away; /* it was said that NATS is away */
    struct arena *arena;
    struct outbox_event events[BATCH_MAX];
    size_t count, sent;
    struct err failed;
};

static const char select_batch[] =
    "SELECT event_id, workspace_id, json_build_object('event_id', event_id, 'event_time', "
    "to_char(event_time AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"000Z\"'), "
    "'user_id', user_id, 'workspace_id', workspace_id, 'conversation_id', conversation_id, "
    "'message_id', message_id, 'agent_id', left(agent_id, 256), 'agent_db_id', agent_db_id, "
    "'model', left(model, 256), 'provider', provider, 'prompt_tokens', prompt_tokens, "
    "'completion_tokens', completion_tokens, 'total_tokens', total_tokens, "
    "'tool_use_prompt_tokens', tool_use_prompt_tokens, 'thoughts_tokens', thoughts_tokens, "
    "'cached_tokens', cached_tokens, 'cost_usd', cost_usd, 'call_sequence', call_sequence, "
    "'turn_id', turn_id, 'session_id', session_id)::text FROM usage_events "
    "WHERE published_at IS NULL ORDER BY seq LIMIT 100";

static const char mark_batch[] =
    "UPDATE usage_events SET published_at = now() WHERE published_at IS NULL AND "
    "event_id = ANY (string_to_array($1, ','))";

static void rest_for(struct outbox *outbox, uint64_t wait_ms) {
    outbox->busy = false;
    arena_free(outbox->arena);
    outbox->arena = NULL;
    if (!outbox->stopped) timer_start(&outbox->timer, outbox->more ? SOON_MS : wait_ms);
}

/* --- marking ------------------------------------------------------------------------------------ */

static void on_marked(const struct postgres_request *rows, const struct err *failed,
                      void *ctx) {
    struct outbox *outbox = ctx;
    (void)rows;
    (void)failed; /* they are sent again, and dropped there */
    outbox->more = !outbox->failed.code && outbox->count == BATCH_MAX;
    rest_for(outbox, outbox->failed.code ? AWAY_MS : LOOK_MS);
}

static void tell_away(struct outbox *outbox) {
    bool away = outbox->failed.code != ERR_NONE;
    if (away && !outbox->away)
        log_warning("usage cannot be published and waits: %s", outbox->failed.text);
    if (!away && outbox->away) log_info("usage is published again");
    outbox->away = away;
}

static void on_published(void *ctx) {
    struct outbox *outbox = ctx;
    struct buf ids;
    tell_away(outbox);
    outbox->more = false;
    if (!outbox->sent || outbox->stopped) {
        rest_for(outbox, AWAY_MS);
        return;
    }
    buf_init(&ids, MIB);
    for (size_t i = 0; i < outbox->sent; i++) {
        if (i) buf_append_byte(&ids, ',');
        buf_append(&ids, outbox->events[i].id);
    }
    struct query *query = query_new();
    QUERY_STEP(query, mark_batch, postgres_text(buf_str(&ids)));
    query_ask(query, outbox->queries, QUERY_REPEATABLE, on_marked, outbox);
    buf_done(&ids);
}

/* --- publishing, on a worker ------------------------------------------------------------------------ */

static void publish(void *ctx) {
    struct outbox *outbox = ctx;
    struct err *e = &outbox->failed;
    if (!outbox->jetstream && !jetstream_open(text_str(outbox->url), &outbox->jetstream, e))
        return;
    for (; outbox->sent < outbox->count; outbox->sent++) {
        const struct outbox_event *event = &outbox->events[outbox->sent];
        if (jetstream_publish(outbox->jetstream, event->workspace, event->id, event->payload,
                              e))
            continue;
        if (e->code != ERR_TOO_LARGE) return;
        log_error("usage event " STR_FMT " of workspace " STR_FMT " is not published: %s",
                  STR_ARG(event->id), STR_ARG(str_head(event->workspace, 128)), e->text);
        *e = (struct err){0};
    }
}

/* --- reading ------------------------------------------------------------------------------------ */

static void read_batch(struct outbox *outbox, struct postgres_rows rows) {
    outbox->count = outbox->sent = 0;
    outbox->failed.code = ERR_NONE;
    outbox->arena = arena_new(BATCH_MAX_BYTES);
    for (size_t i = 0; i < rows.count && i < BATCH_MAX; i++) {
        struct outbox_event *event = &outbox->events[outbox->count];
        bool kept = arena_str(outbox->arena, postgres_content(rows, i, 0), &event->id) &&
                    arena_str(outbox->arena, postgres_content(rows, i, 1), &event->workspace) &&
                    arena_str(outbox->arena, postgres_content(rows, i, 2), &event->payload);
        if (!kept) return;
        outbox->count++;
    }
}

static void on_batch(const struct postgres_request *rows, const struct err *failed, void *ctx) {
    struct outbox *outbox = ctx;
    outbox->more = false;
    if (failed || outbox->stopped) {
        rest_for(outbox, AWAY_MS);
        return;
    }
    read_batch(outbox, postgres_rows(rows, 0));
    if (outbox->count)
        job_start(&outbox->job, outbox->loop, publish, on_published, outbox);
    else
        rest_for(outbox, LOOK_MS);
}

static void outbox_look(void *ctx) {
    struct outbox *outbox = ctx;
    struct query *query = query_new();
    outbox->busy = true;
    query_step(query, select_batch, NULL, 0);
    query_ask(query, outbox->queries, QUERY_REPEATABLE, on_batch, outbox);
}

/* --- public functions ------------------------------------------------------------------------------- */

struct outbox *outbox_new(struct loop *loop, struct queries *queries, struct str url) {
    struct outbox *outbox = MEM_NEW(struct outbox);
    outbox->loop = loop;
    outbox->queries = queries;
    outbox->url = text_copy(url);
    timer_init(&outbox->timer, loop, outbox_look, outbox);
    timer_start(&outbox->timer, 0);
    return outbox;
}

void outbox_wake(struct outbox *outbox) {
    if (!outbox->busy && !outbox->away && !outbox->stopped)
        timer_start(&outbox->timer, SOON_MS);
}

void outbox_stop(struct outbox *outbox) {
    outbox->stopped = true;
    timer_stop(&outbox->timer);
    bool waits = outbox->job.request && !job_cancel(&outbox->job);
    (void)waits; /* on_published() follows */
}

void outbox_free(struct outbox *outbox) {
    if (!outbox || outbox->job.request)
        return; /* a worker still waits for NATS: it ends with us */
    if (outbox->jetstream) jetstream_close(outbox->jetstream);
    arena_free(outbox->arena);
    text_done(&outbox->url);
    free(outbox);
}
