#include "object/get.h"

#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define RESUMES_MAX 5 /* without a byte in between */

struct object_get {
    struct bucket *bucket;
    struct loop *loop;
    struct text key, etag; /* etag: of the version that is read; none: not known yet */
    struct object_reader reader;
    void *ctx;
    struct object_ask *ask; /* NULL: between two */
    struct timer again;
    uint64_t from, count; /* what is still wanted; once headed, exactly */
    bool headed;
    unsigned resumes;
    struct err *wrong; /* why the answer is not taken */
    bool inside, cancelled;
};

bool object_range_read(struct str text, uint64_t *ret_from, uint64_t *ret_count,
                       uint64_t *ret_size) {
    struct str size, last, first;
    uint64_t from, to;
    if (!str_starts(text, STR("bytes "))) return false;
    struct str bytes = str_split(str_skip(text, 6), '/', &size);
    if (!str_to_u64(size, ret_size)) return false;
    if (str_equal(bytes, STR("*"))) {
        *ret_from = *ret_count = 0;
        return true;
    }
    first = str_split(bytes, '-', &last);
    if (!str_to_u64(first, &from) || !str_to_u64(last, &to)) return false;
    if (to < from || to >= *ret_size) return false;
    *ret_from = from;
    *ret_count = to - from + 1;
    return true;
}

/* --- the end ------------------------------------------------------------------------------ */

static void get_free(struct object_get *get) {
    timer_stop(&get->again);
    text_done(&get->key);
    text_done(&get->etag);
    free(get->wrong);
    free(get);
}

static void get_end(struct object_get *get, const struct err *failed) {
    get->reader.on_end(failed, get->ctx);
    get_free(get);
}

static void get_refuse(struct object_get *get, enum err_code code, const char *what) {
    get->wrong = MEM_NEW(struct err);
    err_set(get->wrong, code, "object '" STR_FMT "': %s", STR_ARG(text_str(get->key)), what);
}

/* --- the head ----------------------------------------------------------------------------- */

static bool same_version(struct object_get *get, struct str etag) {
    if (!get->etag.at) {
        if (etag.len) get->etag = text_copy(etag);
        return true;
    }
    return str_equal(etag, text_str(get->etag));
}

/* A range is always asked for: a 200 would be the whole object, of any size. */
static bool get_read_place(struct object_get *get, const struct object_answer *answer,
                           struct object_found *ret) {
    uint64_t from, count, size;
    if (answer->status != 206 || !object_range_read(answer->range, &from, &count, &size))
        return false;
    if (from != get->from || (get->headed && count != get->count) || count > get->count)
        return false;
    *ret = (struct object_found){size, count, answer->content_type, answer->etag};
    return true;
}

static void get_on_head(const struct object_answer *answer, void *ctx) {
    struct object_get *get = ctx;
    struct object_found found;
    if (!same_version(get, answer->etag)) {
        get_refuse(get, ERR_ABORTED, "the storage has another version of it");
    } else if (!get_read_place(get, answer, &found)) {
        get_refuse(get, ERR_DATA_LOSS,
                   "the storage did not answer with the range that was asked for");
    } else if (!get->headed) {
        get->headed = true;
        get->count = found.count;
        if (get->reader.on_head) get->reader.on_head(&found, get->ctx);
    }
}

static void get_on_body(struct lent bytes, void *ctx) {
    struct object_get *get = ctx;
    size_t len = lent_read(bytes).len;
    if (get->wrong) return;
    if (len > get->count) {
        get_refuse(get, ERR_DATA_LOSS, "the storage sent more than it announced");
        return;
    }
    get->resumes = 0;
    get->from += len;
    get->count -= len;
    get->reader.on_body(bytes, get->ctx);
}

/* --- one request -------------------------------------------------------------------------- */

/* An object without a byte has no range: it is announced here. */
static bool is_empty(struct object_get *get, const struct err *failed,
                     const struct object_answer *answer) {
    uint64_t from, count, size;
    if (!failed || failed->code != ERR_OUT_OF_RANGE || get->headed) return false;
    if (!object_range_read(answer->range, &from, &count, &size)) size = get->from;
    if (get->from < size) return false;
    const struct object_found found = {size, 0, STR_EMPTY,
                                       STR_EMPTY}; /* the type is a refusal's */
    get->headed = true;
    get->count = 0;
    if (get->reader.on_head) get->reader.on_head(&found, get->ctx);
    return true;
}

static bool may_resume(struct object_get *get, const struct err *failed) {
    return get->headed && get->count > 0 && get->etag.at && get->resumes < RESUMES_MAX &&
           (failed->code == ERR_UNAVAILABLE || failed->code == ERR_DEADLINE_EXCEEDED);
}

static void get_on_end(const struct object_answer *answer, const struct err *failed,
                       bool ambiguous, void *ctx) {
    struct object_get *get = ctx;
    struct err why;
    (void)ambiguous;
    get->ask = NULL;
    if (get->wrong) {
        get_end(get, get->wrong);
        return;
    }
    get->inside = true;
    bool empty = is_empty(get, failed, answer);
    get->inside = false;
    if (get->cancelled) {
        get_free(get);
        return;
    }
    if (empty) failed = NULL;
    if (!failed && get->count > 0) {
        err_set(&why, ERR_UNAVAILABLE, "object '" STR_FMT "': %" PRIu64 " bytes are missing",
                STR_ARG(text_str(get->key)), get->count);
        failed = &why;
    }
    if (failed && get->headed && get->count == 0) failed = NULL; /* all of it had come */
    if (failed && may_resume(get, failed)) {
        timer_start(&get->again, object_pause_ms(++get->resumes));
        return;
    }
    get_end(get, failed);
}

static const struct object_sink sink = {get_on_head, get_on_body, get_on_end};

static void ask_range(void *ctx) {
    struct object_get *get = ctx;
    char range[64];
    struct sigv4_pair headers[2];
    size_t count = 0;
    if (get->count == UINT64_MAX)
        snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", get->from);
    else
        snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, get->from,
                 get->from + get->count - 1);
    headers[count++] = (struct sigv4_pair){STR("range"), str_from(range)};
    if (get->etag.at)
        headers[count++] = (struct sigv4_pair){STR("if-match"), text_str(get->etag)};
    get->ask = object_ask_start(get->bucket, get->loop,
                                &(struct object_request){.method = STR("GET"),
                                                         .key = text_str(get->key),
                                                         .headers = headers,
                                                         .header_count = count},
                                &sink, get);
}

struct object_get *object_get_start(struct bucket *bucket, struct loop *loop, struct str key,
                                    const struct object_range *range,
                                    const struct object_reader *reader, void *ctx) {
    struct object_get *get = MEM_NEW(struct object_get);
    get->bucket = bucket;
    get->loop = loop;
    get->key = text_copy(key);
    if (range->etag.len) get->etag = text_copy(range->etag);
    get->from = range->from;
    get->count = range->count < UINT64_MAX - range->from ? range->count : UINT64_MAX;
    get->reader = *reader;
    get->ctx = ctx;
    timer_init(&get->again, loop, ask_range, get);
    ask_range(get);
    return get;
}

void object_get_cancel(struct object_get *get) {
    if (get->ask) object_ask_cancel(get->ask);
    get->ask = NULL;
    get->cancelled = true;
    if (!get->inside) get_free(get);
}
