#include "tape/row.h"

#define AT(member) offsetof(struct reply_event, member)
#define MODEL_ONLY                                                                             \
    { true, false }
#define TOOL_ONLY                                                                              \
    { false, true }
#define BOTH                                                                                   \
    { true, true }
#define NEITHER                                                                                \
    { false, false }

/* clang-format off */
const struct tape_row tape_rows[REPLY_KIND_COUNT] = {
    /*                  name         members                                   ends        tells */
    [REPLY_TEXT]      = {"text",      {{0}},                                    NEITHER,    MODEL_ONLY},
    [REPLY_THINKING]  = {"thinking",  {{0}},                                    NEITHER,    MODEL_ONLY},
    [REPLY_TOOL_CALL] = {"tool_call", {{"call_id", AT(call_id), TAPE_AS_ID},
                                       {"tool", AT(tool), TAPE_AS_ID},
                                       {"args", AT(args), TAPE_AS_VALUE}},      NEITHER,    MODEL_ONLY},
    [REPLY_USAGE]     = {"usage",     {{0}},                                    NEITHER,    MODEL_ONLY},
    [REPLY_OPAQUE]    = {"opaque",    {{"dialect", AT(dialect), TAPE_AS_ID},
                                       {"bytes", AT(text), TAPE_AS_VALUE}},     NEITHER,    MODEL_ONLY},
    [REPLY_NOTE]      = {"note",      {{"text", AT(text), TAPE_AS_PROSE},
                                       {"args", AT(args), TAPE_AS_OPTION}},     NEITHER,    MODEL_ONLY},
    [REPLY_APPROVAL]  = {"approval",  {{"call_id", AT(call_id), TAPE_AS_ID},
                                       {"question", AT(text), TAPE_AS_PROSE},
                                       {"tool", AT(tool), TAPE_AS_ID},
                                       {"args", AT(args), TAPE_AS_VALUE}},      NEITHER,    MODEL_ONLY},
    [REPLY_OWN_CALL]  = {"own_call",  {{"call_id", AT(call_id), TAPE_AS_ID},
                                       {"tool", AT(tool), TAPE_AS_ID},
                                       {"args", AT(args), TAPE_AS_VALUE}},      NEITHER,    MODEL_ONLY},
    [REPLY_OWN_RESULT] = {"own_result",
                                      {{"call_id", AT(call_id), TAPE_AS_ID},
                                       {"result", AT(text), TAPE_AS_VALUE},
                                       {"reason", AT(reason), TAPE_AS_PROSE}},  NEITHER,    MODEL_ONLY},
    [REPLY_DONE]      = {"done",      {{"model", AT(model), TAPE_AS_PROSE}},    MODEL_ONLY, MODEL_ONLY},
    [REPLY_FAILED]    = {"failed",    {{"reason", AT(reason), TAPE_AS_ID},
                                       {"message", AT(text), TAPE_AS_PROSE}},   BOTH,       BOTH},
    [REPLY_RESULT]    = {"result",    {{"result", AT(text), TAPE_AS_VALUE}},    TOOL_ONLY,  TOOL_ONLY},
};
/* clang-format on */
