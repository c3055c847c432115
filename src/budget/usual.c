#include "budget/usual.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "store/costs.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#define KEY_MAX_BYTES (64 * KIB)
#define KEEP_EVERY 8 /* store every eighth call, once enough are known */
#define SAMPLE_MAX_BYTES 48

struct pair {
    struct buf key; /* the map's key; ends with the two names: */
    struct str agent, model;
    int64_t cost_nano[USUAL_KEPT], tokens[USUAL_KEPT];
    size_t calls; /* since the start; the newest is at (calls - 1) % USUAL_KEPT */
    struct usual usual;
};

struct usuals {
    pthread_mutex_t lock;
    struct map *pairs;
    struct store *store; /* may be NULL */
    struct loop *loop;
    struct costs_ask *reading;
};

static costs_read_fn usual_on_read;

struct usuals *usuals_new(struct store *store, struct loop *loop) {
    struct usuals *usuals = MEM_NEW(struct usuals);
    pthread_mutex_init(&usuals->lock, NULL);
    usuals->pairs = map_new();
    usuals->store = store;
    usuals->loop = loop;
    if (store) usuals->reading = costs_read_start(store, loop, usual_on_read, usuals);
    return usuals;
}

static void pair_free(struct pair *pair) {
    buf_done(&pair->key);
    free(pair);
}

void usuals_free(struct usuals *usuals) {
    size_t at = 0;
    struct str key;
    void *pair;
    if (!usuals) return;
    costs_forget(usuals->reading);
    while (map_next(usuals->pairs, &at, &key, &pair)) pair_free(pair);
    map_free(usuals->pairs);
    pthread_mutex_destroy(&usuals->lock);
    free(usuals);
}

/* The key begins with a length, so that no two pairs share one. */
static bool usual_write_key(struct buf *key, struct str agent, struct str model) {
    buf_init(key, KEY_MAX_BYTES);
    buf_append_u64(key, agent.len);
    buf_append_byte(key, ':');
    buf_append(key, agent);
    buf_append(key, model);
    return buf_ok(key);
}

/* --- the percentile ----------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* The smallest value that at least 95 percent of them do not exceed. */
static int64_t percentile_95(const int64_t *all, size_t count) {
    int64_t sorted[USUAL_KEPT];
    memcpy(sorted, all, count * sizeof(*all));
    qsort(sorted, count, sizeof(*sorted), ascending);
    return sorted[(count * 95 + 99) / 100 - 1];
}

static void pair_add(struct pair *pair, struct amount spent) {
    size_t at = pair->calls++ % USUAL_KEPT;
    size_t known = pair->calls < USUAL_KEPT ? pair->calls : USUAL_KEPT;
    pair->cost_nano[at] = spent.cost_nano;
    pair->tokens[at] = spent.tokens;
    pair->usual = (struct usual){
        known, {percentile_95(pair->cost_nano, known), percentile_95(pair->tokens, known)}};
}

/* --- stored form: "cost tokens;" per call, oldest first ----------------------------------- */

static void usual_keep(struct usuals *usuals, const struct pair *pair) {
    struct buf bytes;
    size_t known = pair->usual.known;
    if (pair->calls > USUAL_ENOUGH && pair->calls % KEEP_EVERY) return;
    buf_init(&bytes, USUAL_KEPT * SAMPLE_MAX_BYTES);
    for (size_t i = 0; i < known; i++) {
        size_t at = (pair->calls - known + i) % USUAL_KEPT;
        buf_printf(&bytes, "%" PRId64 " %" PRId64 ";", pair->cost_nano[at], pair->tokens[at]);
    }
    const struct costs_entry entry = {pair->agent, pair->model, buf_str(&bytes)};
    costs_put(usuals->store, usuals->loop, &entry);
    buf_done(&bytes);
}

static bool read_sample(struct str *rest, struct amount *ret) {
    if (rest->len == 0) return false;
    struct str sample = str_split(*rest, ';', rest), tokens;
    struct str cost = str_split(sample, ' ', &tokens);
    return str_to_i64(cost, &ret->cost_nano) && str_to_i64(tokens, &ret->tokens) &&
           ret->cost_nano >= 0 && ret->tokens >= 0;
}

/* --- by name ------------------------------------------------------------------------------ */

struct usual usuals_of(struct usuals *usuals, struct str agent, struct str model) {
    struct usual usual = {0};
    struct buf key;
    if (usual_write_key(&key, agent, model)) {
        pthread_mutex_lock(&usuals->lock);
        const struct pair *pair = map_find(usuals->pairs, buf_str(&key));
        if (pair) usual = pair->usual;
        pthread_mutex_unlock(&usuals->lock);
    }
    buf_done(&key);
    return usual;
}

/* Takes the key. NULL: there are too many pairs. */
static struct pair *pair_of(struct usuals *usuals, struct buf key, size_t agent_len,
                            size_t model_len) {
    struct pair *pair = map_find(usuals->pairs, buf_str(&key));
    if (pair || map_count(usuals->pairs) >= USUAL_PAIRS) {
        buf_done(&key);
        return pair;
    }
    pair = MEM_NEW(struct pair);
    pair->key = key;
    pair->model = str_skip(buf_str(&pair->key), key.len - model_len);
    pair->agent =
        str_head(str_skip(buf_str(&pair->key), key.len - model_len - agent_len), agent_len);
    map_put(usuals->pairs, buf_str(&pair->key), pair);
    return pair;
}

void usuals_add(struct usuals *usuals, struct str agent, struct str model,
                struct amount spent) {
    struct buf key;
    if (!usual_write_key(&key, agent, model)) {
        buf_done(&key);
        return;
    }
    pthread_mutex_lock(&usuals->lock);
    struct pair *pair = pair_of(usuals, key, agent.len, model.len);
    if (pair) pair_add(pair, spent);
    if (pair && usuals->store) usual_keep(usuals, pair);
    pthread_mutex_unlock(&usuals->lock);
}

static void add_read(struct usuals *usuals, const struct costs_entry *entry) {
    struct str rest = entry->bytes;
    struct amount sample;
    struct buf key;
    if (!usual_write_key(&key, entry->agent, entry->model)) {
        buf_done(&key);
        return;
    }
    bool is_new = !map_find(usuals->pairs, buf_str(&key));
    struct pair *pair = pair_of(usuals, key, entry->agent.len, entry->model.len);
    while (is_new && pair && read_sample(&rest, &sample)) pair_add(pair, sample);
}

/* Stored calls are ignored for a pair that has had a call since the start: its own are
 * newer. */
static void usual_on_read(const struct costs_entry *entries, size_t count,
                          const struct err *failed, void *ctx) {
    struct usuals *usuals = ctx;
    usuals->reading = NULL;
    if (failed) log_warning("budgets: what calls usually cost is not known: %s", failed->text);
    pthread_mutex_lock(&usuals->lock);
    for (size_t i = 0; i < count; i++) add_read(usuals, &entries[i]);
    pthread_mutex_unlock(&usuals->lock);
}
