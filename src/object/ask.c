#include "object/ask.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "object/fault.h"

#include <stdlib.h>
#include <sys/random.h>

#define FIRST_PAUSE_MS 200
#define FIRST_BYTE_MS 60000
#define REFUSAL_MAX_BYTES (64 * KIB)
#define URL_MAX_BYTES (16 * KIB)
#define AUTHORIZATION_MAX_BYTES (2 * KIB)

struct object_ask {
    struct bucket *bucket;
    struct loop *loop;
    struct arena *arena; /* owns the request's texts */
    struct object_request request;
    struct object_sink sink;
    void *ctx;
    struct str sum; /* of the body, in digits */
    struct http_call *call;
    struct timer pause;
    unsigned attempt;
    bool ambiguous;

    /* of this attempt's response */
    unsigned status;
    int64_t retry_after_ms, date_ms;
    struct buf body, type, etag, range, region;
    bool told; /* its head was reported */
};

/* --- the request -------------------------------------------------------------------------- */

/* The arena is sized for it. */
static struct str ask_keep(struct object_ask *ask, struct str text) {
    struct str kept;
    if (!arena_str(ask->arena, text, &kept)) abort();
    return kept;
}

static struct sigv4_pair *keep_pairs(struct object_ask *ask, const struct sigv4_pair *pairs,
                                     size_t count) {
    struct sigv4_pair *kept = arena_alloc(ask->arena, (count + 1) * sizeof(*kept));
    if (!kept) abort();
    for (size_t i = 0; i < count; i++)
        kept[i] =
            (struct sigv4_pair){ask_keep(ask, pairs[i].name), ask_keep(ask, pairs[i].value)};
    return kept;
}

static size_t pairs_bytes(const struct sigv4_pair *pairs, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += pairs[i].name.len + pairs[i].value.len + 64;
    return bytes;
}

static void ask_keep_request(struct object_ask *ask, const struct object_request *request) {
    uint8_t digest[DIGEST_BYTES];
    char digits[DIGEST_DIGITS];
    ask->arena = arena_new(pairs_bytes(request->query, request->query_count) +
                           pairs_bytes(request->headers, request->header_count) +
                           request->key.len + 8 * KIB);
    ask->request = *request;
    ask->request.method = ask_keep(ask, request->method);
    ask->request.key = ask_keep(ask, request->key);
    ask->request.query = keep_pairs(ask, request->query, request->query_count);
    ask->request.headers = keep_pairs(ask, request->headers, request->header_count);
    digest_text(request->body, digest);
    digest_digits(digest, DIGEST_DIGITS, digits);
    ask->sum = ask_keep(ask, str_of(digits, DIGEST_DIGITS));
}

/* What one attempt sends; lives until http_start() has copied it. */
struct signed_request {
    struct buf url, path, authorization;
    struct sigv4_pair headers[OBJECT_HEADERS_MAX + 4];
    size_t header_count;
    struct http_header sent[OBJECT_HEADERS_MAX + 6];
    size_t sent_count;
    char time[SIGV4_TIME_BYTES];
};

static void add_headers(const struct object_ask *ask, struct signed_request *to) {
    const struct object_request *from = &ask->request;
    sigv4_time(clock_unix_ms() / 1000, to->time);
    to->headers[to->header_count++] =
        (struct sigv4_pair){STR("host"), bucket_host(ask->bucket)};
    to->headers[to->header_count++] =
        (struct sigv4_pair){STR("x-amz-date"), str_from(to->time)};
    to->headers[to->header_count++] =
        (struct sigv4_pair){STR("x-amz-content-sha256"), ask->sum};
    for (size_t i = 0; i < from->header_count; i++)
        to->headers[to->header_count++] = from->headers[i];
}

static bool sign(const struct object_ask *ask, struct signed_request *to) {
    const struct object_request *from = &ask->request;
    const struct sigv4_key key = bucket_key(ask->bucket);
    bucket_append_path(ask->bucket, from->key, &to->path);
    bucket_append_origin(ask->bucket, &to->url);
    buf_append(&to->url, buf_str(&to->path));
    if (from->query_count) buf_append_byte(&to->url, '?');
    sigv4_append_query(&to->url, from->query, from->query_count);
    add_headers(ask, to);
    bool good = buf_ok(&to->url) && buf_ok(&to->path) &&
                sigv4_authorize(&key, to->time,
                                &(struct sigv4_request){.method = from->method,
                                                        .path = buf_str(&to->path),
                                                        .query = from->query,
                                                        .query_count = from->query_count,
                                                        .headers = to->headers,
                                                        .header_count = to->header_count,
                                                        .body_sum = ask->sum},
                                &to->authorization);
    for (size_t i = 0; i < to->header_count; i++)
        to->sent[to->sent_count++] =
            (struct http_header){to->headers[i].name, to->headers[i].value};
    to->sent[to->sent_count++] =
        (struct http_header){STR("authorization"), buf_str(&to->authorization)};
    to->sent[to->sent_count++] = (struct http_header){STR("accept-encoding"), STR("identity")};
    return good;
}

/* --- the end ------------------------------------------------------------------------------ */

static void clear_response(struct object_ask *ask) {
    struct buf *bufs[] = {&ask->body, &ask->type, &ask->etag, &ask->range, &ask->region};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_done(bufs[i]);
}

static void object_ask_ask_free(struct object_ask *ask) {
    timer_stop(&ask->pause);
    clear_response(ask);
    arena_free(ask->arena);
    free(ask);
}

static struct object_answer answer_of(const struct object_ask *ask) {
    return (struct object_answer){ask->status, buf_str(&ask->body), buf_str(&ask->type),
                                  buf_str(&ask->etag), buf_str(&ask->range)};
}

/* The sink may cancel, which is too late here: the ask is taken off first. */
static void ask_end(struct object_ask *ask, const struct err *failed) {
    const struct object_answer answer = answer_of(ask);
    ask->sink.on_end(&answer, failed, ask->ambiguous, ask->ctx);
    object_ask_ask_free(ask);
}

/* --- again -------------------------------------------------------------------------------- */

uint64_t object_pause_ms(unsigned number) {
    uint64_t random = 0;
    uint64_t most = (uint64_t)FIRST_PAUSE_MS << (number < 8 ? number - 1 : 7);
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) return most;
    return most / 2 + random % (most / 2 + 1);
}

static bool object_ask_ask_again(struct object_ask *ask, const struct err *why) {
    uint64_t pause_ms = object_pause_ms(ask->attempt);
    if (ask->attempt == OBJECT_ATTEMPTS_MAX || ask->told) return false;
    if (ask->retry_after_ms > OBJECT_PAUSE_MAX_MS) return false;
    if (ask->retry_after_ms > 0) pause_ms += (uint64_t)ask->retry_after_ms;
    log_debug("object storage, attempt %u, again in %llu ms: %s", ask->attempt,
              (unsigned long long)pause_ms, why->text);
    timer_start(&ask->pause, pause_ms);
    return true;
}

/* --- one attempt -------------------------------------------------------------------------- */

static bool ask_is_good(const struct object_ask *ask) {
    return ask->status >= 200 && ask->status < 300;
}

static void ask_on_head(const struct http_head *head, void *ctx) {
    struct object_ask *ask = ctx;
    ask->status = head->status;
    ask->retry_after_ms = head->retry_after_ms;
    ask->date_ms = head->date_ms;
    buf_append(&ask->type, head->content_type);
    buf_append(&ask->etag, head->etag);
    buf_append(&ask->range, head->range);
    buf_append(&ask->region, head->region);
    if (!ask_is_good(ask) || !ask->sink.on_head) return;
    const struct object_answer answer = answer_of(ask);
    ask->told = true;
    ask->sink.on_head(&answer, ask->ctx);
}

static void ask_on_body(struct lent bytes, void *ctx) {
    struct object_ask *ask = ctx;
    if (ask_is_good(ask) && ask->sink.on_body)
        ask->sink.on_body(bytes, ask->ctx);
    else
        buf_append(&ask->body, lent_read(bytes));
}

/* The response came whole. */
static void ask_judge(struct object_ask *ask) {
    struct err why;
    bool again;
    if (ask_is_good(ask)) {
        bool fits =
            buf_ok(&ask->body) ||
            err_set(&why, ERR_TOO_LARGE, "the storage's answer is larger than %zu bytes",
                    ask->body.max_bytes);
        ask_end(ask, fits ? NULL : &why);
        return;
    }
    object_fault(&(struct object_fault_facts){.bucket = ask->bucket,
                                              .method = ask->request.method,
                                              .key = ask->request.key,
                                              .status = ask->status,
                                              .body = buf_str(&ask->body),
                                              .region = buf_str(&ask->region),
                                              .date_ms = ask->date_ms,
                                              .now_ms = clock_unix_ms()},
                 &why, &again);
    /* A gateway that gave up may have passed the request on. */
    if (ask->status == 500 || ask->status == 502 || ask->status == 504) ask->ambiguous = true;
    if (ask->request.once && ask->ambiguous) again = false;
    if (!again || !object_ask_ask_again(ask, &why)) ask_end(ask, &why);
}

static void ask_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct object_ask *ask = ctx;
    struct err why;
    ask->call = NULL;
    if (!failed) {
        ask_judge(ask);
        return;
    }
    why = *failed;
    err_add(&why, "the storage at " STR_FMT, STR_ARG(bucket_host(ask->bucket)));
    if (stage != HTTP_CONNECTING) ask->ambiguous = true;
    bool again = failed->code == ERR_UNAVAILABLE || failed->code == ERR_DEADLINE_EXCEEDED;
    if (ask->request.once && ask->ambiguous) again = false;
    if (!again || !object_ask_ask_again(ask, &why)) ask_end(ask, &why);
}

static const struct http_sink http_events = {ask_on_head, ask_on_body, ask_on_end};

static void begin_response(struct object_ask *ask) {
    size_t most = ask->request.answer_max_bytes;
    clear_response(ask);
    ask->status = 0;
    ask->retry_after_ms = -1;
    ask->date_ms = 0;
    buf_init(&ask->body, most > REFUSAL_MAX_BYTES ? most : REFUSAL_MAX_BYTES);
    buf_init(&ask->type, 256);
    buf_init(&ask->etag, 128);
    buf_init(&ask->range, 64);
    buf_init(&ask->region, 64);
}

static void attempt(void *ctx) {
    struct object_ask *ask = ctx;
    struct signed_request made = {.header_count = 0};
    struct err why;
    ask->attempt++;
    begin_response(ask);
    buf_init(&made.url, URL_MAX_BYTES);
    buf_init(&made.path, URL_MAX_BYTES);
    buf_init(&made.authorization, AUTHORIZATION_MAX_BYTES);
    bool good = ask->request.key.len <= OBJECT_KEY_MAX_BYTES && sign(ask, &made);
    if (good)
        ask->call = http_start(bucket_pool(ask->bucket), ask->loop,
                               &(struct http_request){.method = ask->request.method,
                                                      .url = buf_str(&made.url),
                                                      .headers = made.sent,
                                                      .header_count = made.sent_count,
                                                      .body = ask->request.body,
                                                      .first_byte_ms = FIRST_BYTE_MS,
                                                      .stall_ms = OBJECT_STALL_MS,
                                                      .reach = HTTP_ANYWHERE,
                                                      .once = ask->request.once},
                               &http_events, ask);
    buf_done(&made.url);
    buf_done(&made.path);
    buf_done(&made.authorization);
    if (good) return;
    err_set(&why, ERR_INVALID_ARGUMENT, "the name of an object is too long: at most %d bytes",
            OBJECT_KEY_MAX_BYTES);
    ask_end(ask, &why);
}

struct object_ask *object_ask_start(struct bucket *bucket, struct loop *loop,
                                    const struct object_request *request,
                                    const struct object_sink *sink, void *ctx) {
    struct object_ask *ask = MEM_NEW(struct object_ask);
    ask->bucket = bucket;
    ask->loop = loop;
    ask->sink = *sink;
    ask->ctx = ctx;
    ask_keep_request(ask, request);
    begin_response(ask);
    timer_init(&ask->pause, loop, attempt, ask);
    timer_start(&ask->pause, 0);
    return ask;
}

void object_ask_cancel(struct object_ask *ask) {
    if (ask->call) http_cancel(ask->call);
    object_ask_ask_free(ask);
}
