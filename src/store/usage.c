#include "store/usage.h"

#define COLUMNS                                                                                \
    "prompt, completion, total, tool_use, thoughts, cached, cost_nano,"                        \
    " prompt_unknown, completion_unknown, total_unknown, tool_use_unknown, thoughts_unknown,"  \
    " cached_unknown, cost_unknown, estimated, estimate_tokens, estimate_cost_nano"
#define MORE(column) " " column " = " column " + excluded." column

static const char add_text[] =
    "INSERT INTO usage(workspace, agent, model, day, calls, " COLUMNS ")"
    " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO "
    "UPDATE SET"
    /* clang-format off */
    MORE("calls") "," MORE("prompt") "," MORE("completion") "," MORE("total") ","
    MORE("tool_use") "," MORE("thoughts") "," MORE("cached") "," MORE("cost_nano") ","
    MORE("prompt_unknown") "," MORE("completion_unknown") "," MORE("total_unknown") ","
    MORE("tool_use_unknown") "," MORE("thoughts_unknown") "," MORE("cached_unknown") ","
    MORE("cost_unknown") "," MORE("estimated") "," MORE("estimate_tokens") ","
    MORE("estimate_cost_nano");
/* clang-format on */

#define SELECT "SELECT workspace, agent, model, day, calls, " COLUMNS " FROM usage WHERE"
#define ORDER " ORDER BY workspace, agent, model, day"

bool usage_open(struct usage_table *table, struct database *db, struct err *e) {
    *table = (struct usage_table){.db = db};
    return database_prepare(db, add_text, &table->add, e) &&
           database_prepare(db, SELECT " day >= ? AND day <= ? AND workspace = ?" ORDER,
                            &table->of_one, e) &&
           database_prepare(db, SELECT " day >= ? AND day <= ?" ORDER, &table->of_all, e);
}

void usage_close(struct usage_table *table) {
    sqlite3_finalize(table->add);
    sqlite3_finalize(table->of_one);
    sqlite3_finalize(table->of_all);
}

/* --- writing ------------------------------------------------------------------------------ */

static int64_t add(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void usage_sum_add(struct usage_sum *sum, const struct event_usage *call) {
    const int64_t counts[USAGE_COUNTS] = {
        [USAGE_PROMPT] = call->prompt,     [USAGE_COMPLETION] = call->completion,
        [USAGE_TOTAL] = call->total,       [USAGE_TOOL_USE] = call->tool_use,
        [USAGE_THOUGHTS] = call->thoughts, [USAGE_CACHED] = call->cached,
        [USAGE_COST] = call->cost_nano,
    };
    sum->calls++;
    for (int i = 0; i < USAGE_COUNTS; i++) {
        if (counts[i] < 0) sum->unknown[i]++;
        if (counts[i] > 0) sum->known[i] = add(sum->known[i], counts[i]);
    }
    if (!call->estimated) return;
    sum->estimated++;
    sum->estimate_tokens =
        add(sum->estimate_tokens, add(call->estimate_prompt, call->estimate_completion));
    if (call->estimate_cost_nano > 0)
        sum->estimate_cost_nano = add(sum->estimate_cost_nano, call->estimate_cost_nano);
}

bool usage_write(struct usage_table *table, const struct usage_sum *sum, struct err *e) {
    sqlite3_stmt *statement = table->add;
    database_bind(statement, 1, sum->workspace);
    database_bind(statement, 2, sum->agent);
    database_bind(statement, 3, sum->model);
    sqlite3_bind_int64(statement, 4, sum->day);
    sqlite3_bind_int64(statement, 5, sum->calls);
    for (int i = 0; i < USAGE_COUNTS; i++) {
        sqlite3_bind_int64(statement, 6 + i, sum->known[i]);
        sqlite3_bind_int64(statement, 6 + USAGE_COUNTS + i, sum->unknown[i]);
    }
    const int estimates = 6 + 2 * USAGE_COUNTS;
    sqlite3_bind_int64(statement, estimates, sum->estimated);
    sqlite3_bind_int64(statement, estimates + 1, sum->estimate_tokens);
    sqlite3_bind_int64(statement, estimates + 2, sum->estimate_cost_nano);
    return database_do(table->db, statement, e);
}

/* --- reading ------------------------------------------------------------------------------ */

static struct store_usage read_row(sqlite3_stmt *row) {
    const int counts = 5, unknowns = counts + USAGE_COUNTS, estimates = unknowns + USAGE_COUNTS;
    return (struct store_usage){
        .workspace = database_bytes(row, 0),
        .agent = database_bytes(row, 1),
        .model = database_bytes(row, 2),
        .day = sqlite3_column_int64(row, 3),
        .calls = sqlite3_column_int64(row, 4),
        .prompt = sqlite3_column_int64(row, counts + USAGE_PROMPT),
        .completion = sqlite3_column_int64(row, counts + USAGE_COMPLETION),
        .total = sqlite3_column_int64(row, counts + USAGE_TOTAL),
        .tool_use = sqlite3_column_int64(row, counts + USAGE_TOOL_USE),
        .thoughts = sqlite3_column_int64(row, counts + USAGE_THOUGHTS),
        .cached = sqlite3_column_int64(row, counts + USAGE_CACHED),
        .cost_nano = sqlite3_column_int64(row, counts + USAGE_COST),
        .tokens_unknown = sqlite3_column_int64(row, unknowns + USAGE_TOTAL),
        .cost_unknown = sqlite3_column_int64(row, unknowns + USAGE_COST),
        .estimated = sqlite3_column_int64(row, estimates),
        .estimate_tokens = sqlite3_column_int64(row, estimates + 1),
        .estimate_cost_nano = sqlite3_column_int64(row, estimates + 2),
    };
}

bool usage_each(struct usage_table *table, const struct store_load *load, usage_each_fn *each,
                void *ctx, struct err *e) {
    sqlite3_stmt *rows = load->all_workspaces ? table->of_all : table->of_one;
    sqlite3_bind_int64(rows, 1, load->from_day);
    sqlite3_bind_int64(rows, 2, load->to_day);
    if (!load->all_workspaces) database_bind(rows, 3, load->workspace);
    bool found, ok;
    while ((ok = database_row(table->db, rows, &found, e)) && found) {
        const struct store_usage usage = read_row(rows);
        if (!(ok = each(&usage, ctx, e))) break;
    }
    sqlite3_reset(rows);
    return ok;
}
