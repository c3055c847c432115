/* rows: how the rows of a schema are written. Private to config/.
 *
 *     {.key = "slug", NAME(struct config_agent, slug), .required = true, .help = "its name"},
 */
#ifndef WEIR_CONFIG_ROWS_H
#define WEIR_CONFIG_ROWS_H

#include "config/build.h"

/* A row's kind, and where its value lives: KIND(struct, member). The compiler warns of a member
 * of another type than the kind has. */
#define SETTING_AT(in, member)                                                                 \
    .offset = offsetof(in, member), .width = sizeof(((in *)0)->member)
#define SETTING_OF(type, in, member)                                                           \
    .offset = offsetof(in, member) + 0 * sizeof((type *)0 == &((in *)0)->member),              \
    .width = sizeof(type)
#define TEXT(in, member) .kind = SETTING_TEXT, SETTING_OF(struct str, in, member)
#define PROSE(in, member) .kind = SETTING_PROSE, SETTING_OF(struct str, in, member)
#define NAME(in, member) .kind = SETTING_NAME, SETTING_OF(struct str, in, member)
#define ID(in, member) .kind = SETTING_ID, SETTING_OF(struct str, in, member)
#define PATH(in, member) .kind = SETTING_PATH, SETTING_OF(struct str, in, member)
#define CONTENTS(in, member) .kind = SETTING_CONTENTS, SETTING_OF(struct str, in, member)
#define URL(in, member) .kind = SETTING_URL, SETTING_OF(struct str, in, member)
#define ADDRESS(in, member) .kind = SETTING_ADDRESS, SETTING_OF(struct str, in, member)
#define SECRET(in, member) .kind = SETTING_SECRET, SETTING_OF(struct str, in, member)
#define WORD(in, member) .kind = SETTING_WORD, SETTING_OF(struct str, in, member)
#define JSON(in, member) .kind = SETTING_JSON, SETTING_OF(struct str, in, member)
#define BOOL(in, member) .kind = SETTING_BOOL, SETTING_OF(bool, in, member)
#define CHOICE(in, member) .kind = SETTING_CHOICE, SETTING_AT(in, member)
#define COUNT(in, member) .kind = SETTING_COUNT, SETTING_AT(in, member)
#define SIZE(in, member) .kind = SETTING_SIZE, SETTING_AT(in, member)
#define DURATION(in, member) .kind = SETTING_DURATION, SETTING_AT(in, member)
#define DECIMAL(in, member) .kind = SETTING_DECIMAL, SETTING_OF(double, in, member)
#define DOLLARS(in, member) .kind = SETTING_DOLLARS, SETTING_OF(int64_t, in, member)
#define LEAVING(in, member) .kind = SETTING_LEAVING, SETTING_OF(struct leaving, in, member)
#define WORDS(in, member) .kind = SETTING_WORDS, SETTING_OF(struct yes_no_list, in, member)
#define HOSTS(in, member) .kind = SETTING_HOSTS, SETTING_OF(struct page_list, in, member)
#define ORIGINS(in, member) .kind = SETTING_ORIGINS, SETTING_OF(struct page_list, in, member)
#define NODE(in, member) .kind = SETTING_NODE, SETTING_OF(const struct yaml *, in, member)
#define PART(schema) .kind = SETTING_PART, .part = &(schema)

/* The rows of a schema, and where struct config has the entries of a list. */
#define ROWS(in, array) .rows = array, .count = ARRAY_LEN(array), .size = sizeof(in)
#define KEPT_IN(array_member, count_member)                                                    \
    .array = offsetof(struct config, array_member),                                            \
    .count = offsetof(struct config, count_member)

#endif
