#include "session/key_leases.h"

#include "base/buf.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdlib.h>

#define KEPT_MS 5000 /* time enough to begin a run, once the key was found free */

struct key_leases {
    pthread_mutex_t lock;
    struct store *store;
    struct idempotency_claims *claims;
    struct list list;
};

struct key_entry_of {
    struct key_leases *leases;
    struct list link;
    struct lease_key key;
    struct claim_name name; /* in `texts` */
    struct buf texts;
    struct loop *loop;
    struct timer timer;
    size_t lookups; /* that are open */
    bool wanted;    /* since the last look */
};

struct key_leases *key_leases_new(struct store *store, struct idempotency_claims *claims) {
    struct key_leases *leases = MEM_NEW(struct key_leases);
    pthread_mutex_init(&leases->lock, NULL);
    leases->store = store;
    leases->claims = claims;
    list_init(&leases->list);
    return leases;
}

void key_leases_free(struct key_leases *leases) {
    if (!leases) return;
    pthread_mutex_destroy(&leases->lock);
    free(leases);
}

static void key_leases_entry_free(struct key_entry_of *entry) {
    timer_stop(&entry->timer);
    buf_done(&entry->texts);
    free(entry);
}

/* With the lock held: a request that wants it again finds it here, or asks after this. */
static bool key_leases_give_back(struct key_entry_of *entry) {
    struct claim_view view;
    bool wanted = entry->wanted;
    entry->wanted = false;
    idempotency_claims_look(entry->leases->claims, &entry->name, &view);
    if (entry->lookups || wanted || view.run) return false;
    list_remove(&entry->link);
    lease_give_back(entry->leases->store, entry->loop, &entry->key);
    return true;
}

static void on_time(void *ctx) {
    struct key_entry_of *entry = ctx;
    struct key_leases *leases = entry->leases;
    pthread_mutex_lock(&leases->lock);
    bool given = key_leases_give_back(entry);
    pthread_mutex_unlock(&leases->lock);
    if (given)
        key_leases_entry_free(entry);
    else
        timer_start(&entry->timer, KEPT_MS);
}

static struct key_entry_of *find_entry(struct key_leases *leases, const struct lease_key *key) {
    LIST_EACH(&leases->list, link) {
        struct key_entry_of *entry = CONTAINER_OF(link, struct key_entry_of, link);
        if (memcmp(entry->key.bytes, key->bytes, LEASE_KEY_BYTES) == 0) return entry;
    }
    return NULL;
}

static struct key_entry_of *add_entry(struct key_leases *leases, const struct lease_key *key,
                                      const struct claim_name *name, struct loop *loop) {
    struct key_entry_of *entry = MEM_NEW(struct key_entry_of);
    entry->leases = leases;
    entry->key = *key;
    entry->name = *name;
    entry->loop = loop;
    struct str *texts[] = {&entry->name.workspace, &entry->name.user, &entry->name.key};
    buf_keep_texts(&entry->texts, texts, ARRAY_LEN(texts));
    timer_init(&entry->timer, loop, on_time, entry);
    timer_start(&entry->timer, KEPT_MS);
    list_append(&leases->list, &entry->link);
    return entry;
}

struct lease_key key_leases_keep(struct key_leases *leases, const struct claim_name *name,
                                 struct loop *loop) {
    const struct str texts[] = {name->workspace, name->user, name->key};
    struct lease_key key = lease_key(LEASE_OF_KEY, texts, ARRAY_LEN(texts));
    pthread_mutex_lock(&leases->lock);
    struct key_entry_of *entry = find_entry(leases, &key);
    if (!entry) entry = add_entry(leases, &key, name, loop);
    entry->wanted = true;
    entry->lookups++;
    pthread_mutex_unlock(&leases->lock);
    return key;
}

/* What it found free may begin now: the lease stays a few seconds more. */
void key_leases_let(struct key_leases *leases, const struct lease_key *key) {
    pthread_mutex_lock(&leases->lock);
    struct key_entry_of *entry = find_entry(leases, key);
    if (entry && entry->lookups) { /* none: the loop of the first one has left */
        entry->wanted = true;
        entry->lookups--;
    }
    pthread_mutex_unlock(&leases->lock);
}

void key_hold_begin(struct key_hold *hold, struct key_leases *leases,
                    const struct claim_name *name, struct loop *loop) {
    if (!leases || !name->key.len) return;
    hold->leases = leases;
    hold->key = key_leases_keep(leases, name, loop);
}

void key_hold_end(struct key_hold *hold) {
    if (hold->leases) key_leases_let(hold->leases, &hold->key);
    hold->leases = NULL;
}

/* The store gives back all that the replica holds. */
void key_leases_leave(struct key_leases *leases, const struct loop *loop) {
    pthread_mutex_lock(&leases->lock);
    LIST_EACH(&leases->list, link) {
        struct key_entry_of *entry = CONTAINER_OF(link, struct key_entry_of, link);
        if (entry->loop != loop) continue;
        list_remove(&entry->link);
        key_leases_entry_free(entry);
    }
    pthread_mutex_unlock(&leases->lock);
}
