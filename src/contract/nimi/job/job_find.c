#include "contract/nimi/job/job_find.h"

#include "base/mem.h"
#include "contract/nimi/run_find.h"
#include "contract/nimi/ulid.h"

#include <stdlib.h>

struct job_find {
    struct job_find_options options;
    char id[ULID_LEN + 1]; /* empty: any */
    struct job_fold fold;
    struct run_find *find; /* NULL: it has called back */
    bool telling, freed;
};

static void job_find_end(struct job_find *find) {
    run_find_free(find->find);
    job_fold_done(&find->fold);
    free(find);
}

void job_find_free(struct job_find *find) {
    if (!find) return;
    find->freed = true;
    if (!find->telling) job_find_end(find);
}

static bool is_the_one(const struct job_find *find) {
    const struct job_fold *fold = &find->fold;
    return job_fold_is_shown(fold) &&
           (!find->id[0] || str_equal(fold->job.job_id, str_from(find->id)));
}

/* The callback may end the call that owns this object, and thus free it. */
static void on_found(const struct err *failed, void *ctx) {
    struct job_find *find = ctx;
    find->find = NULL;
    find->telling = true;
    find->options.on_found(!failed && is_the_one(find) ? &find->fold : NULL, failed,
                           find->options.ctx);
    job_find_end(find);
}

struct job_find *job_find_new(const struct job_find_options *options) {
    struct job_find *find = MEM_NEW(struct job_find);
    struct str id = options->job_id;
    uint64_t run = options->run;
    find->options = *options;
    find->options.job_id = STR_EMPTY; /* borrowed only until now */
    if (id.at) {
        run = 0;
        if (ulid_number(id, &run)) memcpy(find->id, id.at, ULID_LEN);
    }
    job_fold_init(&find->fold, options->depth);
    find->find = run_find_new(&(struct run_find_options){.loop = options->loop,
                                                         .sessions = options->sessions,
                                                         .run = run,
                                                         .kind = &job_fold_kind,
                                                         .fold = &find->fold,
                                                         .on_found = on_found,
                                                         .ctx = find});
    return find;
}
