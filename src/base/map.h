/* map: strings to pointers.
 *
 * Keys often come from peers, so the hash (SipHash-1-3) uses a random secret drawn at start.
 * A peer cannot choose keys that collide.
 *
 * Memory   owns copies of its keys; borrows the values, which the caller frees.
 * Threads  none; the owner of the map guards it.
 * Source   Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
 */
#ifndef WEIR_BASE_MAP_H
#define WEIR_BASE_MAP_H

#include "base/str.h"

struct map;

struct map *map_new(void);
void map_free(struct map *map);

/* The value under `key`, or NULL. */
void *map_find(const struct map *map, struct str key);

/* Store `value` (not NULL) under `key`; returns the previous value, or NULL. */
void *map_put(struct map *map, struct str key, void *value);

/* Remove `key`; returns its value, or NULL when there was none. */
void *map_remove(struct map *map, struct str key);

size_t map_count(const struct map *map);

/* Walk the map in no particular order. Start with *cursor = 0; false ends the walk. The map
 * must not change during it. */
bool map_next(const struct map *map, size_t *cursor, struct str *ret_key, void **ret_value);

/* The keyed hash itself, for tables that manage their own slots. */
uint64_t map_hash(struct str key);

#endif
