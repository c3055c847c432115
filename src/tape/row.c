#include "tape/row.h"

#define AT(member) offsetof(struct tape_event, member)
#define MODEL_ONLY                                                                             \
    { true, false }
#define TOOL_ONLY                                                                              \
    { false, true }
#define BOTH                                                                                   \
    { true, true }
#define NEITHER                                                                                \
    { false, false }

/* clang-format off */
const struct tape_row tape_rows[] = {
    /*                 name         members                                                ends        tells */
    [TAPE_TEXT]      = {"text",      {{0}},                                                NEITHER,    MODEL_ONLY},
    [TAPE_THINKING]  = {"thinking",  {{0}},                                                NEITHER,    MODEL_ONLY},
    [TAPE_TOOL_CALL] = {"tool_call", {{"call_id", AT(call_id), TAPE_AS_ID},
                                      {"tool", AT(name), TAPE_AS_ID},
                                      {"args", AT(args), TAPE_AS_VALUE}},                  NEITHER,    MODEL_ONLY},
    [TAPE_USAGE]     = {"usage",     {{0}},                                                NEITHER,    MODEL_ONLY},
    [TAPE_OPAQUE]    = {"opaque",    {{"dialect", AT(name), TAPE_AS_ID},
                                      {"bytes", AT(text), TAPE_AS_VALUE}},                 NEITHER,    MODEL_ONLY},
    [TAPE_NOTE]      = {"note",      {{"text", AT(text), TAPE_AS_PROSE}},                  NEITHER,    MODEL_ONLY},
    [TAPE_APPROVAL]  = {"approval",  {{"call_id", AT(call_id), TAPE_AS_ID},
                                      {"question", AT(text), TAPE_AS_PROSE},
                                      {"tool", AT(name), TAPE_AS_ID},
                                      {"args", AT(args), TAPE_AS_VALUE}},                  NEITHER,    MODEL_ONLY},
    [TAPE_DONE]      = {"done",      {{"model", AT(name), TAPE_AS_PROSE}},                 MODEL_ONLY, MODEL_ONLY},
    [TAPE_FAILED]    = {"failed",    {{"reason", AT(name), TAPE_AS_ID},
                                      {"message", AT(text), TAPE_AS_PROSE}},               BOTH,       BOTH},
    [TAPE_RESULT]    = {"result",    {{"result", AT(text), TAPE_AS_VALUE}},                TOOL_ONLY,  TOOL_ONLY},
};
/* clang-format on */
