#include "socketio/origin.h"

#define PORT_DIGITS_MAX 5

static bool starts_nocase(struct str s, struct str head) {
    return s.len >= head.len && str_equal_nocase(str_head(s, head.len), head);
}

static bool is_port(struct str text) {
    uint64_t number;
    return str_starts(text, STR(":")) && text.len <= PORT_DIGITS_MAX + 1 &&
           str_to_u64(str_skip(text, 1), &number);
}

/* The scheme, some labels, the domain with its dot. */
static bool is_below(struct str pattern, size_t star, struct str origin) {
    struct str scheme = str_head(pattern, star), domain = str_skip(pattern, star + 1);
    if (!starts_nocase(origin, scheme) || origin.len <= scheme.len + domain.len) return false;
    struct str labels = str_skip(origin, scheme.len);
    struct str end = str_skip(labels, labels.len - domain.len);
    labels = str_head(labels, labels.len - domain.len);
    return str_equal_nocase(end, domain) && str_is_plain(labels, "-.") && labels.at[0] != '.' &&
           !str_ends(labels, STR("."));
}

bool origin_matches(struct str pattern, struct str origin) {
    if (str_ends(pattern, STR(":*"))) {
        struct str host = str_head(pattern, pattern.len - 2);
        struct str rest = str_skip(origin, host.len);
        return starts_nocase(origin, host) && (rest.len == 0 || is_port(rest));
    }
    size_t star = str_find(pattern, STR("*."));
    if (star < pattern.len) return is_below(pattern, star, origin);
    return str_equal_nocase(pattern, origin);
}
