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

#include "contract/contract.h"
#include "daemon/team.h"
#include "run/offers.h"

struct edition {
    struct engine engine; /* its references are those of the edition */
    struct config *owned; /* freed with it; NULL: somebody else's */
    const struct config *config;
    struct team team;
    struct offers *offers;
    struct price_book *prices;
    struct tool *reader; /* of results that are too long; NULL without a store */
    struct contract_table contracts;
    void **settings; /* of each contract; NULL: it has none */
};

struct edition_options {
    const struct config *config;
    bool owns_config;           /* taken, also when it fails */
    const struct config *first; /* read at the start: what a contract lets nobody change later
                                   comes from it (K34); NULL: this is the first */
    struct str demo_key;        /* as in struct contract_source */
    const struct contract_table *contracts; /* NULL: none */
    struct session_table *sessions;         /* shared by all editions; may be set later */
    struct ledger *ledger;                  /* likewise */
    struct team_means means;                /* as in team_assemble() */
};

/* Reads and parses what the configuration names. The caller has one reference.
 * errors  those of the files, of a contract's settings, or a tool that nobody has */
MUST_CHECK bool edition_new(const struct edition_options *options, struct edition **ret,
                            struct err *e);

struct edition *edition_ref(struct edition *edition);
void edition_unref(struct edition *edition); /* NULL is fine */

/* What a contract made of its settings, or NULL; it lives as long as the edition. */
const void *edition_settings(const struct edition *edition, const struct contract *contract);

/* The same in the words of a config that was loaded: what differs between two of them and
 * only counts from the next start on, "listen.http, threads", empty for nothing. */
void edition_needs_restart(const struct config *running, const struct config *wanted,
                           struct buf *out);

#endif
