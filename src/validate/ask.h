/* ask: one HTTP request to the target, and all that was seen of the response.
 *
 * ask() blocks: it runs the loop until the response is complete, has broken off, is larger than
 * REPLY_BODY_MAX_BYTES, or time is up. However the server behaves, it returns within
 * question.timeout_ms.
 *
 * Memory   the caller owns the reply, and ends it with reply_done(). The asker keeps views of
 *          the options until asker_done().
 * Threads  the main thread; the loop may have other handles, which are served meanwhile.
 */
#ifndef WEIR_VALIDATE_ASK_H
#define WEIR_VALIDATE_ASK_H

#include "base/arena.h"
#include "client/forward.h"
#include "validate/judge.h"
#include "wire/json.h"

#define REPLY_BODY_MAX_BYTES (4 * MIB)
#define REPLY_HEAD_MAX_BYTES (256 * KIB)
#define REPLY_RAW_MAX_BYTES (2 * KIB)

#define ASK_SECRETS_MAX 4

struct asker {
    struct loop *loop;
    struct http_pool *pool;
    struct str secrets[ASK_SECRETS_MAX]; /* never shown */
    size_t secret_count;
};

void asker_init(struct asker *asker);
void asker_done(struct asker *asker);
void asker_hide(struct asker *asker, struct str secret);

/* Serve the loop for a while; 0: one turn, after which its clock is right again. */
void asker_wait(struct asker *asker, uint64_t ms);

enum ask_body {
    ASK_LENGTH,  /* with Content-Length */
    ASK_CHUNKED, /* as two chunks */
};

/* When to hang up although the response is not complete. */
enum ask_until { ASK_TO_END, ASK_TO_FIRST_BYTE };

struct question {
    struct str url;    /* of the server; its path comes before `path` */
    struct str method; /* "POST" */
    struct str path;   /* "/invoke" */
    struct str fields; /* more header lines, each with its \r\n */
    struct str shown;  /* those of them that people may see */
    struct str body;
    enum ask_body how;
    enum ask_until until;
    bool keep;  /* leave the connection open for the next question that reuses one */
    bool reuse; /* on the connection that was kept */
    uint64_t timeout_ms;
};

struct reply {
    unsigned status; /* 0: no response */
    struct buf head; /* its lines, each with '\n', without the status line */
    struct buf body;
    struct buf raw;    /* the first bytes, as received */
    struct err failed; /* code ERR_NONE: the response is complete */
    bool connected, reused, hung_up, timed_out;
    uint64_t began_ms, first_byte_ms, end_ms; /* of the body; monotonic */
    struct json json; /* of the body; kind JSON_NONE when it is not JSON */
    struct err not_json;
    struct buf sent_text, seen_text;
    struct evidence evidence; /* views into them */
};

void ask(struct asker *asker, const struct question *question, struct reply *ret);
void reply_done(struct reply *reply);

/* The value of the first field of that name, trimmed; at == NULL: there is none. */
struct str reply_field(const struct reply *reply, struct str name);

size_t reply_field_count(const struct reply *reply, struct str name);

/* Whether its Content-Type is this one, whatever its case and parameters. */
bool reply_is_type(const struct reply *reply, struct str type);

/* Whether it was refused, or there is no such host: no server is there. */
bool reply_is_unreachable(const struct reply *reply);

/* --- judging replies. Each breaks the check and returns false, or returns true. ------------- */

bool judge_answered(struct judge *judge, const struct reply *reply);
bool judge_status(struct judge *judge, const struct reply *reply, unsigned status);
bool judge_is_object(struct judge *judge, const struct reply *reply);
/* schema: of JSON Schema, what the body has to be. */
bool judge_shape(struct judge *judge, const struct reply *reply, const char *schema);
bool judge_value_shape(struct judge *judge, const struct reply *reply, struct json value,
                       const char *what, const char *schema);

/* {"error":{"code":"SCREAMING","message":"..."}} */
bool judge_envelope(struct judge *judge, const struct reply *reply);

/* Its field `name` has this value. The body does not matter, nor whether it ended. */
bool judge_field(struct judge *judge, const struct reply *reply, struct str name,
                 struct str value);

#endif
