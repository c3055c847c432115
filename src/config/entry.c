/* Reads entries of lists, and maps in them, by the rows of their schema. */
#include "config/build.h"

#include "base/nearest.h"

/* --- keys --------------------------------------------------------------------------------- */

static bool has_key(const struct entry_schema *schema, struct str key) {
    for (size_t i = 0; i < schema->count; i++) {
        if (str_equal(key, str_from(schema->rows[i].key))) return true;
    }
    return false;
}

static void offer_keys(const struct entry_schema *schema, struct str key,
                       struct nearest *nearest) {
    nearest_init(nearest, key);
    for (size_t i = 0; i < schema->count; i++)
        nearest_offer(nearest, str_from(schema->rows[i].key));
}

static bool entry_refuse_key(const struct entry_schema *schema, const struct yaml *node,
                             struct err *e) {
    struct nearest nearest;
    offer_keys(schema, node->key, &nearest);
    return yaml_err_key(e, node, "%s has no key '" STR_FMT "'%s", schema->what,
                        STR_ARG(str_head(node->key, 40)), nearest_hint(&nearest));
}

/* The key is present but misspelt, which was reported already. */
static bool is_misspelt(const struct entry_schema *schema, const struct yaml *map,
                        const struct setting *row) {
    for (const struct yaml *node = map->first; node; node = node->next) {
        struct nearest nearest;
        offer_keys(schema, node->key, &nearest);
        if (!has_key(schema, node->key) && str_equal(nearest.found, str_from(row->key)))
            return true;
    }
    return false;
}

/* An earlier row with the same meaning was given too. */
static bool is_second(const struct entry_schema *schema, const struct yaml *map,
                      const struct setting *row) {
    for (const struct setting *other = schema->rows; other < row; other++) {
        if (other->offset == row->offset && other->twice &&
            yaml_find(map, str_from(other->key)))
            return true;
    }
    return false;
}

/* --- rows --------------------------------------------------------------------------------- */

static bool entry_read_row(const struct entry_schema *schema, const struct reading *reading,
                           const struct setting *row, struct err *e) {
    const struct yaml *map = reading->map;
    const struct yaml *node = yaml_find(map, str_from(row->key));
    if (!node)
        return !row->required || is_misspelt(schema, map, row) ||
               yaml_err(e, map, "%s needs the key '%s'", schema->what, row->key);
    if (row->twice && is_second(schema, map, row))
        return yaml_err_key(e, node, "%s", row->twice);
    if (row->kind == SETTING_PART) return entry_read(row->part, reading, node, e);
    bool skips = row->kind == SETTING_NONE || row->kind == SETTING_UNUSED;
    return (skips || setting_read(row, reading, node, e)) &&
           (!row->read || row->read(reading, node, e));
}

/* Whether to continue after an error. */
static bool goes_on(const struct entry_schema *schema, const struct reading *reading,
                    const struct err *why) {
    return schema->every && config_goes_on(reading->config, why);
}

bool entry_read(const struct entry_schema *schema, const struct reading *reading,
                const struct yaml *map, struct err *e) {
    struct reading inner = *reading;
    inner.map = map;
    if (map->kind != YAML_MAP) {
        yaml_err(e, map, "expected %s, which is a map, found %s", schema->what,
                 yaml_kind_name(map));
        return goes_on(schema, reading, e);
    }
    for (const struct yaml *node = map->first; node; node = node->next) {
        if (has_key(schema, node->key)) continue;
        entry_refuse_key(schema, node, e);
        if (!goes_on(schema, reading, e)) return false;
    }
    for (size_t i = 0; i < schema->count; i++) {
        if (!entry_read_row(schema, &inner, &schema->rows[i], e) &&
            !goes_on(schema, reading, e))
            return false;
    }
    return true;
}

static void fill_texts(const struct entry_schema *schema, void *entry) {
    for (size_t i = 0; i < schema->count; i++) {
        const struct setting *row = &schema->rows[i];
        struct str *text = (void *)((char *)entry + row->offset);
        if (row->kind == SETTING_PART) fill_texts(row->part, entry);
        if (setting_is_text(row)) *text = STR_EMPTY;
    }
}

void entry_blank(const struct entry_schema *schema, void *entry) {
    memset(entry, 0, schema->size);
    if (schema->blank) memcpy(entry, schema->blank, schema->size);
    fill_texts(schema, entry);
}

/* --- lists -------------------------------------------------------------------------------- */

bool config_want(const struct yaml *node, enum yaml_kind kind, const char *what,
                 struct err *e) {
    return node->kind == kind || yaml_err(e, node, "expected %s", what);
}

bool config_read_names(struct config *config, const struct yaml *list, const char *what,
                       const struct str **ret, size_t *ret_count, struct err *e) {
    if (!list) return true;
    if (!config_want(list, YAML_LIST, what, e)) return false;
    struct str *names = arena_alloc(config->arena, (list->count + 1) * sizeof(*names));
    if (!names) return config_too_large(list, e);
    *ret = names;
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (!yaml_value(item, YAML_NAME, names++, e)) return false;
        ++*ret_count;
    }
    return true;
}

bool config_too_large(const struct yaml *node, struct err *e) {
    return yaml_err(e, node, "the settings are too large");
}

static bool keep_entry(const struct config_list *list, const struct reading *reading) {
    char **array = (void *)((char *)reading->config + list->array);
    size_t *count = (void *)((char *)reading->config + list->count);
    memcpy(*array + (*count)++ * list->schema.size, reading->entry, list->schema.size);
    return true;
}

static bool read_entry(const struct config_list *list, const struct reading *reading,
                       const struct yaml *item, struct err *e) {
    const struct yaml **place = (void *)((char *)reading->entry + list->at);
    if (!entry_read(&list->schema, reading, item, e)) return false;
    if (list->at) *place = item;
    return list->keep ? list->keep(reading, item, e) : keep_entry(list, reading);
}

bool config_read_list(struct config *config, const struct config_input *input,
                      const struct config_list *list, const struct yaml *node, struct err *e) {
    struct reading reading = {.config = config, .input = input};
    if (!config_want(node, YAML_LIST, list->what, e)) return false;
    void **array = (void *)((char *)config + list->array);
    if (list->array) *array = arena_alloc(config->arena, node->count * list->schema.size);
    reading.entry = arena_alloc(config->arena, list->schema.size);
    if ((list->array && !*array) || !reading.entry)
        return yaml_err(e, node, "this list is too large");
    for (const struct yaml *item = node->first; item; item = item->next) {
        entry_blank(&list->schema, reading.entry);
        reading.problems = config->problem_count;
        if (!config_step(config, read_entry(list, &reading, item, e), e)) return false;
    }
    return !list->after || list->after(&reading, node, e);
}
