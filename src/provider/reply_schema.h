/* reply_schema: how a reply that must be JSON is asked for.
 *
 * Each vendor enforces only part of JSON Schema, and refuses a request whose schema has more in
 * it. So a schema is looked at first. What the vendor cannot enforce is asked for in words, or
 * as a schema that the model sees but is not held to. The run checks every reply itself, so the
 * caller gets the same either way.
 *
 * Memory   borrows everything.
 * Threads  none; values only.
 * Source   OpenAI, "Structured outputs", supported schemas; Anthropic, "Structured outputs",
 *          JSON Schema limitations.
 */
#ifndef WEIR_PROVIDER_REPLY_SCHEMA_H
#define WEIR_PROVIDER_REPLY_SCHEMA_H

#include "provider/provider.h"
#include "wire/json.h"

enum schema_rules { SCHEMA_OPENAI, SCHEMA_ANTHROPIC, SCHEMA_RULES_COUNT };

enum reply_form {
    REPLY_PROSE,      /* no schema */
    REPLY_ANY_OBJECT, /* {"type":"object"}: the vendors' JSON mode */
    REPLY_STRICT,     /* the vendor can enforce it, and the caller does not object */
    REPLY_LOOSE,      /* an object that the vendor cannot enforce, or is not asked to */
    REPLY_NO_OBJECT,  /* not an object at its root, which OpenAI never takes */
};

/* The form of the reply to this request.
 * errors  ERR_INVALID_ARGUMENT the schema is not a JSON object */
MUST_CHECK bool reply_form_of(const struct provider_request *request, enum schema_rules rules,
                              enum reply_form *ret, struct err *e);

/* Whether the vendor enforces all of this schema. The work is bounded: a very large schema is
 * not enforced. */
bool reply_schema_is_enforced(struct json schema, enum schema_rules rules);

/* Append a sentence that asks for such a reply. It contains the word JSON, without which OpenAI
 * refuses its JSON mode. Nothing for REPLY_PROSE. */
void reply_schema_words(enum reply_form form, struct str schema, struct buf *out);

#endif
