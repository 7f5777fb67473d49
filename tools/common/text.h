/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Text that others have written: processes, peers, and users as arguments.
 */
#ifndef XRDS_TEXT_H
#define XRDS_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* Put a ? for all that is no printable UTF-8; returns the text. */
char *text_printable(char *text);
/* Print the text as a string of JSON. */
void text_json(const char *text);
/* A number, decimal or with 0x hexadecimal, with a suffix K or M if there is
 * one. Returns whether it is such a number, of 64 bits.
 */
bool text_number(const char *text, uint64_t *value);

#endif /* XRDS_TEXT_H */
