/* rows: macros for writing the rows of a schema, in config/ and in contracts.
 *
 *     #define ROW_OF struct config_agent
 *     {.key = "slug", NAME(slug), .required = true, .help = "its name on every wire"},
 */
#ifndef WEIR_CONFIG_ROWS_H
#define WEIR_CONFIG_ROWS_H

#include "config/build.h"
#include "route/page.h"
#include "session/leaving.h"

/* KIND(member) sets a row's kind and the place of its value in the struct that ROW_OF names.
 * The compiler warns when the member's type does not fit the kind. */
#define SETTING_AT(member)                                                                     \
    .offset = offsetof(ROW_OF, member), .width = sizeof(((ROW_OF *)0)->member)
#define SETTING_OF(type, member)                                                               \
    .offset = offsetof(ROW_OF, member) + 0 * sizeof((type *)0 == &((ROW_OF *)0)->member),      \
    .width = sizeof(type)
#define TEXT(member) .kind = SETTING_TEXT, SETTING_OF(struct str, member)
#define PROSE(member) .kind = SETTING_PROSE, SETTING_OF(struct str, member)
#define NAME(member) .kind = SETTING_NAME, SETTING_OF(struct str, member)
#define ID(member) .kind = SETTING_ID, SETTING_OF(struct str, member)
#define PATH(member) .kind = SETTING_PATH, SETTING_OF(struct str, member)
#define CONTENTS(member) .kind = SETTING_CONTENTS, SETTING_OF(struct str, member)
#define URL(member) .kind = SETTING_URL, SETTING_OF(struct str, member)
#define ADDRESS(member) .kind = SETTING_ADDRESS, SETTING_OF(struct str, member)
#define SECRET(member) .kind = SETTING_SECRET, SETTING_OF(struct str, member)
#define WORD(member) .kind = SETTING_WORD, SETTING_OF(struct str, member)
#define JSON(member) .kind = SETTING_JSON, SETTING_OF(struct str, member)
#define BOOL(member) .kind = SETTING_BOOL, SETTING_OF(bool, member)
#define CHOICE(member) .kind = SETTING_CHOICE, SETTING_AT(member)
#define COUNT(member) .kind = SETTING_COUNT, SETTING_AT(member)
#define SIZE(member) .kind = SETTING_SIZE, SETTING_AT(member)
#define DURATION(member) .kind = SETTING_DURATION, SETTING_AT(member)
#define RATE(member) .kind = SETTING_RATE, SETTING_OF(struct rate_limit, member)
#define DECIMAL(member) .kind = SETTING_DECIMAL, SETTING_OF(double, member)
#define DOLLARS(member) .kind = SETTING_DOLLARS, SETTING_OF(int64_t, member)
#define LEAVING(member) .kind = SETTING_LEAVING, SETTING_OF(struct leaving, member)
#define WORDS(member) .kind = SETTING_WORDS, SETTING_OF(struct yes_no_list, member)
#define HOSTS(member) .kind = SETTING_HOSTS, SETTING_OF(struct page_list, member)
#define ORIGINS(member) .kind = SETTING_ORIGINS, SETTING_OF(struct page_list, member)
#define NODE(member) .kind = SETTING_NODE, SETTING_OF(const struct yaml *, member)
#define PART(schema) .kind = SETTING_PART, .part = &(schema)

/* The rows of a schema, and the members of struct config that hold the entries of a list. */
#define ROWS(array) .rows = array, .count = ARRAY_LEN(array), .size = sizeof(ROW_OF)
#define KEPT_IN(array_member, count_member)                                                    \
    .array = offsetof(struct config, array_member),                                            \
    .count = offsetof(struct config, count_member)

#endif
