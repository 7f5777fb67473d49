// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bounds of a namespace and of a user.
 *
 * A network namespace has bounds, set by its sysctls: memory of sockets,
 * destinations and messages that are not acknowledged, pinned memory, keys,
 * connections, messages that wait to be read, senders that sockets remember, and
 * attempts to connect in a second. A user may have a share of the bounds of the
 * first namespace, in all namespaces together, so that none can use up the share of
 * others, nor escape by making namespaces, be it of users or networks. A socket that
 * was made with CAP_SYS_RESOURCE is bound by the namespace only.
 *
 * The kernel's own limits hold as well: a memory cgroup is charged for payload
 * and objects, RLIMIT_MEMLOCK bounds the pinned memory of a process,
 * RLIMIT_NOFILE its sockets. But closed sockets go on delivering, and pinned
 * memory outlives its process, so neither of the latter bounds a user.
 *
 * A request beyond a bound is refused, with EDQUOT, and counted. Objects that
 * were there before a bound was lowered stay. But messages of others cannot be
 * refused: they are charged to their receiver when they arrive, and over the
 * bound its sockets are congested, see rcvbuf.c. A socket forgets an older sender
 * for a new one instead, see srctab.c, and does not remember a connection that
 * brings messages for it, see link.c. A message that cannot be refused for want of
 * memory ends its connection, see refuse.c.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "xrds.h"

enum {
	/* over loopback, in a second: more than programs make by mistake; to guess a
	 * key of soft-RoCE, with 28 random bits, takes weeks, and one with 20 hours
	 */
	XRDS_LIMIT_WRONG_KEYS	= 64,
};

/* By uid. A container of root's has as many users as ids; the tree is balanced, so
 * a look at it takes 66 steps at most. All of them have references.
 */
static struct rb_root xrds_users = RB_ROOT;
static DEFINE_SPINLOCK(xrds_users_lock);	/* xrds_users */

static void xrds_used_exit(struct percpu_counter *used)
{
	unsigned int l;

	for (l = 0; l < XRDS_LIMITS; l++)
		percpu_counter_destroy(&used[l]);
}

static int xrds_used_init(struct percpu_counter *used, gfp_t gfp)
{
	unsigned int l;
	int ret;

	for (l = 0; l < XRDS_LIMITS; l++) {
		ret = percpu_counter_init(&used[l], 0, gfp);
		if (ret) {
			xrds_used_exit(used);
			return ret;
		}
	}
	return 0;
}

/* ----------------------------------------------------------------- users */

static u64 xrds_user_key(kuid_t uid, bool trusted)
{
	return (u64)__kuid_val(uid) << 1 | trusted;
}

static u64 xrds_user_key_of(const struct rb_node *node)
{
	const struct xrds_user *user = rb_entry(node, struct xrds_user, node);

	return xrds_user_key(user->uid, user->trusted);
}

static int xrds_user_cmp(const void *key, const struct rb_node *node)
{
	u64 a = *(const u64 *)key, b = xrds_user_key_of(node);

	return a < b ? -1 : a > b;
}

static bool xrds_user_less(struct rb_node *node, const struct rb_node *other)
{
	return xrds_user_key_of(node) < xrds_user_key_of(other);
}

static struct xrds_user *xrds_user_find(kuid_t uid, bool trusted)
{
	u64 key = xrds_user_key(uid, trusted);
	struct rb_node *node;

	lockdep_assert_held(&xrds_users_lock);

	node = rb_find(&key, &xrds_users, xrds_user_cmp);
	return node ? xrds_user_get(rb_entry(node, struct xrds_user, node)) :
		      NULL;
}

/* The owner of a user namespace may have many ids in it, subordinate ones or
 * those of namespaces inside, and is charged for all of them. But in a
 * namespace of root's, for a container, the ids are those of different users.
 */
static kuid_t xrds_user_uid(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_uid();

	for (; ns != &init_user_ns; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

/**
 * xrds_user_get_current - the user that the calling task counts as
 *
 * Context: process, may sleep.
 * Return: the user with a reference, or NULL for want of memory.
 */
struct xrds_user *xrds_user_get_current(void)
{
	bool trusted = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	struct xrds_user *user, *new;
	kuid_t uid = xrds_user_uid();
	unsigned long flags;

	spin_lock_irqsave(&xrds_users_lock, flags);
	user = xrds_user_find(uid, trusted);
	spin_unlock_irqrestore(&xrds_users_lock, flags);
	if (user)
		return user;

	new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	if (!new)
		return NULL;
	if (xrds_used_init(new->used, GFP_KERNEL_ACCOUNT)) {
		kfree(new);
		return NULL;
	}
	new->uid = uid;
	new->trusted = trusted;
	refcount_set(&new->ref, 1);
	spin_lock_init(&new->dials.lock);
	spin_lock_init(&new->wrong_keys.lock);
	INIT_LIST_HEAD(&new->unpins);
	init_waitqueue_head(&new->unpinned);

	spin_lock_irqsave(&xrds_users_lock, flags);
	user = xrds_user_find(uid, trusted);
	if (!user)
		rb_add(&new->node, &xrds_users, xrds_user_less);
	spin_unlock_irqrestore(&xrds_users_lock, flags);
	if (!user)
		return new;
	xrds_used_exit(new->used);
	kfree(new);
	return user;
}

/**
 * xrds_user_get - take another reference on a user
 * @user: user, or NULL
 *
 * Context: any.
 * Return: @user.
 */
struct xrds_user *xrds_user_get(struct xrds_user *user)
{
	if (user)
		refcount_inc(&user->ref);
	return user;
}

/**
 * xrds_user_put - drop a reference on a user
 * @user: user, or NULL
 *
 * Context: any.
 */
void xrds_user_put(struct xrds_user *user)
{
	unsigned long flags;
	bool last;

	if (!user || refcount_dec_not_one(&user->ref))
		return;
	spin_lock_irqsave(&xrds_users_lock, flags);
	last = refcount_dec_and_test(&user->ref);
	if (last)
		rb_erase(&user->node, &xrds_users);
	spin_unlock_irqrestore(&xrds_users_lock, flags);
	if (!last)
		return;
	xrds_used_exit(user->used);
	kfree(user);
}

/* ---------------------------------------------------------------- bounds */

static u64 xrds_share(const struct xrds_net *xn, u64 bound)
{
	return div_u64(bound * READ_ONCE(xn->user_percent), 100);
}

static u64 xrds_limit_of_net(const struct xrds_net *xn, enum xrds_limit l)
{
	return (u64)READ_ONCE(xn->max[l]) << xrds_limit_shift(l);
}

static u64 xrds_limit_of_user(const struct xrds_user *user, enum xrds_limit l)
{
	const struct xrds_net *first = xrds_net(&init_net);

	return user->trusted ? U64_MAX :
	       xrds_share(first, xrds_limit_of_net(first, l));
}

static bool xrds_limit_more(struct percpu_counter *used, enum xrds_limit l,
			    u64 most)
{
	return __percpu_counter_compare(used, min_t(u64, most, S64_MAX),
					xrds_limit_batch(l)) > 0;
}

static bool xrds_limit_fits(struct percpu_counter *used, enum xrds_limit l,
			    u64 n, u64 bound)
{
	return n <= bound && !xrds_limit_more(used, l, bound - n);
}

/**
 * xrds_limit_charge - somebody wants to have something
 * @xn: namespace
 * @user: user to charge; NULL: the namespace only
 * @l: what
 * @n: how much, bytes or pieces
 *
 * Requests that are made at the same moment may exceed a bound together: by less
 * than one of them for each other processor.
 *
 * Context: any.
 * Return: 0 or -EDQUOT.
 */
int xrds_limit_charge(struct xrds_net *xn, struct xrds_user *user,
		      enum xrds_limit l, u64 n)
{
	if (!xrds_limit_fits(&xn->used[l], l, n, xrds_limit_of_net(xn, l)) ||
	    (user && !xrds_limit_fits(&user->used[l], l, n,
				      xrds_limit_of_user(user, l)))) {
		xrds_count(xn, XRDS_C_LIMIT_MEM + l);
		return -EDQUOT;
	}
	xrds_limit_change(xn, user, l, n);
	return 0;
}

/**
 * xrds_limit_uncharge - somebody has something no more
 * @xn: namespace; NULL: it has gone
 * @user: user that was charged, or NULL
 * @l: what
 * @n: how much, bytes or pieces
 *
 * Context: any.
 */
void xrds_limit_uncharge(struct xrds_net *xn, struct xrds_user *user,
			 enum xrds_limit l, u64 n)
{
	xrds_limit_change(xn, user, l, -(s64)n);
}

/**
 * xrds_limit_over - has a user more than a bound allows?
 * @xn: namespace
 * @user: user
 * @l: kind of usage, one that is forced and not refused
 * @quarters: more than so many quarters of the bound
 *
 * A user is over when it is beyond its share, or when the namespace is over its
 * bound and the user has much of that. A user with little does not suffer from
 * others.
 *
 * Context: any.
 * Return: whether it has.
 */
bool xrds_limit_over(struct xrds_net *xn, struct xrds_user *user,
		     enum xrds_limit l, u32 quarters)
{
	u64 most = xrds_limit_of_net(xn, l);

	if (!user->trusted &&
	    xrds_limit_more(&user->used[l], l,
			    xrds_limit_of_user(user, l) / 4 * quarters))
		return true;
	return xrds_limit_more(&xn->used[l], l, most / 4 * quarters) &&
	       xrds_limit_more(&user->used[l], l, xrds_share(xn, most) / 2);
}

/* ------------------------------------------------------------------ rates */

static bool xrds_rate_take(struct xrds_rate *rate, u64 per_second)
{
	bool taken;

	spin_lock_bh(&rate->lock);
	if (jiffies - rate->since >= HZ) {
		rate->since = jiffies;
		rate->nr = 0;
	}
	/* a share may be less than one */
	taken = rate->nr < max_t(u64, per_second, 1);
	rate->nr += taken;
	spin_unlock_bh(&rate->lock);
	return taken;
}

/* The attempt is not made now: it does not count. */
static void xrds_rate_give(struct xrds_rate *rate)
{
	spin_lock_bh(&rate->lock);
	/* another second may have begun */
	if (rate->nr)
		rate->nr--;
	spin_unlock_bh(&rate->lock);
}

/**
 * xrds_limit_dial - may a connection be tried now?
 * @xn: namespace
 * @user: user that dials, or NULL
 *
 * Context: process.
 * Return: whether it may; otherwise it may later.
 */
bool xrds_limit_dial(struct xrds_net *xn, struct xrds_user *user)
{
	const struct xrds_net *first = xrds_net(&init_net);
	bool bound = user && !user->trusted;

	if (bound &&
	    !xrds_rate_take(&user->dials,
			    xrds_share(first, READ_ONCE(first->max_dials))))
		return false;
	if (xrds_rate_take(&xn->dials, READ_ONCE(xn->max_dials)))
		return true;
	if (bound)
		xrds_rate_give(&user->dials);
	return false;
}

/**
 * xrds_limit_guesses - has a user had too many wrong keys in this second?
 * @user: user
 *
 * Context: any.
 * Return: whether it has: then the next one is not looked at.
 */
bool xrds_limit_guesses(struct xrds_user *user)
{
	struct xrds_rate *rate = &user->wrong_keys;
	bool over;

	spin_lock_bh(&rate->lock);
	over = rate->nr >= XRDS_LIMIT_WRONG_KEYS && jiffies - rate->since < HZ;
	spin_unlock_bh(&rate->lock);
	return over && !user->trusted;
}

/**
 * xrds_limit_wrong_key - a user has had one more
 * @user: user
 *
 * Context: any.
 */
void xrds_limit_wrong_key(struct xrds_user *user)
{
	xrds_rate_take(&user->wrong_keys, XRDS_LIMIT_WRONG_KEYS);
}

/**
 * xrds_limit_net_init - the bounds of a new namespace: those of the first one
 * @xn: namespace
 *
 * A quarter of the memory may be queued to be sent, and another to be read, and
 * little more, see rcvbuf.c. Less is for the senders that sockets remember, see
 * srctab.c. RLIMIT_MEMLOCK bounds pinned memory; here it is
 * bounded below all of the machine's.
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int xrds_limit_net_init(struct xrds_net *xn)
{
	const struct xrds_net *first = xrds_net(&init_net);
	u64 kb = (u64)totalram_pages() << (PAGE_SHIFT - 10);

	spin_lock_init(&xn->dials.lock);
	if (xn != first) {
		memcpy(xn->max, first->max, sizeof(xn->max));
		xn->sock_max_recv_kb = first->sock_max_recv_kb;
		xn->max_dials = first->max_dials;
		xn->user_percent = first->user_percent;
		xn->unprivileged = first->unprivileged;
		return xrds_used_init(xn->used, GFP_KERNEL_ACCOUNT);
	}
	xn->max[XRDS_LIMIT_MEM] = min_t(u64, kb / 4, U32_MAX);
	xn->max[XRDS_LIMIT_PINNED] = min_t(u64, kb, U32_MAX);
	xn->max[XRDS_LIMIT_KEYS] = 131072;
	xn->max[XRDS_LIMIT_CONNS] = 65536;
	xn->max[XRDS_LIMIT_RECV] = xn->max[XRDS_LIMIT_MEM];
	xn->max[XRDS_LIMIT_SOURCES] = min_t(u64, kb / 32, U32_MAX);
	xn->sock_max_recv_kb = 256 << 10;
	xn->max_dials = 1000;
	xn->user_percent = 50;
	xn->unprivileged = 1;
	return xrds_used_init(xn->used, GFP_KERNEL);
}

/**
 * xrds_limit_net_exit - a namespace is going away
 * @xn: namespace in which nothing is used any more
 *
 * Context: process.
 */
void xrds_limit_net_exit(struct xrds_net *xn)
{
	xrds_used_exit(xn->used);
}

/**
 * xrds_limit_sysctl - handler of a bound that protects the host from a namespace
 * @table: knob, an unsigned int
 * @write: or read
 * @buffer: text
 * @lenp: its length
 * @ppos: position in the file
 *
 * The administrator of the host sets such bounds. Any user may be the
 * administrator of a namespace of his own.
 *
 * Context: process.
 * Return: 0, -EPERM, or the result of proc_douintvec_minmax().
 */
int xrds_limit_sysctl(XRDS_CTL_CONST struct ctl_table *table, int write,
		      void *buffer, size_t *lenp, loff_t *ppos)
{
	if (write && !capable(CAP_NET_ADMIN))
		return -EPERM;
	return proc_douintvec_minmax(table, write, buffer, lenp, ppos);
}
EXPORT_SYMBOL_GPL(xrds_limit_sysctl);
