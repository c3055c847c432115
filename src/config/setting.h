/* setting: the schema of everything that can be configured.
 *
 * A setting is one row: its names, the kind of its value, its bounds, where the value lives in
 * its struct, its default and a sentence. The rows of `settings` belong to struct config and
 * may come from the file, the environment and the command line. The rows of a schema belong to
 * one entry of a list of the file, such as an agent. Whatever reads, prints or explains
 * settings walks these rows.
 *
 * Memory   text that is kept goes to the arena of the config.
 * Threads  the rows are constant.
 */
#ifndef WEIR_CONFIG_SETTING_H
#define WEIR_CONFIG_SETTING_H

#include "config/config.h"

#define SETTING_WORDS_MAX 100
#define SETTING_ENV_MAX 3

/* How a value is written, and what it is stored as. Numbers and choices are as wide as the
 * member that holds them. */
enum setting_kind {
    SETTING_NONE,     /* taken and not looked at, or read by the row's own `read` */
    SETTING_UNUSED,   /* the same, and a warning names it */
    SETTING_TEXT,     /* struct str */
    SETTING_PROSE,    /* struct str: text of any number of lines */
    SETTING_NAME,     /* struct str: printable ASCII without spaces */
    SETTING_ID,       /* struct str without ':', space or control bytes, as tokens carry it */
    SETTING_PATH,     /* struct str; from the file: relative to the folder of that file */
    SETTING_CONTENTS, /* struct str: what the file of that path holds */
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
    SETTING_DECIMAL,  /* double of `digits` behind the point; below 0: none */
    SETTING_DOLLARS,  /* int64_t: billionths of a dollar */
    SETTING_LEAVING,  /* struct leaving: cancel, detach or detach-for=TIME */
    SETTING_WORDS,    /* struct yes_no_list; in the file a list, else with ';' between them */
    SETTING_HOSTS,    /* struct page_list: host names without a port; written like words */
    SETTING_ORIGINS,  /* struct page_list: http://host:port, https://host, null */
    SETTING_NODE,     /* const struct yaml *: read when more is known */
    SETTING_PART,     /* a map with a schema of its own, for the same struct */
    SETTING_KINDS
};

struct yaml;
struct entry_schema;

/* The reading of one entry of a list, or of a map in one. */
struct reading {
    struct config *config;
    const struct config_input *input;
    const struct yaml *map; /* where it stands */
    void *entry;            /* the struct that the rows fill */
    size_t problems;        /* that were noted before it */
};

/* What a row does by itself with its value at `node`. */
typedef bool setting_read_fn(const struct reading *reading, const struct yaml *node,
                             struct err *e);

struct setting {
    const char *key;                  /* in the file: "listen.http"; in an entry: "slug" */
    const char *group;                /* heading in help; NULL = as the row above */
    const char *flag;                 /* without its dashes, or NULL */
    const char *env[SETTING_ENV_MAX]; /* the first one set counts */
    struct {
        const char *flag, *env; /* another flag, and the one variable of `env`, ... */
        const char *before;     /* ... whose values begin with this text */
    } also;
    enum setting_kind kind;
    size_t offset, width; /* of the value in its struct */
    const char *preset;   /* the default as text; NULL: of another part, or none */
    const char *shown;    /* how help says a default that is worked out */
    const char *help;
    const char *const *choices; /* ends with NULL */
    uint64_t least, most;       /* of a number; most 0: no bound */
    const char *beyond;         /* why it is refused beyond them; "%s" is the value */
    unsigned digits;            /* of a decimal: behind the point */
    const struct entry_schema *part;
    setting_read_fn *read; /* reads a NONE, looks at the value of other kinds */
    const char *twice;     /* why it is refused where a row before holds the same */
    bool required;         /* in each entry */
    bool fixed;            /* read at the start only: another value needs a restart */
};

/* The rows of one entry of a list, or of a map in one. */
struct entry_schema {
    const char *what; /* "an agent" */
    const struct setting *rows;
    size_t count;
    size_t size;       /* of its struct */
    const void *blank; /* what it holds before it is read; NULL: zeros */
    bool every;        /* every mistake of an entry is reported when all are wanted */
};

/* A list of the file: entries of one schema. */
struct config_list {
    const char *key, *what; /* "agents", "a list of agents" */
    struct entry_schema schema;
    size_t array, count; /* in struct config: a pointer to the entries, and how many; 0: `keep`
                            has a place for them */
    size_t at;           /* in an entry: its place in the file; 0: it is not kept */
    setting_read_fn *keep;  /* keeps an entry that was read; NULL: behind the one before */
    setting_read_fn *after; /* when all of them were read; NULL: nothing */
};

/* Rows that fill a struct of their own: what a contract brings. */
struct setting_rows {
    const struct setting *rows;
    size_t count;
    size_t size; /* of the struct that their offsets stand in */
};

/* Where a value came from. */
enum config_source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_FLAG };

struct config_origin {
    enum config_source source;
    const char *name; /* of the variable or the flag */
};

/* The defaults of all rows; the arena of `config` is there. */
void settings_default(struct config *config);

/* A default as help shows it. */
void setting_append_default(const struct setting *setting, struct buf *out);

/* Among those of `config`. */
const struct setting *setting_by_key(const struct config *config, struct str key);
const struct setting *setting_by_flag(const struct config *config, struct str flag);

/* What `text` stands for, stored in `config`. The error says what and the fix, not where.
 * For a secret, `text` is the secret itself. */
MUST_CHECK bool setting_set(const struct setting *setting, struct str text,
                            struct config *config, struct err *e);

/* The value at `node`, stored in the entry. The error says where. */
MUST_CHECK bool setting_read(const struct setting *setting, const struct reading *reading,
                             const struct yaml *node, struct err *e);

/* The value in `entry` as setting_set() would read it. A secret says only whether it is set. */
void setting_append(const struct setting *setting, const void *entry, struct buf *out);

/* The same for a number: its value. */
uint64_t setting_number(const struct setting *setting, const void *entry);

/* A row whose value is a struct str. */
bool setting_is_text(const struct setting *setting);

/* "ADDRESS", "FILE": for help. */
const char *setting_placeholder(const struct setting *setting);

#endif
