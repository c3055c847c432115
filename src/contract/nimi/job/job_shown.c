#include "contract/nimi/job/job_shown.h"

#include "base/mem.h"
#include "contract/nimi/fetch.h"
#include "session/session.h"
#include "store/artifact.h"

#include <stddef.h>
#include <stdlib.h>

#define FILM_MAX_BYTES (1 * MIB)
#define OMITTED_KEY STR("bytes_omitted")
#define OMITTED_TEXT                                                                           \
    STR("more bytes than a message may carry; set listen.nimi_http, and a uri stands here")

struct job_shown {
    struct nimi_call *call;
    struct str app;
    struct arena *arena;
    void *message;
    struct nimi_scenario_artifact *artifacts; /* of the message */
    size_t count, next;                       /* next: index of the current one */
    size_t left_bytes;                        /* for all of them together */
    struct buf bytes;                         /* of the current artifact, so far */
    bool inlined;                             /* true: read its bytes; false: read its token */
    struct artifact_ask *ask;
    struct task begin;
    job_shown_fn *shown;
    void *ctx;
};

/* --- reading the artifacts ---------------------------------------------------------------- */

static void look_at_next(struct job_shown *shown);

static bool is_kept(const struct nimi_scenario_artifact *artifact, uint64_t *ret_id) {
    return artifact->size_bytes > 0 && /* not just a URL */
           job_artifact_number(artifact->artifact_id, ret_id);
}

static bool fits(const struct job_shown *shown, const struct nimi_scenario_artifact *artifact) {
    size_t size = (size_t)artifact->size_bytes;
    bool film = str_starts(artifact->mime_type, STR("video/"));
    if (film && (artifact->uri.len || size > FILM_MAX_BYTES)) return false;
    return size <= shown->left_bytes;
}

static struct nimi_scenario_artifact *current(const struct job_shown *shown) {
    return &shown->artifacts[shown->next];
}

static void add_note(struct job_shown *shown) {
    struct google_value *text = ARENA_NEW(shown->arena, struct google_value);
    struct google_struct_fields_entry *field =
        ARENA_NEW(shown->arena, struct google_struct_fields_entry);
    struct google_struct *note = ARENA_NEW(shown->arena, struct google_struct);
    if (!text || !field || !note) return;
    *text = (struct google_value){.which_kind = GOOGLE_VALUE_STRING_VALUE,
                                  .string_value = OMITTED_TEXT};
    *field = (struct google_struct_fields_entry){OMITTED_KEY, text};
    *note = (struct google_struct){field, 1};
    current(shown)->metadata = note;
}

static void add_uri(struct job_shown *shown, struct str token) {
    struct buf uri;
    struct str kept;
    buf_init(&uri, FETCH_URI_MAX_BYTES);
    if (fetch_uri(shown->call, token, &uri) && arena_str(shown->arena, buf_str(&uri), &kept)) {
        current(shown)->uri = kept;
    } else if (!current(shown)->uri.len) {
        add_note(shown);
    }
    buf_done(&uri);
}

static void add_bytes(struct job_shown *shown) {
    struct str kept;
    if (arena_str(shown->arena, buf_str(&shown->bytes), &kept)) {
        current(shown)->bytes = kept;
        shown->left_bytes -= kept.len;
    }
}

static void on_piece(const struct artifact *artifact, const struct err *failed, void *ctx);

static void read_piece(struct job_shown *shown, int64_t id) {
    const struct nimi_call *call = shown->call;
    shown->ask = artifact_get_start(
        session_table_store(call->instance->host->engine->sessions), call->loop, shown->app, id,
        shown->bytes.len, shown->inlined ? ARTIFACT_PIECE_MAX_BYTES : 0, on_piece, shown);
}

/* Callers that read nothing could otherwise have any number of replies made and held. Many may be
 * on their way at once, so each piece asks. */
static bool has_memory(const struct job_shown *shown, const struct artifact *artifact,
                       struct err *e) {
    return !shown->inlined || mem_check(artifact->size, e);
}

static void on_piece(const struct artifact *artifact, const struct err *failed, void *ctx) {
    struct job_shown *shown = ctx;
    struct err e;
    shown->ask = NULL;
    if (!failed && !has_memory(shown, artifact, &e)) failed = &e;
    if (failed && failed->code != ERR_NOT_FOUND) {
        shown->shown(shown->message, failed, shown->ctx);
        return;
    }
    if (!failed && shown->inlined) {
        buf_append(&shown->bytes, artifact->bytes);
        if (artifact->bytes.len && shown->bytes.len < artifact->size) {
            read_piece(shown, artifact->id);
            return;
        }
        add_bytes(shown);
    } else if (!failed) {
        add_uri(shown, artifact->token);
    }
    buf_clear(&shown->bytes);
    shown->next++;
    look_at_next(shown);
}

static void look_at_next(struct job_shown *shown) {
    for (; shown->next < shown->count; shown->next++) {
        uint64_t id;
        if (!is_kept(current(shown), &id)) continue;
        shown->inlined = fits(shown, current(shown));
        read_piece(shown, (int64_t)id);
        return;
    }
    shown->shown(shown->message, NULL, shown->ctx);
}

static void look_at_first(void *ctx) {
    look_at_next(ctx);
}

/* --- the message -------------------------------------------------------------------------- */

/* Copy the whole message, with a list of artifacts that can be changed. */
static bool copy_message(struct job_shown *shown, const struct job_shown_kind *kind,
                         const void *from) {
    char *to = shown->message = arena_alloc(shown->arena, kind->type->size);
    void *artifacts; /* the list in the message */
    struct buf bytes;
    struct str kept;
    struct err e;
    buf_init(&bytes, JOB_MESSAGE_MAX_BYTES);
    bool copied = to && pb_encode(kind->type, from, &bytes) &&
                  arena_str(shown->arena, buf_str(&bytes), &kept) &&
                  pb_decode_view(kind->type, kept, shown->arena, to, &e);
    shown->left_bytes = JOB_MESSAGE_MAX_BYTES - bytes.len;
    buf_done(&bytes);
    if (!copied) return false;
    memcpy(&shown->count, to + kind->count, sizeof(shown->count));
    memcpy(&artifacts, to + kind->artifacts, sizeof(artifacts));
    size_t size = shown->count * sizeof(*shown->artifacts);
    shown->artifacts = arena_alloc(shown->arena, size + 1);
    if (!shown->artifacts) return false;
    if (size) memcpy(shown->artifacts, artifacts, size);
    artifacts = shown->artifacts;
    memcpy(to + kind->artifacts, &artifacts, sizeof(artifacts));
    return true;
}

struct job_shown *job_shown_new(struct nimi_call *call, struct str app,
                                const struct job_shown_kind *kind, const void *message,
                                job_shown_fn *fn, void *ctx) {
    struct job_shown *shown = MEM_NEW(struct job_shown);
    shown->call = call;
    shown->arena = arena_new(128 * MIB); /* the message, and the bytes */
    shown->shown = fn;
    shown->ctx = ctx;
    buf_init(&shown->bytes, ARTIFACT_MAX_BYTES);
    task_init(&shown->begin, look_at_first, shown);
    if (arena_str(shown->arena, app, &shown->app) && copy_message(shown, kind, message)) {
        loop_defer(call->loop, &shown->begin);
        return shown;
    }
    job_shown_free(shown);
    return NULL;
}

static bool has_some(const struct nimi_scenario_job *job) {
    uint64_t id;
    for (size_t i = 0; i < job->artifacts_count; i++) {
        if (is_kept(&job->artifacts[i], &id)) return true;
    }
    return false;
}

struct job_shown *job_shown_start(struct nimi_call *call, const struct job_fold *fold,
                                  job_shown_fn *fn, void *ctx) {
    static const struct job_shown_kind kind = {
        &nimi_scenario_job_table, offsetof(struct nimi_scenario_job, artifacts),
        offsetof(struct nimi_scenario_job, artifacts_count)};
    if (fold->job.status != NIMI_SCENARIO_JOB_STATUS_COMPLETED || !has_some(&fold->job))
        return NULL;
    return job_shown_new(call, fold->run.app, &kind, &fold->job, fn, ctx);
}

void job_shown_free(struct job_shown *shown) {
    if (!shown) return;
    task_cancel(&shown->begin);
    artifact_forget(shown->ask);
    buf_done(&shown->bytes);
    arena_free(shown->arena);
    free(shown);
}
