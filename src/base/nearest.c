#include "base/nearest.h"

#include <stdio.h>

/* Longer texts are not mistyped names. */
#define NAME_MAX_BYTES 64

static char letter(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static size_t least(size_t a, size_t b, size_t c) {
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Number of letters to add, drop, change or swap with a neighbour to turn one name into the
 * other. Only three rows of the usual table are kept. */
static size_t edits_between(struct str a, struct str b) {
    size_t rows[3][NAME_MAX_BYTES + 1];
    size_t *older = rows[0], *old = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.len; j++) old[j] = j;

    for (size_t i = 1; i <= a.len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            char x = letter(a.at[i - 1]), y = letter(b.at[j - 1]);
            row[j] = least(old[j] + 1, row[j - 1] + 1, old[j - 1] + (x != y));
            bool swapped =
                i > 1 && j > 1 && x == letter(b.at[j - 2]) && y == letter(a.at[i - 2]);
            if (swapped && older[j - 2] + 1 < row[j]) row[j] = older[j - 2] + 1;
        }
        size_t *spare = older;
        older = old, old = row, row = spare;
    }
    return old[b.len];
}

void nearest_init(struct nearest *nearest, struct str wanted) {
    *nearest = (struct nearest){.wanted = wanted, .found = STR_EMPTY};
}

void nearest_offer(struct nearest *nearest, struct str known) {
    struct str wanted = nearest->wanted;
    if (wanted.len == 0 || wanted.len > NAME_MAX_BYTES) return;
    if (known.len == 0 || known.len > NAME_MAX_BYTES) return;

    size_t longer = wanted.len > known.len ? wanted.len : known.len;
    size_t edits = edits_between(wanted, known);
    if (edits > (longer + 1) / 3) return; /* more than a third differs: another name */
    if (nearest->found.len && edits >= nearest->edits) return;
    nearest->found = known;
    nearest->edits = edits;
}

struct str nearest_name(struct str wanted, const char *const *known) {
    struct nearest nearest;
    nearest_init(&nearest, wanted);
    for (; *known; known++) nearest_offer(&nearest, str_from(*known));
    return nearest.found;
}

const char *nearest_hint(struct nearest *nearest) {
    if (nearest->found.len == 0) return "";
    snprintf(nearest->hint, sizeof(nearest->hint), "; did you mean '" STR_FMT "'?",
             STR_ARG(nearest->found));
    return nearest->hint;
}
