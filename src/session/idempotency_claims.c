#include "session/idempotency_claims.h"

#include "base/mem.h"
#include "base/striped.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define STRIPE_COUNT 1024

struct claim_stripe {
    pthread_mutex_t lock;
    struct list claims;
    uint64_t removed; /* claims removed so far: the mark */
};

struct idempotency_claims {
    struct striped *stripes; /* by the key alone, without its owner */
};

struct idempotency_claims *idempotency_claims_new(void) {
    struct idempotency_claims *claims = MEM_NEW(struct idempotency_claims);
    claims->stripes = STRIPED_NEW(STRIPE_COUNT, struct claim_stripe);
    struct claim_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(claims->stripes, i)); i++)
        list_init(&stripe->claims);
    return claims;
}

void idempotency_claims_free(struct idempotency_claims *claims) {
    if (!claims) return;
    const struct claim_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(claims->stripes, i)); i++)
        assert(list_empty(&stripe->claims));
    striped_free(claims->stripes);
    free(claims);
}

static bool is_of(const struct claim *claim, const struct claim_name *name) {
    return str_equal(claim->name.key, name->key) && str_equal(claim->name.user, name->user) &&
           str_equal(claim->name.workspace, name->workspace);
}

static const struct claim *idempotency_claims_find(const struct claim_stripe *stripe,
                                                   const struct claim_name *name) {
    LIST_EACH(&stripe->claims, link) {
        const struct claim *claim = CONTAINER_OF(link, struct claim, link);
        if (!claim->given_back && is_of(claim, name)) return claim;
    }
    return NULL;
}

static uint64_t newest_given_back(const struct claim_stripe *stripe,
                                  const struct claim_name *name) {
    uint64_t newest = 0;
    LIST_EACH(&stripe->claims, link) {
        const struct claim *claim = CONTAINER_OF(link, struct claim, link);
        if (claim->given_back && claim->run > newest && is_of(claim, name)) newest = claim->run;
    }
    return newest;
}

void idempotency_claims_look(struct idempotency_claims *claims, const struct claim_name *name,
                             struct claim_view *ret) {
    struct claim_stripe *stripe = striped_lock(claims->stripes, name->key);
    const struct claim *claim = idempotency_claims_find(stripe, name);
    *ret = (struct claim_view){.mark = stripe->removed,
                               .given_back = newest_given_back(stripe, name)};
    if (claim) {
        assert(claim->print.len <= CLAIM_PRINT_BYTES);
        ret->run = claim->run;
        ret->seq = claim->seq;
        ret->print_len = claim->print.len;
        if (claim->print.len) memcpy(ret->print, claim->print.at, claim->print.len);
    }
    pthread_mutex_unlock(&stripe->lock);
}

bool idempotency_claims_begin(struct idempotency_claims *claims, const struct claim_name *name,
                              uint64_t mark) {
    struct claim_stripe *stripe = striped_lock(claims->stripes, name->key);
    if (stripe->removed == mark && !idempotency_claims_find(stripe, name)) return true;
    pthread_mutex_unlock(&stripe->lock);
    return false;
}

void idempotency_claims_end(struct idempotency_claims *claims, const struct claim_name *name,
                            struct claim *claim) {
    struct claim_stripe *stripe = striped_of(claims->stripes, name->key);
    if (claim) list_append(&stripe->claims, &claim->link);
    pthread_mutex_unlock(&stripe->lock);
}

void idempotency_claims_give_back(struct idempotency_claims *claims, struct claim *claim) {
    struct claim_stripe *stripe = striped_lock(claims->stripes, claim->name.key);
    claim->given_back = true;
    pthread_mutex_unlock(&stripe->lock);
}

void idempotency_claims_remove(struct idempotency_claims *claims, struct claim *claim) {
    struct claim_stripe *stripe = striped_lock(claims->stripes, claim->name.key);
    list_remove(&claim->link);
    stripe->removed++;
    pthread_mutex_unlock(&stripe->lock);
}

/* --- claims of answers -------------------------------------------------------------------- */

static struct str idempotency_claims_put(char **at, struct str text) {
    char *here = *at;
    if (text.len) memcpy(here, text.at, text.len);
    *at += text.len;
    return str_of(here, text.len);
}

struct claim *claim_new(const struct claim_name *name, struct str print) {
    size_t len = name->workspace.len + name->user.len + name->key.len + print.len;
    struct claim *claim = mem_zero(1, sizeof(struct claim) + len);
    char *at = (char *)(claim + 1);
    list_init(&claim->link);
    claim->name.workspace = idempotency_claims_put(&at, name->workspace);
    claim->name.user = idempotency_claims_put(&at, name->user);
    claim->name.key = idempotency_claims_put(&at, name->key);
    claim->print = idempotency_claims_put(&at, print);
    return claim;
}

void claim_mean(struct claim *claim, uint64_t run, uint64_t seq) {
    claim->run = run;
    claim->seq = seq;
}

void claim_free(struct claim *claim) {
    free(claim);
}
