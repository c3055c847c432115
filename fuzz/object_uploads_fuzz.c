/* A list from a storage is read or refused; what is read is whole. A range likewise. */
#include "object/get.h"
#include "object/uploads.h"

#include <assert.h>

static void check_list(struct str text) {
    struct arena *arena = arena_new(4 * MIB);
    struct object_uploads_page page;
    struct err e;
    if (object_uploads_read(text, arena, &page, &e)) {
        for (size_t i = 0; i < page.count; i++)
            assert(page.uploads[i].key.len > 0 && page.uploads[i].id.len > 0);
    } else {
        assert(e.code == ERR_MALFORMED);
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = str_of(data, size);
    uint64_t from, count, whole;
    if (size > 64 * KIB) return 0;
    check_list(text);
    if (object_range_read(text, &from, &count, &whole))
        assert(from <= whole && count <= whole - from);
    return 0;
}
