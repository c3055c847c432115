#include "base/map.h"

#include "base/mem.h"

#include <assert.h>
#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#define MAP_FIRST_SLOTS 16 /* a power of two */
#define MAP_SPARSE_PART 8  /* it shrinks when fewer than 1 in 8 slots are used */

struct slot {
    uint64_t hash;
    char *key; /* NULL: free */
    size_t key_len;
    void *value;
};

struct map {
    struct slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t used;
};

static uint64_t secret[2];

static void draw_secret(void) {
    ssize_t got = getrandom(secret, sizeof(secret), 0);
    assert(got == sizeof(secret));
    (void)got;
}

static uint64_t rotate(uint64_t x, int bits) {
    return (x << bits) | (x >> (64 - bits));
}

static inline __attribute__((always_inline)) void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

/* The last `count` bytes of `key`, fewer than 8, as a number. */
static inline uint64_t last_bytes(struct str key, size_t count) {
    uint64_t word = 0;
    if (key.len < 8) {
        for (size_t i = 0; i < count; i++)
            word |= (uint64_t)(unsigned char)key.at[i] << (8 * i);
    } else if (count) {
        memcpy(&word, key.at + key.len - 8, 8);
        word = le64toh(word) >> (64 - 8 * count);
    }
    return word;
}

uint64_t map_hash(struct str key) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw_secret);
    uint64_t v[4] = {secret[0] ^ 0x736f6d6570736575u, secret[1] ^ 0x646f72616e646f6du,
                     secret[0] ^ 0x6c7967656e657261u, secret[1] ^ 0x7465646279746573u};
    uint64_t word = 0;
    size_t at = 0;
    for (; at + 8 <= key.len; at += 8) {
        memcpy(&word, key.at + at, 8);
        word = le64toh(word);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = last_bytes(key, key.len - at) | (uint64_t)key.len << 56;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct map *map_new(void) {
    return MEM_NEW(struct map);
}

void map_free(struct map *map) {
    if (!map) return;
    for (size_t i = 0; i < map->slot_count; i++) free(map->slots[i].key);
    free(map->slots);
    free(map);
}

/* The slot that holds `key`, or the one where it would go. */
static struct slot *probe(const struct map *map, struct str key, uint64_t hash) {
    for (size_t i = hash;; i++) {
        struct slot *slot = &map->slots[i & (map->slot_count - 1)];
        if (!slot->key) return slot;
        if (slot->hash == hash && str_equal(str_of(slot->key, slot->key_len), key)) return slot;
    }
}

static void resize(struct map *map, size_t slot_count) {
    struct map resized = {.slots = mem_zero(slot_count, sizeof(struct slot)),
                          .slot_count = slot_count,
                          .used = map->used};
    for (size_t i = 0; i < map->slot_count; i++) {
        const struct slot *slot = &map->slots[i];
        if (slot->key) *probe(&resized, str_of(slot->key, slot->key_len), slot->hash) = *slot;
    }
    free(map->slots);
    *map = resized;
}

void *map_find(const struct map *map, struct str key) {
    if (map->used == 0) return NULL;
    return probe(map, key, map_hash(key))->value;
}

void *map_put(struct map *map, struct str key, void *value) {
    assert(value);
    if ((map->used + 1) * 4 > map->slot_count * 3)
        resize(map, map->slot_count ? map->slot_count * 2 : MAP_FIRST_SLOTS);
    uint64_t hash = map_hash(key);
    struct slot *slot = probe(map, key, hash);
    void *before = slot->value;
    if (!before) {
        *slot = (struct slot){.hash = hash, .key = str_dup(key), .key_len = key.len};
        map->used++;
    }
    slot->value = value;
    return before;
}

/* A key is stored in its own slot or, if that is taken, in the run of used slots after it. So
 * the slots after a freed one move up, unless that would put them before their own slot. */
static void close_gap(struct map *map, size_t gap) {
    size_t mask = map->slot_count - 1;
    for (size_t i = gap + 1; map->slots[i & mask].key; i++) {
        const struct slot *slot = &map->slots[i & mask];
        bool may_move = ((i - slot->hash) & mask) >= ((i - gap) & mask);
        if (!may_move) continue;
        map->slots[gap & mask] = *slot;
        gap = i;
    }
    map->slots[gap & mask] = (struct slot){0};
}

void *map_remove(struct map *map, struct str key) {
    if (map->used == 0) return NULL;
    struct slot *slot = probe(map, key, map_hash(key));
    void *before = slot->value;
    if (!before) return NULL;
    free(slot->key);
    close_gap(map, (size_t)(slot - map->slots));
    map->used--;
    bool sparse = map->used * MAP_SPARSE_PART < map->slot_count;
    if (map->used == 0) {
        free(map->slots);
        *map = (struct map){0};
    } else if (sparse && map->slot_count > MAP_FIRST_SLOTS) {
        resize(map, map->slot_count / 2);
    }
    return before;
}

size_t map_count(const struct map *map) {
    return map->used;
}

bool map_next(const struct map *map, size_t *cursor, struct str *ret_key, void **ret_value) {
    for (; *cursor < map->slot_count; (*cursor)++) {
        const struct slot *slot = &map->slots[*cursor];
        if (!slot->key) continue;
        *ret_key = str_of(slot->key, slot->key_len);
        *ret_value = slot->value;
        (*cursor)++;
        return true;
    }
    return false;
}
