#include "fake/media_fake.h"

#include "base/mem.h"
#include "fake/calls_out.h"

#include <assert.h>
#include <stdlib.h>

struct fake_media {
    struct media base;
    struct media_kind kind; /* its tasks are the test's */
    struct calls_out out;
    const struct media_voice *voices;
    size_t voice_count;
    const char *lacks, *only;
    enum err_code refuses;
};

struct media_call {
    struct fake_media *media;
    const struct media_request *request;
    reply_event_fn *on_reply;
    void *ctx;
    bool over;
    unsigned inside; /* callbacks on the stack */
};

static struct fake_media *fake_of(const struct media *media) {
    return CONTAINER_OF(media, struct fake_media, base);
}

/* --- the kind ----------------------------------------------------------------------------- */

static struct media_call *start(struct media *media, struct loop *loop,
                                const struct media_request *request, reply_event_fn *on_reply,
                                void *ctx) {
    struct fake_media *fake = fake_of(media);
    struct media_call *call = MEM_NEW(struct media_call);
    assert(loop && media_can(media, request->task));
    *call = (struct media_call){
        .media = fake, .request = request, .on_reply = on_reply, .ctx = ctx};
    calls_out_add(&fake->out, call);
    return call;
}

static void take_off(struct media_call *call) {
    calls_out_remove(&call->media->out, call);
    call->over = true;
}

static void cancel(struct media_call *call) {
    assert(!call->over);
    take_off(call);
    if (!call->inside) free(call);
}

static const struct media_voice *voices(struct media *media, struct str model,
                                        size_t *ret_count) {
    (void)model;
    *ret_count = fake_of(media)->voice_count;
    return fake_of(media)->voices;
}

static bool check(struct media *media, const struct media_request *request, struct err *e) {
    const struct fake_media *fake = fake_of(media);
    const char *lacks = fake->lacks, *only = fake->only;
    if (fake->refuses) return err_set(e, fake->refuses, "the test says no");
    if (only && !str_equal(request->model, str_from(only)))
        return err_set(e, ERR_NOT_FOUND, "the one model is '%s'", only);
    if (!lacks || !str_equal(request->format, str_from(lacks))) return true;
    return err_set(e, ERR_INVALID_ARGUMENT, "no format '%s'; ask for another", lacks);
}

static void free_media(struct media *media) {
    assert(fake_of(media)->out.count == 0);
    free(fake_of(media));
}

struct media *fake_media_new(unsigned tasks) {
    struct fake_media *fake = MEM_NEW(struct fake_media);
    fake->kind = (struct media_kind){.name = "fake",
                                     .tasks = tasks,
                                     .start = start,
                                     .cancel = cancel,
                                     .voices = voices,
                                     .free = free_media,
                                     .check = check};
    fake->base = (struct media){&fake->kind, STR("fake")};
    return &fake->base;
}

void fake_media_voices(struct media *media, const struct media_voice *list, size_t count) {
    fake_of(media)->voices = list;
    fake_of(media)->voice_count = count;
}

void fake_media_lacks(struct media *media, const char *format) {
    fake_of(media)->lacks = format;
}

void fake_media_only(struct media *media, const char *model) {
    fake_of(media)->only = model;
}

void fake_media_refuses(struct media *media, enum err_code code) {
    fake_of(media)->refuses = code;
}

size_t fake_media_calls(const struct media *media) {
    return fake_of(media)->out.count;
}

size_t fake_media_calls_ever(const struct media *media) {
    return fake_of(media)->out.ever;
}

struct media_call *fake_media_call(const struct media *media, size_t index) {
    return calls_out_at(&fake_of(media)->out, index);
}

const struct media_request *fake_media_request(const struct media_call *call) {
    return call->request;
}

/* --- what it makes ------------------------------------------------------------------------ */

/* `lent` is the heap's: gone afterwards, as what the event borrows of it is. False: the call is
 * gone, too. */
static bool report(struct media_call *call, const struct reply_event *event, void *lent) {
    assert(!call->over);
    call->inside++;
    if (reply_event_ends(event)) take_off(call);
    call->on_reply(event, call->ctx);
    free(lent);
    call->inside--;
    if (!call->over) return true;
    free(call);
    return false;
}

/* In a block of its own. */
static char *lend(const void *bytes, size_t len) {
    char *at = mem_alloc(len + 1);
    if (len) memcpy(at, bytes, len);
    return at;
}

bool fake_media_artifact(struct media_call *call, const char *type, struct str bytes) {
    char *lent = lend(bytes.at, bytes.len);
    struct media_artifact artifact = {.content_type = str_from(type),
                                      .bytes = str_of(lent, bytes.len)};
    return report(call, &(struct reply_event){REPLY_ARTIFACT, .artifact = &artifact}, lent);
}

bool fake_media_text(struct media_call *call, const char *text) {
    char *lent = lend(text, strlen(text));
    return report(call, &(struct reply_event){REPLY_TEXT, .text = str_of(lent, strlen(text))},
                  lent);
}

bool fake_media_vector(struct media_call *call, size_t input, const double *values,
                       size_t count) {
    char *lent = lend(values, count * sizeof(double));
    struct reply_vector vector = {input, (double *)(void *)lent, count};
    return report(call, &(struct reply_event){REPLY_VECTOR, .vector = &vector}, lent);
}

bool fake_media_usage(struct media_call *call, int64_t prompt, int64_t completion) {
    struct event_usage usage = USAGE_UNKNOWN;
    usage.prompt = prompt;
    usage.completion = completion;
    return report(call, &(struct reply_event){REPLY_USAGE, .usage = &usage}, NULL);
}

void fake_media_done(struct media_call *call, const char *model) {
    report(call, &(struct reply_event){REPLY_DONE, .model = str_from(model)}, NULL);
}

void fake_media_fail(struct media_call *call, enum err_code code, const char *reason) {
    report(call,
           &(struct reply_event){REPLY_FAILED, .code = code, .reason = str_from(reason),
                                 .text = STR("the test says no")},
           NULL);
}
