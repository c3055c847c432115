#include "wire/multipart.h"

#include <stdio.h>

#define BOUNDARY_BYTES 32

static bool is_line(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte < ' ' || byte == 0x7f || byte == '"' || byte == '\\') return false;
    }
    return true;
}

static bool stands_in_a_part(struct str boundary, const struct multipart_part *parts,
                             size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (str_find(parts[i].content, boundary) < parts[i].content.len) return true;
    }
    return false;
}

/* Try numbered boundaries until one does not occur in any part. There are more of them than the
 * parts have positions, so one always fits. */
static struct str choose_boundary(const struct multipart_part *parts, size_t count,
                                  char room[BOUNDARY_BYTES]) {
    struct str boundary;
    unsigned number = 0;
    do {
        int len = snprintf(room, BOUNDARY_BYTES, "weir-form-%08x", number++);
        boundary = str_of(room, (size_t)len);
    } while (stands_in_a_part(boundary, parts, count));
    return boundary;
}

static void append_part(const struct multipart_part *part, struct str boundary,
                        struct buf *out) {
    buf_printf(out, "--" STR_FMT "\r\n", STR_ARG(boundary));
    buf_printf(out, "Content-Disposition: form-data; name=\"" STR_FMT "\"",
               STR_ARG(part->name));
    if (part->file.len) buf_printf(out, "; filename=\"" STR_FMT "\"", STR_ARG(part->file));
    buf_append(out, STR("\r\n"));
    if (part->content_type.len)
        buf_printf(out, "Content-Type: " STR_FMT "\r\n", STR_ARG(part->content_type));
    buf_append(out, STR("\r\n"));
    buf_append(out, part->content);
    buf_append(out, STR("\r\n"));
}

bool multipart_write(const struct multipart_part *parts, size_t count, struct buf *type,
                     struct buf *out, struct err *e) {
    char room[BOUNDARY_BYTES];
    for (size_t i = 0; i < count; i++) {
        const struct multipart_part *part = &parts[i];
        if (!part->name.len || !is_line(part->name) || !is_line(part->file) ||
            !is_line(part->content_type))
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "part %zu of a form has a name or a type that breaks its line", i);
    }
    struct str boundary = choose_boundary(parts, count, room);
    buf_printf(type, "multipart/form-data; boundary=" STR_FMT, STR_ARG(boundary));
    for (size_t i = 0; i < count; i++) append_part(&parts[i], boundary, out);
    buf_printf(out, "--" STR_FMT "--\r\n", STR_ARG(boundary));
    return (buf_ok(type) && buf_ok(out)) ||
           err_set(e, ERR_TOO_LARGE, "the form is too large to send");
}
