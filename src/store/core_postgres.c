#include "store/core_postgres.h"

#include "base/clock.h"
#include "store/schema_postgres.h"

#include <time.h>

#define TAKE_MS 3000
#define TAKE_AGAIN_NS 20000000
#define STATEMENT_MS 30000 /* the longest: a page of a large table on a busy server */

/* "weir" in ASCII; the schema tells stores of one database apart. */
#define TAKE_STORE "SELECT pg_try_advisory_lock(1935764850, hashtext(current_schema()))"

/* Replicas have it together, and a process that does not share it with none of them. */
#define JOIN_STORE "SELECT pg_try_advisory_lock_shared(1935764850, hashtext(current_schema()))"

/* The server ends a session a moment after its client has left, and with it the lock of the
 * process before. */
static bool take_store(struct core *core, struct err *e) {
    struct database *db = &core->db;
    const char *take = core->replica.shared ? JOIN_STORE : TAKE_STORE;
    int64_t taken = 0;
    uint64_t until_ms = clock_mono_ms() + TAKE_MS;
    for (;;) {
        if (!database_number(db, take, &taken, e)) return false;
        if (taken) return true;
        if (clock_mono_ms() >= until_ms) break;
        nanosleep(&(struct timespec){.tv_nsec = TAKE_AGAIN_NS}, NULL);
    }
    return err_set(e, ERR_FAILED_PRECONDITION,
                   "store %s: another weir has it; end that one, name another schema with "
                   "store.schema, or give all that share it a name with store.replica",
                   db->path);
}

/* Without it the server acknowledges a commit a moment before it is on its disk. */
static bool set_durability(struct core *core, struct err *e) {
    return core->durability == STORE_FULL ||
           database_run(&core->db, "SET synchronous_commit = off", e);
}

bool core_postgres_connect(struct core *core, const struct store_options *options,
                           struct err *e) {
    struct database *db = &core->db;
    const struct postgres_session_options session = {
        .url = options->postgres, .schema = options->schema, .timeout_ms = STATEMENT_MS};
    if (!database_open_postgres(db, &session, e) || !schema_postgres_check(db, e) ||
        !take_store(core, e) || !set_durability(core, e))
        return false;
    if (core->epoch || core->replica.shared) return true;
    return database_number(db, "SELECT value FROM meta WHERE name = 'epoch'", &core->epoch, e);
}

bool core_postgres_is_ours(struct core *core, struct err *e) {
    int64_t epoch = 0;
    struct database *db = &core->db;
    if (!database_number(db, "SELECT value FROM meta WHERE name = 'epoch'", &epoch, e))
        return false;
    if (epoch == core->epoch) return true;
    return err_set(e, ERR_FAILED_PRECONDITION,
                   "store %s: another weir had it meanwhile; start this one again", db->path);
}

bool core_postgres_is_lost(const struct core *core) {
    return database_is_postgres(&core->db) && postgres_session_lost(core->db.postgres);
}
