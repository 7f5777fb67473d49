/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Text that others have written.
 */
#ifndef XRDS_TEXT_H
#define XRDS_TEXT_H

/* Put a ? for all that is no printable UTF-8; returns the text. */
char *text_printable(char *text);

#endif /* XRDS_TEXT_H */
