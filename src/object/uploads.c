#include "object/uploads.h"

#include "base/mem.h"
#include "wire/xml.h"

#include <stdio.h>
#include <stdlib.h>

struct object_uploads {
    struct object_ask *ask;
    object_uploads_fn *listed;
    void *ctx;
};

/* --- reading a page ----------------------------------------------------------------------- */

/* False: it is absent or empty, or the arena is full. */
static bool text_of(struct str content, struct str name, struct arena *arena, struct str *ret) {
    struct str found;
    struct buf text;
    if (!xml_find(content, name, &found)) return false;
    buf_init(&text, found.len + 1);
    bool kept = xml_text(found, &text) && text.len && arena_str(arena, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

static size_t count_uploads(struct str content) {
    struct str name, inside;
    size_t count = 0;
    while (xml_next(&content, &name, &inside)) count += str_equal(name, STR("Upload"));
    return count;
}

bool object_uploads_read(struct str text, struct arena *arena, struct object_uploads_page *ret,
                         struct err *e) {
    struct str content, name, inside;
    size_t count = 0;
    if (!xml_read(text, &content, e)) return err_add(e, "the storage's list");
    if (!xml_is(text, STR("ListMultipartUploadsResult")))
        return err_set(e, ERR_MALFORMED, "the storage answered with something that is no list");
    struct object_upload *uploads =
        arena_alloc(arena, (count_uploads(content) + 1) * sizeof(*uploads));
    bool good = uploads != NULL;
    for (struct str rest = content; good && xml_next(&rest, &name, &inside);) {
        if (!str_equal(name, STR("Upload"))) continue;
        struct object_upload *upload = &uploads[count++];
        good = text_of(inside, STR("Key"), arena, &upload->key) &&
               text_of(inside, STR("UploadId"), arena, &upload->id);
    }
    if (!good)
        return err_set(e, ERR_MALFORMED, "an entry of the storage's list is not complete");
    *ret = (struct object_uploads_page){uploads, count};
    return true;
}

/* --- asking for one ----------------------------------------------------------------------- */

static void on_end(const struct object_answer *answer, const struct err *failed, bool ambiguous,
                   void *ctx) {
    struct object_uploads *uploads = ctx;
    struct object_uploads_page page = {.count = 0};
    struct err why;
    struct arena *arena = arena_new(4 * OBJECT_PAGE_MAX_BYTES);
    (void)ambiguous;
    if (!failed && !object_uploads_read(answer->body, arena, &page, &why)) failed = &why;
    uploads->listed(&page, failed, uploads->ctx);
    arena_free(arena);
    free(uploads);
}

struct object_uploads *object_uploads_start(struct bucket *bucket, struct loop *loop,
                                            struct str prefix, object_uploads_fn *listed,
                                            void *ctx) {
    static const struct object_sink sink = {.on_end = on_end};
    struct object_uploads *uploads = MEM_NEW(struct object_uploads);
    char limit[16];
    *uploads = (struct object_uploads){.listed = listed, .ctx = ctx};
    snprintf(limit, sizeof(limit), "%d", OBJECT_PAGE_UPLOADS);
    const struct sigv4_pair query[] = {{STR("uploads"), STR_EMPTY},
                                       {STR("prefix"), prefix},
                                       {STR("max-uploads"), str_from(limit)}};
    uploads->ask =
        object_ask_start(bucket, loop,
                         &(struct object_request){.method = STR("GET"),
                                                  .key = STR_EMPTY,
                                                  .query = query,
                                                  .query_count = ARRAY_LEN(query),
                                                  .answer_max_bytes = OBJECT_PAGE_MAX_BYTES},
                         &sink, uploads);
    return uploads;
}

void object_uploads_cancel(struct object_uploads *uploads) {
    object_ask_cancel(uploads->ask);
    free(uploads);
}
