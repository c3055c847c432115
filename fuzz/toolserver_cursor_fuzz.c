/* An event id is refused, or it is written again byte for byte. */
#include "toolserver/cursor.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = str_of(data, size);
    struct arena *arena = arena_new(64 * KIB);
    struct toolserver_cursor cursor;
    struct buf again;
    if (toolserver_cursor_read(text, arena, &cursor)) {
        buf_init(&again, TOOLSERVER_CURSOR_MAX_BYTES);
        bool written = toolserver_cursor_write(&cursor, &again);
        assert(written && str_equal(buf_str(&again), text));
        (void)written;
        buf_done(&again);
    }
    arena_free(arena);
    return 0;
}
