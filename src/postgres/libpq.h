/* libpq: PostgreSQL's client library, loaded on first use.
 *
 * Loading costs megabytes and milliseconds, so a daemon without PostgreSQL never does it. The
 * functions are looked up by name once and called through this table, under their own names.
 *
 * Private to postgres/.
 *
 * Memory   stays for the life of the process: a library in which other threads may have state
 *          is not unloaded.
 * Threads  libpq_load() any; it blocks, as it reads files. The table is constant afterwards.
 */
#ifndef WEIR_POSTGRES_LIBPQ_H
#define WEIR_POSTGRES_LIBPQ_H

#include "base/err.h"

#include <libpq-fe.h>

/* clang-format off */
#define LIBPQ_FUNCTIONS(USE)                                                                   \
    USE(PQlibVersion) USE(PQconnectdbParams) USE(PQstatus) USE(PQerrorMessage) USE(PQfinish)   \
    USE(PQhost) USE(PQport) USE(PQdb) USE(PQsocket) USE(PQserverVersion)                       \
    USE(PQsetnonblocking) USE(PQsetNoticeReceiver) USE(PQenterPipelineMode)                    \
    USE(PQpipelineSync) USE(PQsendPrepare) USE(PQsendQueryPrepared) USE(PQflush)               \
    USE(PQconsumeInput) USE(PQisBusy) USE(PQgetResult) USE(PQclear) USE(PQresultStatus)        \
    USE(PQresultErrorField) USE(PQresultMemorySize) USE(PQntuples) USE(PQnfields)              \
    USE(PQgetvalue) USE(PQgetlength) USE(PQgetisnull) USE(PQcmdTuples)            \
    USE(PQnotifies) USE(PQfreemem) USE(PQtransactionStatus) USE(PQsendQuery)
/* clang-format on */

struct libpq {
#define MEMBER(name) __typeof__(name) *name;
    LIBPQ_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* The table; the same one each time.
 * errors  ERR_UNAVAILABLE the library is not installed, too old, or lacks what we need */
MUST_CHECK bool libpq_load(const struct libpq **ret, struct err *e);

/* The table; it must have been loaded. */
const struct libpq *libpq_loaded(void);

#endif
