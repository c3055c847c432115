/* edition: one reading of the configuration, and everything that was made of it.
 *
 * Agents, tools, keys and the settings of the contracts come from one edition, and a daemon
 * that is told to read its configuration again makes a second one beside the first. New turns
 * begin with the newest; a turn keeps the edition it began with, and the last one who leaves
 * an edition frees it.
 *
 * Memory   reference-counted by the engine in it: whoever holds the engine holds the edition.
 * Threads  read-only once made; references are taken and dropped on any thread.
 */
#ifndef WEIR_DAEMON_EDITION_H
#define WEIR_DAEMON_EDITION_H

#include "contract/agentbreeder/runtime.h"
#include "contract/crawbl/converse.h"
#include "daemon/nimi.h"
#include "daemon/team.h"
#include "run/offers.h"

struct edition {
    struct engine engine; /* its references are those of the edition */
    struct config *owned; /* freed with it; NULL: somebody else's */
    const struct config *config;
    struct team team;
    struct offers *offers;
    struct price_book *prices;
    struct tool *reader;     /* of results that are too long; NULL without a store */
    struct token_keys *keys; /* NULL: callers are believed */
    bool secured; /* a key or a token was configured; the demo's own key is neither */
    struct converse_settings converse;
    struct house_settings house;
    struct runtime_settings runtime;
    struct page_rules pages; /* of the HTTP listener */
    struct nimi_settings nimi;
};

struct edition_options {
    const struct config *config;
    bool owns_config;           /* taken, also when it fails */
    const struct config *first; /* read at the start: what a contract lets nobody change later
                                   comes from it (K34); NULL: this is the first */
    struct str grpc_key;        /* stands for the signing keys when not empty */
    struct session_table *sessions; /* shared by all editions; may be set later */
    struct ledger *ledger;          /* likewise */
    struct team_means means;        /* as in team_assemble() */
};

/* Reads and parses what the configuration names. The caller has one reference.
 * errors  those of the files, of keys, or a tool that nobody has */
MUST_CHECK bool edition_new(const struct edition_options *options, struct edition **ret,
                            struct err *e);

struct edition *edition_ref(struct edition *edition);
void edition_unref(struct edition *edition); /* NULL is fine */

/* The same in the words of a config that was loaded: what differs between two of them and
 * only counts from the next start on, "listen.http, threads", empty for nothing. */
void edition_needs_restart(const struct config *running, const struct config *wanted,
                           struct buf *out);

#endif
