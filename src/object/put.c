#include "object/put.h"

#include "base/mem.h"
#include "base/text.h"
#include "object/get.h"
#include "wire/xml.h"

#include <assert.h>
#include <nettle/md5.h>
#include <stdio.h>
#include <stdlib.h>

#define TAG_DIGITS ((size_t)2 * MD5_DIGEST_SIZE)
#define PART_ROW_MAX_BYTES 256 /* of one part in the list that completes */

struct object_put {
    struct bucket *bucket;
    struct loop *loop;
    struct text key, content_type, upload; /* upload: its id; none: not created */
    struct object_put_events events;
    void *ctx;
    enum object_put_state state;
    struct buf part;
    bool ended;
    struct buf parts; /* the list that completes, so far */
    struct buf tags;  /* of the parts: digits in a row */
    bool tags_plain;  /* they are all digits of an MD5 */
    size_t part_count;
    struct buf etag;         /* of the whole */
    struct object_ask *ask;  /* NULL: none is out */
    struct object_get *look; /* CHECKING */
    struct err why;          /* ABORTING: the failure */
};

/* --- states ------------------------------------------------------------------------------- */

/* clang-format off */
const struct state object_put_states[PUT_STATE_COUNT] = {
    [PUT_FILLING]    = {"filling",    TO(PUT_SENDING) | TO(PUT_CREATING) | TO(PUT_PART) |
                                      TO(PUT_COMPLETING) | TO(PUT_ABORTING)},
    [PUT_SENDING]    = {"sending",    TO(PUT_OVER)},
    [PUT_CREATING]   = {"creating",   TO(PUT_PART) | TO(PUT_OVER)},
    [PUT_PART]       = {"part",       TO(PUT_FILLING) | TO(PUT_COMPLETING) |
                                      TO(PUT_ABORTING)},
    [PUT_COMPLETING] = {"completing", TO(PUT_CHECKING) | TO(PUT_ABORTING) |
                                      TO(PUT_OVER)},
    [PUT_CHECKING]   = {"checking",   TO(PUT_OVER)},
    [PUT_ABORTING]   = {"aborting",   TO(PUT_OVER)},
    [PUT_OVER]       = {"over",       0},
};
/* clang-format on */

/* The only function that writes put->state. */
static void put_move(struct object_put *put, enum object_put_state next) {
    assert(states_allow(object_put_states, put->state, next));
    put->state = next;
}

/* --- the end ------------------------------------------------------------------------------ */

static void put_free(struct object_put *put) {
    text_done(&put->key);
    text_done(&put->content_type);
    text_done(&put->upload);
    buf_done(&put->part);
    buf_done(&put->parts);
    buf_done(&put->tags);
    buf_done(&put->etag);
    free(put);
}

static void put_over(struct object_put *put, const struct err *failed) {
    put_move(put, PUT_OVER);
    put->events.on_end(failed ? STR_EMPTY : buf_str(&put->etag), failed, put->ctx);
    put_free(put);
}

static void on_aborted(const struct object_answer *answer, const struct err *failed,
                       bool ambiguous, void *ctx) {
    struct object_put *put = ctx;
    (void)answer, (void)failed, (void)ambiguous;
    put->ask = NULL;
    put_over(put, &put->why);
}

static void ask_for(struct object_put *put, const struct object_request *request,
                    const struct object_sink *sink) {
    put->ask = object_ask_start(put->bucket, put->loop, request, sink, put);
}

/* The parts that were sent take room until they are dropped. */
static void put_abort(struct object_put *put, const struct err *why) {
    static const struct object_sink aborted = {.on_end = on_aborted};
    const struct sigv4_pair query[] = {{STR("uploadId"), text_str(put->upload)}};
    put_move(put, PUT_ABORTING);
    put->why = *why;
    ask_for(put,
            &(struct object_request){.method = STR("DELETE"),
                                     .key = text_str(put->key),
                                     .query = query,
                                     .query_count = 1},
            &aborted);
}

/* --- completing --------------------------------------------------------------------------- */

static uint8_t digit_value(char c) {
    return (uint8_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
}

bool object_put_tag(struct str tags, size_t count, struct buf *out) {
    struct md5_ctx hash;
    uint8_t digest[MD5_DIGEST_SIZE];
    if (tags.len != count * TAG_DIGITS) return false;
    md5_init(&hash);
    for (size_t i = 0; i < tags.len; i += 2) {
        uint8_t byte = (uint8_t)(digit_value(tags.at[i]) << 4 | digit_value(tags.at[i + 1]));
        md5_update(&hash, 1, &byte);
    }
    md5_digest(&hash, MD5_DIGEST_SIZE, digest);
    for (size_t i = 0; i < MD5_DIGEST_SIZE; i++) buf_printf(out, "%02x", digest[i]);
    return buf_printf(out, "-%zu", count);
}

static struct str unquoted(struct str etag) {
    if (etag.len >= 2 && str_starts(etag, STR("\"")) && str_ends(etag, STR("\"")))
        return str_head(str_skip(etag, 1), etag.len - 2);
    return etag;
}

static void put_on_looked(const struct object_found *found, void *ctx) {
    struct object_put *put = ctx;
    struct buf tag;
    buf_init(&tag, 64);
    bool ours = put->tags_plain && object_put_tag(buf_str(&put->tags), put->part_count, &tag) &&
                str_equal(unquoted(found->etag), buf_str(&tag));
    if (ours) buf_append(&put->etag, found->etag);
    buf_done(&tag);
}

static void on_look_body(struct lent bytes, void *ctx) {
    (void)bytes, (void)ctx;
}

static void on_look_end(const struct err *failed, void *ctx) {
    struct object_put *put = ctx;
    struct err why;
    put->look = NULL;
    (void)failed;
    if (put->etag.len) {
        put_over(put, NULL);
        return;
    }
    err_set(&why, ERR_UNAVAILABLE,
            "the storage lost the connection while it put the parts of '" STR_FMT
            "' together, and does not have the whole; write it again",
            STR_ARG(text_str(put->key)));
    put_over(put, &why);
}

/* The storage does not know the upload any more: an attempt whose answer was lost may have
 * completed it. */
static void put_check(struct object_put *put) {
    static const struct object_reader reader = {put_on_looked, on_look_body, on_look_end};
    put_move(put, PUT_CHECKING);
    put->look = object_get_start(put->bucket, put->loop, text_str(put->key),
                                 &(struct object_range){0, 1, STR_EMPTY}, &reader, put);
}

/* A 200 may carry an error: its head was sent before the work was done. */
static bool read_completed(struct object_put *put, struct str body, struct err *e) {
    struct str content, etag;
    if (!xml_read(body, &content, e)) return err_add(e, "the storage's answer");
    if (xml_is(body, STR("CompleteMultipartUploadResult")) &&
        xml_find(content, STR("ETag"), &etag) && xml_text(etag, &put->etag) && put->etag.len)
        return true;
    return err_set(e, ERR_UNAVAILABLE,
                   "the storage could not put the parts of '" STR_FMT "' together",
                   STR_ARG(text_str(put->key)));
}

static void on_completed(const struct object_answer *answer, const struct err *failed,
                         bool ambiguous, void *ctx) {
    struct object_put *put = ctx;
    struct err why;
    put->ask = NULL;
    if (failed && failed->code == ERR_NOT_FOUND && ambiguous) {
        put_check(put);
    } else if (failed) {
        put_abort(put, failed);
    } else if (!read_completed(put, answer->body, &why)) {
        put_abort(put, &why);
    } else {
        put_over(put, NULL);
    }
}

static void put_complete(struct object_put *put) {
    static const struct object_sink completed = {.on_end = on_completed};
    const struct sigv4_pair query[] = {{STR("uploadId"), text_str(put->upload)}};
    put_move(put, PUT_COMPLETING);
    buf_append(&put->parts, STR("</CompleteMultipartUpload>"));
    ask_for(put,
            &(struct object_request){.method = STR("POST"),
                                     .key = text_str(put->key),
                                     .query = query,
                                     .query_count = 1,
                                     .body = buf_str(&put->parts)},
            &completed);
}

/* --- parts -------------------------------------------------------------------------------- */

static bool is_md5(struct str tag) {
    for (size_t i = 0; i < tag.len; i++) {
        char c = tag.at[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return false;
    }
    return tag.len == TAG_DIGITS;
}

static bool note_part(struct object_put *put, struct str etag, struct err *e) {
    if (!etag.len || !str_is_plain(unquoted(etag), "-_+/=."))
        return err_set(e, ERR_DATA_LOSS,
                       "the storage did not say which tag (ETag) a part of '" STR_FMT "' has",
                       STR_ARG(text_str(put->key)));
    put->part_count++;
    buf_printf(&put->parts,
               "<Part><PartNumber>%zu</PartNumber><ETag>&quot;" STR_FMT "&quot;</ETag></Part>",
               put->part_count, STR_ARG(unquoted(etag)));
    put->tags_plain = put->tags_plain && is_md5(unquoted(etag));
    buf_append(&put->tags, unquoted(etag));
    return true;
}

static void on_part(const struct object_answer *answer, const struct err *failed,
                    bool ambiguous, void *ctx) {
    struct object_put *put = ctx;
    struct err why;
    (void)ambiguous;
    put->ask = NULL;
    if (failed || !note_part(put, answer->etag, &why)) {
        put_abort(put, failed ? failed : &why);
        return;
    }
    buf_clear(&put->part);
    if (put->ended) {
        put_complete(put);
        return;
    }
    put_move(put, PUT_FILLING);
    put->events.on_room(put->ctx);
}

static void send_part(struct object_put *put) {
    static const struct object_sink sent = {.on_end = on_part};
    char number[16];
    struct err why;
    if (put->part_count == PUT_PARTS_MAX) {
        err_set(&why, ERR_TOO_LARGE, "an object may have %d parts of %zu bytes", PUT_PARTS_MAX,
                (size_t)PUT_PART_BYTES);
        put_abort(put, &why);
        return;
    }
    snprintf(number, sizeof(number), "%zu", put->part_count + 1);
    const struct sigv4_pair query[] = {{STR("partNumber"), str_from(number)},
                                       {STR("uploadId"), text_str(put->upload)}};
    put_move(put, PUT_PART);
    ask_for(put,
            &(struct object_request){.method = STR("PUT"),
                                     .key = text_str(put->key),
                                     .query = query,
                                     .query_count = 2,
                                     .body = buf_str(&put->part)},
            &sent);
}

static bool read_created(struct object_put *put, struct str body, struct err *e) {
    struct str content, id;
    struct buf text;
    buf_init(&text, 2 * KIB);
    bool read = xml_read(body, &content, e);
    bool good =
        read && xml_find(content, STR("UploadId"), &id) && xml_text(id, &text) && text.len;
    if (good) put->upload = text_copy(buf_str(&text));
    buf_done(&text);
    if (!read) return err_add(e, "the storage's answer");
    return good || err_set(e, ERR_UNAVAILABLE, "the storage did not begin an upload in parts");
}

static void put_on_created(const struct object_answer *answer, const struct err *failed,
                           bool ambiguous, void *ctx) {
    struct object_put *put = ctx;
    struct err why;
    (void)ambiguous;
    put->ask = NULL;
    if (failed || !read_created(put, answer->body, &why))
        put_over(put, failed ? failed : &why);
    else
        send_part(put);
}

static void create(struct object_put *put) {
    static const struct object_sink created = {.on_end = put_on_created};
    const struct sigv4_pair query[] = {{STR("uploads"), STR_EMPTY}};
    const struct sigv4_pair type = {STR("content-type"), text_str(put->content_type)};
    put_move(put, PUT_CREATING);
    ask_for(put,
            &(struct object_request){.method = STR("POST"),
                                     .key = text_str(put->key),
                                     .query = query,
                                     .query_count = 1,
                                     .headers = &type,
                                     .header_count = 1,
                                     .once = true},
            &created);
}

/* --- one part ----------------------------------------------------------------------------- */

static void put_on_sent(const struct object_answer *answer, const struct err *failed,
                        bool ambiguous, void *ctx) {
    struct object_put *put = ctx;
    (void)ambiguous;
    put->ask = NULL;
    buf_append(&put->etag, answer->etag);
    put_over(put, failed);
}

static void send_only(struct object_put *put) {
    static const struct object_sink sent = {.on_end = put_on_sent};
    const struct sigv4_pair type = {STR("content-type"), text_str(put->content_type)};
    put_move(put, PUT_SENDING);
    ask_for(put,
            &(struct object_request){.method = STR("PUT"),
                                     .key = text_str(put->key),
                                     .headers = &type,
                                     .header_count = 1,
                                     .body = buf_str(&put->part)},
            &sent);
}

/* --- the caller --------------------------------------------------------------------------- */

struct object_put *object_put_start(struct bucket *bucket, struct loop *loop, struct str key,
                                    struct str content_type,
                                    const struct object_put_events *events, void *ctx) {
    struct object_put *put = MEM_NEW(struct object_put);
    put->bucket = bucket;
    put->loop = loop;
    put->key = text_copy(key);
    put->content_type =
        text_copy(content_type.len ? content_type : STR("application/octet-stream"));
    put->events = *events;
    put->ctx = ctx;
    put->tags_plain = true;
    buf_init(&put->part, PUT_PART_BYTES);
    buf_init(&put->parts, (size_t)PUT_PARTS_MAX * PART_ROW_MAX_BYTES);
    buf_init(&put->tags, (size_t)PUT_PARTS_MAX * 128);
    buf_init(&put->etag, 256);
    buf_append(&put->parts, STR("<CompleteMultipartUpload>"));
    return put;
}

size_t object_put_write(struct object_put *put, struct str bytes) {
    assert(!put->ended);
    if (put->state != PUT_FILLING) return 0;
    struct str taken = str_head(bytes, PUT_PART_BYTES - put->part.len);
    buf_append(&put->part, taken);
    if (taken.len == bytes.len) return taken.len; /* perhaps the last: it waits for the next */
    if (put->upload.at)
        send_part(put);
    else
        create(put);
    return taken.len;
}

void object_put_end(struct object_put *put) {
    assert(!put->ended && put->state == PUT_FILLING);
    put->ended = true;
    if (!put->upload.at)
        send_only(put);
    else if (put->part.len)
        send_part(put);
    else
        put_complete(put);
}

void object_put_cancel(struct object_put *put) {
    if (put->ask) object_ask_cancel(put->ask);
    if (put->look) object_get_cancel(put->look);
    put_free(put);
}
