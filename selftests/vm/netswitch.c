// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wire between nodes: an Ethernet switch whose port N is an inherited
 * datagram socket, the other end of which is node N's network card in QEMU.
 *
 *   netswitch FD...	one descriptor per port, port 1 first
 *
 * The last byte of a node's MAC address is its port. A port has a queue of its
 * own and a full one drops, as a real switch does: a node that is stopped or
 * dead never holds up another. Faults come as lines on stdin; its end ends
 * the switch:
 *
 *   cut N | join N	drop all frames from and to port N silently, or stop it
 *   loss N PPM		drop PPM of a million frames to port N at random
 *   deaf N | hear N	drop what the connection manager sends to port N over IPv4
 *			(RoCEv2 to queue pair 1), or stop it
 *   capture FILE	write the frames that come in to a pcap file, all of them
 *   capture		end that, and say so on stdout
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_PORTS	= 8,
	MAX_FRAME	= 16384,	/* bytes */
	ETH_MIN		= 14,		/* bytes */
	QUEUE		= 2048,		/* frames per port */
	BURST		= 64,		/* frames per turn */
	MAX_LINE	= 4200,		/* a path fits */
	LINKTYPE_ETHERNET = 1,
	IP_MAX		= 60,		/* bytes of headers */
	UDP_LEN		= 8,
	BTH_LEN		= 12,
	UDP		= 17,
	ROCE_PORT	= 4791,
};

/* The head of a pcap file with times in nanoseconds, and that of a frame */
struct pcap_head {
	uint32_t	magic;
	uint16_t	major, minor;
	uint32_t	zone, accuracy;
	uint32_t	snaplen;
	uint32_t	linktype;
};

struct pcap_frame {
	uint32_t	sec, nsec;
	uint32_t	stored, len;	/* bytes */
};

struct frame {
	uint32_t	len;
	uint32_t	refs;		/* queues that hold it */
	uint8_t		data[];
};

struct port {
	int		fd;
	int		cut;
	int		deaf;
	uint32_t	loss_ppm;
	uint32_t	head, tail;	/* free running */
	struct frame	*queue[QUEUE];
};

static struct port ports[MAX_PORTS];
static int nports;
static FILE *pcap;

static void capture(const char *path)
{
	const struct pcap_head head = {
		.magic = 0xa1b23c4d, .major = 2, .minor = 4,
		.snaplen = MAX_FRAME, .linktype = LINKTYPE_ETHERNET,
	};

	if (pcap && fclose(pcap))
		err(1, "netswitch: capture");
	pcap = NULL;
	if (!path) {
		puts("captured");
		fflush(stdout);
		return;
	}
	pcap = fopen(path, "w");
	if (!pcap)
		err(1, "netswitch: %s", path);
	fwrite(&head, sizeof(head), 1, pcap);
}

static void record(const void *data, size_t len)
{
	struct pcap_frame head = { .stored = len, .len = len };
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	head.sec = now.tv_sec;
	head.nsec = now.tv_nsec;
	fwrite(&head, sizeof(head), 1, pcap);
	fwrite(data, len, 1, pcap);
}

static void frame_put(struct frame *frame)
{
	if (!--frame->refs)
		free(frame);
}

static void flush(struct port *port)
{
	while (port->head != port->tail) {
		struct frame *frame = port->queue[port->head % QUEUE];

		if (send(port->fd, frame->data, frame->len, MSG_DONTWAIT) < 0 &&
		    (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
			return;
		port->head++;
		frame_put(frame);
	}
}

/* Ethernet, IPv4, UDP to port 4791, and a transport header to queue pair 1 */
static int is_management(const struct frame *frame)
{
	const uint8_t *ip = frame->data + ETH_MIN, *udp, *bth;

	if (frame->len < ETH_MIN + IP_MAX + UDP_LEN + BTH_LEN ||
	    frame->data[12] != 0x08 || frame->data[13] != 0x00)
		return 0;
	udp = ip + (ip[0] & 15) * 4;
	bth = udp + UDP_LEN;
	return ip[9] == UDP && (udp[2] << 8 | udp[3]) == ROCE_PORT &&
	       !bth[5] && !bth[6] && bth[7] == 1;
}

static void queue(struct port *port, struct frame *frame)
{
	if (port->cut || port->tail - port->head == QUEUE)
		return;
	if (port->deaf && is_management(frame))
		return;
	if (port->loss_ppm && random() % 1000000 < port->loss_ppm)
		return;
	frame->refs++;
	port->queue[port->tail++ % QUEUE] = frame;
}

static void forward(int from, struct frame *frame)
{
	int to = frame->data[5] - 1;

	frame->refs = 1;
	if (ports[from].cut)
		goto out;
	if (!(frame->data[0] & 1)) {
		if (to >= 0 && to < nports && to != from)
			queue(&ports[to], frame);
		goto out;
	}
	for (to = 0; to < nports; to++)
		if (to != from)
			queue(&ports[to], frame);
out:
	frame_put(frame);
}

static void receive(int from)
{
	static uint8_t data[MAX_FRAME];

	for (int i = 0; i < BURST; i++) {
		ssize_t len = recv(ports[from].fd, data, sizeof(data),
				   MSG_DONTWAIT);
		struct frame *frame;

		if (len < 0)
			return;
		if (len < ETH_MIN)
			continue;
		frame = malloc(sizeof(*frame) + len);
		if (!frame)
			err(1, "netswitch");
		frame->len = len;
		memcpy(frame->data, data, len);
		if (pcap && !ports[from].cut)
			record(data, len);
		forward(from, frame);
	}
}

static struct port *find_port(unsigned int n)
{
	if (n < 1 || n > (unsigned int)nports)
		errx(1, "netswitch: there is no port %u", n);
	return &ports[n - 1];
}

static void cut(struct port *port)
{
	port->cut = 1;
	while (port->head != port->tail)
		frame_put(port->queue[port->head++ % QUEUE]);
}

static void command(void)
{
	static char line[MAX_LINE], path[MAX_LINE];
	unsigned int n, ppm;

	if (!fgets(line, sizeof(line), stdin))
		exit(0);
	if (sscanf(line, "cut %u", &n) == 1)
		cut(find_port(n));
	else if (sscanf(line, "join %u", &n) == 1)
		find_port(n)->cut = 0;
	else if (sscanf(line, "deaf %u", &n) == 1)
		find_port(n)->deaf = 1;
	else if (sscanf(line, "hear %u", &n) == 1)
		find_port(n)->deaf = 0;
	else if (sscanf(line, "loss %u %u", &n, &ppm) == 2)
		find_port(n)->loss_ppm = ppm;
	else if (sscanf(line, "capture %[^\n]", path) == 1)
		capture(path);
	else if (!strcmp(line, "capture\n"))
		capture(NULL);
	else
		errx(1, "netswitch: what is '%s'?", line);
}

int main(int argc, char **argv)
{
	struct pollfd fds[MAX_PORTS + 1];

	setvbuf(stdin, NULL, _IONBF, 0);
	nports = argc - 1;
	if (nports < 1 || nports > MAX_PORTS)
		errx(1, "usage: netswitch FD...");
	for (int i = 0; i < nports; i++)
		ports[i].fd = atoi(argv[i + 1]);

	for (;;) {
		for (int i = 0; i < nports; i++) {
			struct port *port = &ports[i];

			fds[i].fd = port->fd;
			fds[i].events = POLLIN;
			if (port->head != port->tail)
				fds[i].events |= POLLOUT;
		}
		fds[nports].fd = 0;
		fds[nports].events = POLLIN;
		if (poll(fds, nports + 1, -1) < 0 && errno != EINTR)
			err(1, "netswitch: poll");
		/* frames that came before a command go before it */
		for (int i = 0; i < nports; i++)
			if (fds[nports].revents || fds[i].revents & POLLIN)
				receive(i);
		if (fds[nports].revents)
			command();
		for (int i = 0; i < nports; i++)
			flush(&ports[i]);
	}
}
