/* sharing: whose turn it is, when many owners share a few places.
 *
 *     sharing_enter ─▶ the owner's line ─▶ sharing_next ─▶ a place ─▶ sharing_leave
 *                          └─▶ sharing_leave: it waits no longer
 *
 * Owners that wait take turns, whatever the length of their lines. One owner has at most half of
 * the places (at least one), so that one whose items take long leaves room for the others; and a
 * line of its own that has an end.
 *
 * Memory   an item belongs to its owner's code, which keeps it until sharing_leave(). The name of an
 *          owner is copied, and forgotten with its last item.
 * Threads  none; the owner of the struct guards it.
 */
#ifndef WEIR_BASE_SHARING_H
#define WEIR_BASE_SHARING_H

#include "base/attr.h"
#include "base/list.h"
#include "base/str.h"

struct sharing;
struct sharing_owner;

struct sharing_item {
    struct list link;            /* in its owner's line, while it waits */
    struct sharing_owner *owner; /* NULL: it has not entered, or has left */
    bool placed;
};

/* places  items that may have a place at once
 * most    items of one owner that wait or have a place; both are at least 1 */
struct sharing *sharing_new(size_t places, size_t most);
void sharing_free(struct sharing *sharing); /* accepts NULL; no item is left */

/* False: the owner has `most` already. */
MUST_CHECK bool sharing_enter(struct sharing *sharing, struct str owner,
                              struct sharing_item *item);

/* Whether an item waits that may have a place. */
bool sharing_may_next(const struct sharing *sharing);

/* The next item, which has a place now; NULL: none may have one. */
struct sharing_item *sharing_next(struct sharing *sharing);

/* It gives back its place, or waits no longer. Harmless when it has not entered. */
void sharing_leave(struct sharing *sharing, struct sharing_item *item);

/* Any item that waits; NULL: none does. */
struct sharing_item *sharing_any_waiting(const struct sharing *sharing);

/* How many places one owner may have. */
size_t sharing_share(const struct sharing *sharing);

#endif
