#include "provider/hashing.h"

#include <math.h>

#define WORD_WEIGHT 2
#define GRAM_WEIGHT 1
#define GRAM_CHARACTERS 3

/* The bins. The low bits of a hash choose one, the highest bit the sign. */
struct counts {
    int64_t bins[HASHING_DIMENSIONS];
};

/* --- features ----------------------------------------------------------------------------- */

static unsigned char lower(unsigned char byte) {
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte + ('a' - 'A')) : byte;
}

static uint64_t fnv(uint64_t hash, struct str bytes) {
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ lower((unsigned char)bytes.at[i])) * UINT64_C(0x100000001b3);
    return hash;
}

/* Make every bit of the hash depend on every bit of the text. */
static uint64_t mix(uint64_t hash) {
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

/* `kind` distinguishes the word "ing" from the letters "ing". */
static void hashing_count(struct counts *counts, char kind, struct str before, struct str text,
                          struct str after, int64_t weight) {
    uint64_t hash = fnv(UINT64_C(0xcbf29ce484222325), str_of(&kind, 1));
    hash = mix(fnv(fnv(fnv(hash, before), text), after));
    counts->bins[hash % HASHING_DIMENSIONS] += hash >> 63 ? -weight : weight;
}

static bool is_word_byte(char c) {
    unsigned char byte = lower((unsigned char)c);
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte >= 0x80;
}

static size_t character_len(struct str rest) {
    size_t len = 1;
    while (len < rest.len && ((unsigned char)rest.at[len] & 0xc0) == 0x80) len++;
    return len;
}

/* Length in bytes of the first `many` characters, or of all when there are fewer. */
static size_t characters(struct str rest, size_t many) {
    size_t len = 0;
    for (size_t i = 0; i < many && len < rest.len; i++)
        len += character_len(str_skip(rest, len));
    return len;
}

/* Count the letter groups of " word ", including its edges, so that beginnings are distinct. */
static void count_grams(struct counts *counts, struct str word) {
    struct str edge = STR(" ");
    size_t first = characters(word, GRAM_CHARACTERS - 1);
    hashing_count(counts, 'g', edge, str_head(word, first), STR_EMPTY, GRAM_WEIGHT);
    for (struct str rest = word; rest.len; rest = str_skip(rest, character_len(rest))) {
        struct str gram = str_head(rest, characters(rest, GRAM_CHARACTERS));
        bool whole = characters(gram, GRAM_CHARACTERS - 1) < gram.len;
        hashing_count(counts, 'g', STR_EMPTY, gram, whole ? STR_EMPTY : edge, GRAM_WEIGHT);
    }
}

static void count_words(struct counts *counts, struct str text) {
    size_t at = 0;
    while (at < text.len) {
        size_t end = at;
        while (end < text.len && is_word_byte(text.at[end])) end++;
        if (end > at) {
            struct str word = str_of(text.at + at, end - at);
            hashing_count(counts, 'w', STR_EMPTY, word, STR_EMPTY, WORD_WEIGHT);
            count_grams(counts, word);
        }
        at = end + 1;
    }
}

/* --- the vector --------------------------------------------------------------------------- */

/* An integer, so the order of the additions does not matter. */
static uint64_t square_sum(const struct counts *counts) {
    uint64_t sum = 0;
    for (size_t i = 0; i < HASHING_DIMENSIONS; i++)
        sum += (uint64_t)(counts->bins[i] * counts->bins[i]);
    return sum;
}

bool hashing_embed(struct str text, double ret[HASHING_DIMENSIONS]) {
    struct counts counts = {{0}};
    struct str said = str_trim(text);
    if (said.len == 0) return false;
    count_words(&counts, said);
    /* Only punctuation, or words that cancel each other out: hash the text as a whole. */
    if (square_sum(&counts) == 0)
        hashing_count(&counts, 't', STR_EMPTY, said, STR_EMPTY, WORD_WEIGHT);
    double length = sqrt((double)square_sum(&counts));
    for (size_t i = 0; i < HASHING_DIMENSIONS; i++) ret[i] = (double)counts.bins[i] / length;
    return true;
}
