#include "store/checkpoint.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/log_file.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define CHECKPOINT_PAGES 2048      /* 8 MiB of log: checkpoint */
#define CHECKPOINT_HARD_PAGES 8192 /* 32 MiB: commits wait */
#define CHECKPOINT_LONG_PAGES ((int)(CHECKPOINT_LONG_BYTES / 4096))
/* One long commit is no sign of a reader; so many folds without a restart are. */
#define CHECKPOINT_FOLDS 4

const struct state checkpoint_states[CHECKPOINT_STATE_COUNT] = {
    [CHECKPOINT_RESTING] = {"resting", TO(CHECKPOINT_RESTING) | TO(CHECKPOINT_FOLDING) |
                                           TO(CHECKPOINT_LEFTOVERS)},
    [CHECKPOINT_FOLDING] = {"folding", TO(CHECKPOINT_LEFTOVERS)},
    [CHECKPOINT_LEFTOVERS] = {"leftovers", TO(CHECKPOINT_RESTING)},
};

struct checkpoint {
    struct database *db; /* the store's connection */
    struct long_reader *reader;
    int fold_at_pages;
    int last_pages;
    bool warned;
    int folds; /* to the log's end, since it last began again */
    bool held; /* another process reads, and the log is long: it was reported */
    bool started;
    pthread_t thread;
    _Atomic bool sync_failed; /* on the thread's own connection */
    struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        enum checkpoint_state state;
        bool ending;
    } shared;
};

struct checkpoint *checkpoint_new(struct database *db, struct long_reader *reader) {
    struct checkpoint *checkpoint = MEM_NEW(struct checkpoint);
    checkpoint->db = db;
    checkpoint->reader = reader;
    checkpoint->fold_at_pages = CHECKPOINT_PAGES;
    pthread_mutex_init(&checkpoint->shared.lock, NULL);
    pthread_cond_init(&checkpoint->shared.changed, NULL);
    return checkpoint;
}

/* --- the thread --------------------------------------------------------------------------- */

/* The only function that writes the state. The lock is held. */
static void checkpoint_move(struct checkpoint *checkpoint, enum checkpoint_state next) {
    assert(states_allow(checkpoint_states, checkpoint->shared.state, next));
    checkpoint->shared.state = next;
    pthread_cond_broadcast(&checkpoint->shared.changed);
}

/* SQLite syncs the database only after the last page is folded, which would happen on the
 * store's thread, with all the megabytes folded here. So they are synced here too. Any failure
 * other than of a sync appears again when that thread folds the rest. */
static void fold_most(struct database *db) {
    sqlite3_file *file = NULL;
    struct err e;
    int result = log_file_fold(db->handle, SQLITE_CHECKPOINT_PASSIVE);
    if (result != SQLITE_OK) database_fail(db, &e);
    sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (db->sync_failed || !file || !file->pMethods) return;
    result = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    db->sync_failed = result != SQLITE_OK;
}

/* Uses its own connection, open only while it is needed, to save memory. A connection that has
 * not read anything does not know of the log and would fold nothing. */
static void fold_once(struct checkpoint *checkpoint) {
    struct database db = {0};
    struct err e;
    int64_t version = 0;
    if (database_open(&db, checkpoint->db->path, &e) &&
        database_number(&db, "PRAGMA schema_version", &version, &e))
        fold_most(&db);
    if (db.sync_failed) atomic_store(&checkpoint->sync_failed, true);
    database_close(&db);
}

static void *fold(void *ctx) {
    struct checkpoint *checkpoint = ctx;
    pthread_mutex_lock(&checkpoint->shared.lock);
    while (!checkpoint->shared.ending) {
        if (checkpoint->shared.state != CHECKPOINT_FOLDING) {
            pthread_cond_wait(&checkpoint->shared.changed, &checkpoint->shared.lock);
            continue;
        }
        pthread_mutex_unlock(&checkpoint->shared.lock);
        if (!checkpoint_sync_failed(checkpoint)) fold_once(checkpoint);
        pthread_mutex_lock(&checkpoint->shared.lock);
        checkpoint_move(checkpoint, CHECKPOINT_LEFTOVERS);
    }
    pthread_mutex_unlock(&checkpoint->shared.lock);
    return NULL;
}

/* --- the store's side --------------------------------------------------------------------- */

static enum checkpoint_state state_of(struct checkpoint *checkpoint, bool wait) {
    pthread_mutex_lock(&checkpoint->shared.lock);
    while (wait && checkpoint->shared.state == CHECKPOINT_FOLDING) {
        pthread_cond_wait(&checkpoint->shared.changed, &checkpoint->shared.lock);
    }
    enum checkpoint_state state = checkpoint->shared.state;
    pthread_mutex_unlock(&checkpoint->shared.lock);
    return state;
}

static void checkpoint_start(struct checkpoint *checkpoint) {
    if (!checkpoint->started)
        checkpoint->started = pthread_create(&checkpoint->thread, NULL, fold, checkpoint) == 0;
    pthread_mutex_lock(&checkpoint->shared.lock);
    checkpoint_move(checkpoint,
                    checkpoint->started ? CHECKPOINT_FOLDING : CHECKPOINT_LEFTOVERS);
    pthread_mutex_unlock(&checkpoint->shared.lock);
}

/* Fold with no reader inside. */
static int fold_alone(struct checkpoint *checkpoint, int how) {
    long_reader_pause(checkpoint->reader, LONG_READER_LOOKS_AWAY);
    int result = log_file_fold(checkpoint->db->handle, how);
    long_reader_resume(checkpoint->reader, LONG_READER_LOOKS_AWAY);
    return result;
}

/* After a fold the next commit begins the log again, unless another process reads at the time. */
static void warn_if_held(struct checkpoint *checkpoint, int pages) {
    const char *path = checkpoint->db->path;
    if (checkpoint->held || checkpoint->folds < CHECKPOINT_FOLDS ||
        pages < CHECKPOINT_LONG_PAGES)
        return;
    checkpoint->held = true;
    log_warning(
        "the write-ahead log %s-wal has %d MiB and goes on growing: another process reads "
        "the database (a backup, a sqlite3 shell) and has not ended its transaction; "
        "'fuser -v %s' shows which one; end it, and the log is used from its beginning "
        "again",
        path, pages / 256, path);
}

static void checkpoint_begins_again(struct checkpoint *checkpoint) {
    checkpoint->fold_at_pages = CHECKPOINT_PAGES;
    checkpoint->folds = 0;
    if (checkpoint->held)
        log_info("the write-ahead log %s-wal begins again: the other process has ended its "
                 "transaction",
                 checkpoint->db->path);
    checkpoint->held = false;
}

static void checkpoint_finish(struct checkpoint *checkpoint, int pages) {
    struct err e;
    int result = fold_alone(checkpoint, SQLITE_CHECKPOINT_PASSIVE);
    bool failed = result != SQLITE_OK && result != SQLITE_BUSY;
    if (failed) database_fail(checkpoint->db, &e);
    if (failed && !checkpoint->warned)
        log_warning("the write-ahead log cannot be folded in and grows: %s", e.text);
    checkpoint->warned = failed;
    warn_if_held(checkpoint, pages);
    if (!failed) checkpoint->folds++;
    /* While a reader uses an old page, the log cannot restart. Try again later. */
    checkpoint->fold_at_pages = pages + CHECKPOINT_PAGES;
    pthread_mutex_lock(&checkpoint->shared.lock);
    checkpoint_move(checkpoint, CHECKPOINT_RESTING);
    pthread_mutex_unlock(&checkpoint->shared.lock);
    database_reached(checkpoint->db, "checkpointed");
}

bool checkpoint_sync_failed(const struct checkpoint *checkpoint) {
    if (!checkpoint) return false;
    return atomic_load(&checkpoint->sync_failed);
}

void checkpoint_begin(struct checkpoint *checkpoint, int pages) {
    checkpoint->last_pages = pages;
    if (pages >= CHECKPOINT_PAGES) checkpoint_finish(checkpoint, pages);
}

void checkpoint_look(struct checkpoint *checkpoint, int pages) {
    if (!checkpoint) return;
    if (pages < checkpoint->last_pages) checkpoint_begins_again(checkpoint);
    checkpoint->last_pages = pages;
    if (pages < checkpoint->fold_at_pages || checkpoint->db->sync_failed) return;
    switch (state_of(checkpoint, pages >= CHECKPOINT_HARD_PAGES)) {
    case CHECKPOINT_RESTING: checkpoint_start(checkpoint); break;
    case CHECKPOINT_FOLDING: break;
    case CHECKPOINT_LEFTOVERS:
        if (!checkpoint_sync_failed(checkpoint)) checkpoint_finish(checkpoint, pages);
        break;
    case CHECKPOINT_STATE_COUNT: break;
    }
}

bool checkpoint_cut(struct checkpoint *checkpoint, enum checkpoint_cut how, struct err *e) {
    if (!checkpoint) return true;
    state_of(checkpoint, true);
    if (checkpoint_sync_failed(checkpoint))
        return err_set(e, ERR_UNAVAILABLE, "store %s: it could not be synced; check the disk",
                       checkpoint->db->path);
    database_wait(checkpoint->db, how == CHECKPOINT_WAIT);
    int result = fold_alone(checkpoint, SQLITE_CHECKPOINT_TRUNCATE);
    database_wait(checkpoint->db, true);
    if (result != SQLITE_OK) return database_fail(checkpoint->db, e);
    checkpoint_begins_again(checkpoint);
    checkpoint->last_pages = 0;
    pthread_mutex_lock(&checkpoint->shared.lock);
    checkpoint_move(checkpoint, CHECKPOINT_RESTING);
    pthread_mutex_unlock(&checkpoint->shared.lock);
    return true;
}

/* A log that cannot be folded is left for the next start. */
static void fold_all(struct database *db) {
    struct err e;
    if (db->sync_failed) return;
    int result = log_file_fold(db->handle, SQLITE_CHECKPOINT_TRUNCATE);
    if (result == SQLITE_OK) return;
    database_fail(db, &e);
    log_warning("the write-ahead log stays as it is: %s", e.text);
}

void checkpoint_free(struct checkpoint *checkpoint) {
    if (!checkpoint) return;
    if (checkpoint->started) {
        pthread_mutex_lock(&checkpoint->shared.lock);
        checkpoint->shared.ending = true;
        pthread_cond_broadcast(&checkpoint->shared.changed);
        pthread_mutex_unlock(&checkpoint->shared.lock);
        pthread_join(checkpoint->thread, NULL);
    }
    if (checkpoint_sync_failed(checkpoint)) checkpoint->db->sync_failed = true;
    fold_all(checkpoint->db);
    pthread_cond_destroy(&checkpoint->shared.changed);
    pthread_mutex_destroy(&checkpoint->shared.lock);
    free(checkpoint);
}
