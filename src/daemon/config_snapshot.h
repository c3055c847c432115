/* config_snapshot: one snapshot of the configuration, and everything built from it.
 *
 * Agents, tools, keys and the settings of the contracts all come from one snapshot. When the
 * daemon reads its configuration again it makes a second snapshot beside the first. New turns
 * use the newest snapshot and keep it to their end. The last reference frees a snapshot.
 *
 * Memory   reference-counted by the engine in it: a reference to the engine is a reference to
 *          the snapshot.
 * Threads  read-only once made; references are taken and dropped on any thread.
 */
#ifndef WEIR_DAEMON_CONFIG_SNAPSHOT_H
#define WEIR_DAEMON_CONFIG_SNAPSHOT_H

#include "contract/contract.h"
#include "daemon/team.h"
#include "engine/offers.h"

struct config_snapshot {
    struct engine engine;          /* its reference count is that of the snapshot */
    struct config_snapshot *owner; /* of `config`, a reference; NULL: see `owned` */
    struct config *owned;          /* freed with the snapshot; NULL: `config` is borrowed */
    const struct config *config;
    struct team team;
    struct offers *offers;
    struct price_book *prices;
    struct tool *reader; /* reads tool results that are too long; NULL without a store */
    struct contract_table contracts;
    void **settings; /* of each contract; NULL: it has none */
};

struct config_snapshot_options {
    const struct config *config;
    struct config_snapshot *owner; /* its config is used, and kept; NULL: `config` */
    bool owns_config;              /* `config` is taken, also on failure */
    const struct config *first;    /* read at the start; values that may not change later come
                                   from it (K34); NULL: this is the first */
    struct str demo_key;           /* as in struct contract_source */
    const struct contract_table *contracts; /* NULL: none */
    struct session_table *sessions;         /* shared by all snapshots; may be set later */
    struct ledger *ledger;                  /* likewise */
    struct team_resources resources;        /* as in team_assemble() */
};

/* Build a snapshot; reads and parses the files that the configuration names. The caller owns
 * one reference.
 * errors  those of the files and of the contracts' settings, or a tool that does not exist */
MUST_CHECK bool config_snapshot_new(const struct config_snapshot_options *options,
                                    struct config_snapshot **ret, struct err *e);

struct config_snapshot *config_snapshot_ref(struct config_snapshot *snapshot);
void config_snapshot_unref(struct config_snapshot *snapshot); /* NULL is fine */

/* The settings that a contract has read, or NULL. They live as long as the snapshot. */
const void *config_snapshot_settings(const struct config_snapshot *snapshot,
                                     const struct contract *contract);

/* List the settings that differ between two configs but take effect only after a restart:
 * "listen.http, threads". Appends nothing if there are none. */
void config_snapshot_needs_restart(const struct config *running, const struct config *wanted,
                                   struct buf *out);

#endif
