#include "contract/nimi/identity/key_fetch.h"

#include "base/clock.h"
#include "base/mem.h"
#include "tool/get.h"
#include "wire/jwt.h"

#include <stdio.h>
#include <stdlib.h>

/* --- waiting ------------------------------------------------------------------------------ */

struct key_wait {
    struct list link; /* among the issuer's waiters, under the issuers' lock */
    bool posted;      /* likewise: its mail is on the way */
    struct issuers *issuers;
    struct loop *loop;
    struct mail mail;
    bool cancelled; /* of its loop */
    key_wait_fn *done;
    void *ctx;
};

static void wait_free(struct key_wait *wait) {
    issuers_unref(wait->issuers);
    free(wait);
}

static void key_fetch_on_mail(void *ctx) {
    struct key_wait *wait = ctx;
    key_wait_fn *done = wait->cancelled ? NULL : wait->done;
    void *done_ctx = wait->ctx;
    wait_free(wait);
    if (done) done(done_ctx);
}

/* Under the lock. */
static void wait_post(struct key_wait *wait) {
    list_remove(&wait->link);
    wait->posted = true;
    loop_post(wait->loop, &wait->mail, key_fetch_on_mail, wait);
}

static void report_all(struct issuers *issuers, size_t issuer) {
    struct list *waiting = issuers_waiting(issuers, issuer);
    issuers_lock(issuers);
    while (!list_empty(waiting)) wait_post(CONTAINER_OF(waiting->next, struct key_wait, link));
    issuers_unlock(issuers);
}

void key_wait_cancel(struct key_wait *wait) {
    if (!wait) return;
    issuers_lock(wait->issuers);
    bool posted = wait->posted;
    if (!posted) list_remove(&wait->link);
    issuers_unlock(wait->issuers);
    wait->cancelled = true; /* its mail frees it */
    if (!posted) wait_free(wait);
}

/* --- the request -------------------------------------------------------------------------- */

struct key_fetch {
    struct list link; /* in fetcher->fetches */
    struct get get;
    struct issuers *issuers;
    size_t issuer;
};

/* Afterwards `fetch` is gone. */
static void fetch_end(struct key_fetch *fetch, struct str text, const char *why) {
    struct issuers *issuers = fetch->issuers;
    size_t issuer = fetch->issuer;
    issuers_fetched(issuers, issuer, text, why, clock_mono_ms());
    get_end(&fetch->get);
    list_remove(&fetch->link);
    free(fetch);
    report_all(issuers, issuer);
    issuers_unref(issuers);
}

static void key_fetch_on_got(const struct err *failed, void *ctx) {
    struct key_fetch *fetch = ctx;
    char why[64];
    struct str body = buf_str(&fetch->get.body);
    if (failed) {
        fetch_end(fetch, (struct str){NULL, 0}, failed->text);
    } else if (fetch->get.status != 200 || fetch->get.truncated) {
        snprintf(why, sizeof(why), "it answers %u%s", fetch->get.status,
                 fetch->get.truncated ? ", with too many bytes" : "");
        fetch_end(fetch, (struct str){NULL, 0}, why);
    } else {
        fetch_end(fetch, body, NULL);
    }
}

void key_fetch_begin(struct key_fetcher *fetcher, struct issuers *issuers, size_t issuer) {
    static const struct http_header accept = {STR_INIT("accept"), STR_INIT("application/json")};
    if (!fetcher->pool || !issuers_begin_fetch(issuers, issuer, clock_mono_ms())) return;
    struct key_fetch *fetch = MEM_NEW(struct key_fetch);
    fetch->issuers = issuers_ref(issuers);
    fetch->issuer = issuer;
    list_append(&fetcher->fetches, &fetch->link);
    get_start(&fetch->get, fetcher->pool, fetcher->loop,
              &(struct http_request){.method = STR("GET"),
                                     .url = issuers_url(issuers, issuer),
                                     .headers = &accept,
                                     .header_count = 1,
                                     .reach = HTTP_NOT_LINK_LOCAL,
                                     .total_ms = KEY_FETCH_MS},
              JWKS_MAX_BYTES, NULL, key_fetch_on_got, fetch);
}

struct key_wait *key_wait_start(struct key_fetcher *fetcher, struct issuers *issuers,
                                size_t issuer, key_wait_fn *done, void *ctx) {
    struct key_wait *wait = MEM_NEW(struct key_wait);
    *wait = (struct key_wait){
        .issuers = issuers_ref(issuers), .loop = fetcher->loop, .done = done, .ctx = ctx};
    list_init(&wait->link);
    key_fetch_begin(fetcher, issuers, issuer);
    issuers_lock(issuers);
    list_append(issuers_waiting(issuers, issuer), &wait->link);
    if (!issuers_is_fetching(issuers, issuer)) wait_post(wait); /* it has just ended */
    issuers_unlock(issuers);
    return wait;
}

void key_fetcher_init(struct key_fetcher *fetcher, struct loop *loop, struct http_pool *pool) {
    *fetcher = (struct key_fetcher){.loop = loop, .pool = pool};
    list_init(&fetcher->fetches);
}

void key_fetcher_leave(struct key_fetcher *fetcher) {
    while (!list_empty(&fetcher->fetches)) {
        struct list *first = fetcher->fetches.next;
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
        fetch_end(CONTAINER_OF(first, struct key_fetch, link), (struct str){NULL, 0},
                  "the runtime stops");
    }
}
