#include "store/postgres_statement.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

struct postgres_statement {
    struct postgres_session *session;
    const char *sql;
    struct postgres_value values[POSTGRES_VALUES_MAX];
    char *copies[POSTGRES_VALUES_MAX];
    size_t value_count;
    bool running;
    struct postgres_rows rows;
    size_t next; /* one more than the row it is at */
    int64_t affected;
};

/* --- translating ------------------------------------------------------------------------------ */

static bool is_word(char byte) {
    return str_is_alnum(byte) || byte == '_';
}

static struct str take_word(struct str *rest) {
    size_t len = 0;
    while (len < rest->len && is_word(rest->at[len])) len++;
    struct str word = str_head(*rest, len);
    *rest = str_skip(*rest, len);
    return word;
}

/* A text in quotation marks, both included. */
static struct str take_quoted(struct str *rest) {
    size_t len = 1;
    while (len < rest->len && rest->at[len] != rest->at[0]) len++;
    struct str quoted = str_head(*rest, len + 1);
    *rest = str_skip(*rest, len + 1);
    return quoted;
}

static void put_place(struct str *rest, unsigned *last, struct buf *ret) {
    uint64_t place;
    *rest = str_skip(*rest, 1);
    struct str digits = take_word(rest);
    if (!str_to_u64(digits, &place)) place = *last + 1;
    if (place > *last) *last = (unsigned)place;
    buf_printf(ret, "$%u", (unsigned)place);
}

static void put_word(struct str *rest, struct buf *ret) {
    struct str word = take_word(rest);
    if (str_equal(word, STR("user"))) {
        buf_append(ret, STR("\"user\""));
    } else if (str_equal(word, STR("INDEXED"))) {
        *rest = str_skip(*rest, sizeof(" BY ") - 1);
        take_word(rest);
    } else if (str_equal(word, STR("x")) && str_starts(*rest, STR("''"))) {
        *rest = str_skip(*rest, 2);
        buf_append(ret, STR("''::bytea"));
    } else if (!str_equal(word, STR("IMMEDIATE"))) {
        buf_append(ret, word);
    }
}

void postgres_statement_translate(struct str sql, struct buf *ret) {
    unsigned last = 0;
    while (sql.len) {
        char byte = sql.at[0];
        bool letter_follows = sql.len > 1 && str_is_alnum(sql.at[1]);
        if (byte == '\'' || byte == '"') {
            buf_append(ret, take_quoted(&sql));
        } else if (is_word(byte)) {
            put_word(&sql, ret);
        } else if (byte == '?') {
            put_place(&sql, &last, ret);
        } else {
            if (byte != '+' || !letter_follows) buf_append_byte(ret, byte);
            sql = str_skip(sql, 1);
        }
    }
}

/* --- life ----------------------------------------------------------------------------------------- */

struct postgres_statement *postgres_statement_new(struct postgres_session *session,
                                                  const char *sql) {
    struct postgres_statement *statement = MEM_NEW(struct postgres_statement);
    statement->session = session;
    statement->sql = sql;
    return statement;
}

void postgres_statement_free(struct postgres_statement *statement) {
    if (!statement) return;
    postgres_statement_reset(statement);
    for (size_t i = 0; i < POSTGRES_VALUES_MAX; i++) free(statement->copies[i]);
    free(statement);
}

/* --- values ----------------------------------------------------------------------------------------- */

void postgres_statement_bind(struct postgres_statement *statement, int place,
                             struct postgres_value value) {
    assert(place > 0 && place <= POSTGRES_VALUES_MAX);
    /* A place that the text does not use still needs a type. */
    while (statement->value_count < (size_t)place)
        statement->values[statement->value_count++] = postgres_int(0);
    statement->values[place - 1] = value;
}

void postgres_statement_bind_copy(struct postgres_statement *statement, int place,
                                  struct str bytes) {
    assert(place > 0 && place <= POSTGRES_VALUES_MAX);
    char **copy = &statement->copies[place - 1];
    *copy = mem_resize(*copy, bytes.len + 1);
    if (bytes.len) memcpy(*copy, bytes.at, bytes.len);
    postgres_statement_bind(statement, place, postgres_bytes(str_of(*copy, bytes.len)));
}

/* --- rows --------------------------------------------------------------------------------------------- */

static bool statement_send(struct postgres_statement *statement, struct err *e) {
    struct postgres_step step = {.sql = statement->sql,
                                 .value_count = statement->value_count,
                                 .values = statement->values};
    if (!postgres_session_ask(statement->session, &step, &statement->rows, e)) return false;
    statement->running = true;
    statement->next = 0;
    statement->affected = statement->rows.affected;
    return true;
}

bool postgres_statement_row(struct postgres_statement *statement, bool *ret_row,
                            struct err *e) {
    if (!statement->running && !statement_send(statement, e)) return false;
    *ret_row = statement->next < statement->rows.count;
    statement->next += *ret_row;
    return true;
}

void postgres_statement_reset(struct postgres_statement *statement) {
    postgres_session_free_rows(&statement->rows);
    statement->running = false;
}

struct str postgres_statement_bytes(const struct postgres_statement *statement, int column) {
    assert(statement->next > 0);
    return postgres_content(statement->rows, statement->next - 1, (size_t)column);
}

int64_t postgres_statement_number(const struct postgres_statement *statement, int column) {
    assert(statement->next > 0);
    return postgres_number(statement->rows, statement->next - 1, (size_t)column);
}

double postgres_statement_real(const struct postgres_statement *statement, int column) {
    double real;
    int64_t bits = postgres_statement_number(statement, column);
    memcpy(&real, &bits, sizeof(real));
    return real;
}

bool postgres_statement_is_null(const struct postgres_statement *statement, int column) {
    assert(statement->next > 0);
    return postgres_is_null(statement->rows, statement->next - 1, (size_t)column);
}

int64_t postgres_statement_affected(const struct postgres_statement *statement) {
    return statement->affected;
}
