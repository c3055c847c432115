#include "client/call.h"

#include "base/clock.h"
#include "base/mem.h"
#include "client/fault.h"
#include "client/place.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* --- freeing ------------------------------------------------------------------------------ */

static void free_call(struct http_call *call) {
    if (call->carrier) call->carrier->free(call);
    gunzip_free(call->gunzip);
    head_done(&call->head);
    call->place->calls--;
    free(call->refused);
    free(call->failed);
    free(call);
}

/* The carrier, or a function further down the stack, may still use the call. */
static void free_when_over(struct http_call *call) {
    if (call->over && !call->carried && !call->inside) free_call(call);
}

static void call_enter(struct http_call *call) {
    call->inside++;
}

/* gcc's analyzer does not see that `inside` is a count that keeps the call alive. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-use-after-free"
#endif
static void leave(struct http_call *call) {
    call->inside--;
    free_when_over(call);
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

void http_call_left(struct http_call *call) {
    call->carried = false;
    free_when_over(call);
}

/* The caller gets no callback after this. Functions on the stack keep the call until they
 * return. */
static void close_call(struct http_call *call) {
    assert(!call->over && call->inside);
    call->over = true;
    timer_stop(&call->first_byte);
    timer_stop(&call->stall);
    timer_stop(&call->total);
    task_cancel(&call->turn);
    if (call->carried && call->carrier->leave(call)) call->carried = false;
}

static struct err *call_keep(const struct err *why) {
    struct err *kept = MEM_NEW(struct err);
    *kept = *why;
    return kept;
}

/* Start an error in the call itself, which ends it. Returns false. */
PRINTF_LIKE(3, 4)
static bool http_call_fault(struct http_call *call, enum err_code code, const char *format,
                            ...) {
    char text[ERR_TEXT_BYTES];
    va_list values;
    struct err why;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    err_set(&why, code, "%s", text);
    if (!call->failed) call->failed = call_keep(&why);
    return false;
}

/* Whether something received has not been reported yet. */
bool http_call_waits(const struct http_call *call) {
    return call->paused || (call->gunzip && gunzip_waits(call->gunzip));
}

bool http_call_has_header(const struct http_request *request, struct str name) {
    for (size_t i = 0; i < request->header_count; i++) {
        if (str_equal_nocase(request->headers[i].name, name)) return true;
    }
    return false;
}

/* --- the end ------------------------------------------------------------------------------ */

static enum http_stage stage_of(const struct http_call *call) {
    if (call->headed) return HTTP_READING;
    bool connected = call->carrier && call->carrier->is_connected(call);
    return connected ? HTTP_WAITING : HTTP_CONNECTING;
}

static void client_call_fail(struct http_call *call, const struct err *why) {
    enum http_stage stage = stage_of(call);
    struct err kept = *why; /* `why` may be part of the carrier, which leaves */
    call_enter(call);
    close_call(call);
    call->sink.on_end(&kept, stage, call->ctx);
    leave(call);
}

static void succeed(struct http_call *call) {
    call_enter(call);
    close_call(call);
    call->sink.on_end(NULL, HTTP_COMPLETE, call->ctx);
    leave(call);
}

/* Carriers do not notice when a compressed body ends early, because gzip is decoded here. */
static bool is_whole(const struct http_call *call) {
    if (!call->headed) return false;
    return !call->gunzip || call->body_bytes == 0 || gunzip_whole(call->gunzip);
}

static void client_call_end(struct http_call *call) {
    struct err cut;
    if (!call->failed && is_whole(call)) {
        succeed(call);
        return;
    }
    err_set(&cut, ERR_UNAVAILABLE, "the answer was cut short");
    client_call_fail(call, call->failed ? call->failed : &cut);
}

void http_call_ended(struct http_call *call, const struct err *why) {
    assert(!call->over); /* nothing is reported after the end */
    call->done = true;
    call->carried = false;
    if (why && !call->failed) call->failed = call_keep(why);
    if (!call->failed && http_call_waits(call)) return; /* report the received bytes first */
    client_call_end(call);
}

/* --- time --------------------------------------------------------------------------------- */

static void fail_late(struct http_call *call, uint64_t limit_ms, const char *what) {
    struct err why;
    fault_late(limit_ms, what, &why);
    client_call_fail(call, &why);
}

static void on_first_byte_late(void *ctx) {
    struct http_call *call = ctx;
    fail_late(call, call->first_byte_ms, "the server did not answer");
}

static void on_total_late(void *ctx) {
    struct http_call *call = ctx;
    fail_late(call, call->total_ms, "the whole answer did not come");
}

/* The timer is not restarted for each piece; when it fires, it checks the time of the last
 * one. */
static void call_on_stall(void *ctx) {
    struct http_call *call = ctx;
    uint64_t due_ms = call->last_byte_ms + call->stall_ms,
             now_ms = loop_now_ms(call->place->loop);
    if (now_ms < due_ms) {
        timer_start(&call->stall, due_ms - now_ms);
        return;
    }
    fail_late(call, call->stall_ms, "nothing more of the answer came");
}

static void watch_stall(struct http_call *call) {
    call->last_byte_ms = loop_now_ms(call->place->loop);
    if (call->stall_ms && !call->done) timer_start(&call->stall, call->stall_ms);
}

/* --- the head ----------------------------------------------------------------------------- */

bool http_call_is_redirect(const struct http_call *call) {
    return call->redirects_max > 0 && call->head.location && call->head.status >= 300 &&
           call->head.status < 400;
}

static bool tell_head(struct http_call *call) {
    call->headed = true;
    timer_stop(&call->first_byte);
    watch_stall(call);
    struct http_head head = {
        call->head.status,        head_content_type(&call->head), call->head.retry_after_ms,
        call->carrier->url(call), head_session(&call->head),      head_version(&call->head),
        head_etag(&call->head),   head_range(&call->head),        head_region(&call->head),
        call->head.date_ms,       head_run(&call->head)};
    call->sink.on_head(&head, call->ctx);
    return !call->over;
}

static bool client_call_give(struct str bytes, void *ctx);

static bool end_head(struct http_call *call) {
    if (call->head.status < 200) return true; /* 100, 103: the final head follows */
    if (http_call_is_redirect(call)) return true;
    if (call->head.coding == CODING_UNKNOWN)
        return http_call_fault(call, ERR_UNAVAILABLE,
                               "the answer is compressed in a way that was not asked for");
    if (call->head.coding == CODING_GZIP) call->gunzip = gunzip_new(client_call_give, call);
    return tell_head(call);
}

bool http_call_on_line(struct http_call *call, struct str line) {
    if (call->over) return false;
    call->head_bytes += line.len;
    if (call->head_bytes > HTTP_HEAD_MAX_BYTES)
        return http_call_fault(call, ERR_TOO_LARGE,
                               "the headers of the answer are longer than %zu KiB",
                               HTTP_HEAD_MAX_BYTES / KIB);
    if (call->headed) return true; /* trailers */
    return !head_line(&call->head, line, clock_unix_ms()) || end_head(call);
}

/* --- the body ----------------------------------------------------------------------------- */

static void lend(struct http_call *call, struct str bytes) {
    struct text block;
    struct lent lent = lent_begin(bytes, &block);
    call->sink.on_body(lent, call->ctx);
    lent_end(&block);
}

/* Report what is within the limit, even if the rest is not. False: no more is wanted, for
 * whatever reason. */
static bool client_call_give(struct str bytes, void *ctx) {
    struct http_call *call = ctx;
    struct str fits = bytes;
    if (call->body_max_bytes) fits = str_head(bytes, call->body_max_bytes - call->body_bytes);
    call->body_bytes += fits.len;
    if (fits.len) lend(call, fits);
    if (call->over) return false;
    if (fits.len == bytes.len) return !call->paused;
    return http_call_fault(call, ERR_TOO_LARGE, "the answer is longer than %zu bytes",
                           call->body_max_bytes);
}

static bool inflate(struct http_call *call, struct str bytes) {
    struct err e;
    return gunzip_feed(call->gunzip, bytes, &e) || http_call_fault(call, e.code, "%s", e.text);
}

bool http_call_on_bytes(struct http_call *call, struct str bytes) {
    if (call->over) return false;
    assert(bytes.len && !http_call_waits(call));
    call->last_byte_ms = loop_now_ms(call->place->loop);
    if (!call->gunzip) {
        (void)client_call_give(bytes, call);
    } else if (!inflate(call, bytes)) {
        return false;
    }
    return !call->over && !call->failed;
}

/* --- turns -------------------------------------------------------------------------------- */

static void client_call_begin(struct http_call *call) {
    call->begun = true;
    if (call->refused) {
        client_call_fail(call, call->refused);
        return;
    }
    call->carried = true;
    if (call->first_byte_ms) timer_start(&call->first_byte, call->first_byte_ms);
    if (call->total_ms) timer_start(&call->total, call->total_ms);
    call->carrier->begin(call);
}

/* False: the call is over or paused again. */
static bool go_on_inflating(struct http_call *call) {
    struct err e;
    if (!call->gunzip) return true;
    bool good = gunzip_go(call->gunzip, &e);
    if (call->over) return false;
    if (!good) http_call_fault(call, e.code, "%s", e.text);
    if (call->failed) {
        client_call_fail(call, call->failed);
        return false;
    }
    return !call->paused;
}

static void call_go_on(struct http_call *call) {
    if (call->paused || !go_on_inflating(call)) return;
    if (call->done) {
        client_call_end(call);
        return;
    }
    call->carrier->resume(call);
}

static void on_turn(void *ctx) {
    struct http_call *call = ctx;
    call_enter(call);
    if (call->begun) {
        call_go_on(call);
    } else {
        client_call_begin(call);
    }
    leave(call); /* NOLINT(clang-analyzer-unix.Malloc): `inside` kept it */
}

/* --- public functions --------------------------------------------------------------------- */

static void init_limits(struct http_call *call, const struct http_request *request) {
    struct loop *loop = call->place->loop;
    call->first_byte_ms = request->first_byte_ms;
    call->stall_ms = request->stall_ms;
    call->total_ms = request->total_ms;
    call->body_max_bytes = request->body_max_bytes;
    call->redirects_max = request->redirects_max;
    call->reach = request->reach;
    call->secure = str_equal_nocase(str_head(request->url, 6), STR("https:"));
    timer_init(&call->first_byte, loop, on_first_byte_late, call);
    timer_init(&call->stall, loop, call_on_stall, call);
    timer_init(&call->total, loop, on_total_late, call);
}

struct http_call *http_call_new(struct place *place, const struct http_request *request,
                                const struct http_sink *sink, void *ctx) {
    struct http_call *call = MEM_NEW(struct http_call);
    call->place = place;
    call->sink = *sink;
    call->ctx = ctx;
    call->head.retry_after_ms = -1;
    place->calls++;
    init_limits(call, request);
    task_init(&call->turn, on_turn, call);
    loop_defer(place->loop, &call->turn);
    return call;
}

void http_call_refuse(struct http_call *call, const struct err *why) {
    call->refused = call_keep(why);
}

void http_pause(struct http_call *call) {
    assert(!call->over);
    call->paused = true;
    timer_stop(&call->stall);
    if (call->carried) call->carrier->pause(call);
}

void http_resume(struct http_call *call) {
    assert(!call->over);
    if (!call->paused) return;
    call->paused = false;
    if (call->headed) watch_stall(call);
    loop_defer(call->place->loop, &call->turn); /* the carrier may be on the stack */
}

void http_cancel(struct http_call *call) {
    call_enter(call);
    close_call(call);
    leave(call);
}
