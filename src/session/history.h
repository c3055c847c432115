/* history: what a session remembers of its turns.
 *
 * A turn record is the conversation of one finished run, however it ended: what the user said,
 * what the agents answered, which tools were called and what they returned. Turns that ran
 * while it waited for a tool have their own records after it. A history is an immutable row of
 * records, oldest first. A turn reads the snapshot it started with, whatever others append
 * meanwhile.
 *
 *     shelf   r1 r2 r3 r4 r5 r6 .. ..      histories of one session share a shelf: a longer one
 *     older      └─────────┘               takes the next place on it. If there is none, or
 *     newer         └─────────┘            another history has it, it starts a new shelf
 *
 * Memory   all are reference-counted; a record owns its text in one block. A shelf keeps its
 *          records until it is freed: up to a quarter more than the newest history shows.
 * Threads  any; immutable once made.
 * Source   design.md "The run"; contracts/crawbl.md 2.7. */
#ifndef WEIR_SESSION_HISTORY_H
#define WEIR_SESSION_HISTORY_H

#include "provider/provider.h"

#include <stdatomic.h>

#define HISTORY_TURNS_MAX 64
#define HISTORY_MAX_BYTES (256 * KIB) /* of text; the newest turn is always kept */
/* What is left when either limit is passed, with the newest turn. */
#define HISTORY_TURNS_LEFT (HISTORY_TURNS_MAX * 3 / 4)
#define HISTORY_BYTES_LEFT (HISTORY_MAX_BYTES * 3 / 4)
#define HISTORY_LEFT_BYTES (HISTORY_MAX_BYTES / 4) /* of dropped turns still on the shelf */

struct turn_record {
    atomic_uint refs;
    uint64_t run;
    size_t text_bytes;
    size_t prompt_bytes; /* of them, what a prompt is counted by: texts and names of tools */
    bool starts_anew; /* it begins with a summary of all before it: older records are dropped */
    bool vain;        /* the turn failed or was cancelled */
    bool inside; /* it ran while another one waited for a tool, whose record is before it */
    size_t message_count;
    struct message messages[];
};

struct history {
    atomic_uint refs;
    size_t text_bytes;
    size_t record_count;
    size_t message_count, prompt_bytes; /* of all records */
    struct turn_record *const *records; /* on the shelf */
    struct shelf *shelf;                /* NULL without records */
    size_t left_bytes;                  /* of text before its records on the shelf */
};

/* A record with copies of `messages`. Messages that only their provider understands are
 * included, so that a later prompt begins with the same bytes as an earlier one. */
struct turn_record *turn_record_new(uint64_t run, const struct message *messages, size_t count);
/* The same of a turn that is over: without the instructions that were for it alone. */
struct turn_record *turn_record_ended(uint64_t run, const struct message *messages,
                                      size_t count);
struct turn_record *turn_record_ref(struct turn_record *record);
void turn_record_unref(struct turn_record *record); /* NULL is fine */

struct history *history_new(void); /* an empty one */
struct history *history_ref(struct history *history);
void history_unref(struct history *history); /* NULL is fine */

/* A history with `record` (taken) at its end; the oldest records are dropped at the limits. */
struct history *history_with(const struct history *history, struct turn_record *record);

/* A history of the records of runs that began before `run`, whenever they ended: a
 * reference. */
struct history *history_before(struct history *history, uint64_t run);

/* The oldest message, or NULL. */
const struct message *history_oldest(const struct history *history);

/* The newest message of an agent: what it said or called, or a result of that; or NULL. */
const struct message *history_newest_of_agent(const struct history *history);

/* What it holds in memory, nearly: its records, and those before them on the shelf. */
size_t history_bytes(const struct history *history);

/* Copy the messages of all records into `ret`, which has room for message_count. */
void history_messages(const struct history *history, struct message *ret);

#endif
