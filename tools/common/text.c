// SPDX-License-Identifier: GPL-2.0-only
/*
 * Text of other users: a terminal obeys some sequences of bytes, and the name of a
 * process or the message of a peer may have them.
 */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text.h"

/* The bytes of the character there; 0: it is none that can be printed. */
static size_t character_bytes(const unsigned char *s)
{
	static const uint32_t least[] = { 0, ' ', 0xa0, 0x800, 0x10000 };
	size_t len = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 :
		     *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0;
	uint32_t c = len == 1 ? *s : *s & 0x7f >> len;

	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[len] || c == 0x7f || c > 0x10ffff || c >> 11 == 0x1b)
		return 0;
	return len;
}

char *text_printable(char *text)
{
	size_t len;

	for (char *s = text; *s; s += len) {
		len = character_bytes((unsigned char *)s);
		if (len)
			continue;
		*s = '?';
		len = 1;
	}
	return text;
}

void text_json(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if ((unsigned char)*text < ' ')
			printf("\\u%04x", *text);
		else
			printf(strchr("\"\\", *text) ? "\\%c" : "%c", *text);
	}
	putchar('"');
}

bool text_number(const char *text, uint64_t *value)
{
	/* not base 0, which takes 010 for 8 */
	int base = strncasecmp(text, "0x", 2) ? 10 : 16;
	int shift = 0;
	char *end;

	/* strtoull() takes spaces and signs, too */
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, base);
	if (!strcasecmp(end, "k"))
		shift = 10;
	else if (!strcasecmp(end, "m"))
		shift = 20;
	else if (*end)
		return false;
	if (errno || *value > UINT64_MAX >> shift)
		return false;
	*value <<= shift;
	return true;
}
