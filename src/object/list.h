/* list: the objects under a prefix, or the unfinished uploads, a page at a time.
 *
 * Memory   arguments are copied; a page is borrowed during the callback.
 * Threads  the loop's.
 * Source   Amazon S3 API Reference, ListObjectsV2 and ListMultipartUploads.
 */
#ifndef WEIR_OBJECT_LIST_H
#define WEIR_OBJECT_LIST_H

#include "base/arena.h"
#include "object/ask.h"

#define OBJECT_PAGE_ENTRIES 250
#define OBJECT_PAGE_MAX_BYTES (2 * MIB)

enum object_list_what { LIST_OBJECTS, LIST_UPLOADS };

struct object_entry {
    struct str key;
    uint64_t size;      /* LIST_OBJECTS */
    int64_t modified_s; /* LIST_OBJECTS: Unix time; 0: unknown */
    struct str upload;  /* LIST_UPLOADS: its id */
};

struct object_page {
    const struct object_entry *entries;
    size_t count;
    struct str next; /* for the next page; empty: this was the last */
};

typedef void object_page_fn(const struct object_page *page, const struct err *failed,
                            void *ctx);

/* after: empty, or `next` of the page before. page() is called once, later. */
struct object_list;
struct object_list *object_list_start(struct bucket *bucket, struct loop *loop,
                                      enum object_list_what what, struct str prefix,
                                      struct str after, object_page_fn *page, void *ctx);
void object_list_cancel(struct object_list *list);

/* The document of such an answer; what is kept goes to the arena.
 * errors  ERR_MALFORMED */
MUST_CHECK bool object_page_read(enum object_list_what what, struct str text,
                                 struct arena *arena, struct object_page *ret, struct err *e);

#endif
