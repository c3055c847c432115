/* media_fixture: one call of a media provider, and what it reported. */
#ifndef WEIR_TEST_PROVIDER_MEDIA_FIXTURE_H
#define WEIR_TEST_PROVIDER_MEDIA_FIXTURE_H

#include "base/buf.h"
#include "base/mem.h"
#include "provider/media.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { HEARD_VECTORS = 4, HEARD_NUMBERS = 2048 };

struct heard {
    struct loop *loop;
    struct media *media;
    struct media_call *call; /* NULL: it ended */
    bool cancels;            /* in the first callback */
    unsigned artifacts, texts, vectors, usages, dones, faileds;
    struct media_artifact artifact; /* the last one; its text is in the buffers */
    struct buf bytes, type, uri, text, model;
    double numbers[HEARD_VECTORS][HEARD_NUMBERS];
    size_t number_count[HEARD_VECTORS];
    struct event_usage usage;
    struct err why;
    struct buf reason;
};

static inline unsigned heard_endings(const struct heard *heard) {
    return heard->dones + heard->faileds;
}

static inline void heard_anything(struct heard *heard) {
    struct media_call *call = heard->call;
    assert_non_null(call); /* no callback after the end or a cancel */
    if (!heard->cancels) return;
    heard->call = NULL;
    heard->media->kind->cancel(call);
    if (loop_uv(heard->loop)) loop_stop(heard->loop);
}

static inline void heard_ending(struct heard *heard) {
    assert_non_null(heard->call);
    heard->call = NULL;
    if (loop_uv(heard->loop)) loop_stop(heard->loop);
}

static inline void hear_text(struct buf *out, struct str text) {
    buf_clear(out);
    assert_true(buf_append(out, text));
}

static inline void hear_artifact(struct heard *heard, const struct media_artifact *artifact) {
    heard->artifacts++;
    heard->artifact = *artifact;
    hear_text(&heard->bytes, artifact->bytes);
    hear_text(&heard->type, artifact->content_type);
    hear_text(&heard->uri, artifact->uri);
}

static inline void hear_vector(struct heard *heard, const struct reply_vector *vector) {
    size_t input = vector->input, count = vector->count;
    assert_int_equal(input, heard->vectors);
    heard->vectors++;
    if (input < HEARD_VECTORS && count <= HEARD_NUMBERS) {
        heard->number_count[input] = count;
        memcpy(heard->numbers[input], vector->values, count * sizeof(double));
    }
}

static inline void hear_reply(const struct reply_event *event, void *ctx) {
    struct heard *heard = ctx;
    switch (event->kind) {
    case REPLY_ARTIFACT: hear_artifact(heard, event->artifact); break;
    case REPLY_TEXT:
        heard->texts++;
        hear_text(&heard->text, event->text);
        break;
    case REPLY_VECTOR: hear_vector(heard, event->vector); break;
    case REPLY_USAGE:
        heard->usages++;
        heard->usage = *event->usage;
        break;
    case REPLY_DONE:
        heard->dones++;
        hear_text(&heard->model, event->model);
        break;
    case REPLY_FAILED:
        heard->faileds++;
        err_set(&heard->why, event->code, STR_FMT, STR_ARG(event->text));
        hear_text(&heard->reason, event->reason);
        break;
    default: fail_msg("a media call reports no event of kind %d", event->kind);
    }
    (reply_event_ends(event) ? heard_ending : heard_anything)(heard);
}

static inline struct heard *heard_new(struct loop *loop, struct media *media) {
    struct heard *heard = MEM_NEW(struct heard);
    heard->loop = loop;
    heard->media = media;
    buf_init(&heard->bytes, 64 * MIB);
    buf_init(&heard->type, KIB);
    buf_init(&heard->uri, 64 * KIB);
    buf_init(&heard->text, MIB);
    buf_init(&heard->model, KIB);
    buf_init(&heard->reason, KIB);
    return heard;
}

static inline void heard_free(struct heard *heard) {
    assert_null(heard->call);
    buf_done(&heard->bytes);
    buf_done(&heard->type);
    buf_done(&heard->uri);
    buf_done(&heard->text);
    buf_done(&heard->model);
    buf_done(&heard->reason);
    free(heard);
}

static inline void heard_start(struct heard *heard, const struct media_request *request) {
    unsigned before = heard_endings(heard);
    heard->call = media_call_start(heard->media, heard->loop, request, hear_reply, heard);
    assert_non_null(heard->call);
    assert_int_equal(heard_endings(heard), before); /* never before it returned */
}

static inline void assert_failed(const struct heard *heard, enum err_code code,
                                 const char *reason, const char *text) {
    assert_int_equal(heard->faileds, 1);
    assert_int_equal(heard->dones, 0);
    assert_string_equal(heard->why.text, text);
    assert_int_equal(heard->why.code, code);
    assert_true(str_equal(buf_str(&heard->reason), str_from(reason)));
}

#endif
