/* page: cut a list into pages.
 *
 * The token of the next page is opaque to clients: base64url of {"c": where it goes on, "f": the
 * SHA-256 of the filter}. A token of another list, or of the same list with another filter, is
 * refused.
 *
 * Memory   the cursor is a view of the page's own room.
 * Threads  none; values only.
 * Source   contracts/nimi.md 3.6 "Paging (K-PAGE)", 6.5 "Page token".
 */
#ifndef WEIR_CONTRACT_NIMI_PAGE_H
#define WEIR_CONTRACT_NIMI_PAGE_H

#include "contract/nimi/fault.h"

#define PAGE_SIZE 50
#define PAGE_SIZE_MAX 200
#define PAGE_TOKEN_MAX_BYTES 1024
#define PAGE_DIGEST_BYTES 32

struct page {
    size_t size;       /* entries on this page, 1 to PAGE_SIZE_MAX */
    struct str cursor; /* where it goes on; empty: at the start */
    uint8_t filter[PAGE_DIGEST_BYTES];
    char room[PAGE_TOKEN_MAX_BYTES];
};

/* Read what the request says. `filter` is everything that chooses the entries: the method, then
 * each filter, so that one list's token is not another's.
 * errors  PAGE_TOKEN_INVALID */
MUST_CHECK bool page_begin(int32_t size, struct str token, const struct str *filter,
                           size_t filter_count, struct page *ret, struct fault *fault);

/* Append the token of the page that goes on at `cursor`. */
void page_next(const struct page *page, struct str cursor, struct buf *out);

/* For lists in memory, whose cursor is an index: where this page begins.
 * errors  PAGE_TOKEN_INVALID */
MUST_CHECK bool page_index(const struct page *page, size_t *ret, struct fault *fault);
void page_next_index(const struct page *page, size_t index, struct buf *out);

#endif
