#include "contract/nimi/job/job_bytes.h"

#include "base/mem.h"
#include "contract/nimi/fetch.h"
#include "session/session.h"

#include <stdlib.h>

#define FILM_MAX_BYTES (1 * MIB)
#define OMITTED_KEY STR("bytes_omitted")
#define OMITTED_TEXT                                                                           \
    STR("more bytes than a message may carry; set listen.nimi_http, and a uri stands here")

struct job_bytes {
    struct job_bytes_options options;
    struct arena *arena;
    size_t left_bytes, next; /* next: index of the current artifact */
    struct buf bytes;        /* of the current artifact, so far */
    bool inlined;            /* true: read its bytes; false: read its token */
    struct artifact_ask *ask;
    struct task over;
};

/* --- reading the artifacts ---------------------------------------------------------------- */

static void look_at_next(struct job_bytes *job);

static bool is_kept(const struct nimi_scenario_artifact *artifact, uint64_t *ret_id) {
    return artifact->size_bytes > 0 && /* not just a URL */
           job_artifact_number(artifact->artifact_id, ret_id);
}

static bool fits(const struct job_bytes *job, const struct nimi_scenario_artifact *artifact) {
    size_t size = (size_t)artifact->size_bytes;
    bool film = str_starts(artifact->mime_type, STR("video/"));
    if (film && (artifact->uri.len || size > FILM_MAX_BYTES)) return false;
    return size <= job->left_bytes;
}

static struct nimi_scenario_artifact *current(const struct job_bytes *job) {
    return &job->options.artifacts[job->next];
}

static void add_note(struct job_bytes *job) {
    struct google_value *text = ARENA_NEW(job->arena, struct google_value);
    struct google_struct_fields_entry *field =
        ARENA_NEW(job->arena, struct google_struct_fields_entry);
    struct google_struct *note = ARENA_NEW(job->arena, struct google_struct);
    if (!text || !field || !note) return;
    *text = (struct google_value){.which_kind = GOOGLE_VALUE_STRING_VALUE,
                                  .string_value = OMITTED_TEXT};
    *field = (struct google_struct_fields_entry){OMITTED_KEY, text};
    *note = (struct google_struct){field, 1};
    current(job)->metadata = note;
}

static void add_uri(struct job_bytes *job, struct str token) {
    struct buf uri;
    struct str kept;
    buf_init(&uri, FETCH_URI_MAX_BYTES);
    if (fetch_uri(job->options.call, token, &uri) &&
        arena_str(job->arena, buf_str(&uri), &kept)) {
        current(job)->uri = kept;
    } else if (!current(job)->uri.len) {
        add_note(job);
    }
    buf_done(&uri);
}

static void add_bytes(struct job_bytes *job) {
    struct str kept;
    if (arena_str(job->arena, buf_str(&job->bytes), &kept)) {
        current(job)->bytes = kept;
        job->left_bytes -= kept.len;
    }
}

static void on_piece(const struct artifact *artifact, const struct err *failed, void *ctx);

static void read_piece(struct job_bytes *job, int64_t id) {
    const struct nimi_call *call = job->options.call;
    job->ask = artifact_get_start(session_table_store(call->instance->host->engine->sessions),
                                  call->loop, job->options.app, id, job->bytes.len,
                                  job->inlined ? ARTIFACT_PIECE_MAX_BYTES : 0, on_piece, job);
}

static void on_piece(const struct artifact *artifact, const struct err *failed, void *ctx) {
    struct job_bytes *job = ctx;
    job->ask = NULL;
    if (failed && failed->code != ERR_NOT_FOUND) {
        job->options.done(failed, job->options.ctx);
        return;
    }
    if (!failed && job->inlined) {
        buf_append(&job->bytes, artifact->bytes);
        if (artifact->bytes.len && job->bytes.len < artifact->size) {
            read_piece(job, artifact->id);
            return;
        }
        add_bytes(job);
    } else if (!failed) {
        add_uri(job, artifact->token);
    }
    buf_clear(&job->bytes);
    job->next++;
    look_at_next(job);
}

static void look_at_next(struct job_bytes *job) {
    for (; job->next < job->options.count; job->next++) {
        uint64_t id;
        if (!is_kept(current(job), &id)) continue;
        job->inlined = fits(job, current(job));
        read_piece(job, (int64_t)id);
        return;
    }
    job->options.done(NULL, job->options.ctx);
}

static void look_at_first(void *ctx) {
    look_at_next(ctx);
}

struct job_bytes *job_bytes_start(const struct job_bytes_options *options) {
    struct job_bytes *job = MEM_NEW(struct job_bytes);
    job->options = *options;
    job->arena = arena_new(64 * MIB);
    job->left_bytes = options->room_bytes;
    buf_init(&job->bytes, ARTIFACT_MAX_BYTES);
    task_init(&job->over, look_at_first, job);
    loop_defer(options->call->loop, &job->over);
    return job;
}

void job_bytes_free(struct job_bytes *job) {
    if (!job) return;
    task_cancel(&job->over);
    artifact_forget(job->ask);
    buf_done(&job->bytes);
    arena_free(job->arena);
    free(job);
}

/* --- a whole snapshot --------------------------------------------------------------------- */

struct job_shown {
    struct arena *arena;
    struct nimi_scenario_job job;
    struct job_bytes *bytes;
    job_shown_fn *shown;
    void *ctx;
};

static bool has_some(const struct nimi_scenario_job *job) {
    uint64_t id;
    for (size_t i = 0; i < job->artifacts_count; i++) {
        if (is_kept(&job->artifacts[i], &id)) return true;
    }
    return false;
}

/* Copy the whole job, with a list of artifacts that can be changed. */
static bool copy_job(struct job_shown *shown, const struct nimi_scenario_job *from,
                     size_t *ret_bytes) {
    struct buf bytes;
    struct str kept;
    struct err e;
    size_t size = from->artifacts_count * sizeof(*from->artifacts);
    struct nimi_scenario_artifact *artifacts = arena_alloc(shown->arena, size);
    buf_init(&bytes, JOB_MESSAGE_MAX_BYTES);
    bool copied = artifacts && pb_encode(&nimi_scenario_job_table, from, &bytes) &&
                  arena_str(shown->arena, buf_str(&bytes), &kept) &&
                  pb_decode_view(&nimi_scenario_job_table, kept, shown->arena, &shown->job, &e);
    *ret_bytes = bytes.len;
    buf_done(&bytes);
    if (!copied) return false;
    memcpy(artifacts, shown->job.artifacts, size);
    shown->job.artifacts = artifacts;
    return true;
}

static void on_bytes(const struct err *failed, void *ctx) {
    struct job_shown *shown = ctx;
    shown->shown(&shown->job, failed, shown->ctx);
}

struct job_shown *job_shown_start(struct nimi_call *call, const struct job_fold *fold,
                                  job_shown_fn *fn, void *ctx) {
    size_t reply_bytes;
    if (fold->job.status != NIMI_SCENARIO_JOB_STATUS_COMPLETED || !has_some(&fold->job))
        return NULL;
    struct job_shown *shown = MEM_NEW(struct job_shown);
    shown->arena = arena_new(64 * MIB);
    shown->shown = fn;
    shown->ctx = ctx;
    if (!copy_job(shown, &fold->job, &reply_bytes)) {
        job_shown_free(shown);
        return NULL;
    }
    shown->bytes = job_bytes_start(&(struct job_bytes_options){
        .call = call,
        .app = shown->job.head->app_id,
        .artifacts = (struct nimi_scenario_artifact *)(uintptr_t)shown->job.artifacts,
        .count = shown->job.artifacts_count,
        .room_bytes = JOB_MESSAGE_MAX_BYTES - reply_bytes,
        .done = on_bytes,
        .ctx = shown});
    return shown;
}

void job_shown_free(struct job_shown *shown) {
    if (!shown) return;
    job_bytes_free(shown->bytes);
    arena_free(shown->arena);
    free(shown);
}
