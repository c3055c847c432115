/* The first byte says how the rest is cut into pieces, the second how long a line may be; cutting
 * must change neither the lines nor where it fails. */
#include "wire/lines.h"

#include <assert.h>
#include <stdint.h>

/* Whether every line fits. */
static bool take_lines(struct lines *lines, size_t limit, struct buf *seen) {
    struct str line;
    enum lines_found found;
    while ((found = lines_next(lines, &line)) == LINES_ONE) {
        assert(line.len <= limit);
        assert(str_find_byte(line, '\n') == line.len);
        buf_append(seen, line);
        buf_append_byte(seen, '\n');
    }
    return found == LINES_NONE;
}

static bool read_all(struct str bytes, size_t piece, size_t limit, struct buf *seen) {
    struct lines lines;
    bool fits = true;
    lines_init(&lines, limit);
    for (; bytes.len && fits; bytes = str_skip(bytes, piece))
        fits = lines_feed(&lines, str_head(bytes, piece)) && take_lines(&lines, limit, seen);
    lines_done(&lines);
    return fits;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 65536) return 0;
    struct str input = str_of(data + 2, size - 2);
    struct buf whole, cut;
    buf_init(&whole, size + 1);
    buf_init(&cut, size + 1);
    bool fits = read_all(input, size, data[1], &whole);
    assert(read_all(input, (size_t)data[0] % 16 + 1, data[1], &cut) == fits);
    assert(str_equal(buf_str(&whole), buf_str(&cut)));
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
