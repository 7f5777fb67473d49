// SPDX-License-Identifier: GPL-2.0-only
/*
 * The namespace as a whole, for netlink: its status, and the features of the
 * modules. Everybody sees them. A drain (conn/net.c) shows its progress in the
 * status.
 *
 * modinfo tells the features, too, and so do ELF notes, so a program can look at a
 * module that is not loaded. The notes of a loaded one are in
 * /sys/module/xrds/notes.
 */
#include <linux/elf.h>
#include <linux/module.h>

#include "diag/netlink.h"
#include "wire/wire.h"

/**
 * struct xrds_nl_feature - a feature
 * @name:	name
 * @revision:	its revision
 * @help:	its meaning
 */
struct xrds_nl_feature {
	const char *name;
	u32 revision;
	const char *help;
};

/* as list_features.h says */
static_assert(XRDS_REVISION_FIRST == 3 && XRDS_REVISION == 6);

static const struct xrds_nl_feature xrds_nl_features[] = {
#define X(n, r, h) { .name = n, .revision = r, .help = h },
#include "list_features.h"
#undef X
};

/* as MODULE_INFO() makes them: no empty string follows the last one */
#define X(n, r, h) __MODULE_INFO_PREFIX "feature=" n " " #r "\0"
static const char xrds_nl_modinfo[sizeof(""
#include "list_features.h"
) - 1] __used __nonstring __section(".modinfo") __aligned(1) =
#include "list_features.h"
;
#undef X

enum { XRDS_NL_NOTE_TYPE = 1, XRDS_NL_NOTE_BYTES = 24 };

/**
 * struct xrds_nl_note - an ELF note with a feature and its revision
 * @head:	sizes and type
 * @name:	the owner of the type
 * @text:	filled up with zeroes
 */
struct xrds_nl_note {
	struct elf32_note head;
	char name[8];
	char text[XRDS_NL_NOTE_BYTES];
};

static const struct xrds_nl_note xrds_nl_notes[] __used
__section(".note.XRDS") __aligned(4) = {
#define X(n, r, h) { \
	{ sizeof("XRDS"), XRDS_NL_NOTE_BYTES, XRDS_NL_NOTE_TYPE }, "XRDS", n " " #r },
#include "list_features.h"
#undef X
};

static int xrds_nl_put_feature(struct sk_buff *skb, struct netlink_callback *cb,
			       const struct xrds_nl_feature *f)
{
	void *hdr = xrds_nl_dump_put(skb, cb, XRDS_CMD_FEATURE_GET);
	bool full = !hdr ||
		    nla_put_string(skb, XRDS_A_FEATURE_NAME, f->name) ||
		    nla_put_u32(skb, XRDS_A_FEATURE_REVISION, f->revision) ||
		    nla_put_string(skb, XRDS_A_FEATURE_HELP, f->help);

	return xrds_nl_dump_end(skb, hdr, full);
}

/**
 * xrds_nl_status_dump_features - a step of the dump of features
 * @skb: part of the answer
 * @cb: the dump; args[0] is the number of features told
 *
 * Context: process.
 * Return: length of the part.
 */
int xrds_nl_status_dump_features(struct sk_buff *skb, struct netlink_callback *cb)
{
	while (cb->args[0] < ARRAY_SIZE(xrds_nl_features) &&
	       !xrds_nl_put_feature(skb, cb, &xrds_nl_features[cb->args[0]]))
		cb->args[0]++;
	return skb->len;
}

/**
 * xrds_nl_status_dump - the dump of a namespace's status, one row
 * @skb: the answer
 * @cb: the dump; args[0] is set when the row was told
 *
 * Context: process.
 * Return: length of the part.
 */
int xrds_nl_status_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct xrds_net *xn = xrds_net(sock_net(cb->skb->sk));
	void *hdr;
	bool full;

	if (cb->args[0]++)
		return skb->len;
	hdr = xrds_nl_dump_put(skb, cb, XRDS_CMD_STATUS_GET);
	full = !hdr ||
	       (READ_ONCE(xn->drain_by) &&
		nla_put_flag(skb, XRDS_A_STATUS_DRAINED)) ||
	       nla_put_u32(skb, XRDS_A_STATUS_CONNS, xrds_conn_net_nr_ends(xn));
	return xrds_nl_dump_end(skb, hdr, full) ?: skb->len;
}
