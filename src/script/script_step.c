#include "script/script_step.h"

#include "base/nearest.h"
#include "wire/json.h"

#define REPEAT_TIMES_MAX 1000000

/* Larger counts are not exact as JSON numbers (doubles). */
#define TOKENS_MAX (UINT64_C(1) << 53)

static const struct script_piece empty_object = {HOLE_NONE, STR_INIT("{}")};

/* What parsing one step needs. */
struct context {
    const struct script *script;
    const struct script_pace *pace;
};

/* --- pace ----------------------------------------------------------------------------- */

bool script_within_a_day(const struct yaml *node, uint64_t us, struct err *e) {
    const uint64_t day_us = UINT64_C(24) * 3600 * 1000000;
    return us <= day_us || yaml_err(e, node, "more than a day; to wait for ever, stall");
}

struct pace_nodes {
    uint64_t every_us, chunk;
    struct str split;
};

static const struct yaml_field pace_fields[] = {
    {"every", YAML_DURATION, offsetof(struct pace_nodes, every_us), false},
    {"chunk", YAML_COUNT, offsetof(struct pace_nodes, chunk), false},
    {"split", YAML_NAME, offsetof(struct pace_nodes, split), false},
};

bool script_pace_read(const struct yaml *node, struct script_pace *pace, struct err *e) {
    struct pace_nodes nodes = {.every_us = pace->every_us,
                               .chunk = pace->chunk,
                               .split = pace->bytes ? STR("bytes") : STR("characters")};
    if (!yaml_fields(node, "a pace", pace_fields, ARRAY_LEN(pace_fields), &nodes, e))
        return false;
    if (!script_within_a_day(node, nodes.every_us, e)) return false;
    bool bytes = str_equal(nodes.split, STR("bytes"));
    if (!bytes && !str_equal(nodes.split, STR("characters")))
        return yaml_err(e, yaml_find(node, STR("split")), "split is 'characters' or 'bytes'");
    *pace = (struct script_pace){nodes.every_us, nodes.chunk, bytes};
    return true;
}

/* --- readers for each kind of step -------------------------------------------------------- */

static bool script_step_read_text(const struct context *context, const struct yaml *node,
                                  struct script_step *step, struct err *e) {
    (void)context;
    return script_text_read(node, HOLES_OF_REPLY, &step->text, e);
}

struct repeat_nodes {
    uint64_t times;
    const struct yaml *text;
};

static const struct yaml_field repeat_fields[] = {
    {"times", YAML_COUNT, offsetof(struct repeat_nodes, times), true},
    {"text", YAML_NODE, offsetof(struct repeat_nodes, text), true},
};

static bool read_repeat(const struct context *context, const struct yaml *node,
                        struct script_step *step, struct err *e) {
    (void)context;
    struct repeat_nodes nodes = {0};
    if (!yaml_fields(node, "a repeat", repeat_fields, ARRAY_LEN(repeat_fields), &nodes, e))
        return false;
    if (nodes.times > REPEAT_TIMES_MAX)
        return yaml_err(e, node, "at most %d times", REPEAT_TIMES_MAX);
    step->times = nodes.times;
    return script_text_read(nodes.text, HOLES_OF_REPLY, &step->text, e);
}

static bool read_wait(const struct context *context, const struct yaml *node,
                      struct script_step *step, struct err *e) {
    (void)context;
    return yaml_value(node, YAML_DURATION, &step->wait_us, e) &&
           script_within_a_day(node, step->wait_us, e);
}

static bool read_model(const struct context *context, const struct yaml *node,
                       struct script_step *step, struct err *e) {
    (void)context;
    return yaml_value(node, YAML_TEXT, &step->model, e);
}

struct call_nodes {
    struct str id, tool;
    const struct yaml *args, *question;
};

static const struct yaml_field call_fields[] = {
    {"id", YAML_NAME, offsetof(struct call_nodes, id), false},
    {"tool", YAML_NAME, offsetof(struct call_nodes, tool), true},
    {"args", YAML_NODE, offsetof(struct call_nodes, args), false},
};

static const struct yaml_field approval_fields[] = {
    {"question", YAML_NODE, offsetof(struct call_nodes, question), true},
    {"id", YAML_NAME, offsetof(struct call_nodes, id), false},
    {"tool", YAML_NAME, offsetof(struct call_nodes, tool), false},
    {"args", YAML_NODE, offsetof(struct call_nodes, args), false},
};

static bool script_step_take_call(const struct call_nodes *nodes, struct script_step *step,
                                  struct err *e) {
    step->id = nodes->id;
    step->tool = nodes->tool;
    step->args = (struct script_text){.pieces = &empty_object, .count = 1, .json = true};
    return !nodes->args || script_json_read(nodes->args, HOLES_OF_REPLY, &step->args, e);
}

static bool read_tool_call(const struct context *context, const struct yaml *node,
                           struct script_step *step, struct err *e) {
    (void)context;
    struct call_nodes nodes = {.id = STR_EMPTY};
    return yaml_fields(node, "a tool_call", call_fields, ARRAY_LEN(call_fields), &nodes, e) &&
           script_step_take_call(&nodes, step, e);
}

static bool read_approval(const struct context *context, const struct yaml *node,
                          struct script_step *step, struct err *e) {
    (void)context;
    struct call_nodes nodes = {.id = STR_EMPTY, .tool = STR_EMPTY};
    return yaml_fields(node, "an approval", approval_fields, ARRAY_LEN(approval_fields), &nodes,
                       e) &&
           script_step_take_call(&nodes, step, e) &&
           script_text_read(nodes.question, HOLES_OF_REPLY, &step->text, e);
}

/* "transfer: writer" is the tool call that hands over to an agent. */
static bool read_transfer(const struct context *context, const struct yaml *node,
                          struct script_step *step, struct err *e) {
    struct str slug;
    if (!yaml_value(node, YAML_NAME, &slug, e)) return false;
    if (!script_agent_known(context->script, node, slug, e)) return false;

    struct arena *arena = node->document->arena;
    struct script_piece *piece = ARENA_NEW(arena, struct script_piece);
    struct buf json;
    buf_init(&json, KIB);
    buf_append(&json, STR("{\"agent_name\":"));
    json_put_str(&json, slug);
    buf_append_byte(&json, '}');
    bool done = piece && buf_ok(&json) && arena_str(arena, buf_str(&json), &piece->text);
    buf_done(&json);
    if (!done) return yaml_err(e, node, "this script is too large");
    step->id = STR_EMPTY;
    step->tool = STR("transfer_to_agent");
    step->args = (struct script_text){.pieces = piece, .count = 1, .json = true};
    return true;
}

/* The token counts that the store sums; counts missing in a script are unknown. */
static size_t list_counts(struct yaml_field ret[USAGE_FIELD_COUNT]) {
    size_t count = 0;
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (field->sum_name)
            ret[count++] = (struct yaml_field){field->name, YAML_COUNT, field->at, false};
    }
    return count;
}

static bool script_step_read_usage(const struct context *context, const struct yaml *node,
                                   struct script_step *step, struct err *e) {
    (void)context;
    struct yaml_field counts[USAGE_FIELD_COUNT];
    struct event_usage usage = USAGE_UNKNOWN;
    if (!yaml_fields(node, "a usage", counts, list_counts(counts), &usage, e)) return false;
    for (const struct yaml *count = node->first; count; count = count->next) {
        uint64_t number = 0;
        if (str_to_u64(count->text, &number) && number > TOKENS_MAX)
            return yaml_err(e, count, "no model counts that many tokens");
    }
    if (usage.total == TOKENS_UNKNOWN && usage.prompt != TOKENS_UNKNOWN &&
        usage.completion != TOKENS_UNKNOWN)
        usage.total = usage.prompt + usage.completion;
    step->usage = usage;
    return true;
}

/* --- faults --------------------------------------------------------------------------- */

struct fault_nodes {
    struct str kind, code, reason;
    const struct yaml *message;
};

static const struct yaml_field fault_fields[] = {
    {"kind", YAML_NAME, offsetof(struct fault_nodes, kind), true},
    {"code", YAML_NAME, offsetof(struct fault_nodes, code), false},
    {"reason", YAML_NAME, offsetof(struct fault_nodes, reason), false},
    {"message", YAML_NODE, offsetof(struct fault_nodes, message), false},
};

static const struct {
    const char *name;
    enum script_step_kind step;
} faults[] = {
    {"error", STEP_FAIL},
    {"stall", STEP_STALL},
    {"eof", STEP_EOF},
    {"bad_utf8", STEP_BAD_UTF8},
};

static bool fault_kind(const struct yaml *node, struct str name, enum script_step_kind *ret,
                       struct err *e) {
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        if (str_equal(name, str_from(faults[i].name))) {
            *ret = faults[i].step;
            return true;
        }
        nearest_offer(&nearest, str_from(faults[i].name));
    }
    return yaml_err(e, yaml_find(node, STR("kind")), "no fault is called '" STR_FMT "'%s",
                    STR_ARG(name),
                    nearest.found.len ? nearest_hint(&nearest)
                                      : "; there are error, stall, eof and bad_utf8");
}

static bool fault_code(const struct yaml *node, struct str name, enum err_code *ret,
                       struct err *e) {
    if (name.len == 0) return true;
    enum err_code code = err_code_named(name);
    if (code != ERR_NONE && (code != ERR_UNKNOWN || str_equal_nocase(name, STR("UNKNOWN")))) {
        *ret = code;
        return true;
    }
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (int i = ERR_NONE + 1; i <= ERR_UNAUTHENTICATED; i++)
        nearest_offer(&nearest, err_name((enum err_code)i));
    return yaml_err(e, yaml_find(node, STR("code")), "no error code is called '" STR_FMT "'%s",
                    STR_ARG(name), nearest_hint(&nearest));
}

static bool read_fault(const struct context *context, const struct yaml *node,
                       struct script_step *step, struct err *e) {
    (void)context;
    struct fault_nodes nodes = {.code = STR_EMPTY, .reason = STR_EMPTY};
    if (!yaml_fields(node, "a fault", fault_fields, ARRAY_LEN(fault_fields), &nodes, e))
        return false;
    if (!fault_kind(node, nodes.kind, &step->kind, e)) return false;
    if (step->kind != STEP_FAIL && (nodes.code.len || nodes.reason.len || nodes.message))
        return yaml_err(e, node,
                        "only a fault of kind 'error' has a code, a reason, a message");
    step->code = ERR_UNAVAILABLE;
    step->reason = nodes.reason.len ? nodes.reason : STR("AI_PROVIDER_UNAVAILABLE");
    return fault_code(node, nodes.code, &step->code, e) &&
           (!nodes.message || script_text_read(nodes.message, HOLES_OF_REPLY, &step->text, e));
}

/* --- the list ------------------------------------------------------------------------- */

typedef bool step_fn(const struct context *context, const struct yaml *node,
                     struct script_step *step, struct err *e);

/* The kinds of steps. A step is a map with one of these keys. */
static const struct step_kind {
    const char *key;
    enum script_step_kind kind;
    step_fn *read;
    bool paced;
} step_kinds[] = {
    /* clang-format off */
    {"text",      STEP_TEXT,      script_step_read_text,      true},
    {"thinking",  STEP_THINKING,  script_step_read_text,      true},
    {"repeat",    STEP_REPEAT,    read_repeat,    true},
    {"wait",      STEP_WAIT,      read_wait,      false},
    {"tool_call", STEP_TOOL_CALL, read_tool_call, false},
    {"transfer",  STEP_TOOL_CALL, read_transfer,  false},
    {"approval",  STEP_APPROVAL,  read_approval,  false},
    {"usage",     STEP_USAGE,     script_step_read_usage,     false},
    {"model",     STEP_MODEL,     read_model,     false},
    {"fault",     STEP_FAIL,      read_fault,     false},
    /* clang-format on */
};

static const struct step_kind *script_step_kind_of(struct str key) {
    for (size_t i = 0; i < ARRAY_LEN(step_kinds); i++) {
        if (str_equal(key, str_from(step_kinds[i].key))) return &step_kinds[i];
    }
    return NULL;
}

static bool script_step_refuse_key(const struct yaml *value, struct err *e) {
    struct nearest nearest;
    nearest_init(&nearest, value->key);
    for (size_t i = 0; i < ARRAY_LEN(step_kinds); i++)
        nearest_offer(&nearest, str_from(step_kinds[i].key));
    nearest_offer(&nearest, STR("pace"));
    return yaml_err_key(e, value, "no step is called '" STR_FMT "'%s",
                        STR_ARG(str_head(value->key, 40)), nearest_hint(&nearest));
}

static bool read_step(const struct context *context, const struct yaml *node,
                      struct script_step *step, struct err *e) {
    *step = (struct script_step){.kind = STEP_TEXT, .pace = *context->pace};
    step->id = step->tool = step->model = step->reason = STR_EMPTY;
    if (node->kind == YAML_SCALAR) return script_step_read_text(context, node, step, e);
    if (node->kind != YAML_MAP)
        return yaml_err(e, node, "a step is a text or a map such as {wait: 1s}, not a list");

    const struct step_kind *kind = NULL;
    const struct yaml *action = NULL, *pace = NULL;
    for (const struct yaml *value = node->first; value; value = value->next) {
        const struct step_kind *found = script_step_kind_of(value->key);
        bool is_pace = str_equal(value->key, STR("pace"));
        if (is_pace) pace = value;
        if (!found && !is_pace) return script_step_refuse_key(value, e);
        if (found && kind)
            return yaml_err_key(e, value,
                                "'%s' and '%s' are two steps; begin each with its own '-'",
                                kind->key, found->key);
        if (found) kind = found, action = value;
    }
    if (!kind) return yaml_err(e, node, "this step does nothing; give it a key such as 'text'");
    if (pace && !kind->paced)
        return yaml_err_key(e, pace, "'%s' has no pace; only text, thinking and repeat do",
                            kind->key);
    if (pace && !script_pace_read(pace, &step->pace, e)) return false;
    step->kind = kind->kind;
    return kind->read(context, action, step, e);
}

/* Whether no step can follow: the call is over, or stalls for ever. */
static bool is_last(enum script_step_kind kind) {
    return kind == STEP_FAIL || kind == STEP_STALL || kind == STEP_EOF;
}

bool script_steps_read(const struct script *script, const struct yaml *node,
                       const struct script_pace *pace, struct script_steps *ret,
                       struct err *e) {
    if (node->kind == YAML_MAP)
        return yaml_err(e, node, "a reply is a list of steps; begin each step with '-'");
    size_t count = node->kind == YAML_LIST ? node->count : 1;
    struct script_step *steps = arena_alloc(node->document->arena, count * sizeof(*steps));
    if (!steps) return yaml_err(e, node, "this reply is too large");

    struct context context = {.script = script, .pace = pace};
    if (node->kind == YAML_SCALAR && !read_step(&context, node, &steps[0], e)) return false;
    size_t done = 0;
    for (const struct yaml *item = node->first; item; item = item->next, done++) {
        if (done && is_last(steps[done - 1].kind))
            return yaml_err(e, item, "nothing follows a fault that ends the call; move it up");
        if (!read_step(&context, item, &steps[done], e)) return false;
    }
    *ret = (struct script_steps){.at = steps, .count = count};
    return true;
}
