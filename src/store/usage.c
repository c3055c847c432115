#include "store/usage.h"

#define SQL_MAX_BYTES (8 * KIB)
#define KEY_COLUMNS "workspace, agent, model, day"
#define KEY_COLUMN_COUNT 4

/* --- the columns after the key ------------------------------------------------------------ */

struct column {
    const char *name;
    size_t at; /* offset of an int64_t in struct usage_sum */
};

#define COLUMNS_MAX (4 + 2 * USAGE_FIELD_COUNT)
#define AT(member) offsetof(struct usage_sum, member)

static size_t list_columns(struct column ret[COLUMNS_MAX]) {
    size_t count = 0;
    ret[count++] = (struct column){"calls", AT(calls)};
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (!field->open_column) continue;
        ret[count++] = (struct column){field->name, AT(known) + field->at};
        ret[count++] = (struct column){field->open_column, AT(open) + field->at};
    }
    ret[count++] = (struct column){"estimated", AT(estimated)};
    ret[count++] = (struct column){"estimate_tokens", AT(estimate_tokens)};
    ret[count++] = (struct column){"estimate_cost_nano", AT(estimate_cost_nano)};
    return count;
}

static int64_t *column_of(struct usage_sum *sum, const struct column *column) {
    return (int64_t *)(void *)((char *)sum + column->at);
}

/* --- statements --------------------------------------------------------------------------- */

static void append_names(struct buf *sql) {
    struct column columns[COLUMNS_MAX];
    size_t count = list_columns(columns);
    buf_append(sql, STR(KEY_COLUMNS));
    for (size_t i = 0; i < count; i++) buf_printf(sql, ", %s", columns[i].name);
}

/* PostgreSQL refuses a sum that has no room; SQLite keeps it as a real number, which reads as
 * the largest. */
static void append_add(const struct database *db, struct buf *sql) {
    const char *add = database_sql(db, "%s %s = usage.%s + excluded.%s",
                                   "%s %s = add_up(usage.%s, excluded.%s)");
    struct column columns[COLUMNS_MAX];
    size_t count = list_columns(columns);
    buf_append(sql, STR("INSERT INTO usage("));
    append_names(sql);
    buf_append(sql, STR(") VALUES(?"));
    for (size_t i = 1; i < KEY_COLUMN_COUNT + count; i++) buf_append(sql, STR(", ?"));
    buf_append(sql, STR(") ON CONFLICT(" KEY_COLUMNS ") DO UPDATE SET"));
    for (size_t i = 0; i < count; i++)
        buf_printf(sql, add, i ? "," : "", columns[i].name, columns[i].name, columns[i].name);
}

static void append_select(struct buf *sql, const char *which) {
    buf_append(sql, STR("SELECT "));
    append_names(sql);
    buf_printf(sql, " FROM usage WHERE day >= ? AND day <= ?%s ORDER BY " KEY_COLUMNS, which);
}

/* Prepare the statement; `sql` is freed. */
static bool prepare(struct database *db, struct buf *sql, struct prepared **ret,
                    struct err *e) {
    bool ok = buf_append_byte(sql, '\0') && database_prepare(db, sql->at, ret, e);
    buf_done(sql);
    return ok;
}

static bool prepare_add(struct usage_table *table, struct err *e) {
    struct buf sql;
    buf_init(&sql, SQL_MAX_BYTES);
    append_add(table->db, &sql);
    return prepare(table->db, &sql, &table->add, e);
}

static bool prepare_select(struct usage_table *table, const char *which, struct prepared **ret,
                           struct err *e) {
    struct buf sql;
    buf_init(&sql, SQL_MAX_BYTES);
    append_select(&sql, which);
    return prepare(table->db, &sql, ret, e);
}

bool usage_open(struct usage_table *table, struct database *db, struct err *e) {
    *table = (struct usage_table){.db = db};
    return prepare_add(table, e) &&
           prepare_select(table, " AND workspace = ?", &table->of_one, e) &&
           prepare_select(table, "", &table->of_all, e);
}

void usage_close(struct usage_table *table) {
    database_finalize(table->add);
    database_finalize(table->of_one);
    database_finalize(table->of_all);
}

/* --- writing ------------------------------------------------------------------------------ */

static void add_open(struct event_usage *open, const struct event_usage *call) {
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (field->open_column && usage_get(call, field) < 0) ++*usage_at(open, field);
    }
}

void usage_sum_add(struct usage_sum *sum, const struct event_usage *call) {
    sum->calls++;
    usage_add(&sum->known, call);
    add_open(&sum->open, call);
    if (!call->estimated) return;
    sum->estimated++;
    sum->estimate_tokens = usage_sum(
        sum->estimate_tokens, usage_sum(call->estimate_prompt, call->estimate_completion));
    if (call->estimate_cost_nano > 0)
        sum->estimate_cost_nano = usage_sum(sum->estimate_cost_nano, call->estimate_cost_nano);
}

void usage_sum_join(struct usage_sum *sum, const struct usage_sum *other) {
    sum->calls += other->calls;
    usage_add(&sum->known, &other->known);
    usage_add(&sum->open, &other->open);
    sum->estimated += other->estimated;
    sum->estimate_tokens = usage_sum(sum->estimate_tokens, other->estimate_tokens);
    sum->estimate_cost_nano = usage_sum(sum->estimate_cost_nano, other->estimate_cost_nano);
}

bool usage_write(struct usage_table *table, const struct usage_sum *sum, struct err *e) {
    struct usage_sum copy = *sum;
    struct column columns[COLUMNS_MAX];
    size_t count = list_columns(columns);
    struct prepared *statement = table->add;
    database_bind(statement, 1, sum->workspace);
    database_bind(statement, 2, sum->agent);
    database_bind(statement, 3, sum->model);
    database_bind_number(statement, 4, sum->day);
    for (size_t i = 0; i < count; i++)
        database_bind_number(statement, KEY_COLUMN_COUNT + 1 + (int)i,
                             *column_of(&copy, &columns[i]));
    return database_do(table->db, statement, e);
}

/* --- reading ------------------------------------------------------------------------------ */

static struct usage_sum read_sum(struct prepared *row) {
    struct column columns[COLUMNS_MAX];
    size_t count = list_columns(columns);
    struct usage_sum sum = {.workspace = database_bytes(row, 0),
                            .agent = database_bytes(row, 1),
                            .model = database_bytes(row, 2),
                            .day = database_number_of(row, 3)};
    for (size_t i = 0; i < count; i++)
        *column_of(&sum, &columns[i]) = database_number_of(row, KEY_COLUMN_COUNT + (int)i);
    return sum;
}

static struct store_usage read_row(struct prepared *row) {
    const struct usage_sum sum = read_sum(row);
    struct store_usage usage = {
        .workspace = sum.workspace,
        .agent = sum.agent,
        .day = sum.day,
        .calls = sum.calls,
        .tokens_unknown = sum.open.total,
        .cost_unknown = sum.open.cost_nano,
        .sums = sum.known,
        .estimated = sum.estimated,
        .estimate_tokens = sum.estimate_tokens,
        .estimate_cost_nano = sum.estimate_cost_nano,
    };
    usage.sums.model = sum.model;
    return usage;
}

bool usage_each(struct usage_table *table, const struct store_load *load, usage_each_fn *each,
                void *ctx, struct err *e) {
    struct prepared *rows = load->all_workspaces ? table->of_all : table->of_one;
    database_bind_number(rows, 1, load->from_day);
    database_bind_number(rows, 2, load->to_day);
    if (!load->all_workspaces) database_bind(rows, 3, load->workspace);
    bool found, ok;
    while ((ok = database_row(table->db, rows, &found, e)) && found) {
        const struct store_usage usage = read_row(rows);
        if (!(ok = each(&usage, ctx, e))) break;
    }
    database_reset(rows);
    return ok;
}
