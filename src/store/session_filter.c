#include "store/session_filter.h"

#include "base/map.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>

#define LAYERS_MAX 22       /* the last layer alone holds two billion sessions */
#define FIRST_SESSIONS 1024 /* in the first layer; a power of two */
#define BITS_PER_SESSION 16 /* with four probes, a full layer has a false positive in 400 */
#define PROBES 4
#define WORD_BITS 64

struct layer {
    uint64_t bit_mask; /* bits - 1, a power of two */
    _Atomic uint64_t words[];
};

struct session_filter {
    _Atomic(struct layer *) layers[LAYERS_MAX];
    size_t newest; /* the store's, as `held` */
    size_t held;   /* sessions in the newest layer */
};

struct session_filter *session_filter_new(void) {
    return MEM_NEW(struct session_filter);
}

void session_filter_free(struct session_filter *known) {
    if (!known) return;
    for (size_t i = 0; i < LAYERS_MAX; i++) free(atomic_load(&known->layers[i]));
    free(known);
}

/* A keyed hash, so that callers cannot choose sessions that collide with known ones. */
static uint64_t key_hash(struct str workspace, struct str user, struct str session) {
    uint64_t parts[] = {map_hash(workspace), map_hash(user), map_hash(session)};
    return map_hash(str_of(parts, sizeof(parts)));
}

/* Bit number `probe` of a hash. Two halves give as many positions as needed. */
static uint64_t bit_of(const struct layer *layer, uint64_t hash, unsigned probe) {
    uint64_t step = (hash >> 32) | (hash << 32) | 1;
    return (hash + probe * step) & layer->bit_mask;
}

static bool layer_has(const struct layer *layer, uint64_t hash) {
    for (unsigned probe = 0; probe < PROBES; probe++) {
        uint64_t bit = bit_of(layer, hash, probe);
        uint64_t word =
            atomic_load_explicit(&layer->words[bit / WORD_BITS], memory_order_acquire);
        if (!(word >> (bit % WORD_BITS) & 1)) return false;
    }
    return true;
}

static bool has(const struct session_filter *known, uint64_t hash) {
    for (size_t i = 0; i < LAYERS_MAX; i++) {
        const struct layer *layer =
            atomic_load_explicit(&known->layers[i], memory_order_acquire);
        if (!layer) return false;
        if (layer_has(layer, hash)) return true;
    }
    return false;
}

static struct layer *layer_with_room(struct session_filter *known) {
    struct layer *layer = atomic_load(&known->layers[known->newest]);
    size_t room = (size_t)FIRST_SESSIONS << known->newest;
    if (layer && (known->held < room || known->newest == LAYERS_MAX - 1)) return layer;
    if (layer) {
        known->newest++;
        known->held = 0;
        room *= 2;
    }
    layer = mem_zero(1, sizeof(*layer) + room * BITS_PER_SESSION / 8);
    layer->bit_mask = room * BITS_PER_SESSION - 1;
    atomic_store_explicit(&known->layers[known->newest], layer, memory_order_release);
    return layer;
}

void session_filter_add(struct session_filter *known, struct str workspace, struct str user,
                        struct str session) {
    uint64_t hash = key_hash(workspace, user, session);
    if (has(known, hash)) return;
    struct layer *layer = layer_with_room(known);
    for (unsigned probe = 0; probe < PROBES; probe++) {
        uint64_t bit = bit_of(layer, hash, probe);
        atomic_fetch_or_explicit(&layer->words[bit / WORD_BITS],
                                 UINT64_C(1) << (bit % WORD_BITS), memory_order_release);
    }
    known->held++;
}

bool session_filter_perhaps(const struct session_filter *known, struct str workspace,
                            struct str user, struct str session) {
    return has(known, key_hash(workspace, user, session));
}
