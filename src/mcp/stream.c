#include "mcp/stream.h"

#include "base/mem.h"
#include "mcp/sending.h"
#include "wire/sse.h"

#include <assert.h>
#include <stdlib.h>

#define RETRY_MS 1000
#define REST_MAX_MS 30000
#define LASTED_MS 10000 /* a stream that was open this long was not in vain */
#define WISH_MAX_MS (UINT64_C(24) * 60 * 60 * 1000)
#define DOUBLED_MAX 15
#define LAST_ID_MAX_BYTES (4 * KIB)

struct mcp_stream {
    struct mcp_stream_options options; /* without where it begins */
    const struct mcp_stream_sink *sink;
    void *ctx;
    struct mcp_client *client;
    enum mcp_stream_state state;
    struct http_call *call; /* NULL: no GET is out */
    struct sse *sse;        /* NULL: it is not open */
    struct buf last_id;
    uint64_t retry_ms, asked_ms;
    int64_t retry_after_ms; /* of the last response; -1: none */
    unsigned vain;
    bool heard; /* an event on this GET */
    bool tried, feeding, freed;
    struct timer rest;
};

const struct state mcp_stream_states[MCP_STREAM_STATE_COUNT] = {
    /* clang-format off */
    [MCP_STREAM_RESTING] = {"resting", TO(MCP_STREAM_ASKING) | TO(MCP_STREAM_OVER)},
    [MCP_STREAM_ASKING]  = {"asking",  TO(MCP_STREAM_OPEN) | TO(MCP_STREAM_RESTING) |
                                       TO(MCP_STREAM_OVER)},
    [MCP_STREAM_OPEN]    = {"open",    TO(MCP_STREAM_RESTING) | TO(MCP_STREAM_OVER)},
    [MCP_STREAM_OVER]    = {"over",    0},
    /* clang-format on */
};

/* The only function that writes stream->state. */
static void stream_move(struct mcp_stream *stream, enum mcp_stream_state next) {
    assert(states_allow(mcp_stream_states, stream->state, next));
    stream->state = next;
}

/* --- its ends ----------------------------------------------------------------------------- */

static void stream_close_call(struct mcp_stream *stream) {
    if (stream->call) http_cancel(stream->call);
    stream->call = NULL;
}

static void note_try(struct mcp_stream *stream) {
    bool first = !stream->tried;
    stream->tried = true;
    if (first && stream->sink->on_tried) stream->sink->on_tried(stream->ctx);
}

/* The owner may free the stream inside. */
static void stream_over(struct mcp_stream *stream, enum mcp_stream_end end,
                        const struct err *why) {
    stream_close_call(stream);
    timer_stop(&stream->rest);
    stream_move(stream, MCP_STREAM_OVER);
    stream->sink->on_over(end, why, stream->ctx);
}

/* Remember where the stream got to, and what the server wished. */
static void close_events(struct mcp_stream *stream) {
    uint64_t wish_ms;
    if (!stream->sse) return;
    struct str id = sse_last_id(stream->sse);
    if (id.len && id.len <= LAST_ID_MAX_BYTES && !str_equal(id, buf_str(&stream->last_id))) {
        buf_clear(&stream->last_id);
        buf_append(&stream->last_id, id);
        stream->heard = true;
    }
    if (sse_retry_ms(stream->sse, &wish_ms))
        stream->retry_ms = wish_ms < WISH_MAX_MS ? wish_ms : WISH_MAX_MS;
    sse_free(stream->sse);
    stream->sse = NULL;
}

static uint64_t next_rest_ms(const struct mcp_stream *stream) {
    uint64_t max_ms = stream->retry_ms > REST_MAX_MS ? stream->retry_ms : REST_MAX_MS;
    uint64_t base_ms = stream->vain && stream->retry_ms == 0 ? 1 : stream->retry_ms;
    uint64_t rest_ms = base_ms << (stream->vain < DOUBLED_MAX ? stream->vain : DOUBLED_MAX);
    if (rest_ms > max_ms) rest_ms = max_ms;
    if (stream->retry_after_ms > 0 && (uint64_t)stream->retry_after_ms > rest_ms)
        rest_ms = (uint64_t)stream->retry_after_ms;
    return rest_ms < WISH_MAX_MS ? rest_ms : WISH_MAX_MS;
}

static void start_rest(struct mcp_stream *stream, uint64_t rest_ms) {
    uint64_t now_ms = loop_now_ms(stream->client->loop);
    uint64_t deadline_ms = stream->options.deadline_ms;
    if (deadline_ms && now_ms + rest_ms > deadline_ms)
        rest_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
    timer_start(&stream->rest, rest_ms);
}

/* This GET is over. */
static void rest_or_end(struct mcp_stream *stream) {
    struct err why;
    uint64_t lasted_ms = loop_now_ms(stream->client->loop) - stream->asked_ms;
    stream_close_call(stream);
    close_events(stream);
    stream->vain = stream->heard || lasted_ms >= LASTED_MS ? 0 : stream->vain + 1;
    if (stream->options.vain_max && stream->vain >= stream->options.vain_max) {
        err_set(&why, ERR_UNAVAILABLE, "the MCP server did not resume its stream in %u tries",
                stream->vain);
        stream_over(stream, MCP_STREAM_FAILED, &why);
        return;
    }
    stream_move(stream, MCP_STREAM_RESTING);
    start_rest(stream, next_rest_ms(stream));
    note_try(stream);
}

/* --- a response --------------------------------------------------------------------------- */

static void on_sse_event(const struct sse_event *event, void *ctx) {
    struct mcp_stream *stream = ctx;
    stream->heard = true;
    if (stream->freed || !event->data.len || !str_equal(event->type, STR("message"))) return;
    stream->sink->on_event(event->data, stream->ctx);
    if (stream->freed) sse_stop(stream->sse);
}

/* A status that may be another one at the next try. 409: the server has not noticed yet that
 * the stream before has ended. */
static bool may_pass(unsigned status) {
    return status == 408 || status == 409 || status == 429 ||
           (status >= 500 && status != 501 && status != 505);
}

static void stream_on_head(const struct http_head *head, void *ctx) {
    struct mcp_stream *stream = ctx;
    struct err why;
    stream->retry_after_ms = head->retry_after_ms;
    if (head->status < 300 && post_is_type(head->content_type, STR("text/event-stream"))) {
        stream->sse = sse_new(POST_ANSWER_MAX_BYTES, on_sse_event, stream);
        stream_move(stream, MCP_STREAM_OPEN);
        note_try(stream);
    } else if (may_pass(head->status)) {
        rest_or_end(stream);
    } else {
        bool lost = head->status == 404 && stream->options.session->id.len > 0;
        err_set(&why, ERR_UNAVAILABLE, "the MCP server answered a GET of its stream with %u",
                head->status);
        stream_over(stream, lost ? MCP_STREAM_LOST : MCP_STREAM_REFUSED, &why);
    }
}

static void stream_destroy(struct mcp_stream *stream) {
    stream_close_call(stream);
    sse_free(stream->sse);
    buf_done(&stream->last_id);
    free(stream);
}

static void stream_on_body(struct lent lent, void *ctx) {
    struct mcp_stream *stream = ctx;
    struct err why;
    if (!stream->sse) return;
    stream->feeding = true;
    bool fed = sse_feed(stream->sse, lent_read(lent), &why);
    stream->feeding = false;
    if (stream->freed) {
        stream_destroy(stream);
    } else if (!fed) {
        err_set(&why, ERR_TOO_LARGE, "the MCP server sent an event of more than 4 MiB");
        stream_over(stream, MCP_STREAM_FAILED, &why);
    }
}

static void stream_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct mcp_stream *stream = ctx;
    (void)failed;
    (void)stage;
    stream->call = NULL;
    rest_or_end(stream);
}

static const struct http_sink http_sink = {stream_on_head, stream_on_body, stream_on_end};

/* --- a request ---------------------------------------------------------------------------- */

static void stream_ask(struct mcp_stream *stream) {
    const struct mcp_stream_options *options = &stream->options;
    struct err e;
    stream_move(stream, MCP_STREAM_ASKING);
    stream->asked_ms = loop_now_ms(stream->client->loop);
    stream->heard = false;
    stream->retry_after_ms = -1;
    struct mcp_sending sending = {
        .caller = &options->caller,
        .session = options->session,
        .last_id = buf_str(&stream->last_id),
        .total_ms = options->deadline_ms ? options->deadline_ms - stream->asked_ms : 0};
    if (!mcp_get(stream->client, &sending, &http_sink, stream, &stream->call, &e))
        rest_or_end(stream);
}

static void on_rested(void *ctx) {
    struct mcp_stream *stream = ctx;
    uint64_t deadline_ms = stream->options.deadline_ms;
    struct err why;
    if (!deadline_ms || loop_now_ms(stream->client->loop) < deadline_ms) {
        stream_ask(stream);
        return;
    }
    err_set(&why, ERR_DEADLINE_EXCEEDED, "the MCP server did not answer in time");
    stream_over(stream, MCP_STREAM_FAILED, &why);
}

/* --- public functions --------------------------------------------------------------------- */

struct mcp_stream *mcp_stream_start(const struct mcp_stream_options *options,
                                    const struct mcp_stream_sink *sink, void *ctx) {
    struct mcp_stream *stream = MEM_NEW(struct mcp_stream);
    stream->options = *options;
    stream->client = options->session->client;
    stream->sink = sink;
    stream->ctx = ctx;
    stream->retry_ms = options->retry_ms ? *options->retry_ms : RETRY_MS;
    stream->retry_after_ms = -1;
    buf_init(&stream->last_id, LAST_ID_MAX_BYTES);
    buf_append(&stream->last_id, options->last_id);
    timer_init(&stream->rest, stream->client->loop, on_rested, stream);
    stream->options.last_id = STR_EMPTY;
    stream->options.retry_ms = NULL;
    start_rest(stream, options->last_id.len ? next_rest_ms(stream) : 0);
    return stream;
}

void mcp_stream_stop(struct mcp_stream *stream) {
    if (!stream) return;
    timer_stop(&stream->rest);
    stream->freed = true;
    if (!stream->feeding) stream_destroy(stream);
}
