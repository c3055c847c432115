/* schema_peer: our side of schema_diff.py, which asks Python's jsonschema the same questions.
 *
 * Standard input has one line for each schema, then one line for each value, then an empty
 * line. Standard output has one line for each of them: "ok", or "no" and the reason. For a
 * schema that is refused it is "refused" and the reason, and its values get the same line.
 */
#include "schema/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static void answer_value(const struct schema *schema, struct str text, struct err *why) {
    struct json value;
    if (!schema) {
        printf("refused %s\n", why->text);
    } else if (!json_read(text, &value, why) || !schema_check(schema, value, why)) {
        printf("no %s\n", why->text);
    } else {
        printf("ok\n");
    }
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    struct schema *schema = NULL;
    struct err why;
    bool between = true;
    while ((len = getline(&line, &room, stdin)) > 0) {
        struct str text = str_of(line, (size_t)len - 1);
        if (text.len == 0) {
            schema_free(schema);
            schema = NULL;
            between = true;
        } else if (between) {
            bool read = schema_read(text, &schema, &why);
            printf(read ? "ok\n" : "refused %s\n", why.text);
            between = false;
        } else {
            struct err told = why;
            answer_value(schema, text, schema ? &told : &why);
        }
    }
    schema_free(schema);
    free(line);
    return fflush(stdout) == 0 ? 0 : 1;
}
