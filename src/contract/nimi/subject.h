/* subject: where a request names the user for whom it is made.
 *
 * With issuers of tokens in the settings the subject is the token's, and what the request says
 * must not differ (call.c). So every row says where its request names one.
 *
 * Private to contract/nimi.
 *
 * Memory   points into the request.
 * Threads  any.
 */
#ifndef WEIR_CONTRACT_NIMI_SUBJECT_H
#define WEIR_CONTRACT_NIMI_SUBJECT_H

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum subject_where {
    SUBJECT_IS_NOT_NAMED = 1,
    SUBJECT_IN_REQUEST,
    SUBJECT_IN_MEMBER, /* in a message that the request points to, if it has one */
};

/* Offsets in the structs of the protocol's messages. */
struct nimi_subject {
    enum subject_where where;
    size_t text;    /* of the subject, in the request or in its member */
    size_t member;  /* of the pointer to the member */
    size_t which;   /* of what says which member of a oneof it has */
    int32_t chosen; /* what that must be; 0: it is no oneof */
};

#define SUBJECT_NONE                                                                           \
    { SUBJECT_IS_NOT_NAMED, 0, 0, 0, 0 }
#define SUBJECT_AT(request, text)                                                              \
    { SUBJECT_IN_REQUEST, offsetof(struct request, text), 0, 0, 0 }
#define SUBJECT_INSIDE(request, member, type)                                                  \
    {                                                                                          \
        SUBJECT_IN_MEMBER, offsetof(struct type, subject_user_id),                             \
            offsetof(struct request, member), 0, 0                                             \
    }
#define SUBJECT_INSIDE_ONEOF(request, member, type, which, chosen)                             \
    {                                                                                          \
        SUBJECT_IN_MEMBER, offsetof(struct type, subject_user_id),                             \
            offsetof(struct request, member), offsetof(struct request, which), chosen          \
    }

/* The place inside of a decoded request; NULL: this request has none. A request is decoded into
 * memory of its own; only its tables are constant. */
static inline struct str *subject_in(const struct nimi_subject *subject, void *request) {
    char *at = request;
    void *member;
    int32_t which = subject->chosen;
    if (subject->where == SUBJECT_IS_NOT_NAMED) return NULL;
    if (which) memcpy(&which, at + subject->which, sizeof(which));
    if (which != subject->chosen) return NULL;
    if (subject->where == SUBJECT_IN_MEMBER) {
        memcpy(&member, at + subject->member, sizeof(member));
        at = member;
    }
    return at ? (struct str *)(void *)(at + subject->text) : NULL;
}

#endif
