/* replicas: several stores of one schema in PostgreSQL, each a replica of its own.
 *
 * Only with WEIR_TEST_POSTGRES (fixture.h): a test begins with REPLICAS_NEED_A_SERVER(). As with
 * a fixture, every helper runs the loop until its answer has come.
 */
#ifndef WEIR_TEST_STORE_REPLICAS_H
#define WEIR_TEST_STORE_REPLICAS_H

#include "store/fixture.h"

#include "store/lease.h"

#define REPLICAS_NEED_A_SERVER()                                                               \
    if (!fixture_postgres().len) skip()

struct replica {
    struct fixture *f;
    struct store *store;
};

static void replica_opened(const struct err *failed, void *ctx) {
    struct replica *replica = ctx;
    fixture_opened(failed, replica->f);
}

/* The test takes over when it likes, and sees by its writes who was fenced. */
static void replica_on_word(void *ctx) {
    (void)ctx;
}

/* The place of an open store among those that the fixture closes; of NULL: a free one. */
static struct store **replica_noted(struct fixture *f, const struct store *store) {
    for (size_t i = 0; i < FIXTURE_REPLICAS_MAX; i++)
        if (f->replicas[i] == store) return &f->replicas[i];
    fail_msg("a test has at most %d replicas at a time", FIXTURE_REPLICAS_MAX);
    return NULL;
}

/* With a lease that no test sees the end of. False: it was refused, and f->failed says why. */
__attribute__((unused)) static bool replica_try_open(struct fixture *f, struct replica *replica,
                                                     const char *name, struct str url) {
    *replica = (struct replica){.f = f};
    const struct store_options options = {.folder = str_from(f->folder),
                                          .postgres = url,
                                          .schema = str_from(f->schema),
                                          .replica = str_from(name),
                                          .lease_ms = 600000,
                                          .on_died = replica_on_word,
                                          .on_lost = replica_on_word,
                                          .loop = f->loop,
                                          .on_open = replica_opened,
                                          .ctx = replica};
    struct store **noted = replica_noted(f, NULL);
    replica->store = *noted = store_open(&options);
    loop_run(f->loop);
    return f->failed.code == ERR_NONE;
}

__attribute__((unused)) static void replica_open_at(struct fixture *f, struct replica *replica,
                                                    const char *name, struct str url) {
    if (!replica_try_open(f, replica, name, url)) fail_msg("%s", f->failed.text);
}

__attribute__((unused)) static void replica_open(struct fixture *f, struct replica *replica,
                                                 const char *name) {
    replica_open_at(f, replica, name, fixture_postgres());
}

__attribute__((unused)) static void replica_close(struct replica *replica) {
    if (replica->store) *replica_noted(replica->f, replica->store) = NULL;
    store_close(replica->store);
    replica->store = NULL;
}

/* False: it was refused, and f->failed says why. */
__attribute__((unused)) static bool replica_try_write(struct replica *replica,
                                                      struct store_row row) {
    struct fixture *f = replica->f;
    f->store = replica->store;
    bool ok = fixture_try_write(f, &row, 1);
    f->store = NULL;
    return ok;
}

__attribute__((unused)) static void replica_write(struct replica *replica,
                                                  struct store_row row) {
    if (!replica_try_write(replica, row)) fail_msg("%s", replica->f->failed.text);
}

/* A run that has begun, and is not over. */
__attribute__((unused)) static struct store_row begun_run(uint64_t run, const char *session) {
    struct row_text row;
    row_begin(&row);
    row_section(&row, run, 1);
    row_event(&row, started(session));
    row_event(&row, text("hm"));
    return row_end(&row, run);
}

/* What another client of the server sees. */
__attribute__((unused)) static int64_t server_number(struct fixture *f, const char *sql) {
    struct database db;
    struct err e;
    int64_t number = -1;
    fixture_database(f, &db);
    if (!database_number(&db, sql, &number, &e)) fail_msg("%s", e.text);
    database_close(&db);
    return number;
}

__attribute__((unused)) static void server_run(struct fixture *f, const char *sql) {
    struct database db;
    struct err e;
    fixture_database(f, &db);
    if (!database_run(&db, sql, &e)) fail_msg("%s", e.text);
    database_close(&db);
}

/* As another replica does with one whose time is over. */
__attribute__((unused)) static void server_fence(struct fixture *f, const char *name) {
    char sql[128];
    snprintf(sql, sizeof(sql),
             "UPDATE replica SET fenced = 1, until = '-infinity' WHERE name = '%s'", name);
    server_run(f, sql);
}

/* --- leases ------------------------------------------------------------------------------- */

struct asking {
    struct fixture *f;
    struct lease_request request;
};

static void asking_done(struct lease_request *request, const struct err *failed, void *ctx) {
    struct asking *asking = ctx;
    (void)request;
    fixture_opened(failed, asking->f);
}

__attribute__((unused)) static struct lease_key key_named(const char *name) {
    const struct str text = str_from(name);
    return lease_key(LEASE_OF_SESSION, &text, 1);
}

static bool lease_asked(struct replica *replica, const char *name, bool recovers) {
    struct asking asking = {.f = replica->f};
    asking.request = (struct lease_request){
        .key = key_named(name), .recovers = recovers, .on_done = asking_done, .ctx = &asking};
    lease_ask(replica->store, replica->f->loop, &asking.request);
    loop_run(replica->f->loop);
    return asking.request.held;
}

__attribute__((unused)) static bool lease_is_given(struct replica *replica, const char *name,
                                                   bool recovers) {
    bool held = lease_asked(replica, name, recovers);
    if (replica->f->failed.code) fail_msg("%s", replica->f->failed.text);
    return held;
}

/* False also if the store could not say. */
__attribute__((unused)) static bool lease_is_tried(struct replica *replica, const char *name) {
    return lease_asked(replica, name, false) && replica->f->failed.code == ERR_NONE;
}

#endif
