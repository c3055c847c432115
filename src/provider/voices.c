#include "provider/voices.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/nearest.h"

#include <stdlib.h>

#define RANK_NONE UINT64_MAX

struct voice {
    uint64_t rank;    /* priority: 2 comes before 5 */
    struct str file;  /* "gmw/en" */
    struct str other; /* further languages as listed: "(zh-cmn 5)(zh 5)" */
};

struct voices {
    struct arena *arena;
    struct media_voice *all;
    struct voice *more; /* further data, one for each in `all` */
    size_t count;
};

/* --- reading ------------------------------------------------------------------------------ */

/* Cut off the next word. */
static struct str next_word(struct str *rest) {
    struct str line = str_trim(*rest);
    struct str word = str_head(line, str_find_byte(line, ' '));
    *rest = str_skip(line, word.len);
    return word;
}

static struct str gender_of(struct str age_and_gender) {
    if (str_ends(age_and_gender, STR("/M"))) return STR("male");
    if (str_ends(age_and_gender, STR("/F"))) return STR("female");
    return STR_EMPTY;
}

static bool voices_read_line(struct str line, struct media_voice *ret, struct voice *ret_more) {
    struct str rank = next_word(&line), language = next_word(&line), age = next_word(&line);
    struct str name = next_word(&line), file = next_word(&line);
    uint64_t number;
    if (!file.len || !str_to_u64(rank, &number)) return false;
    *ret = (struct media_voice){.name = name, .language = language, .gender = gender_of(age)};
    *ret_more = (struct voice){number, file, str_trim(line)};
    return true;
}

static bool is_taken(const struct voices *voices, struct str id) {
    for (size_t i = 0; i < voices->count; i++) {
        if (str_equal(voices->all[i].id, id)) return true;
    }
    return false;
}

static struct str id_of(const struct voices *voices, struct str file) {
    struct str id = file, rest = file;
    while (rest.at && rest.len) id = str_split(rest, '/', &rest);
    return id.len == 0 || is_taken(voices, id) ? file : id;
}

static bool keep_line(struct voices *voices, struct str line, struct err *e) {
    struct media_voice voice;
    struct voice more;
    if (!voices_read_line(line, &voice, &more)) return true;
    if (voices->count == VOICES_MAX)
        return err_set(e, ERR_TOO_LARGE, "espeak-ng has more than %d voices", VOICES_MAX);
    voice.id = id_of(voices, more.file);
    voices->all[voices->count] = voice;
    voices->more[voices->count++] = more;
    return true;
}

static bool read_lines(struct voices *voices, struct str text, struct err *e) {
    while (str_find_byte(text, '\n') < text.len) {
        if (!keep_line(voices, str_split(text, '\n', &text), e)) return false;
    }
    return voices->count ||
           err_set(e, ERR_MALFORMED,
                   "espeak-ng --voices named no voice; is its data installed?");
}

bool voices_read(struct str text, struct voices **ret, struct err *e) {
    struct str kept;
    if (text.len > VOICES_MAX_BYTES)
        return err_set(e, ERR_TOO_LARGE, "espeak-ng --voices said more than %zu KiB",
                       VOICES_MAX_BYTES / KIB);
    struct voices *voices = MEM_NEW(struct voices);
    voices->arena = arena_new(VOICES_MAX_BYTES + KIB);
    voices->all = mem_zero(VOICES_MAX, sizeof(*voices->all));
    voices->more = mem_zero(VOICES_MAX, sizeof(*voices->more));
    if (!arena_str(voices->arena, text, &kept)) abort(); /* the arena was sized for it */
    if (!read_lines(voices, kept, e)) {
        voices_free(voices);
        return false;
    }
    *ret = voices;
    return true;
}

void voices_free(struct voices *voices) {
    if (!voices) return;
    arena_free(voices->arena);
    free(voices->all);
    free(voices->more);
    free(voices);
}

const struct media_voice *voices_all(const struct voices *voices, size_t *ret_count) {
    *ret_count = voices->count;
    return voices->all;
}

/* --- choosing a voice --------------------------------------------------------------------- */

/* Compares without case; "pt_BR" equals "pt-br". */
static bool same_language(struct str a, struct str b) {
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++) {
        struct str x = str_of(a.at + i, 1), y = str_of(b.at + i, 1);
        if (str_equal(x, STR("_"))) x = STR("-");
        if (!str_equal_nocase(x, y)) return false;
    }
    return true;
}

/* The priority of this voice for one of its further languages: "(en 2)". */
static uint64_t other_rank(struct str other, struct str language) {
    while (other.len) {
        struct str entry = str_split(other, ')', &other);
        entry = str_skip(entry, str_find_byte(entry, '(') + 1);
        struct str rank, name = str_split(entry, ' ', &rank);
        uint64_t number;
        if (same_language(language, name) && str_to_u64(str_trim(rank), &number)) return number;
    }
    return RANK_NONE;
}

static uint64_t rank_for(const struct voices *voices, size_t i, struct str language) {
    if (same_language(language, voices->all[i].language)) return voices->more[i].rank;
    return other_rank(voices->more[i].other, language);
}

/* The best voice for the language, or voices->count. */
static size_t best_for(const struct voices *voices, struct str language) {
    size_t best = voices->count;
    uint64_t best_rank = RANK_NONE;
    for (size_t i = 0; i < voices->count; i++) {
        uint64_t rank = rank_for(voices, i, language);
        if (rank >= best_rank) continue;
        best_rank = rank;
        best = i;
    }
    return best;
}

/* A voice for "de" also speaks "de-AT". */
static size_t near_language(const struct voices *voices, struct str language) {
    size_t best = best_for(voices, language);
    while (best == voices->count && language.len) {
        language.len--;
        while (language.len && language.at[language.len] != '-' &&
               language.at[language.len] != '_')
            language.len--;
        if (language.len) best = best_for(voices, language);
    }
    return best;
}

static size_t voices_by_name(const struct voices *voices, struct str voice) {
    for (size_t i = 0; i < voices->count; i++) {
        if (str_equal_nocase(voices->all[i].id, voice) ||
            str_equal_nocase(voices->all[i].name, voice) ||
            str_equal_nocase(voices->more[i].file, voice))
            return i;
    }
    return best_for(voices, voice);
}

static bool no_voice(const struct voices *voices, struct str voice, struct str language,
                     struct err *e) {
    struct nearest nearest;
    bool named = voice.len > 0;
    nearest_init(&nearest, named ? voice : language);
    for (size_t i = 0; i < voices->count; i++) {
        nearest_offer(&nearest, named ? voices->all[i].id : voices->all[i].language);
        if (named) nearest_offer(&nearest, voices->all[i].name);
    }
    struct str wanted = str_head(named ? voice : language, 60);
    return err_set(e, ERR_NOT_FOUND, "espeak-ng has no voice %s'" STR_FMT "'%s",
                   named ? "" : "for the language ", STR_ARG(wanted), nearest_hint(&nearest));
}

bool voices_pick(const struct voices *voices, struct str voice, struct str language,
                 struct str *ret_file, struct err *e) {
    size_t found;
    if (voice.len) {
        found = voices_by_name(voices, voice);
    } else if (language.len) {
        found = near_language(voices, language);
    } else {
        found = best_for(voices, STR("en"));
        if (found == voices->count) found = 0; /* the list is never empty */
    }
    if (found == voices->count) return no_voice(voices, voice, language, e);
    *ret_file = voices->more[found].file;
    return true;
}
