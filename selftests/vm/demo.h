/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef DEMO_H
#define DEMO_H

#include <stdint.h>
#include <sys/socket.h>

enum {
	PORT		= 4000,
	TIMEOUT_S	= 60,
};

double now_ms(void);
struct sockaddr_storage parse(const char *text, uint16_t port);
socklen_t length(const struct sockaddr_storage *ss);
int open_socket(const char *local, uint16_t port, int timeout_s);

/* demo_rdma.c */
int offer_memory(const char *local);
int use_memory(const char *local, const char *remote);

#endif
