/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Output that cannot be written is an error.
 */
#ifndef XRDS_OUT_H
#define XRDS_OUT_H

/* Look for such errors when the program ends, too; call it first. */
void out_check(void);
/* Write what is buffered; ends the program if it cannot be written. */
void out_flush(void);

#endif /* XRDS_OUT_H */
