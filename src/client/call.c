#include "client/call.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "client/fault.h"

#include <assert.h>
#include <stdlib.h>

/* All lines of all heads of a call, redirects and trailers included (checks.md X5). */
#define HEAD_MAX_BYTES (256 * KIB)

/* --- its memory --------------------------------------------------------------------------- */

static void free_call(struct http_call *call) {
    if (call->transfer.easy) call->lane->curl->curl_easy_cleanup(call->transfer.easy);
    if (call->headers) call->lane->curl->curl_slist_free_all(call->headers);
    gunzip_free(call->gunzip);
    --*call->open;
    free(call);
}

/* libcurl may have it still, and so may we, further down the stack. */
static void free_when_over(struct http_call *call) {
    if (call->over && !call->on_lane && !call->inside) free_call(call);
}

static void enter(struct http_call *call) {
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

static void on_left(struct transfer *transfer) {
    struct http_call *call = CONTAINER_OF(transfer, struct http_call, transfer);
    call->on_lane = false;
    free_when_over(call);
}

/* No caller's callback after this. Functions still inside keep it until they return. */
static void close_call(struct http_call *call) {
    assert(!call->over && call->inside);
    call->over = true;
    timer_stop(&call->first_byte);
    timer_stop(&call->stall);
    timer_stop(&call->total);
    task_cancel(&call->turn);
    if (call->on_lane) lane_leave(call->lane, &call->transfer);
}

/* Whether something that came earlier has not been told. */
static bool waits(const struct http_call *call) {
    return call->paused || (call->gunzip && gunzip_waits(call->gunzip));
}

/* --- the end ------------------------------------------------------------------------------ */

static bool is_connected(const struct http_call *call) {
    curl_off_t us = 0;
    if (!call->transfer.easy) return false;
    call->lane->curl->curl_easy_getinfo(call->transfer.easy, CURLINFO_PRETRANSFER_TIME_T, &us);
    return us > 0;
}

static enum http_stage stage_of(const struct http_call *call) {
    if (call->headed) return HTTP_READING;
    return is_connected(call) ? HTTP_WAITING : HTTP_CONNECTING;
}

static void client_call_fail(struct http_call *call, const struct err *why) {
    enum http_stage stage = stage_of(call);
    enter(call);
    close_call(call);
    call->sink.on_end(why, stage, call->ctx);
    leave(call);
}

static void succeed(struct http_call *call) {
    enter(call);
    close_call(call);
    call->sink.on_end(NULL, HTTP_COMPLETE, call->ctx);
    leave(call);
}

static void explain(const struct http_call *call, CURLcode result, struct err *ret) {
    if (result == CURLE_UNSUPPORTED_PROTOCOL && call->secure && is_connected(call)) {
        err_set(
            ret, ERR_UNAVAILABLE,
            "the server redirects from https: to what is not https:, which is not followed");
        return;
    }
    /* Said of the URL that was asked, and of what came back. */
    if (result == CURLE_UNSUPPORTED_PROTOCOL && is_connected(call))
        result = CURLE_WEIRD_SERVER_REPLY;
    /* The head was there: that something was still to be sent is not what went wrong. */
    if (result == CURLE_SEND_ERROR && call->headed) result = CURLE_RECV_ERROR;
    if (call->failed.code != ERR_NONE) {
        *ret = call->failed;
    } else if (result == CURLE_COULDNT_CONNECT && call->sockets_refused && !call->sockets) {
        err_set(ret, ERR_PERMISSION_DENIED,
                "the server has no public address; what stands on this machine or in a private "
                "network is not asked");
    } else {
        const char *detail =
            *call->detail ? call->detail : call->lane->curl->curl_easy_strerror(result);
        fault_of(result, str_from(detail), ret);
    }
}

/* libcurl is content with a connection that closes inside a head, and we undo gzip ourselves.
 */
static bool is_whole(const struct http_call *call) {
    if (!call->headed) return false;
    return !call->gunzip || call->body_bytes == 0 || gunzip_whole(call->gunzip);
}

static void client_call_end(struct http_call *call) {
    struct err why;
    CURLcode result = call->result;
    if (result == CURLE_OK && call->failed.code == ERR_NONE) {
        if (is_whole(call)) {
            succeed(call);
            return;
        }
        result = CURLE_PARTIAL_FILE;
    }
    explain(call, result, &why);
    client_call_fail(call, &why);
}

static void on_done(struct transfer *transfer, CURLcode result) {
    struct http_call *call = CONTAINER_OF(transfer, struct http_call, transfer);
    call->on_lane = false;
    call->done = true;
    call->result = result;
    assert(!call->over);                           /* what left is not told */
    if (result == CURLE_OK && waits(call)) return; /* what came first is told first */
    client_call_end(call);
}

/* --- time --------------------------------------------------------------------------------- */

static void fail_late(struct http_call *call, uint64_t limit_ms, const char *what) {
    struct buf limit;
    struct err why;
    buf_init(&limit, 64);
    units_append_duration(&limit, limit_ms * 1000);
    err_set(&why, ERR_DEADLINE_EXCEEDED, "%s within " STR_FMT, what, STR_ARG(buf_str(&limit)));
    buf_done(&limit);
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

/* Not started anew with each piece: it looks how long the last one is ago. */
static void on_stall(void *ctx) {
    struct http_call *call = ctx;
    uint64_t due_ms = call->last_byte_ms + call->stall_ms, now_ms = loop_now_ms(call->loop);
    if (now_ms < due_ms) {
        timer_start(&call->stall, due_ms - now_ms);
        return;
    }
    fail_late(call, call->stall_ms, "nothing more of the answer came");
}

static void watch_stall(struct http_call *call) {
    call->last_byte_ms = loop_now_ms(call->loop);
    if (call->stall_ms && !call->done) timer_start(&call->stall, call->stall_ms);
}

/* --- the head ----------------------------------------------------------------------------- */

static bool is_redirect(const struct http_call *call) {
    return call->follows && call->head.location && call->head.status >= 300 &&
           call->head.status < 400;
}

static bool tell_head(struct http_call *call) {
    char *url = NULL;
    call->headed = true;
    timer_stop(&call->first_byte);
    watch_stall(call);
    call->lane->curl->curl_easy_getinfo(call->transfer.easy, CURLINFO_EFFECTIVE_URL, &url);
    struct http_head head = {call->head.status, head_content_type(&call->head),
                             call->head.retry_after_ms, str_from(url),
                             head_session(&call->head)};
    call->sink.on_head(&head, call->ctx);
    return !call->over;
}

static bool client_call_give(struct str bytes, void *ctx);

/* Whether the head that just came did; a redirect before it may have led there. */
static bool came_by_https(const struct http_call *call) {
    char *url = NULL;
    call->lane->curl->curl_easy_getinfo(call->transfer.easy, CURLINFO_EFFECTIVE_URL, &url);
    return url && str_equal_nocase(str_head(str_from(url), 6), STR("https:"));
}

static bool end_head(struct http_call *call) {
    if (call->head.status < 200) return true; /* 100, 103: the real one follows */
    if (is_redirect(call)) {
        call->sockets = call->sockets_refused = 0;
        if (!call->secure && came_by_https(call)) http_call_stay_secure(call);
        return true;
    }
    if (call->head.coding == CODING_UNKNOWN)
        return err_set(&call->failed, ERR_UNAVAILABLE,
                       "the answer is compressed in a way that was not asked for");
    if (call->head.coding == CODING_GZIP) call->gunzip = gunzip_new(client_call_give, call);
    return tell_head(call);
}

static bool take_line(struct http_call *call, struct str line) {
    call->head_bytes += line.len;
    if (call->head_bytes > HEAD_MAX_BYTES)
        return err_set(&call->failed, ERR_TOO_LARGE,
                       "the headers of the answer are longer than %zu KiB",
                       HEAD_MAX_BYTES / KIB);
    if (call->headed) return true; /* trailers */
    return !head_line(&call->head, line, clock_unix_ms()) || end_head(call);
}

size_t http_call_on_header(char *line, size_t size, size_t count, void *ctx) {
    struct http_call *call = ctx;
    size_t len = size * count;
    if (call->over || !take_line(call, str_of(line, len))) return CURL_WRITEFUNC_ERROR;
    return len;
}

/* --- the body ----------------------------------------------------------------------------- */

static void lend(struct http_call *call, struct str bytes) {
    struct text block;
    struct lent lent = lent_begin(bytes, &block);
    call->sink.on_body(lent, call->ctx);
    lent_end(&block);
}

/* What fits is told also where the rest is too much. False: no more, for whatever reason. */
static bool client_call_give(struct str bytes, void *ctx) {
    struct http_call *call = ctx;
    struct str fits = bytes;
    if (call->body_max_bytes) fits = str_head(bytes, call->body_max_bytes - call->body_bytes);
    call->body_bytes += fits.len;
    if (fits.len) lend(call, fits);
    if (call->over) return false;
    if (fits.len == bytes.len) return !call->paused;
    return err_set(&call->failed, ERR_TOO_LARGE, "the answer is longer than %zu bytes",
                   call->body_max_bytes);
}

static bool take_bytes(struct http_call *call, struct str bytes) {
    if (!call->gunzip) {
        (void)client_call_give(bytes, call);
    } else if (!gunzip_feed(call->gunzip, bytes, &call->failed)) {
        return false;
    }
    return !call->over && call->failed.code == ERR_NONE;
}

size_t http_call_on_body(char *bytes, size_t size, size_t count, void *ctx) {
    struct http_call *call = ctx;
    size_t len = size * count;
    if (call->over) return CURL_WRITEFUNC_ERROR;
    if (len == 0) return 0;
    if (waits(call)) {
        call->held = true; /* libcurl keeps these, and reads no further */
        return CURL_WRITEFUNC_PAUSE;
    }
    call->last_byte_ms = loop_now_ms(call->loop);
    return take_bytes(call, str_of(bytes, len)) ? len : CURL_WRITEFUNC_ERROR;
}

/* --- its turns ---------------------------------------------------------------------------- */

static void client_call_begin(struct http_call *call) {
    call->begun = true;
    if (call->refused.code != ERR_NONE) {
        client_call_fail(call, &call->refused);
        return;
    }
    call->on_lane = true;
    if (call->first_byte_ms) timer_start(&call->first_byte, call->first_byte_ms);
    if (call->total_ms) timer_start(&call->total, call->total_ms);
    lane_add(call->lane, &call->transfer);
}

/* False: this call is over or paused again. */
static bool go_on_inflating(struct http_call *call) {
    if (!call->gunzip) return true;
    bool good = gunzip_go(call->gunzip, &call->failed);
    if (call->over) return false;
    if (!good || call->failed.code != ERR_NONE) {
        struct err why = call->failed;
        client_call_fail(call, &why);
        return false;
    }
    return !call->paused;
}

static void go_on(struct http_call *call) {
    if (call->paused || !go_on_inflating(call)) return;
    if (call->done) {
        client_call_end(call);
        return;
    }
    if (!call->held) return;
    call->held = false;
    CURLcode result = lane_unpause(call->lane, &call->transfer);
    if (result == CURLE_OK || call->over || call->done) return;
    call->result = result; /* told here; the transfer itself may not have noticed */
    client_call_end(call);
}

static void on_turn(void *ctx) {
    struct http_call *call = ctx;
    enter(call);
    if (call->begun) {
        go_on(call);
    } else {
        client_call_begin(call);
    }
    leave(call); /* NOLINT(clang-analyzer-unix.Malloc): `inside` kept it */
}

/* --- the public story --------------------------------------------------------------------- */

static void init_limits(struct http_call *call, const struct http_request *request) {
    call->first_byte_ms = request->first_byte_ms;
    call->stall_ms = request->stall_ms;
    call->total_ms = request->total_ms;
    call->body_max_bytes = request->body_max_bytes;
    call->follows = request->redirects_max > 0;
    call->public_only = request->public_only;
    timer_init(&call->first_byte, call->loop, on_first_byte_late, call);
    timer_init(&call->stall, call->loop, on_stall, call);
    timer_init(&call->total, call->loop, on_total_late, call);
}

static void init_transfer(struct http_call *call, const struct http_request *request) {
    call->transfer = (struct transfer){
        .easy = call->lane->curl->curl_easy_init(), .on_done = on_done, .on_left = on_left};
    assert(call->transfer.easy); /* an exhausted machine */
    struct err e;
    if (!http_call_set_options(call, request, &e)) call->refused = e;
}

struct http_call *http_call_new(struct lane *lane, struct loop *loop, size_t *open,
                                const struct http_request *request,
                                const struct http_sink *sink, void *ctx,
                                const struct err *why) {
    struct http_call *call = MEM_NEW(struct http_call);
    call->loop = loop;
    call->lane = lane;
    call->open = open;
    call->sink = *sink;
    call->ctx = ctx;
    call->head.retry_after_ms = -1;
    ++*open;
    init_limits(call, request);
    if (lane) {
        init_transfer(call, request);
    } else {
        call->refused = *why;
    }
    task_init(&call->turn, on_turn, call);
    loop_defer(loop, &call->turn);
    return call;
}

void http_pause(struct http_call *call) {
    assert(!call->over);
    call->paused = true;
    timer_stop(&call->stall);
}

void http_resume(struct http_call *call) {
    assert(!call->over);
    if (!call->paused) return;
    call->paused = false;
    if (call->headed) watch_stall(call);
    loop_defer(call->loop, &call->turn); /* libcurl may be on the stack */
}

void http_cancel(struct http_call *call) {
    enter(call);
    close_call(call);
    leave(call);
}
