/* page: what a web page may ask of a listener that wants no token.
 *
 * A browser on this machine is a peer of this machine, and every page that is open in it can
 * send requests here. Two marks tell such a request from one that a person meant: a name in
 * `Host` that is not ours (a page whose name was made to lead here), and an `Origin` that is
 * not the place the request went to. A program that is no browser sends neither.
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
    struct page_list hosts;   /* more names of ours: host names without a port */
    struct page_list origins; /* pages that may ask: "https://studio.example", or "null" */
    bool any_host;            /* a sidecar in front keeps its client's Host */
};

enum page_verdict { PAGE_FINE, PAGE_FOREIGN_HOST, PAGE_FOREIGN_ORIGIN };

struct page_question {
    enum exchange_reach reach;  /* of the listener */
    struct str authority, host; /* where the request went, and its Host; both may be empty */
    struct str origin, site;    /* Origin and Sec-Fetch-Site; at == NULL: not sent */
};

/* The strictest rules are those of zeros. */
enum page_verdict page_judge(const struct page_rules *rules, const struct page_question *asked);

/* Whether `origin` is in the list, which also opens what it reads (CORS). */
bool page_is_listed(const struct page_rules *rules, struct str origin);

/* For settings: one entry of each list. */
bool page_host_ok(struct str host);
bool page_origin_ok(struct str origin);

#endif
