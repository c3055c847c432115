#include "provider/media_openai.h"

#include "base/mem.h"
#include "provider/body.h"
#include "provider/media_work.h"
#include "provider/openai_media.h"
#include "provider/remote_inner.h"

#include <stdlib.h>

#define URL_MAX_BYTES (8 * KIB)
#define BODY_MAX_BYTES (64 * MIB)
#define REFUSAL_MAX_BYTES (64 * KIB)

struct openai {
    struct media base;
    struct provider *provider; /* never called: it holds the address, the key and the texts */
};

struct openai_call {
    struct media_call base;
    const struct remote *remote;
    struct http_call *http;      /* NULL: no request is open */
    struct http_header *headers; /* the remote's, with two replaced, and the trace's */
    size_t header_count;
    char parent[TRACE_PARENT_BYTES + 1];
    struct buf url, type, body; /* the same for each attempt */
    struct timer again;
    struct attempts attempts;
    struct buf answer_type, answer;
};

static struct openai_call *openai_of(struct media_call *call) {
    return CONTAINER_OF(call, struct openai_call, base);
}

static const struct remote_options *media_openai_options_of(const struct openai_call *call) {
    return &call->remote->options;
}

/* --- failing ------------------------------------------------------------------------------ */

/* The reader is always a caller, and the run is not known here. */
static const struct failure_reader reader = {.run = 0, .by_operator = false};

static void media_openai_fail(struct openai_call *call) {
    failure_word(call->remote, reader, &call->base.failure);
    media_work_fail(&call->base);
}

/* The caller's own time limit passed; it is reported like the provider's. */
static void openai_late(struct media_call *base) {
    struct openai_call *call = openai_of(base);
    struct remote_options limits = {.total_ms = base->request.total_ms};
    failure_timeout(&limits, HTTP_COMPLETE, true, &base->failure);
    failure_word(call->remote, reader, &base->failure);
}

/* --- asking, and asking again ------------------------------------------------------------- */

static const struct http_sink http_sink;

static void media_openai_ask(struct openai_call *call) {
    struct http_request request = attempts_next(&call->attempts);
    request.url = buf_str(&call->url);
    request.headers = call->headers;
    request.header_count = call->header_count;
    request.body = buf_str(&call->body);
    request.body_max_bytes = openai_media_max_bytes(call->base.request.task);
    buf_clear(&call->answer_type);
    buf_clear(&call->answer);
    call->http = http_start(media_openai_options_of(call)->pool, call->base.loop, &request,
                            &http_sink, call);
}

static void on_again(void *ctx) {
    struct openai_call *call = ctx;
    media_work_move(&call->base, MEDIA_ASKING);
    media_openai_ask(call);
}

/* False: there will be no retry. */
static bool ask_later(struct openai_call *call) {
    if (!attempts_wait(&call->attempts, call->base.failure.reason, &call->again)) return false;
    media_work_move(&call->base, MEDIA_WAITING);
    return true;
}

/* --- what comes --------------------------------------------------------------------------- */

static void unanswered(struct openai_call *call, const struct err *failed,
                       enum http_stage stage) {
    bool again = attempts_unanswered(&call->attempts, failed, stage, &call->base.failure);
    if (again && ask_later(call)) return;
    media_openai_fail(call);
}

static void refused(struct openai_call *call) {
    failure_refused(media_openai_options_of(call)->dialect, call->attempts.status,
                    buf_str(&call->answer_type), buf_str(&call->answer), &call->base.failure);
    if (attempts_refused(&call->attempts, &call->base.failure) && ask_later(call)) return;
    media_openai_fail(call);
}

/* The head was good, but the body broke off. */
static void cut_off(struct openai_call *call, const struct err *failed, enum http_stage stage) {
    if (failed->code == ERR_DEADLINE_EXCEEDED) {
        failure_timeout(media_openai_options_of(call), stage, attempts_expired(&call->attempts),
                        &call->base.failure);
    } else {
        failure_broken(failed, &call->base.failure);
    }
    media_openai_fail(call);
}

static void media_openai_on_head(const struct http_head *head, void *ctx) {
    struct openai_call *call = ctx;
    call->attempts.status = head->status;
    call->attempts.retry_after_ms = head->retry_after_ms;
    buf_append(&call->answer_type, str_head(head->content_type, KIB));
}

/* Only the beginning of a refusal is kept. */
static void media_openai_on_body(struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    struct openai_call *call = ctx;
    if (call->attempts.status != 200)
        bytes = str_head(bytes, REFUSAL_MAX_BYTES - call->answer.len);
    buf_append(&call->answer, bytes);
}

static void media_openai_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct openai_call *call = ctx;
    call->http = NULL;
    media_work_enter(&call->base);
    if (call->attempts.status == 0) {
        unanswered(call, failed, stage);
    } else if (call->attempts.status != 200) {
        refused(call);
    } else if (failed) {
        cut_off(call, failed, stage);
    } else {
        media_work_shape(&call->base);
    }
    media_work_leave(&call->base);
}

static const struct http_sink http_sink = {media_openai_on_head, media_openai_on_body,
                                           media_openai_on_end};

/* --- a call ------------------------------------------------------------------------------- */

static bool openai_shape(struct media_call *base) {
    struct openai_call *call = openai_of(base);
    bool read =
        openai_media_read(&base->request, buf_str(&call->answer_type), buf_str(&call->answer),
                          base->arena, &base->made, &base->failure);
    if (!read) failure_word(call->remote, reader, &base->failure);
    return read;
}

static void openai_stop(struct media_call *base) {
    struct openai_call *call = openai_of(base);
    struct http_call *http = call->http;
    timer_stop(&call->again);
    call->http = NULL;
    if (http) http_cancel(http);
}

static void openai_call_free(struct media_call *base) {
    struct openai_call *call = openai_of(base);
    free(call->headers);
    buf_done(&call->url);
    buf_done(&call->type);
    buf_done(&call->body);
    buf_done(&call->answer_type);
    buf_done(&call->answer);
    free(call);
}

static const struct media_work_kind work = {openai_shape, openai_stop, openai_late,
                                            openai_call_free};

static void set_header(struct openai_call *call, struct str name, struct str value) {
    for (size_t i = 0; i < call->remote->header_count; i++) {
        if (str_equal_nocase(call->headers[i].name, name)) call->headers[i].value = value;
    }
}

/* All headers of the remote, with other values for content-type and accept. */
static void copy_headers(struct openai_call *call) {
    call->headers = remote_headers(call->remote, false, call->base.request.trace, call->parent,
                                   &call->header_count);
    set_header(call, STR("content-type"), buf_str(&call->type));
    set_header(call, STR("accept"), STR("*/*"));
}

static bool write_request(struct openai_call *call, struct err *e) {
    struct media_request *request = &call->base.request;
    const struct dialect_settings *settings = &media_openai_options_of(call)->settings;
    if (!request->model.len) request->model = settings->model;
    body_url(settings, openai_media_path(request->task), &call->url);
    if (!openai_media_body(request, &call->type, &call->body, e)) return false;
    copy_headers(call);
    return buf_ok(&call->url) ||
           err_set(e, ERR_TOO_LARGE, "the address of this provider is too long");
}

static void call_init(struct openai_call *call, const struct remote *remote,
                      struct loop *loop) {
    call->remote = remote;
    attempts_init(&call->attempts, &remote->options, loop);
    buf_init(&call->url, URL_MAX_BYTES);
    buf_init(&call->type, KIB);
    buf_init(&call->body, BODY_MAX_BYTES);
    buf_init(&call->answer_type, KIB);
    buf_init(&call->answer, BODY_MAX_BYTES * 2);
}

static struct media_call *openai_start(struct media *media, struct loop *loop,
                                       const struct media_request *request,
                                       reply_event_fn *on_reply, void *ctx) {
    struct openai *openai = CONTAINER_OF(media, struct openai, base);
    struct openai_call *call = MEM_NEW(struct openai_call);
    struct err e;
    call_init(call, CONTAINER_OF(openai->provider, const struct remote, base), loop);
    timer_init(&call->again, loop, on_again, call);
    if (!media_work_init(&call->base, &work, media, loop, request, on_reply, ctx)) {
        media_work_fail_later(&call->base);
    } else if (!write_request(call, &e)) {
        call->base.failure = (struct reply_failure){.why = e, .reason = PROVIDER_REJECTED};
        media_work_fail_later(&call->base);
    } else {
        media_openai_ask(call);
    }
    return &call->base;
}

/* --- the media ---------------------------------------------------------------------------- */

static bool openai_check(struct media *media, const struct media_request *request,
                         struct err *e) {
    (void)media;
    return openai_media_check(request, e);
}

static const struct media_voice voices[] = {
    {.id = STR_INIT("alloy"), .name = STR_INIT("Alloy")},
    {.id = STR_INIT("ash"), .name = STR_INIT("Ash")},
    {.id = STR_INIT("ballad"), .name = STR_INIT("Ballad")},
    {.id = STR_INIT("coral"), .name = STR_INIT("Coral")},
    {.id = STR_INIT("echo"), .name = STR_INIT("Echo")},
    {.id = STR_INIT("fable"), .name = STR_INIT("Fable")},
    {.id = STR_INIT("onyx"), .name = STR_INIT("Onyx")},
    {.id = STR_INIT("nova"), .name = STR_INIT("Nova")},
    {.id = STR_INIT("sage"), .name = STR_INIT("Sage")},
    {.id = STR_INIT("shimmer"), .name = STR_INIT("Shimmer")},
    {.id = STR_INIT("verse"), .name = STR_INIT("Verse")},
};

/* Only OpenAI's own voices are known. Other servers have others, and no API that lists them. */
static const struct media_voice *openai_voices(struct media *media, struct str model,
                                               size_t *ret_count) {
    const struct openai *openai = CONTAINER_OF(media, struct openai, base);
    const struct remote *remote = CONTAINER_OF(openai->provider, const struct remote, base);
    (void)model;
    bool own = body_host_is(&remote->options.settings, "api.openai.com");
    *ret_count = own ? ARRAY_LEN(voices) : 0;
    return own ? voices : NULL;
}

static void openai_free(struct media *media) {
    struct openai *openai = CONTAINER_OF(media, struct openai, base);
    provider_free(openai->provider);
    free(openai);
}

static const struct media_kind openai_kind = {
    .name = "openai",
    .tasks =
        1u << MEDIA_SPEECH | 1u << MEDIA_EMBEDDING | 1u << MEDIA_IMAGE | 1u << MEDIA_TRANSCRIPT,
    .start = openai_start,
    .cancel = media_work_cancel,
    .voices = openai_voices,
    .free = openai_free,
    .check = openai_check,
};

struct media *media_openai_new(const struct remote_options *options) {
    struct openai *openai = MEM_NEW(struct openai);
    struct remote_options own = *options;
    own.dialect = &openai_dialect;
    openai->provider = remote_provider_new(&own);
    openai->base.kind = &openai_kind;
    openai->base.name = openai->provider->name;
    return &openai->base;
}
