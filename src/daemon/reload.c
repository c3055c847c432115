#include "daemon/reload.h"

#include <signal.h>

/* A file is blank or gone for a moment while many an editor writes it, and without it everything
 * would be at its default. */
static bool still_has_file(const struct config *running, const struct config *read,
                           struct err *e) {
    if (!running->file.len || running->file_blank) return true;
    if (!read->file.len)
        return err_set(e, ERR_NOT_FOUND,
                       "the settings file '" STR_FMT "' is gone; put it back and reload, or "
                       "restart to run without it",
                       STR_ARG(running->file));
    if (!read->file_blank) return true;
    return err_set(e, ERR_MALFORMED,
                   "the settings file '" STR_FMT "' is empty, as while it is being written; "
                   "reload when it is complete. For settings that are all at their defaults, "
                   "let it hold a comment",
                   STR_ARG(read->file));
}

static bool load_config(const struct reload_options *options, struct config **ret,
                        struct err *e) {
    struct config *config;
    if (!config_load(options->input, &config, e)) return false;
    if (!still_has_file(options->running, config, e)) {
        config_free(config);
        return false;
    }
    *ret = config;
    return true;
}

static bool reload_read_all(const struct reload_options *options, struct config_snapshot **ret,
                            struct err *e) {
    struct config *config = NULL;
    if (!options->same && !load_config(options, &config, e)) return false;
    struct config_snapshot_options wanted = options->made;
    wanted.config = config;
    wanted.owner = options->same;
    wanted.owns_config = config != NULL;
    if (!config_snapshot_new(&wanted, ret, e)) return false;
    if (options->same || server_reload_tls(options->server, e)) return true;
    config_snapshot_unref(*ret);
    return false;
}

static void reload_on_done(void *ctx) {
    struct reload *reload = ctx;
    struct config_snapshot *snapshot = reload->snapshot;
    reload_wait(reload);
    reload->busy = false;
    reload->options.on_done(snapshot, snapshot ? NULL : &reload->failed, reload->options.ctx);
}

static void *run_thread(void *ctx) {
    struct reload *reload = ctx;
    if (!reload_read_all(&reload->options, &reload->snapshot, &reload->failed))
        reload->snapshot = NULL;
    loop_post(reload->options.loop, &reload->mail, reload_on_done, reload);
    return NULL;
}

bool reload_start(struct reload *reload, const struct reload_options *options, struct err *e) {
    sigset_t all, before;
    reload->options = *options;
    reload->snapshot = NULL;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&reload->thread, NULL, run_thread, reload);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return err_set(e, ERR_UNAVAILABLE, "cannot start a thread: %s",
                       strerrordesc_np(failed));
    reload->busy = reload->has_thread = true;
    return true;
}

void reload_wait(struct reload *reload) {
    if (!reload->has_thread) return;
    pthread_join(reload->thread, NULL);
    reload->has_thread = false;
}
