/* fixture: a table of sessions on a fake loop, with a store whose answers the test gives, or
 * without one. */
#ifndef WEIR_TEST_SESSION_FIXTURE_H
#define WEIR_TEST_SESSION_FIXTURE_H

#include "fake/store_fake.h"
#include "session/session.h"

enum fixture_store { NO_STORE, WITH_STORE, WITH_SHARED_STORE };

struct sessions {
    struct loop *loop;
    struct store *store; /* NULL: none */
    struct session_table *table;
};

static inline struct sessions sessions_open(enum fixture_store with) {
    struct store *store = with == NO_STORE ? NULL : fake_store_new();
    if (store) fake_store_always_commit(store);
    if (with == WITH_SHARED_STORE) fake_store_share(store);
    return (struct sessions){loop_new_fake(), store, session_table_new(store)};
}

static inline void sessions_shut(struct sessions *sessions) {
    session_table_free(sessions->table);
    fake_store_free(sessions->store);
    loop_free(sessions->loop);
}

#endif
