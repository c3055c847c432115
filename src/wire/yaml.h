/* yaml: parse a small document into a tree whose nodes know their position.
 *
 * A handwritten document becomes maps, lists and scalars. Each node carries its line and
 * column, so that any later error about it can name the position:
 *
 *     weir.yaml:12:9: unknown key 'serch'; did you mean 'search'?
 *
 * Only a simple subset of YAML is accepted. Refused, each with its own error: anchors and
 * aliases (a small file could expand to a huge one), tags, several documents, keys that are not
 * scalars, duplicate keys, too many keys or levels, invalid UTF-8.
 *
 * Memory   nodes and their text live in the arena given to yaml_parse().
 * Threads  none; a finished tree is read-only.
 * Source   YAML 1.2; scalars as in its JSON schema (true, false, null, JSON numbers), all
 *          others are text.
 */
#ifndef WEIR_WIRE_YAML_H
#define WEIR_WIRE_YAML_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define YAML_DEPTH_MAX 64
#define YAML_KEYS_MAX 1000 /* in one map */
#define YAML_MAX_BYTES (1 * MIB)

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_document {
    struct str file; /* as errors name it */
    struct arena *arena;
};

struct yaml {
    const struct yaml_document *document;
    enum yaml_kind kind;
    bool quoted;           /* scalar: in quotes or a block, so always text */
    unsigned line, column; /* of its first byte, counted from 1 */
    struct str text;       /* scalar */
    struct yaml *first;    /* list: its items; map: its values, in the order written */
    struct yaml *next;     /* among its siblings */
    size_t count;          /* children */
    struct str key;        /* when it is a value of a map */
    unsigned key_line, key_column;
};

/* Parse one document. `file` is used only in errors. An empty document is a null scalar.
 * errors  ERR_MALFORMED, ERR_TOO_LARGE (YAML_MAX_BYTES, or the arena is full) */
MUST_CHECK bool yaml_parse(struct arena *arena, struct str file, struct str text,
                           const struct yaml **ret_root, struct err *e);

/* Start an error that points at a node, or at its key. Returns false. */
PRINTF_LIKE(3, 4) bool yaml_err(struct err *e, const struct yaml *at, const char *format, ...);
PRINTF_LIKE(3, 4)
bool yaml_err_key(struct err *e, const struct yaml *at, const char *format, ...);

/* The value under `key`, or NULL; also NULL when `map` is not a map. */
const struct yaml *yaml_find(const struct yaml *map, struct str key);

/* Whether the node is empty, or a plain ~ or null. */
bool yaml_is_null(const struct yaml *node);

/* "nothing", "text", "a list" or "a map": for errors. */
const char *yaml_kind_name(const struct yaml *node);

/* Write it as compact JSON: plain true, false, null and JSON numbers unchanged, every other
 * scalar as a string. False at the buffer's limit. */
bool yaml_to_json(const struct yaml *node, struct buf *out);

/* The same, with `write_text` writing each string value (not the keys), quotes included. */
typedef bool yaml_text_fn(const struct yaml *scalar, struct buf *out, void *ctx);
bool yaml_to_json_with(const struct yaml *node, struct buf *out, yaml_text_fn *write_text,
                       void *ctx);

/* --- a map read into a struct --------------------------------------------------------- */

enum yaml_type {
    YAML_TEXT,     /* struct str: a scalar */
    YAML_NAME,     /* struct str: 1 to 128 printable ASCII characters without spaces */
    YAML_BOOL,     /* bool */
    YAML_COUNT,    /* uint64_t: a whole number */
    YAML_DURATION, /* uint64_t: microseconds, see base/units.h */
    YAML_SIZE,     /* uint64_t: bytes, see base/units.h */
    YAML_JSON,     /* struct str: a map, as one JSON object */
    YAML_NODE,     /* const struct yaml *: any node */
};

struct yaml_field {
    const char *key;
    enum yaml_type type;
    size_t offset; /* in the struct */
    bool required;
};

/* Read one value. `ret` points to the type given in enum yaml_type; untouched on failure. */
MUST_CHECK bool yaml_value(const struct yaml *node, enum yaml_type type, void *ret,
                           struct err *e);

/* Fill `ret` from `map`; absent fields are left unchanged. `what` names the map in errors: "a
 * scene". An unknown key is refused, with the closest known one. */
MUST_CHECK bool yaml_fields(const struct yaml *map, const char *what,
                            const struct yaml_field *fields, size_t field_count, void *ret,
                            struct err *e);

#endif
