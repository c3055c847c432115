/* Where a model's text is cut into pieces. */
#include "contract/nimi/pieces.h"

#include "base/utf8.h"
#include "helper/assert_str.h"

static const struct str story = STR_INIT(
    "Once upon  a time\tthere was a weir,\n\n and it stood across \xE3\x80\x80 a stream "
    "of w\xC3\xB6rds \xE2\x80\x94 \xF0\x9F\x8C\x8A and decided how they passed. ");

/* All that comes out when `text` arrives `step` bytes at a time, each piece looked at. */
static void collect(struct str text, size_t step, struct buf *out) {
    struct pieces pieces;
    pieces_init(&pieces);
    for (struct str rest = text; rest.len; rest = str_skip(rest, step)) {
        pieces_put(&pieces, str_head(rest, step));
        for (struct str piece; (piece = pieces_ready(&pieces)).len;) {
            assert_true(piece.len >= PIECE_MIN_BYTES && piece.len <= PIECE_MAX_BYTES);
            buf_append(out, piece);
            pieces_sent(&pieces, piece.len);
        }
    }
    buf_append(out, pieces_rest(&pieces));
    pieces_done(&pieces);
}

static void nothing_is_lost_however_it_arrives(void **state) {
    (void)state;
    for (size_t step = 1; step <= story.len; step++) {
        struct buf seen;
        buf_init(&seen, 64 * KIB);
        collect(story, step, &seen);
        assert_true(str_equal(buf_str(&seen), story));
        buf_done(&seen);
    }
}

static void no_piece_begins_or_ends_with_a_space(void **state) {
    (void)state;
    struct pieces pieces;
    pieces_init(&pieces);
    pieces_put(&pieces, story);
    struct str piece = pieces_ready(&pieces);
    assert_true(piece.len >= PIECE_MIN_BYTES && utf8_valid(piece));
    assert_int_equal(str_trim(piece).len, piece.len);
    assert_true(story.at[piece.len] != ' ');
    pieces_done(&pieces);
}

static void a_few_words_wait_for_the_end(void **state) {
    (void)state;
    struct pieces pieces;
    pieces_init(&pieces);
    pieces_put(&pieces, STR("thirty-two bytes are not yet her"));
    assert_int_equal(pieces_ready(&pieces).len, 0);
    assert_str(pieces_rest(&pieces), "thirty-two bytes are not yet her");
    pieces_put(&pieces, STR("e"));
    assert_str(pieces_ready(&pieces), "thirty-two bytes are not yet her");
    pieces_done(&pieces);
}

static void endless_space_is_cut_anyway(void **state) {
    (void)state;
    struct pieces pieces;
    pieces_init(&pieces);
    for (size_t i = 0; i <= PIECE_MAX_BYTES; i++) pieces_put(&pieces, STR(" "));
    assert_int_equal(pieces_ready(&pieces).len, PIECE_MAX_BYTES);
    pieces_done(&pieces);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_however_it_arrives),
        cmocka_unit_test(no_piece_begins_or_ends_with_a_space),
        cmocka_unit_test(a_few_words_wait_for_the_end),
        cmocka_unit_test(endless_space_is_cut_anyway),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
