/* page: what a web page may request from a listener that requires no token.
 *
 * A browser on this machine is a local peer, and every page open in it can send requests here.
 * Two signs give away a request that a page made without the user's intent: a `Host` that is
 * not one of our names (DNS rebinding), and an `Origin` that differs from where the request was
 * sent. Programs other than browsers show neither sign.
 *
 * Memory   rules borrow their names; questions borrow from the request.
 * Threads  none.
 * Source   checks.md K6; RFC 6454 7 (Origin); RFC 6761 6.3 (localhost); Fetch Metadata 2.1.
 */
#ifndef WEIR_ROUTE_PAGE_H
#define WEIR_ROUTE_PAGE_H

#include "base/str.h"
#include "server/exchange.h"

struct page_list {
    const struct str *entries;
    size_t count;
};

struct page_rules {
    struct page_list hosts;   /* our additional names: host names without a port */
    struct page_list origins; /* pages that are allowed: "https://studio.example", or "null" */
    bool any_host;            /* accept any Host; a sidecar in front passes its client's on */
};

enum page_verdict { PAGE_FINE, PAGE_FOREIGN_HOST, PAGE_FOREIGN_ORIGIN };

struct page_question {
    enum exchange_reach reach;  /* of the listener */
    struct str authority, host; /* the request's target and its Host; both may be empty */
    struct str origin, site;    /* Origin and Sec-Fetch-Site; at == NULL: not sent */
};

/* All-zero rules are the strictest. */
enum page_verdict page_judge(const struct page_rules *rules, const struct page_question *asked);

/* Whether `origin` is in the list. Listed origins may also read answers (CORS). */
bool page_is_listed(const struct page_rules *rules, struct str origin);

/* For settings: check one entry of each list. */
bool page_host_ok(struct str host);
bool page_origin_ok(struct str origin);

#endif
