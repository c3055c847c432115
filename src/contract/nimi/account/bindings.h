/* bindings: what apps may do on behalf of the account, each for one relation of an app.
 *
 * Only bindings that are not over are held. They do not survive the process.
 *
 * Memory   owns copies.
 * Threads  none; the account's lock guards them.
 * Source   contracts/nimi.md 1.10 ScopedAppBindingRelation.
 */
#ifndef WEIR_CONTRACT_NIMI_ACCOUNT_BINDINGS_H
#define WEIR_CONTRACT_NIMI_ACCOUNT_BINDINGS_H

#include "base/arena.h"
#include "base/list.h"
#include "contract/nimi/account/states.h"
#include "contract/nimi/ulid.h"
#include "proto/nimi.pb.h"

#define BINDINGS_MAX 1024
#define BINDINGS_PER_INSTANCE 64 /* of an app */
#define BINDINGS_RELATION_MAX_BYTES (8 * KIB)
#define BINDINGS_TTL_S 3600 /* unless the request says how long */
#define BINDINGS_TTL_MAX_S 86400

struct binding {
    struct list link;
    struct arena *arena;
    char id[ULID_LEN + 1];
    enum binding_state state;
    uint64_t expires_ms; /* in the loop's time */
    struct google_timestamp issued, expires;
    struct nimi_scoped_app_binding_relation relation; /* its texts are in the arena */
};

struct bindings {
    struct list all;
    size_t count;
};

void bindings_init(struct bindings *bindings);
void bindings_done(struct bindings *bindings);

/* Add a copy of the relation, with a new id, as ISSUED. NULL: there are too many, or the
 * relation is too large. */
struct binding *bindings_add(struct bindings *bindings,
                             const struct nimi_scoped_app_binding_relation *relation);
void bindings_remove(struct bindings *bindings, struct binding *binding);

struct binding *bindings_find(struct bindings *bindings, struct str id);

/* The only function that changes a binding's state. */
void binding_move(struct binding *binding, enum binding_state next, int reason);

/* Whether two are about the same parts of an app, agent and world. */
bool binding_same_relation(const struct nimi_scoped_app_binding_relation *one,
                           const struct nimi_scoped_app_binding_relation *other);

#endif
