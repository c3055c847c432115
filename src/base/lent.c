#include "base/lent.h"

#include "base/mem.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define LENT_IN_BLOCKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LENT_IN_BLOCKS 1
#endif
#endif
#ifndef LENT_IN_BLOCKS
#define LENT_IN_BLOCKS 0
#endif

bool lent_keep(struct lent lent, struct arena *arena, struct str *ret) {
    return arena_str(arena, lent.inside, ret);
}

struct lent lent_begin(struct str bytes) {
    if (!LENT_IN_BLOCKS) return (struct lent){bytes};
    char *block = mem_alloc(bytes.len);
    if (bytes.len) memcpy(block, bytes.at, bytes.len);
    return (struct lent){str_of(block, bytes.len)};
}

void lent_end(struct lent lent) {
    if (LENT_IN_BLOCKS) free((char *)(uintptr_t)lent.inside.at);
}
