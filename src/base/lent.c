#include "base/lent.h"

#include "base/mem.h"

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

/* The block is exactly as long as the bytes, so the sanitizer catches a read past the end. */
struct lent lent_begin(struct str bytes, struct text *block) {
    *block = (struct text){0};
    if (!LENT_IN_BLOCKS) return (struct lent){bytes};
    *block = (struct text){mem_alloc(bytes.len), bytes.len};
    if (bytes.len) memcpy(block->at, bytes.at, bytes.len);
    return (struct lent){text_str(*block)};
}

void lent_end(struct text *block) {
    text_done(block);
}
