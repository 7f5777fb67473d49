// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes inputs for the fuzz target to begin with: one of each thing that is
 * valid. Usage: seeds DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire/wire.h"

static const char *directory;

static void save(const char *name, const void *buf, size_t bytes)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "wb");
	if (!file || fwrite(buf, 1, bytes, file) != bytes || fclose(file)) {
		perror(path);
		exit(EXIT_FAILURE);
	}
}

static void save_msg(const char *name, const struct xrds_wire_msg *msg,
		     const void *payload)
{
	__u8 buf[sizeof(struct xrds_hdr) + XRDS_WIRE_CONG_MAP_BYTES] = { };
	struct xrds_hdr hdr;

	xrds_wire_hdr_encode(&hdr, msg);
	memcpy(buf, &hdr, sizeof(hdr));
	if (payload)
		memcpy(buf + sizeof(hdr), payload, msg->len);
	save(name, buf, sizeof(hdr) + (payload ? msg->len : 0));
}

static void headers(void)
{
	struct xrds_wire_msg msg = {
		.seq = 1, .len = 5, .sport = 1000, .dport = 2000,
	};

	save_msg("data", &msg, "hello");
	msg.flags = XRDS_F_RESUME;
	save_msg("resume", &msg, "hello");
	msg.has = XRDS_HAS_RDMA | XRDS_HAS_RDMA_BYTES | XRDS_HAS_SPORT_IDX;
	msg.flags = XRDS_F_EXT_EXTENSION | XRDS_F_ACK_REQUIRED;
	save_msg("rdma", &msg, "hello");
	msg.has = XRDS_HAS_RDMA_DEST | XRDS_HAS_GEN_NUM;
	save_msg("rdma-dest", &msg, "hello");
	msg.has = XRDS_HAS_RDMA | XRDS_HAS_SILENT;
	msg.flags = 0;
	msg.len = 0;
	save_msg("silent", &msg, NULL);
	msg = (struct xrds_wire_msg){
		.seq = 1, .sport = 1, .has = XRDS_HAS_NPATHS | XRDS_HAS_GEN_NUM,
	};
	save_msg("ping", &msg, NULL);
	msg.sport = 0;
	msg.dport = 1;
	save_msg("pong", &msg, NULL);
	msg = (struct xrds_wire_msg){ .ack = 9, .credit = 5 };
	save_msg("ack", &msg, NULL);
	msg = (struct xrds_wire_msg){
		.seq = 3, .sport = 1000, .dport = 2000, .flags = XRDS_F_EOS,
		.has = XRDS_HAS_EOS, .eos_reason = 2,
	};
	save_msg("eos", &msg, NULL);
	msg = (struct xrds_wire_msg){
		.len = XRDS_WIRE_CONG_MAP_BYTES, .flags = XRDS_F_CONG_BITMAP,
	};
	save_msg("map-classic", &msg, NULL);
}

static void control(void)
{
	struct xrds_wire_hello hello = {
		.revision = XRDS_REVISION_FIRST, .flags = XRDS_HELLO_BUNDLES,
		.frag_bytes = 65536, .credits = 64, .tags = 2, .node = 7,
		.peer_node = 8, .ack = 9,
	};
	const struct xrds_wire_refused refused = {
		.seq = 7, .sport = 1000, .dport = 2000,
	};
	struct xrds_wire_msg msg = { .flags = XRDS_F_CONTROL };
	__u8 buf[XRDS_WIRE_CONG_MAP_BYTES] = { };
	char name[16];

	msg.dport = XRDS_CTL_HELLO;
	msg.len = XRDS_WIRE_HELLO_BYTES;
	xrds_wire_hello_encode(buf, &hello);
	save_msg("ctl-hello", &msg, buf);
	save("hello", buf, msg.len);
	while (hello.revision < XRDS_REVISION) {
		hello.revision++;
		xrds_wire_hello_encode(buf, &hello);
		snprintf(name, sizeof(name), "hello-%d", hello.revision);
		save(name, buf, msg.len);
	}

	msg.dport = XRDS_CTL_CONG;
	msg.len = xrds_wire_cong_bytes(2);
	xrds_wire_cong_begin(buf, 1, 2);
	xrds_wire_cong_put(buf, 0, 1000, 1);
	xrds_wire_cong_put(buf, 1, 2000, 0);
	save_msg("ctl-cong", &msg, buf);
	save("cong", buf, msg.len);

	msg.dport = XRDS_CTL_REFUSED;
	msg.len = 2 * XRDS_WIRE_REFUSED_BYTES;
	xrds_wire_refused_put(buf, 0, &refused);
	xrds_wire_refused_put(buf, 1, &refused);
	save_msg("ctl-refused", &msg, buf);
	save("refused", buf, msg.len);

	msg.dport = XRDS_CTL_BYE;
	msg.len = 0;
	save_msg("ctl-bye", &msg, NULL);
	/* its ports are more than a SEND has room for here */
	msg.dport = XRDS_CTL_CONG_MAP;
	save_msg("ctl-cong-map", &msg, NULL);
}

/* A SEND in the form that the fuzz target reads */
static __u8 *put_full(__u8 *p, struct xrds_wire_context *ctx,
		      const struct xrds_wire_msg *msg, __u32 payload)
{
	struct xrds_hdr hdr;

	p[0] = payload >> 8;
	p[1] = payload;
	xrds_wire_hdr_encode(&hdr, msg);
	memcpy(p + 2, &hdr, sizeof(hdr));
	xrds_wire_context_note(ctx, msg);
	return p + 2 + sizeof(hdr);
}

/* @payload: odd */
static __u8 *put_short(__u8 *p, struct xrds_wire_context *ctx,
		       const struct xrds_wire_msg *msg, int last, __u32 payload)
{
	__u32 imm = xrds_wire_short_encode(ctx, msg, last, payload);
	int i;

	p[0] = payload >> 8;
	p[1] = payload;
	for (i = 0; i < 4; i++)
		p[2 + i] = imm >> (24 - 8 * i);
	return p + 6;
}

/* Three fragments */
static void stream(const char *name, __u32 payload, __u16 step)
{
	__u8 buf[3 * (2 + sizeof(struct xrds_hdr))];
	struct xrds_wire_context ctx = { };
	struct xrds_wire_msg msg = {
		.seq = 4, .len = 2 * payload + 100, .sport = 1, .dport = 2,
	};
	__u8 *p = buf;
	int i;

	for (i = 0; i < 3; i++) {
		p = put_full(p, &ctx, &msg, i < 2 ? payload : 100);
		msg.frag += step;
	}
	save(name, buf, sizeof(buf));
}

/* SENDs with short headers in the form that the fuzz target reads: behind a message
 * of one fragment comes one whose length a full header tells only later, and then
 * one that ends too early.
 */
static void stream_short(void)
{
	enum { EVEN = 16256, ODD = 16257 };
	__u8 buf[3 * (2 + sizeof(struct xrds_hdr)) + 3 * 6 +
		 sizeof(struct xrds_hdr)] = { };
	struct xrds_wire_context ctx = { };
	struct xrds_wire_msg msg = {
		.seq = 4, .len = EVEN, .sport = 1, .dport = 2,
	};
	__u8 *p = buf;

	p = put_full(p, &ctx, &msg, EVEN);

	msg.seq = 5;
	msg.len = 2 * ODD + EVEN;
	p = put_short(p, &ctx, &msg, 0, ODD);
	msg.frag = 1;
	p = put_full(p, &ctx, &msg, EVEN);
	msg.frag = 2;
	p = put_short(p, &ctx, &msg, 1, ODD);

	msg.seq = 0;
	msg.frag = 0;
	msg.tag = 1;
	p = put_full(p, &ctx, &msg, EVEN);
	msg.frag = 1;
	put_short(p, &ctx, &msg, 1, 1);
	/* the fuzz target looks for a whole header each time */
	save("stream-short", buf, sizeof(buf));
}

/* Three messages in one SEND */
static void bundle(void)
{
	__u8 buf[3 * sizeof(struct xrds_hdr) + 10 + 0 + 20] = { };
	struct xrds_wire_msg msg = {
		.seq = 4, .len = 10, .sport = 1, .dport = 2, .ack = 3,
		.credit = 1,
	};
	struct xrds_hdr hdr;

	xrds_wire_hdr_encode(&hdr, &msg);
	memcpy(buf, &hdr, sizeof(hdr));
	msg = (struct xrds_wire_msg){
		.seq = 5, .sport = 1, .dport = 2, .flags = XRDS_F_EOS,
		.has = XRDS_HAS_EOS,
	};
	xrds_wire_hdr_encode(&hdr, &msg);
	memcpy(buf + sizeof(hdr) + 10, &hdr, sizeof(hdr));
	msg = (struct xrds_wire_msg){
		.seq = 6, .len = 20, .sport = 1, .dport = 2,
		.has = XRDS_HAS_RDMA_DEST,
	};
	xrds_wire_hdr_encode(&hdr, &msg);
	memcpy(buf + 2 * sizeof(hdr) + 10, &hdr, sizeof(hdr));
	save("bundle", buf, sizeof(buf));
}

/* More messages in one SEND than there may be, and more bytes */
static void bundles_too_large(void)
{
	static __u8 buf[XRDS_WIRE_MAX_BUNDLE_BYTES + 1];
	struct xrds_wire_msg msg = { .len = 1, .sport = 1, .dport = 2 };
	struct xrds_hdr hdr;
	__u32 bytes = 0;
	int i;

	for (i = 0; i <= XRDS_WIRE_MAX_BUNDLE_MSGS; i++) {
		msg.seq = i + 1;
		xrds_wire_hdr_encode(&hdr, &msg);
		memcpy(buf + bytes, &hdr, sizeof(hdr));
		bytes += sizeof(hdr) + msg.len;
	}
	save("bundle-most", buf, bytes);
	save("bundle-long", buf, sizeof(buf));
}

static void private_data(void)
{
	struct xrds_wire_priv priv = {
		.major = 4, .minor = 1, .mask = XRDS_WIRE_MASK, .ack = 5,
	};
	__u8 buf[XRDS_WIRE_PRIV_V6_BYTES];

	priv.saddr.s6_addr[0] = 0xfe;
	priv.saddr.s6_addr[15] = 1;
	priv.daddr.s6_addr[0] = 0xfe;
	priv.daddr.s6_addr[15] = 2;
	save("priv-v6", buf, xrds_wire_priv_encode(buf, &priv, 1));
	save("priv-v4", buf, xrds_wire_priv_encode(buf, &priv, 0));
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s directory\n", argv[0]);
		return EXIT_FAILURE;
	}
	directory = argv[1];
	headers();
	control();
	stream("stream-classic", 4096, 0);
	stream("stream-xrds", 16384 - 48, 1);
	stream_short();
	bundle();
	bundles_too_large();
	private_data();
	return EXIT_SUCCESS;
}
