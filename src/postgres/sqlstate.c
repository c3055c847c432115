#include "postgres/sqlstate.h"

/* The first row whose `head` begins the code counts. */
static const struct {
    const char *head;
    struct sqlstate means;
} rows[] = {
    /* clang-format off */
    {"40003", {ERR_OUTCOME_UNKNOWN,     SQLSTATE_FINAL,     NULL}}, /* completion unknown */
    {"40",    {ERR_ABORTED,             SQLSTATE_AGAIN,     NULL}}, /* serialization, deadlock */
    {"55P03", {ERR_ABORTED,             SQLSTATE_AGAIN,     NULL}}, /* lock not available */
    {"26000", {ERR_INTERNAL,            SQLSTATE_AGAIN,     NULL}}, /* its preparation was undone */
    {"0A000", {ERR_UNIMPLEMENTED,       SQLSTATE_FINAL,
               "use PostgreSQL 14 or later"}},
    {"25006", {ERR_UNAVAILABLE,         SQLSTATE_RECONNECT,
               "the server is read-only: name the primary server"}},
    {"57P",   {ERR_UNAVAILABLE,         SQLSTATE_RECONNECT, "the server is stopping or starting"}},
    {"08P01", {ERR_INTERNAL,            SQLSTATE_FINAL,     NULL}},
    {"08",    {ERR_UNAVAILABLE,         SQLSTATE_RECONNECT, "the server was lost"}},
    {"57014", {ERR_DEADLINE_EXCEEDED,   SQLSTATE_FINAL,
               "the statement took too long: look for what holds the server"}},
    {"53100", {ERR_UNAVAILABLE,         SQLSTATE_FINAL,     "make room on the server's disk"}},
    {"53300", {ERR_UNAVAILABLE,         SQLSTATE_RECONNECT, "raise max_connections of the server"}},
    {"53",    {ERR_RESOURCE_EXHAUSTED,  SQLSTATE_FINAL,     "give the server more of it"}},
    {"54",    {ERR_TOO_LARGE,           SQLSTATE_FINAL,     "send less in one request"}},
    {"58",    {ERR_UNAVAILABLE,         SQLSTATE_FINAL,     "check the server's disk"}},
    {"23505", {ERR_ALREADY_EXISTS,      SQLSTATE_FINAL,     NULL}},
    {"23",    {ERR_FAILED_PRECONDITION, SQLSTATE_FINAL,     NULL}},
    {"28",    {ERR_PERMISSION_DENIED,   SQLSTATE_FINAL,     "check user and password"}},
    {"42501", {ERR_PERMISSION_DENIED,   SQLSTATE_FINAL,     "grant it to this user"}},
    {"3D000", {ERR_FAILED_PRECONDITION, SQLSTATE_FINAL,     "create the database"}},
    {"3F000", {ERR_FAILED_PRECONDITION, SQLSTATE_FINAL,     "create the schema"}},
    {"42P01", {ERR_FAILED_PRECONDITION, SQLSTATE_FINAL,     "bring the tables up to date"}},
    {"42703", {ERR_FAILED_PRECONDITION, SQLSTATE_FINAL,     "bring the tables up to date"}},
    {"22",    {ERR_INVALID_ARGUMENT,    SQLSTATE_FINAL,     NULL}},
    {"XX001", {ERR_DATA_LOSS,           SQLSTATE_FINAL,     "restore the database from a backup"}},
    {"XX002", {ERR_DATA_LOSS,           SQLSTATE_FINAL,     "REINDEX the database"}},
    /* clang-format on */
};

struct sqlstate sqlstate_means(struct str sqlstate) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (str_starts(sqlstate, str_from(rows[i].head))) return rows[i].means;
    }
    return (struct sqlstate){ERR_INTERNAL, SQLSTATE_FINAL, NULL};
}
