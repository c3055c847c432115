/* setting: the table of settings, and their values as text.
 *
 * A setting is one row: its names, its kind, where it lives in struct config, its default and
 * a sentence. Everything that reads, prints or explains settings walks this table.
 *
 * Memory   text that is kept goes to the arena of the config.
 * Threads  the table is constant.
 */
#ifndef WEIR_CONFIG_SETTING_H
#define WEIR_CONFIG_SETTING_H

#include "config/config.h"

enum setting_kind {
    SETTING_TEXT,
    SETTING_PROSE,   /* text of any number of lines */
    SETTING_ID,      /* text without ':', space or control bytes, as tokens carry it */
    SETTING_PATH,    /* from the file: relative to the folder of that file */
    SETTING_URL,     /* http: or https:, without a user or password */
    SETTING_ADDRESS, /* host:port, unix:/path or off */
    SETTING_SECRET,  /* in the environment itself, or in a file named by NAME_FILE or the key */
    SETTING_BOOL,    /* true or false */
    SETTING_CHOICE,  /* one of `choices`; an enum */
    SETTING_COUNT,   /* uint64_t */
    SETTING_SIZE,    /* uint64_t, bytes */
    SETTING_DURATION,    /* uint64_t, milliseconds */
    SETTING_LEAVING,     /* struct leaving: cancel, detach or detach-for=TIME */
    SETTING_TEMPERATURE, /* double, 0 to 2; below 0: none */
    SETTING_WORDS,   /* struct yes_no_list; in the file a list, else with ';' between them */
    SETTING_HOSTS,   /* struct page_list: host names without a port; written like words */
    SETTING_ORIGINS, /* struct page_list: http://host:port, https://host, null */
};

#define SETTING_WORDS_MAX 100

#define SETTING_ENV_MAX 3

struct setting {
    const char *group;                /* heading in help; NULL = as the row above */
    const char *key;                  /* in the file: "listen.http" */
    const char *flag;                 /* without its dashes, or NULL */
    const char *env[SETTING_ENV_MAX]; /* the first one set counts */
    enum setting_kind kind;
    size_t offset;
    const char *preset; /* the default as text; NULL: worked out, or none */
    const char *shown;  /* how help says a default that is worked out */
    const char *help;
    const char *const *choices; /* ends with NULL */
    bool fixed;                 /* read at the start only: another value needs a restart */
};

extern const struct setting settings[];
extern const size_t setting_count;

/* Where a value came from. */
enum config_source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_FLAG };

struct config_origin {
    enum config_source source;
    const char *name; /* of the variable or the flag */
};

const struct setting *setting_by_key(struct str key);
const struct setting *setting_by_flag(struct str flag);

/* What `text` stands for, stored in `config`. The error says what and the fix, not where.
 * For a secret, `text` is the secret itself. */
MUST_CHECK bool setting_set(const struct setting *setting, struct str text,
                            struct config *config, struct err *e);

/* The value as setting_set() would read it. A secret says only whether it is set. */
void setting_append(const struct setting *setting, const struct config *config,
                    struct buf *out);

/* "ADDRESS", "FILE": for help. */
const char *setting_placeholder(const struct setting *setting);

#endif
