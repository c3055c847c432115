/* import_content: the content of one message of a caller's list: a string, or parts.
 *
 * import.c reads the list and the messages; it shares its place with these functions, so that a
 * refusal names the message and the part.
 */
#ifndef WEIR_CONVERSATION_IMPORT_CONTENT_H
#define WEIR_CONVERSATION_IMPORT_CONTENT_H

#include "conversation/open_calls.h"
#include "provider/provider.h"
#include "wire/json.h"

/* Limit for one message, in addition to the arena's. */
#define IMPORT_MESSAGE_MAX_BYTES (64 * MIB)

/* Bytes of the caller's input that an error quotes. */
#define IMPORT_SHOWN_BYTES 40

/* Whose form a list is in, where it matters. */
enum import_form { IMPORT_USUAL, IMPORT_BLOCKS, IMPORT_AGUI };

struct import_entry;

struct import_reading {
    struct arena *arena;
    struct err *e;
    struct import_entry *entries;
    size_t count, room;
    struct open_calls open; /* numbers are indexes of entries */
    bool goes_on;           /* the list is the rest of a conversation */
    size_t index;           /* of the current message */
    char part[32];          /* ".content[1]", or empty */
    enum import_form form;
};

/* Refuse the current message or part. Always false. */
PRINTF_LIKE(2, 3)
bool import_refuse(struct import_reading *reading, const char *format, ...);
bool import_too_large(struct import_reading *reading);

/* Where the reader is: in the message itself, or in an item of one of its arrays. */
void import_in_message(struct import_reading *reading);
void import_in_item(struct import_reading *reading, const char *member, size_t item);

enum pictures { PICTURES_REFUSED, PICTURES_READ };

/* Read a string, or an array of parts: ret->text has the texts with `between` between them, and
 * ret->parts all parts in our form where there is an image. Parts that are
 * calls, results or reasoning are left out.
 * Both are copied to the arena. */
MUST_CHECK bool import_take_content(struct import_reading *reading, struct json value,
                                    struct str between, enum pictures pictures,
                                    struct message *ret);

#endif
