/* width: how many columns a character takes in a terminal.
 *
 * Two for East Asian wide characters and most emoji, none for marks that combine, one otherwise. The
 * tables are ranges that are wide or combine as a whole; a rare mark inside a script may count one
 * column too many. They need no locale.
 *
 * Memory   none.
 * Threads  any.
 * Source   Unicode 15, UAX 11 "East Asian Width" (W and F), and general category Mn and Me.
 */
#ifndef WEIR_TEXT_WIDTH_H
#define WEIR_TEXT_WIDTH_H

#include "base/str.h"

/* 0, 1 or 2. */
unsigned width_of(uint32_t code_point);

/* Decode the first character of valid, non-empty text. *ret_len: its bytes. */
uint32_t width_decode(struct str text, size_t *ret_len);

#endif
