#include "object/remove.h"

#include "base/mem.h"
#include "base/text.h"
#include "object/uploads.h"

#include <stdlib.h>

#define ABORTS_MAX 100 /* uploads of one key */

struct object_remove {
    struct bucket *bucket;
    struct loop *loop;
    struct text key, upload; /* upload: the one that is aborted */
    size_t aborts;
    struct object_uploads *list;
    struct object_ask *ask;
    object_removed_fn *done;
    void *ctx;
};

static void remove_free(struct object_remove *remove) {
    text_done(&remove->key);
    text_done(&remove->upload);
    free(remove);
}

static void remove_end(struct object_remove *remove, const struct err *failed) {
    bool gone = failed && failed->code == ERR_NOT_FOUND;
    remove->done(gone ? NULL : failed, remove->ctx);
    remove_free(remove);
}

static void on_deleted(const struct object_answer *answer, const struct err *failed,
                       bool ambiguous, void *ctx) {
    struct object_remove *remove = ctx;
    (void)answer, (void)ambiguous;
    remove->ask = NULL;
    remove_end(remove, failed);
}

static void delete_object(struct object_remove *remove) {
    static const struct object_sink sink = {.on_end = on_deleted};
    remove->ask = object_ask_start(
        remove->bucket, remove->loop,
        &(struct object_request){.method = STR("DELETE"), .key = text_str(remove->key)}, &sink,
        remove);
}

/* --- unfinished uploads ------------------------------------------------------------------- */

static void list_uploads(struct object_remove *remove);

static void on_aborted(const struct object_answer *answer, const struct err *failed,
                       bool ambiguous, void *ctx) {
    struct object_remove *remove = ctx;
    (void)answer, (void)ambiguous;
    remove->ask = NULL;
    if (failed && failed->code != ERR_NOT_FOUND)
        remove_end(remove, failed);
    else
        list_uploads(remove);
}

static void abort_upload(struct object_remove *remove, struct str upload) {
    static const struct object_sink sink = {.on_end = on_aborted};
    const struct sigv4_pair query[] = {{STR("uploadId"), upload}};
    remove->ask = object_ask_start(remove->bucket, remove->loop,
                                   &(struct object_request){.method = STR("DELETE"),
                                                            .key = text_str(remove->key),
                                                            .query = query,
                                                            .query_count = 1},
                                   &sink, remove);
}

/* One upload at a time: the list gets shorter. A storage that goes on listing what was aborted
 * must not hold us here: the same one is not aborted twice in a row, and ABORTS_MAX are all. */
static void remove_on_page(const struct object_uploads_page *page, const struct err *failed,
                           void *ctx) {
    struct object_remove *remove = ctx;
    remove->list = NULL;
    if (failed) {
        remove_end(remove, failed);
        return;
    }
    for (size_t i = 0; i < page->count; i++) {
        const struct object_upload *upload = &page->uploads[i];
        if (!str_equal(upload->key, text_str(remove->key))) continue;
        if (remove->upload.at && str_equal(upload->id, text_str(remove->upload))) continue;
        if (remove->aborts++ == ABORTS_MAX) break;
        text_done(&remove->upload);
        remove->upload = text_copy(upload->id);
        abort_upload(remove, upload->id);
        return;
    }
    delete_object(remove);
}

static void list_uploads(struct object_remove *remove) {
    remove->list = object_uploads_start(remove->bucket, remove->loop, text_str(remove->key),
                                        remove_on_page, remove);
}

/* --- the caller --------------------------------------------------------------------------- */

struct object_remove *object_remove_start(struct bucket *bucket, struct loop *loop,
                                          struct str key, enum object_remains remains,
                                          object_removed_fn *done, void *ctx) {
    struct object_remove *remove = MEM_NEW(struct object_remove);
    remove->bucket = bucket;
    remove->loop = loop;
    remove->key = text_copy(key);
    remove->done = done;
    remove->ctx = ctx;
    if (remains == REMAINS_OBJECT)
        delete_object(remove);
    else
        list_uploads(remove);
    return remove;
}

void object_remove_cancel(struct object_remove *remove) {
    if (remove->ask) object_ask_cancel(remove->ask);
    if (remove->list) object_uploads_cancel(remove->list);
    remove_free(remove);
}
