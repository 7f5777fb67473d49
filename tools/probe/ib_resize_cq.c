// SPDX-License-Identifier: GPL-2.0-only
/* ib_resize_cq() (until 7.1): kernel users can enlarge a completion queue. */
#include <rdma/ib_verbs.h>

int probe(struct ib_cq *cq)
{
	return ib_resize_cq(cq, 2 * cq->cqe);
}
