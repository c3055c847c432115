/* list: an intrusive, circular, doubly linked list.
 *
 * The link lives inside the object, so joining and leaving never allocate. A link that is
 * not in a list points at itself; list_remove() may be called on it any number of times.
 *
 * Memory   none.
 * Threads  none; the owner of the list guards it.
 */
#ifndef WEIR_BASE_LIST_H
#define WEIR_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *link) {
    link->next = link->prev = link;
}

static inline bool list_empty(const struct list *list) {
    return list->next == list;
}

/* Whether this link is in some list. */
static inline bool list_linked(const struct list *link) {
    return link->next != link;
}

static inline void list_add_after(struct list *place, struct list *link) {
    link->next = place->next;
    link->prev = place;
    place->next->prev = link;
    place->next = link;
}

static inline void list_append(struct list *list, struct list *link) {
    list_add_after(list->prev, link);
}

static inline void list_prepend(struct list *list, struct list *link) {
    list_add_after(list, link);
}

static inline void list_remove(struct list *link) {
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}

/* Unlink and return the first, or NULL when the list is empty. */
static inline struct list *list_pop(struct list *list) {
    struct list *first = list->next;
    if (first == list) return NULL;
    list->next = first->next;
    first->next->prev = list;
    list_init(first);
    return first;
}

/* Move every link of `from` to the end of `to`. */
static inline void list_move(struct list *from, struct list *to) {
    if (list_empty(from)) return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

/* `link` may be removed inside the loop; the others may not. */
#define LIST_EACH(head, link)                                                                  \
    for (struct list *link = (head)->next, *link##_next = link->next; link != (head);          \
         link = link##_next, link##_next = link->next)

#endif
