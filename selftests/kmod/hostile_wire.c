// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wire format, for the hostile peer: that of XRDS itself, linked in once
 * more. The functions of the other end make well-formed packets, and tell others
 * apart; nothing is exported, as XRDS does that.
 */
#include <linux/export.h>

#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol)

#include "wire/hdr.c"
#include "wire/bundle.c"
#include "wire/short.c"
#include "wire/cong.c"
#include "wire/refused.c"
#include "wire/hello.c"
#include "wire/frag.c"
