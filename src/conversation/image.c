#include "conversation/image.h"

#include "base/mem.h"
#include "wire/base64.h"

#include <stdlib.h>

#define TYPE_MAX_BYTES 64

/* Bytes of the caller's input that an error quotes. */
#define SHOWN_BYTES 40

bool image_is_type(struct str type) {
    struct str head = STR("image/");
    return str_starts(type, head) && type.len <= TYPE_MAX_BYTES && type.len > head.len &&
           str_is_plain(str_skip(type, head.len), "-+.");
}

static bool is_base64(struct str data) {
    size_t len;
    if (data.len == 0) return false;
    char *room = mem_alloc(base64_decoded_len(data.len) + 1);
    bool fine = base64_decode(data, BASE64_STANDARD, BASE64_PADDED, room, &len);
    free(room);
    return fine;
}

static void open_image(struct json_writer *writer) {
    json_open_object(writer);
    json_member_str(writer, "type", STR("image"));
}

static void close_image(struct json_writer *writer, struct str detail) {
    if (detail.len) json_member_str(writer, "detail", detail);
    json_close(writer);
}

bool image_put_base64(struct json_writer *writer, struct str media_type, struct str data,
                      struct str detail, struct err *e) {
    if (!image_is_type(media_type))
        return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is not an image media type",
                       STR_ARG(str_head(media_type, SHOWN_BYTES)));
    if (!is_base64(data))
        return err_set(e, ERR_INVALID_ARGUMENT, "the image is not base64 (RFC 4648, padded)");
    open_image(writer);
    json_member_str(writer, "media_type", media_type);
    json_member_str(writer, "data", data);
    close_image(writer, detail);
    return true;
}

/* Write data:image/png;base64,... */
static bool put_data_url(struct json_writer *writer, struct str url, struct str detail,
                         struct err *e) {
    struct str data, type = str_split(str_skip(url, STR("data:").len), ',', &data);
    if (!str_ends(type, STR(";base64")))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "a data: URL must say ;base64 before its comma");
    return image_put_base64(writer, str_head(type, type.len - STR(";base64").len), data, detail,
                            e);
}

bool image_put_url(struct json_writer *writer, struct str url, struct str detail,
                   struct err *e) {
    if (str_starts(url, STR("data:"))) return put_data_url(writer, url, detail, e);
    if (!str_starts(url, STR("https://")) && !str_starts(url, STR("http://")))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the image's URL must be https:, http: or data:, not '" STR_FMT "'",
                       STR_ARG(str_head(url, SHOWN_BYTES)));
    open_image(writer);
    json_member_str(writer, "url", url);
    close_image(writer, detail);
    return true;
}
