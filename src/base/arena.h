/* arena: memory with one lifetime.
 *
 * A run, a call or a parsed document allocates from its arena, and one call frees everything.
 * Blocks start small and grow, so an arena that holds little costs little.
 *
 * Memory   owns every byte it hands out, until arena_free().
 * Threads  none; one arena belongs to one loop.
 */
#ifndef WEIR_BASE_ARENA_H
#define WEIR_BASE_ARENA_H

#include "base/str.h"

struct arena;

/* An arena that hands out at most `max_bytes` in all. */
struct arena *arena_new(size_t max_bytes);
void arena_free(struct arena *arena);

/* Zeroed bytes aligned for any type, or NULL when the arena's limit is reached. */
void *arena_alloc(struct arena *arena, size_t size);

/* One zeroed object, or NULL at the limit. */
#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))

/* A copy of `s` that also ends in NUL (not counted). ret is untouched at the limit. */
MUST_CHECK bool arena_str(struct arena *arena, struct str s, struct str *ret);

/* Copy `count` texts as arena_str() does, at once: each of `texts` points at the text that is
 * copied, and then at its copy. At the limit nothing changes. */
MUST_CHECK bool arena_keep_texts(struct arena *arena, struct str *const texts[], size_t count);

/* Bytes handed out so far. */
size_t arena_used(const struct arena *arena);

#endif
