/* template: a text with places for the arguments of a call.
 *
 *     /users/{id}/orders          {id}           an argument
 *     Bearer {env:CRM_KEY}        {env:NAME}     a secret of the settings
 *     {call:user}                 {call:user}    of the turn: user, session, workspace, agent,
 *     id {{ }}                       { }            the braces themselves
 *
 * This module only splits the text into pieces; the caller fills them.
 *
 * Memory   pieces are views of the text.
 * Threads  none; values only. */
#ifndef WEIR_TOOL_TEMPLATE_H
#define WEIR_TOOL_TEMPLATE_H

#include "base/err.h"
#include "base/str.h"

enum template_kind { TEMPLATE_TEXT, TEMPLATE_ARGUMENT, TEMPLATE_SECRET, TEMPLATE_OF_CALL };

struct template_piece {
    enum template_kind kind;
    struct str text; /* the text, or the name */
};

/* Take the next piece from the front of `rest`, which is not empty.
 * errors  ERR_INVALID_ARGUMENT an unmatched brace, or braces without a name */
MUST_CHECK bool template_next(struct str *rest, struct template_piece *ret, struct err *e);

/* Whether the text is a single place. */
bool template_is_one(struct str text, struct template_piece *ret);

/* The names after "call:". */
enum template_call {
    TEMPLATE_USER,
    TEMPLATE_SESSION,
    TEMPLATE_WORKSPACE,
    TEMPLATE_AGENT,
    TEMPLATE_CALL_ID, /* our own, not the model's */
    TEMPLATE_CALL_COUNT,
};

/* False: there is no such name. */
bool template_call_find(struct str name, enum template_call *ret);

#endif
