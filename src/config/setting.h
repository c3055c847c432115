/* setting: the schema of everything that can be configured.
 *
 * A setting is one row: its names, the kind of its value, its bounds, the place of the value in
 * its struct, its default and a sentence of help. The rows of `settings` belong to struct
 * config and can be set in the file, the environment and the command line. The rows of a schema
 * belong to one entry of a list of the file, such as an agent. All code that reads, prints or
 * explains settings uses these rows.
 *
 * Memory   text that is kept goes to the arena of the config.
 * Threads  the rows are constant.
 */
#ifndef WEIR_CONFIG_SETTING_H
#define WEIR_CONFIG_SETTING_H

#include "config/config.h"

#define SETTING_WORDS_MAX 100
#define SETTING_ENV_MAX 3

/* How a value is written and how it is stored. Numbers and choices have the width of their
 * member. */
enum setting_kind {
    SETTING_NONE,     /* accepted and ignored, or read by the row's own `read` */
    SETTING_UNUSED,   /* accepted and ignored, with a warning */
    SETTING_TEXT,     /* struct str */
    SETTING_PROSE,    /* struct str: text of any number of lines */
    SETTING_NAME,     /* struct str: printable ASCII without spaces */
    SETTING_ID,       /* struct str without ':', space or control bytes, as tokens carry it */
    SETTING_PATH,     /* struct str; from the file: relative to the folder of that file */
    SETTING_CONTENTS, /* struct str: the contents of the file at that path */
    SETTING_URL,      /* struct str: http: or https:, without a user or password */
    SETTING_ADDRESS,  /* struct str: host:port, unix:/path or off */
    SETTING_SECRET, /* struct str: in a variable, or in a file named by NAME_FILE or the key */
    SETTING_WORD,   /* struct str: one of `choices` */
    SETTING_JSON,   /* struct str: a map of the file, as JSON */
    SETTING_BOOL,   /* bool: true or false */
    SETTING_CHOICE, /* a bool or an enum: the index in `choices` */
    SETTING_COUNT,  /* a whole number */
    SETTING_SIZE,   /* bytes */
    SETTING_DURATION, /* milliseconds */
    SETTING_RATE,     /* struct rate_limit: 10/s, 600/m, 5000/h or off */
    SETTING_DECIMAL,  /* double with `digits` after the point; below 0: not set */
    SETTING_DOLLARS,  /* int64_t: billionths of a dollar */
    SETTING_LEAVING,  /* struct leaving: cancel, detach or detach-for=TIME */
    SETTING_WORDS,    /* struct yes_no_list; in the file a list, elsewhere separated by ';' */
    SETTING_HOSTS,    /* struct page_list: host names without a port; written like words */
    SETTING_ORIGINS,  /* struct page_list: http://host:port, https://host, null */
    SETTING_NODE,     /* const struct yaml *: read later */
    SETTING_PART,     /* a map with its own schema, for the same struct */
    SETTING_KINDS
};

struct yaml;
struct entry_schema;

/* The state of reading one entry of a list, or a map inside one. */
struct reading {
    struct config *config;
    const struct config_input *input;
    const struct yaml *map; /* its place in the file */
    void *entry;            /* the struct that the rows fill */
    size_t problems;        /* how many were noted before it */
};

/* A row's own function for its value at `node`. */
typedef bool setting_read_fn(const struct reading *reading, const struct yaml *node,
                             struct err *e);

struct setting {
    const char *key;                  /* in the file: "listen.http"; in an entry: "slug" */
    const char *group;                /* heading in help; NULL = that of the row above */
    const char *flag;                 /* without its dashes, or NULL */
    const char *env[SETTING_ENV_MAX]; /* the first one that is set counts */
    struct {
        const char *flag, *env; /* another flag, and the one variable of `env`, ... */
        const char *before;     /* ... whose values begin with this text */
    } also;
    enum setting_kind kind;
    size_t offset, width; /* of the value in its struct */
    const char *preset;   /* the default as text; NULL: none, or set elsewhere */
    const char *shown;    /* how help shows a computed default */
    const char *help;
    const char *const *choices; /* ends with NULL */
    uint64_t least, most;       /* of a number; most 0: no bound */
    const char *beyond;         /* the error beyond the bounds; "%s" is the value */
    unsigned digits;            /* of a decimal: after the point */
    const struct entry_schema *part;
    setting_read_fn *read; /* reads a NONE; checks the value of other kinds */
    const char *twice;     /* the error when an earlier row holds the same value */
    bool required;         /* in each entry */
    bool fixed;            /* read only at the start; a change needs a restart */
};

/* The schema of one entry of a list, or of a map inside one. */
struct entry_schema {
    const char *what; /* "an agent" */
    const struct setting *rows;
    size_t count;
    size_t size;       /* of its struct */
    const void *blank; /* its contents before it is read; NULL: zeros */
    bool every;        /* if mistakes are collected, report every one in an entry */
};

/* A list of the file: entries of one schema. */
struct config_list {
    const char *key, *what; /* "agents", "a list of agents" */
    struct entry_schema schema;
    size_t array, count; /* offsets in struct config of the pointer to the entries and of their
                            count; 0: `keep` stores them elsewhere */
    size_t at;           /* offset in an entry of its place in the file; 0: not kept */
    setting_read_fn *keep;  /* stores an entry that was read; NULL: appends it */
    setting_read_fn *after; /* called after all entries were read; may be NULL */
};

/* Rows that fill a struct of their own. Contracts bring such rows. Rows of one group stand
 * together in help, wherever they come from. */
struct setting_rows {
    const struct setting *rows;
    size_t count;
    size_t size; /* of the struct that the offsets refer to */

    /* Flags that are taken with a value, and ignored; ends with NULL. NULL: none. */
    const char *const *unused_flags;

    /* Called when all sources have been read, before anything is derived from them. Sets what
     * other settings leave open. NULL: nothing to do. */
    void (*complete)(const void *values, struct config *config);

    /* Called when everything else is known, with the struct. Derives what follows from other
     * settings, and refuses or warns of what no row alone can see. NULL: nothing to do. */
    bool (*settle)(void *values, struct config *config, const struct config_input *input,
                   struct err *e);
};

/* Where a value came from. */
enum config_source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_FLAG };

struct config_origin {
    enum config_source source;
    const char *name; /* of the variable or the flag */
};

/* Set the defaults of all rows. The arena of `config` must exist. */
void settings_default(struct config *config);

/* Append a default as help shows it. */
void setting_append_default(const struct setting *setting, struct buf *out);

/* Find a row of `config`, or NULL. */
const struct setting *setting_by_key(const struct config *config, struct str key);
const struct setting *setting_by_flag(const struct config *config, struct str flag);

/* Parse `text` and store the value in `config`. The error names the problem and the fix, but
 * not the source. For a secret, `text` is the secret itself. */
MUST_CHECK bool setting_set(const struct setting *setting, struct str text,
                            struct config *config, struct err *e);

/* Parse the value at `node` and store it in the entry. The error names the place. */
MUST_CHECK bool setting_read(const struct setting *setting, const struct reading *reading,
                             const struct yaml *node, struct err *e);

/* Append the value in `entry` as setting_set() would read it. Of a secret, only whether it is
 * set. */
void setting_append(const struct setting *setting, const void *entry, struct buf *out);

/* The value of a number in `entry`. */
uint64_t setting_number(const struct setting *setting, const void *entry);

/* The text in `entry`, of a row whose value is a struct str. */
static inline struct str setting_text(const struct setting *setting, const void *entry) {
    return *(const struct str *)(const void *)((const char *)entry + setting->offset);
}

/* Whether the value of a row is a struct str. */
bool setting_is_text(const struct setting *setting);

/* "ADDRESS", "FILE": for help. */
const char *setting_placeholder(const struct setting *setting);

#endif
