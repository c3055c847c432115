#include "client/easy.h"

#include "base/mem.h"
#include "client/fault.h"

#include <assert.h>
#include <stdlib.h>

/* --- errors ------------------------------------------------------------------------------- */

static bool easy_is_connected(const struct http_call *call) {
    curl_off_t us = 0;
    const struct easy *easy = call->easy;
    easy->lane->curl->curl_easy_getinfo(easy->transfer.easy, CURLINFO_PRETRANSFER_TIME_T, &us);
    return us > 0;
}

static void explain(const struct http_call *call, CURLcode result, struct err *ret) {
    const struct easy *easy = call->easy;
    if (result == CURLE_UNSUPPORTED_PROTOCOL && call->secure && easy_is_connected(call)) {
        err_set(
            ret, ERR_UNAVAILABLE,
            "the server redirects from https: to what is not https:, which is not followed");
        return;
    }
    /* libcurl reports this for the requested URL and for the response; here it is the
     * response. */
    if (result == CURLE_UNSUPPORTED_PROTOCOL && easy_is_connected(call))
        result = CURLE_WEIRD_SERVER_REPLY;
    /* The head has arrived, so the rest of the request is not what failed. */
    if (result == CURLE_SEND_ERROR && call->headed) result = CURLE_RECV_ERROR;
    if (result == CURLE_COULDNT_CONNECT && easy->sockets_refused && !easy->sockets) {
        err_set(ret, ERR_PERMISSION_DENIED,
                "the server has no public address; what stands on this machine or in a private "
                "network is not asked");
    } else {
        const char *detail =
            *easy->detail ? easy->detail : easy->lane->curl->curl_easy_strerror(result);
        fault_of(result, str_from(detail), ret);
    }
}

static void end(struct http_call *call, CURLcode result) {
    struct err why;
    if (result != CURLE_OK) explain(call, result, &why);
    http_call_ended(call, result == CURLE_OK ? NULL : &why);
}

static void easy_on_done(struct transfer *transfer, CURLcode result) {
    end(CONTAINER_OF(transfer, struct easy, transfer)->call, result);
}

static void easy_on_left(struct transfer *transfer) {
    http_call_left(CONTAINER_OF(transfer, struct easy, transfer)->call);
}

/* --- the response ------------------------------------------------------------------------- */

static struct str easy_url(const struct http_call *call) {
    char *url = NULL;
    const struct easy *easy = call->easy;
    easy->lane->curl->curl_easy_getinfo(easy->transfer.easy, CURLINFO_EFFECTIVE_URL, &url);
    return url ? str_from(url) : STR_EMPTY;
}

/* Whether the latest head came over https; a redirect may have led there. */
static bool came_by_https(const struct http_call *call) {
    return str_equal_nocase(str_head(easy_url(call), 6), STR("https:"));
}

size_t easy_on_header(char *line, size_t size, size_t count, void *ctx) {
    struct http_call *call = ctx;
    size_t len = size * count;
    bool ends = !call->headed && str_trim(str_of(line, len)).len == 0;
    if (call->over || !http_call_on_line(call, str_of(line, len))) return CURL_WRITEFUNC_ERROR;
    if (ends && call->head.status >= 200 && http_call_is_redirect(call)) {
        call->easy->sockets = call->easy->sockets_refused = 0;
        if (!call->secure && came_by_https(call)) easy_stay_secure(call);
    }
    return len;
}

size_t easy_on_body(char *bytes, size_t size, size_t count, void *ctx) {
    struct http_call *call = ctx;
    size_t len = size * count;
    if (call->over) return CURL_WRITEFUNC_ERROR;
    if (len == 0) return 0;
    if (http_call_waits(call)) {
        call->easy->held = true; /* libcurl keeps these bytes and stops reading */
        return CURL_WRITEFUNC_PAUSE;
    }
    return http_call_on_bytes(call, str_of(bytes, len)) ? len : CURL_WRITEFUNC_ERROR;
}

/* --- the carrier --------------------------------------------------------------------------- */

static void easy_begin(struct http_call *call) {
    lane_add(call->easy->lane, &call->easy->transfer);
}

static void easy_pause(struct http_call *call) {
    (void)call; /* easy_on_body() checks for a pause */
}

static void easy_resume(struct http_call *call) {
    if (!call->easy->held) return;
    call->easy->held = false;
    CURLcode result = lane_unpause(call->easy->lane, &call->easy->transfer);
    if (result == CURLE_OK || call->over || call->done) return;
    lane_leave(call->easy->lane, &call->easy->transfer);
    end(call, result); /* report it here; the transfer may not */
}

static bool easy_leave(struct http_call *call) {
    lane_leave(call->easy->lane, &call->easy->transfer);
    return false;
}

static void easy_free(struct http_call *call) {
    struct easy *easy = call->easy;
    easy->lane->curl->curl_easy_cleanup(easy->transfer.easy);
    if (easy->headers) easy->lane->curl->curl_slist_free_all(easy->headers);
    free(easy);
}

static const struct carrier easy_carrier = {
    easy_begin, easy_pause, easy_resume, easy_leave, easy_free, easy_is_connected, easy_url,
};

bool easy_carry(struct http_call *call, struct lane *lane, const struct http_request *request,
                struct err *e) {
    struct easy *easy = call->easy = MEM_NEW(struct easy);
    easy->call = call;
    easy->lane = lane;
    easy->transfer = (struct transfer){
        .easy = lane->curl->curl_easy_init(), .on_done = easy_on_done, .on_left = easy_on_left};
    assert(easy->transfer.easy); /* fails only when memory is exhausted */
    call->carrier = &easy_carrier;
    return easy_set_options(call, request, e);
}
