#include "contract/nimi/attach.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>

struct attach {
    struct attach_options options;
    size_t next;     /* index of the artifact being read */
    bool of_anybody; /* look among the app's uploads that have no subject */
    struct upload_ask *ask;
    struct task none; /* reports the failure when there is no store */
};

static void attach_end(struct attach *attach, const struct fault *fault) {
    attach_done_fn *done = attach->options.done;
    void *ctx = attach->options.ctx;
    attach_cancel(attach);
    done(fault, ctx);
}

static void end_unreadable(struct attach *attach, enum err_code code, struct str why) {
    struct fault fault;
    bool missing = code == ERR_NOT_FOUND;
    fault_set_code(&fault, missing ? NIMI_AI_INPUT_INVALID : NIMI_AI_PROVIDER_UNAVAILABLE,
                   missing ? ERR_INVALID_ARGUMENT : code, STR_FMT, STR_ARG(why));
    attach_end(attach, &fault);
}

static void attach_on_read(const struct upload *upload, const struct err *failed, void *ctx);

static void attach_read_next(struct attach *attach) {
    const struct attach_options *options = &attach->options;
    attach->ask = upload_get_start(options->store, options->loop, options->app,
                                   attach->of_anybody ? STR_EMPTY : options->subject,
                                   options->prompt->artifacts[attach->next].id, 0,
                                   UPLOAD_MAX_BYTES, clock_unix_ms(), attach_on_read, attach);
}

/* Whether to look again: uploads without a subject may be used by every subject of the app. */
static bool is_perhaps_anybodys(const struct attach *attach, const struct err *failed) {
    return failed->code == ERR_NOT_FOUND && !attach->of_anybody && attach->options.subject.len;
}

static void attach_on_read(const struct upload *upload, const struct err *failed, void *ctx) {
    struct attach *attach = ctx;
    struct prompt *prompt = attach->options.prompt;
    struct fault fault;
    attach->ask = NULL;
    if (failed) {
        attach->of_anybody = is_perhaps_anybodys(attach, failed);
        if (attach->of_anybody) {
            attach_read_next(attach);
        } else {
            end_unreadable(attach, failed->code, err_text(failed));
        }
        return;
    }
    if (!prompt_attach(&prompt->artifacts[attach->next], upload->content_type, upload->bytes,
                       attach->options.arena, &fault)) {
        attach_end(attach, &fault);
        return;
    }
    attach->of_anybody = false;
    if (++attach->next < prompt->artifact_count) {
        attach_read_next(attach);
    } else {
        prompt->artifact_count = 0;
        attach_end(attach, NULL);
    }
}

static void on_no_store(void *ctx) {
    end_unreadable(ctx, ERR_NOT_FOUND, STR("this runtime has no store; nothing was uploaded"));
}

struct attach *attach_start(const struct attach_options *options) {
    struct attach *attach = MEM_NEW(struct attach);
    attach->options = *options;
    task_init(&attach->none, on_no_store, attach);
    if (options->store) {
        attach_read_next(attach);
    } else {
        loop_defer(options->loop, &attach->none);
    }
    return attach;
}

void attach_cancel(struct attach *attach) {
    if (!attach) return;
    upload_forget(attach->ask);
    task_cancel(&attach->none);
    free(attach);
}
