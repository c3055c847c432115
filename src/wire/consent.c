#include "wire/consent.h"

#include <stddef.h>

static const char *const yes_words[] = {
    "accept", "accepted", "allow", "allowed", "approve", "approved", "confirm", "confirmed",
    "do",     "go",       "ok",    "okay",    "sure",    "true",     "y",       "yes",
};
static const char *const no_words[] = {
    "cancel", "cancelled", "deny",   "denied",  "don",    "false",    "n",    "never",
    "no",     "not",       "refuse", "refused", "reject", "rejected", "stop", "wait",
};

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The next run of letters; false at the end. */
static bool next_word(struct str *rest, struct str *ret) {
    while (rest->len && !is_letter(rest->at[0])) *rest = str_skip(*rest, 1);
    size_t len = 0;
    while (len < rest->len && is_letter(rest->at[len])) len++;
    *ret = str_head(*rest, len);
    *rest = str_skip(*rest, len);
    return len > 0;
}

static bool is_one_of(struct str word, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal_nocase(word, str_from(words[i]))) return true;
    }
    return false;
}

bool consent_given(struct str answer) {
    bool yes = false;
    for (struct str word; next_word(&answer, &word);) {
        if (is_one_of(word, no_words, ARRAY_LEN(no_words))) return false;
        if (is_one_of(word, yes_words, ARRAY_LEN(yes_words))) yes = true;
    }
    return yes;
}
