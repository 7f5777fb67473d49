/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why input from the wire was refused: X(symbol, name, text). Included with
 * X() defined. The counter is called "wire_" followed by the name, the text
 * goes to the log line.
 */
X(OK,		ok,		"no error"),
X(OPCODE,	opcode,		"immediate data that was not agreed upon"),
X(SHORT,	short,		"shorter than a header"),
X(CSUM,		csum,		"bad header checksum"),
X(LEN,		len,		"message length out of range"),
X(FLAGS,	flags,		"flags not defined or not together"),
X(PORT,		port,		"port not allowed"),
X(EXT,		ext,		"malformed extension header"),
X(SEQ,		seq,		"sequence number out of range"),
X(ACK,		ack,		"acknowledges what was never sent"),
X(FRAG,		frag,		"fragment out of order"),
X(FRAG_LEN,	frag_len,	"fragment length does not fit message"),
X(FRAG_HDR,	frag_hdr,	"fragment header differs from first"),
X(SLOT,		slot,		"short header of an unknown flow"),
X(ORDER,	order,		"short header out of order"),
X(PAYLOAD,	payload,	"bad payload checksum"),
X(BUNDLE,	bundle,	"malformed bundle of messages"),
X(TAG,		tag,		"message tag out of range"),
X(CREDIT,	credit,		"credit overflow or overrun"),
X(CTL_TYPE,	ctl_type,	"unknown control message"),
X(CTL_LEN,	ctl_len,	"control message of wrong length"),
X(CTL_STATE,	ctl_state,	"control message at the wrong time"),
X(HELLO,	hello,		"clear-to-send out of range"),
X(CONG,		cong,		"malformed congestion update"),
X(REFUSED,	refused,	"malformed list of refused messages"),
X(PRIV_LEN,	priv_len,	"private data of wrong length"),
X(PRIV_ADDR,	priv_addr,	"private data names another address"),
X(PRIV_VERSION,	priv_version,	"no common protocol version"),
