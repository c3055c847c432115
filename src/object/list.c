#include "object/list.h"

#include "base/mem.h"
#include "wire/moment.h"
#include "wire/xml.h"

#include <stdio.h>
#include <stdlib.h>

struct object_list {
    enum object_list_what what;
    struct object_ask *ask;
    object_page_fn *page;
    void *ctx;
};

/* The names of the parts of each kind of page. */
static const struct {
    struct str root, entry, next, more_query, limit_query;
} words[] = {
    [LIST_OBJECTS] = {STR_INIT("ListBucketResult"), STR_INIT("Contents"),
                      STR_INIT("NextContinuationToken"), STR_INIT("continuation-token"),
                      STR_INIT("max-keys")},
    [LIST_UPLOADS] = {STR_INIT("ListMultipartUploadsResult"), STR_INIT("Upload"),
                      STR_INIT("NextKeyMarker"), STR_INIT("key-marker"),
                      STR_INIT("max-uploads")},
};

/* --- reading a page ----------------------------------------------------------------------- */

/* Absent: empty. False: the arena is full. */
static bool text_of(struct str content, struct str name, struct arena *arena, struct str *ret) {
    struct str found;
    struct buf text;
    *ret = STR_EMPTY;
    if (!xml_find(content, name, &found)) return true;
    buf_init(&text, found.len + 1);
    bool kept = xml_text(found, &text) && arena_str(arena, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

static bool read_entry(enum object_list_what what, struct str content, struct arena *arena,
                       struct object_entry *ret) {
    struct str size, modified;
    struct err e;
    *ret = (struct object_entry){.upload = STR_EMPTY};
    if (!text_of(content, STR("Key"), arena, &ret->key) || !ret->key.len) return false;
    if (what == LIST_UPLOADS)
        return text_of(content, STR("UploadId"), arena, &ret->upload) && ret->upload.len;
    if (!text_of(content, STR("Size"), arena, &size) || !str_to_u64(size, &ret->size))
        return false;
    return text_of(content, STR("LastModified"), arena, &modified) &&
           (moment_read(modified, &ret->modified_s, &e) || (ret->modified_s = 0) == 0);
}

static size_t count_entries(struct str content, struct str entry) {
    struct str name, inside;
    size_t count = 0;
    while (xml_next(&content, &name, &inside)) count += str_equal(name, entry);
    return count;
}

bool object_page_read(enum object_list_what what, struct str text, struct arena *arena,
                      struct object_page *ret, struct err *e) {
    struct str content, name, inside;
    struct object_page page = {.count = 0};
    if (!xml_read(text, &content, e)) return err_add(e, "the storage's list");
    if (!xml_is(text, words[what].root))
        return err_set(e, ERR_MALFORMED, "the storage answered with something that is no list");
    struct object_entry *entries =
        arena_alloc(arena, (count_entries(content, words[what].entry) + 1) * sizeof(*entries));
    bool good = entries && text_of(content, words[what].next, arena, &page.next);
    for (struct str rest = content; good && xml_next(&rest, &name, &inside);) {
        if (str_equal(name, words[what].entry))
            good = read_entry(what, inside, arena, &entries[page.count++]);
    }
    if (!good)
        return err_set(e, ERR_MALFORMED, "an entry of the storage's list is not complete");
    page.entries = entries;
    *ret = page;
    return true;
}

/* --- asking for one ----------------------------------------------------------------------- */

static void on_end(const struct object_answer *answer, const struct err *failed, bool ambiguous,
                   void *ctx) {
    struct object_list *list = ctx;
    struct object_page page = {.count = 0};
    struct err why;
    struct arena *arena = arena_new(4 * OBJECT_PAGE_MAX_BYTES);
    (void)ambiguous;
    if (!failed && !object_page_read(list->what, answer->body, arena, &page, &why))
        failed = &why;
    list->page(&page, failed, list->ctx);
    arena_free(arena);
    free(list);
}

struct object_list *object_list_start(struct bucket *bucket, struct loop *loop,
                                      enum object_list_what what, struct str prefix,
                                      struct str after, object_page_fn *page, void *ctx) {
    static const struct object_sink sink = {.on_end = on_end};
    struct object_list *list = MEM_NEW(struct object_list);
    char limit[16];
    struct sigv4_pair query[4];
    size_t count = 0;
    *list = (struct object_list){.what = what, .page = page, .ctx = ctx};
    snprintf(limit, sizeof(limit), "%d", OBJECT_PAGE_ENTRIES);
    query[count++] = what == LIST_OBJECTS ? (struct sigv4_pair){STR("list-type"), STR("2")}
                                          : (struct sigv4_pair){STR("uploads"), STR_EMPTY};
    query[count++] = (struct sigv4_pair){STR("prefix"), prefix};
    query[count++] = (struct sigv4_pair){words[what].limit_query, str_from(limit)};
    if (after.len) query[count++] = (struct sigv4_pair){words[what].more_query, after};
    list->ask =
        object_ask_start(bucket, loop,
                         &(struct object_request){.method = STR("GET"),
                                                  .key = STR_EMPTY,
                                                  .query = query,
                                                  .query_count = count,
                                                  .answer_max_bytes = OBJECT_PAGE_MAX_BYTES},
                         &sink, list);
    return list;
}

void object_list_cancel(struct object_list *list) {
    object_ask_cancel(list->ask);
    free(list);
}
