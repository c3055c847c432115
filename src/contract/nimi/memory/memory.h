/* memory: what apps remember (RuntimeCognitionService).
 *
 *     create.c    a bank is created, or gets another embedding profile
 *     banks.c     banks are found, and go
 *     records.c   records are retained and deleted
 *     recall.c    records are found: by words and vectors, or by time
 *     embed.c     a model makes vectors
 *     embedder.c  it makes those of the records
 *     events.c    what happens to both, for subscribers
 *     locator.c   where a bank is
 *
 * Everything is in the store (store/bank.h), and a write is answered when it is on disk. A bank
 * belongs to the app and subject that created it, whatever account its locator names.
 *
 * Memory   of the call; a write's outlives it until the store has answered.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.11, 6.7, 9 number 36.
 */
#ifndef WEIR_CONTRACT_NIMI_MEMORY_MEMORY_H
#define WEIR_CONTRACT_NIMI_MEMORY_MEMORY_H

#include "contract/nimi/call.h"
#include "contract/nimi/log_topic.h"

/* How what happened to an app's memory stands in its log: an event without its number and its body
 * (store/bank.h). The body makes it whole: the bank, the record as it was retained, or the ids of
 * what was deleted. A record that is gone has no body, and its event only the head of it. */
extern const struct log_kind memory_log;

nimi_begin_fn memory_create_bank, memory_get_bank, memory_list_banks, memory_delete_bank,
    memory_retain, memory_recall, memory_history, memory_delete, memory_subscribe;

#endif
