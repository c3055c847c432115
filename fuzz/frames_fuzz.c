/* frames: the heads of a peer's frames, cut as the input says.
 *
 * The first byte says in how large pieces the rest comes; in pieces and in one it must show
 * the same heads, and all of it must be taken.
 */
#include "server/frames.h"

#include "base/buf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds) abort();
}

static void walk(struct frames *frames, struct str bytes, struct buf *seen) {
    struct frame_head head;
    while (frames_next(frames, &bytes, &head)) {
        must(head.stream >= 0);
        buf_printf(seen, "%u:%d:%u ", head.type, head.stream, head.first4);
    }
    must(bytes.len == 0);
}

static void walk_in_pieces(struct str input, size_t piece, struct buf *seen) {
    struct frames frames;
    frames_init(&frames);
    for (; input.len; input = str_skip(input, piece))
        walk(&frames, str_head(input, piece), seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct str input = str_of(data + 1, size - 1);
    struct buf pieces, one;
    buf_init(&pieces, 1 * MIB);
    buf_init(&one, 1 * MIB);
    walk_in_pieces(input, data[0] + 1u, &pieces);
    walk_in_pieces(input, input.len + 1, &one);
    must(str_equal(buf_str(&pieces), buf_str(&one)));
    buf_done(&pieces);
    buf_done(&one);
    return 0;
}
