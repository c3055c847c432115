#include "client/lane.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <uv.h>

/* Maximum number of idle connections per loop. */
#define IDLE_MAX 64L

/* One of libcurl's sockets, watched by the loop. */
struct watch {
    uv_poll_t poll;
    struct lane *lane;
    curl_socket_t fd;
};

/* --- after calls of libcurl --------------------------------------------------------------- */

static void take_off(struct lane *lane, struct transfer *transfer) {
    CURLMcode removed = lane->curl->curl_multi_remove_handle(lane->multi, transfer->easy);
    assert(removed == CURLM_OK);
    (void)removed;
    lane->transfers--;
}

static void lane_remove_leaving(struct lane *lane) {
    struct list *link;
    while ((link = list_pop(&lane->leaving))) {
        struct transfer *transfer = CONTAINER_OF(link, struct transfer, leaving);
        take_off(lane, transfer);
        transfer->on_left(transfer);
    }
}

/* Transfers that leave are removed first, so that they get no further callback. */
static void lane_settle(struct lane *lane) {
    int left;
    CURLMsg *message;
    assert(lane->inside == 0);
    lane_remove_leaving(lane);
    while ((message = lane->curl->curl_multi_info_read(lane->multi, &left))) {
        CURLcode result = message->data.result;
        struct transfer *transfer;
        assert(message->msg == CURLMSG_DONE);
        lane->curl->curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        take_off(lane, transfer);
        transfer->on_done(transfer, result);
    }
}

static void act(struct lane *lane, curl_socket_t fd, int events) {
    int running;
    lane->inside++;
    lane->curl->curl_multi_socket_action(lane->multi, fd, events, &running);
    lane->inside--;
    lane_settle(lane);
}

/* --- timer -------------------------------------------------------------------------------- */

static void lane_on_timer(void *ctx) {
    act(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static int want_time(CURLM *multi, long in_ms, void *ctx) {
    struct lane *lane = ctx;
    (void)multi;
    if (in_ms < 0) {
        timer_stop(&lane->timer);
    } else {
        timer_start(&lane->timer, (uint64_t)in_ms);
    }
    return 0;
}

/* --- sockets ------------------------------------------------------------------------------ */

static void free_watch(uv_handle_t *handle) {
    free(handle->data);
}

static void lane_on_ready(uv_poll_t *poll, int status, int events) {
    struct watch *watch = poll->data;
    int ready = status < 0 ? CURL_CSELECT_ERR : 0;
    if (events & UV_READABLE) ready |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE) ready |= CURL_CSELECT_OUT;
    act(watch->lane, watch->fd, ready);
}

static struct watch *watch_new(struct lane *lane, curl_socket_t fd) {
    struct watch *watch = MEM_NEW(struct watch);
    watch->lane = lane;
    watch->fd = fd;
    if (uv_poll_init_socket(loop_uv(lane->loop), &watch->poll, fd) != 0) {
        free(watch);
        return NULL;
    }
    watch->poll.data = watch;
    return watch;
}

/* libcurl closes the descriptor after this returns. libuv no longer uses it; the handle is
 * freed in its callback. */
static void unwatch(struct lane *lane, curl_socket_t fd, struct watch *watch) {
    if (!watch) return;
    lane->curl->curl_multi_assign(lane->multi, fd, NULL);
    uv_close((uv_handle_t *)&watch->poll, free_watch);
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *assigned) {
    struct lane *lane = ctx;
    struct watch *watch = assigned;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        unwatch(lane, fd, watch);
        return 0;
    }
    if (!watch) {
        watch = watch_new(lane, fd);
        if (!watch) return -1;
        lane->curl->curl_multi_assign(lane->multi, fd, watch);
    }
    int events = 0;
    if (what & CURL_POLL_IN) events |= UV_READABLE;
    if (what & CURL_POLL_OUT) events |= UV_WRITABLE;
    return uv_poll_start(&watch->poll, events, lane_on_ready) == 0 ? 0 : -1;
}

/* --- public functions --------------------------------------------------------------------- */

struct lane *lane_new(const struct curl *curl, struct loop *loop) {
    struct lane *lane = MEM_NEW(struct lane);
    lane->curl = curl;
    lane->loop = loop;
    lane->multi = curl->curl_multi_init();
    assert(lane->multi); /* fails only when memory is exhausted */
    list_init(&lane->leaving);
    timer_init(&lane->timer, loop, lane_on_timer, lane);
    curl->curl_multi_setopt(lane->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl->curl_multi_setopt(lane->multi, CURLMOPT_SOCKETDATA, lane);
    curl->curl_multi_setopt(lane->multi, CURLMOPT_TIMERFUNCTION, want_time);
    curl->curl_multi_setopt(lane->multi, CURLMOPT_TIMERDATA, lane);
    curl->curl_multi_setopt(lane->multi, CURLMOPT_MAXCONNECTS, IDLE_MAX);
    /* One call at a time per connection, even with HTTP/2: libcurl reads for all streams of a
     * connection, so a paused call would block the others. */
    curl->curl_multi_setopt(lane->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    return lane;
}

void lane_free(struct lane *lane) {
    if (!lane) return;
    assert(lane->transfers == 0 && lane->inside == 0);
    lane->curl->curl_multi_cleanup(lane->multi);
    timer_stop(&lane->timer);
    free(lane);
}

void lane_add(struct lane *lane, struct transfer *transfer) {
    assert(lane->inside == 0);
    list_init(&transfer->leaving);
    lane->curl->curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
    CURLMcode added = lane->curl->curl_multi_add_handle(lane->multi, transfer->easy);
    assert(added == CURLM_OK);
    (void)added;
    lane->transfers++;
}

CURLcode lane_unpause(struct lane *lane, struct transfer *transfer) {
    assert(lane->inside == 0);
    lane->inside++;
    CURLcode result = lane->curl->curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
    lane->inside--;
    lane_settle(lane);
    return result;
}

void lane_leave(struct lane *lane, struct transfer *transfer) {
    list_append(&lane->leaving, &transfer->leaving);
    if (lane->inside == 0) lane_remove_leaving(lane);
}
