/* A page token from nowhere is read or refused; one of ours leads on to where it was made. */
#include "contract/nimi/page.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct str filter[] = {STR_INIT("/Service/List"), STR_INIT("a")};
    struct str input = str_of(data, size);
    struct page page, next;
    struct fault fault;
    struct buf token;
    size_t index;
    if (page_begin((int32_t)size, input, filter, ARRAY_LEN(filter), &page, &fault)) {
        assert(page.size >= 1 && page.size <= PAGE_SIZE_MAX);
        assert(input.len == 0 || page.cursor.len > 0);
        assert(page_index(&page, &index, &fault) || fault.reason == NIMI_PAGE_TOKEN_INVALID);
    } else {
        assert(fault.reason == NIMI_PAGE_TOKEN_INVALID);
    }

    /* A cursor that fits into a token, and text. */
    if (!page_begin(0, STR_EMPTY, filter, ARRAY_LEN(filter), &page, &fault)) return 0;
    struct str cursor = str_head(input, 64);
    for (size_t i = 0; i < cursor.len; i++) {
        if (cursor.at[i] < ' ' || cursor.at[i] > '~') return 0;
    }
    if (cursor.len == 0) return 0;
    buf_init(&token, PAGE_TOKEN_MAX_BYTES);
    page_next(&page, cursor, &token);
    bool read = page_begin(0, buf_str(&token), filter, ARRAY_LEN(filter), &next, &fault);
    assert(read && str_equal(next.cursor, cursor));
    (void)read;
    buf_done(&token);
    return 0;
}
