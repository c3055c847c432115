#include "base/arena.h"

#include "base/pool.h"

#include <stdalign.h>
#include <stdlib.h>

#define ARENA_FIRST_BYTES 512
#define ARENA_LARGEST_BYTES (64 * KIB)

struct block {
    struct block *next;
    size_t used, room;
    alignas(max_align_t) char bytes[];
};

/* With its first block, as nearly every arena needs one. */
struct arena {
    struct block *newest; /* `first` is the last in the list */
    size_t used_bytes, max_bytes;
    struct block first;
};

#define ARENA_BYTES (sizeof(struct arena) + ARENA_FIRST_BYTES)

static _Thread_local struct pool arenas = POOL(ARENA_BYTES, 512);

struct arena *arena_new(size_t max_bytes) {
    struct arena *arena = pool_take(&arenas);
    mem_count(ARENA_BYTES);
    *arena = (struct arena){
        .newest = &arena->first, .max_bytes = max_bytes, .first = {.room = ARENA_FIRST_BYTES}};
    return arena;
}

void arena_free(struct arena *arena) {
    if (!arena) return;
    for (struct block *block = arena->newest; block != &arena->first;) {
        struct block *next = block->next;
        mem_uncount(sizeof(*block) + block->room);
        free(block);
        block = next;
    }
    mem_uncount(ARENA_BYTES);
    pool_give(&arenas, arena);
}

static struct block *add_block(struct arena *arena, size_t at_least) {
    size_t room = arena->newest->room * 2;
    if (room > ARENA_LARGEST_BYTES) room = ARENA_LARGEST_BYTES;
    if (room < at_least) room = at_least;
    struct block *block = mem_alloc(sizeof(*block) + room);
    mem_count(sizeof(*block) + room);
    *block = (struct block){.next = arena->newest, .room = room};
    arena->newest = block;
    return block;
}

static void *arena_take(struct arena *arena, size_t size) {
    if (size > arena->max_bytes - arena->used_bytes) return NULL;
    size_t need = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct block *block = arena->newest;
    if (need > block->room - block->used) block = add_block(arena, need);
    void *at = block->bytes + block->used;
    block->used += need;
    arena->used_bytes += size;
    return at;
}

void *arena_alloc(struct arena *arena, size_t size) {
    void *at = arena_take(arena, size);
    return at ? memset(at, 0, size) : NULL;
}

/* Returns what follows the copy and its NUL. */
static char *copy_text(char *at, struct str s, struct str *ret) {
    if (s.len) memcpy(at, s.at, s.len);
    at[s.len] = '\0';
    *ret = str_of(at, s.len);
    return at + s.len + 1;
}

bool arena_str(struct arena *arena, struct str s, struct str *ret) {
    char *copy = arena_take(arena, s.len + 1);
    if (!copy) return false;
    copy_text(copy, s, ret);
    return true;
}

bool arena_keep_texts(struct arena *arena, struct str *const texts[], size_t count) {
    size_t len = 0;
    for (size_t i = 0; i < count; i++) len += texts[i]->len + 1;
    char *at = arena_take(arena, len);
    if (!at) return false;
    for (size_t i = 0; i < count; i++) at = copy_text(at, *texts[i], texts[i]);
    return true;
}

size_t arena_used(const struct arena *arena) {
    return arena->used_bytes;
}
