// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reason why nothing is answered, as the kernel's dump of connections tells
 * it: the state of the connection, and the error of its last failure. One before the
 * first ping is the reason only until the next attempt.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/xrds_netlink.h>

#include "dump.h"
#include "ping.h"

enum { WHY_BYTES = 256 };

/* The connection to the node, if there is one */
struct found {
	bool there;
	uint32_t state;
	uint32_t error;		/* of its last failure; 0: it is not the reason */
};

static long long began_ns;	/* the pings */

static struct in6_addr mapped(const struct sockaddr_storage *ss)
{
	struct in6_addr addr = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (ss->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)ss)->sin6_addr;
	memcpy(&addr.s6_addr[12],
	       &((const struct sockaddr_in *)ss)->sin_addr, 4);
	return addr;
}

static bool is_addr(const struct nlattr *attr,
		    const struct sockaddr_storage *ss)
{
	struct in6_addr addr = mapped(ss);

	return mnl_attr_get_payload_len(attr) == sizeof(addr) &&
	       !memcmp(mnl_attr_get_payload(attr), &addr, sizeof(addr));
}

static int take_row(const struct nlmsghdr *nlh, void *arg)
{
	uint64_t failed_ms = 0, ms = (now_ns() - began_ns) / NSEC_PER_MSEC;
	struct found *found = arg, row = { .there = true };
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		switch (mnl_attr_get_type(attr)) {
		case XRDS_A_CONN_LADDR:
			row.there &= is_addr(attr, &from);
			break;
		case XRDS_A_CONN_FADDR:
			row.there &= is_addr(attr, &to);
			break;
		case XRDS_A_CONN_TOS:
			row.there &= mnl_attr_get_u8(attr) == opt.tos;
			break;
		case XRDS_A_CONN_STATE:
			row.state = mnl_attr_get_u32(attr);
			break;
		case XRDS_A_CONN_ERROR:
			row.error = mnl_attr_get_u32(attr);
			break;
		case XRDS_A_CONN_FAILED_MS:
			failed_ms = mnl_attr_get_u64(attr);
			break;
		}
	}
	if (failed_ms > ms && row.state != XRDS_CONN_STATE_DOWN)
		row.error = 0;
	if (row.there)
		*found = row;
	return MNL_CB_OK;
}

static int take_family(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
			*(int *)arg = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

/* Returns whether there was an answer. A dump that is marked as interrupted is
 * good enough here.
 */
static bool ask(struct mnl_socket *sock, int type, int flags, int cmd,
		mnl_cb_t take, void *arg)
{
	static char buffer[64 << 10];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *genl;
	int ret;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = 1;
	if (type == GENL_ID_CTRL)
		mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, XRDS_FAMILY_NAME);
	if (mnl_socket_sendto(sock, nlh, nlh->nlmsg_len) < 0)
		return false;
	do {
		ret = mnl_socket_recvfrom(sock, buffer, sizeof(buffer));
		if (ret <= 0)
			return false;
		dump_unmark(buffer, ret);
		if (dump_error(buffer, ret))
			return false;
		ret = mnl_cb_run(buffer, ret, 0, mnl_socket_get_portid(sock),
				 take, arg);
	} while (ret > 0);
	return !ret;
}

/* Returns false without XRDS: the kernel's own rds tells nothing. */
static bool look(struct found *found)
{
	struct mnl_socket *sock = mnl_socket_open(NETLINK_GENERIC);
	bool told = false;
	int family = 0;

	memset(found, 0, sizeof(*found));
	if (!sock)
		return false;
	if (!mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) &&
	    ask(sock, GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY, take_family,
		&family) && family)
		told = ask(sock, family, NLM_F_DUMP, XRDS_CMD_CONN_GET,
			   take_row, found);
	mnl_socket_close(sock);
	return told;
}

/* The pings begin. Is a connection to the node up, so that none need be made? */
bool why_connected(void)
{
	struct found found;

	began_ns = now_ns();
	return look(&found) && found.there &&
	       found.state == XRDS_CONN_STATE_UP;
}

static const char *reason(const struct found *found)
{
	if (!found->there)
		return "no connection is tried";
	if (found->state == XRDS_CONN_STATE_UP)
		return "connected, but the node does not answer pings (net.rds.ping_enable there?)";
	switch (found->error) {
	case ECONNREFUSED:
		return "the node is there, but no RDS is loaded on it, or it refuses us";
	case 0:
	case EHOSTUNREACH:
	case ETIMEDOUT:
		return "nobody answers at that address";
	default:
		return strerror(found->error);
	}
}

/* Print the reason; nothing if it is that of the last line. */
void why_silent(void)
{
	static char last[WHY_BYTES];
	struct found found;
	const char *text;

	if (!look(&found))
		return;
	text = reason(&found);
	if (!strncmp(text, last, sizeof(last) - 1))
		return;
	snprintf(last, sizeof(last), "%s", text);
	fprintf(stderr, "xrds-ping: %s: %s\n", to_text, text);
}
