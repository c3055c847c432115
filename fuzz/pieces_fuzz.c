/* pieces: whatever a model says and however it arrives, nothing is lost, no piece is too short
 * or too long or cuts a character, and where a cut could be made beside no white space it was.
 *
 *     STEP text ...      the text arrives STEP + 1 bytes at a time, repaired to UTF-8 first
 */
#include "contract/nimi/pieces.h"

#include "base/utf8.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_ascii_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* As the protocol's own SDK reads: each piece trimmed, what is left of it joined. */
static void check_piece(struct str piece, struct str behind) {
    assert(piece.len >= PIECE_MIN_BYTES && piece.len <= PIECE_MAX_BYTES);
    assert(utf8_valid(piece));
    if (piece.len > PIECE_MAX_BYTES - 4) return; /* cut anyway, between characters */
    assert(!is_ascii_space(piece.at[piece.len - 1]));
    assert(behind.len && !is_ascii_space(behind.at[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf text, told;
    struct pieces pieces;
    if (size == 0) return 0;
    size_t step = (size_t)data[0] + 1;
    buf_init(&text, 4 * size + 4);
    buf_init(&told, 4 * size + 4);
    utf8_append_repaired(&text, str_of((const char *)data + 1, size - 1));
    pieces_init(&pieces);
    for (struct str rest = buf_str(&text); rest.len;) {
        size_t len = utf8_cut(rest, step < 4 ? 4 : step);
        pieces_put(&pieces, str_head(rest, len));
        rest = str_skip(rest, len);
        for (struct str piece; (piece = pieces_ready(&pieces)).len;) {
            check_piece(piece, str_skip(pieces_rest(&pieces), piece.len));
            buf_append(&told, piece);
            pieces_sent(&pieces, piece.len);
        }
    }
    buf_append(&told, pieces_rest(&pieces));
    assert(str_equal(buf_str(&told), buf_str(&text)));
    pieces_done(&pieces);
    buf_done(&told);
    buf_done(&text);
    return 0;
}
