/* key_fetch: fetch the keys of an issuer of tokens, once for all calls that wait for them.
 *
 *     key_wait_start ─┬─▶ none under way: request on this loop ─▶ issuers_fetched ─┐
 *                     └─▶ waits ◀──────────────── mail to the loop of each ────────┘
 *
 * A request belongs to the loop whose call needed the keys first; calls of other loops wait for
 * it too. It takes at most KEY_FETCH_MS, follows no redirect, and goes to no link-local address.
 *
 * Memory   a wait ends with its callback or with key_wait_cancel(); both free it.
 * Threads  a fetcher and a wait: their loop.
 * Source   contracts/nimi.md 3.3 "Endpoint rule", 5.1.
 */
#ifndef WEIR_CONTRACT_NIMI_IDENTITY_KEY_FETCH_H
#define WEIR_CONTRACT_NIMI_IDENTITY_KEY_FETCH_H

#include "client/http.h"
#include "contract/nimi/identity/issuers.h"

#define KEY_FETCH_MS 5000

/* A loop's share. */
struct key_fetcher {
    struct loop *loop;
    struct http_pool *pool; /* NULL: nothing can be fetched */
    struct list fetches;
};

void key_fetcher_init(struct key_fetcher *fetcher, struct loop *loop, struct http_pool *pool);

/* Cancel the requests; their waiting calls are answered. */
void key_fetcher_leave(struct key_fetcher *fetcher);

/* Called once, never before key_wait_start() returns: check the token again. */
typedef void key_wait_fn(void *ctx);

struct key_wait;

struct key_wait *key_wait_start(struct key_fetcher *fetcher, struct issuers *issuers,
                                size_t issuer, key_wait_fn *done, void *ctx);
void key_wait_cancel(struct key_wait *wait); /* accepts NULL; no callback afterwards */

/* Fetch without waiting. */
void key_fetch_begin(struct key_fetcher *fetcher, struct issuers *issuers, size_t issuer);

#endif
