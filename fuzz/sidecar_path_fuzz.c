/* Any path: its plain form is no longer, never empty, in lower case, without empty or dotted
 * segments; and the same path in percent signs has the same one. */
#include "sidecar/path.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_plain(struct str plain, size_t size) {
    assert(plain.len >= 1 && plain.len <= (size ? size : 1));
    for (size_t i = 0; i < plain.len; i++) assert(plain.at[i] < 'A' || plain.at[i] > 'Z');
    struct str rest = plain;
    bool first = true;
    while (rest.at) {
        struct str segment = str_split(rest, '/', &rest);
        bool end = first || (!rest.at && plain.len == 1);
        assert(end || segment.len);
        assert(!str_equal(segment, STR(".")) && !str_equal(segment, STR("..")));
        first = false;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf plain, coded, again;
    if (size > KIB) return 0;
    buf_init(&plain, 4 * KIB);
    buf_init(&coded, 4 * KIB);
    buf_init(&again, 4 * KIB);
    path_plain(str_of(data, size), &plain);
    check_plain(buf_str(&plain), size);
    if (!memchr(data, '%', size)) {
        for (size_t i = 0; i < size; i++) buf_printf(&coded, "%%%02x", data[i]);
        path_plain(buf_str(&coded), &again);
        assert(str_equal(buf_str(&plain), buf_str(&again)));
    }
    buf_done(&plain);
    buf_done(&coded);
    buf_done(&again);
    return 0;
}
