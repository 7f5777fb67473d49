-- SPDX-License-Identifier: GPL-2.0-only
--
-- A Wireshark dissector for RDS over RDMA: RoCEv2, RoCE and InfiniBand, XRDS
-- and the kernel's own RDS. Documentation/xrds-wire.rst explains the fields.
--
--	tshark -X lua_script:xrds.lua -r FILE
--	wireshark -X lua_script:xrds.lua
--
-- Wireshark's own infiniband dissector decodes the transport headers. This
-- dissector runs after it on each packet. It gives each packet of an RDS
-- connection a name (field rds.name, the Info column) and a tree.
--
-- It finds RDS connections by the requests of the connection manager: a request
-- to the RDS service names the two queue pairs of a connection. Every packet to
-- these queue pairs gets a name, acknowledgments and RDMA ops included. If the
-- capture began after the request, a queue pair counts as RDS once a packet to
-- it has an RDS header with a valid checksum. Only the first packet of a SEND
-- has the header; the dissector finds the others by their packet sequence
-- numbers. A SEND with a short header has it in its last packet, as immediate data;
-- ports and numbers come from the packets before.
--
-- Wireshark shows packets again in any order. So the state that earlier packets
-- leave is kept for each packet (contexts).

-- Lua 5.4 (Wireshark 4.4) has operators instead, which Lua 5.2 cannot parse.
local bit32 = bit32 or load([[
	return {
		band = function(x, y) return x & y & 0xffffffff end,
		btest = function(x, y) return x & y & 0xffffffff ~= 0 end,
		rshift = function(x, by) return (x & 0xffffffff) >> by end,
		extract = function(x, at, bits)
			return (x & 0xffffffff) >> at & (1 << (bits or 1)) - 1
		end,
	}
]])()

local rds = Proto("rds", "Reliable Datagram Sockets over RDMA")

local HEADER_BYTES = 48
local MAX_MSG_BYTES = 1048576
local XRDS_VERSION = "4.8"
local SERVICES = { [0x48ca] = 4, [0x4001] = 6 }	-- port: address family
local SERVICE_PREFIX = 0x0106			-- of rdma_cm's TCP port space

-- --------------------------------------------------------------- names

local FLAGS = {
	{ 0x02, "ack_required", "ACK_REQUIRED" },
	{ 0x04, "retransmitted", "RETRANSMITTED" },
	{ 0x20, "ext_extension", "EXT_EXTENSION" },
}
-- Those that mean something in one kind of version only
local XRDS_FLAGS = {
	{ 0x08, "resume", "RESUME" },
	{ 0x10, "reply", "REPLY" },
	{ 0x40, "control", "CONTROL" },
	{ 0x80, "eos", "EOS" },
}
local LEGACY_FLAGS = {
	{ 0x01, "cong_bitmap", "CONG_BITMAP" },
	{ 0x08, "hb_ping", "HB_PING" },
	{ 0x10, "hb_pong", "HB_PONG" },
}
local F_CONG_BITMAP, F_ACK_REQUIRED, F_RETRANSMITTED = 0x01, 0x02, 0x04
local F_HB_PING, F_HB_PONG, F_CONTROL, F_EOS = 0x08, 0x10, 0x40, 0x80
local F_RESUME = 0x08
-- Not defined in XRDS mode, where nothing unknown may be sent; in the others
local F_UNKNOWN, F_UNKNOWN_LEGACY = 0x01, 0xc0

local CONTROLS = {
	[1] = "HELLO", [2] = "CONG", [3] = "CONG_MAP",
	[4] = "BYE", [5] = "BYE_ACK", [6] = "KEEPALIVE",
	[7] = "REFUSED",
}
local CTL_HELLO, CTL_CONG, CTL_CONG_MAP, CTL_REFUSED = 1, 2, 3, 7

local EOS_REASONS = { [0] = "FINISHED", [1] = "LOST", [2] = "ABORTED" }
local DIRECTIONS = { [1] = "write", [2] = "read" }
local REJECTS = { [1] = "no common version", [2] = "crossed another request" }

local TRANSPORTS = { [0] = "RC", [3] = "UD" }
local RC, UD = 0, 3

-- Operation: its name, the bytes of headers behind the BTH, its kind, its place
local OPS = {
	[0] = { "SEND First", 0, "send", "first" },
	[1] = { "SEND Middle", 0, "send" },
	[2] = { "SEND Last", 0, "send" },
	[3] = { "SEND Last with Immediate", 4, "send" },
	[4] = { "SEND Only", 0, "send", "first" },
	[5] = { "SEND Only with Immediate", 4, "send", "first" },
	[6] = { "RDMA write First", 16, "write", "first" },
	[7] = { "RDMA write Middle", 0, "write" },
	[8] = { "RDMA write Last", 0, "write" },
	[9] = { "RDMA write Last with Immediate", 4, "write" },
	[10] = { "RDMA write Only", 16, "write", "first" },
	[11] = { "RDMA write Only with Immediate", 20, "write", "first" },
	[12] = { "RDMA read request", 16, "read", "first" },
	[13] = { "RDMA read response First", 4, "response" },
	[14] = { "RDMA read response Middle", 0, "response" },
	[15] = { "RDMA read response Last", 4, "response" },
	[16] = { "RDMA read response Only", 4, "response" },
	[17] = { "acknowledge", 4, "ack" },
	[18] = { "atomic acknowledge", 12, "ack" },
	[19] = { "atomic compare and swap", 28, "atomic" },
	[20] = { "atomic fetch and add", 28, "atomic" },
	[22] = { "SEND Last with Invalidate", 4, "send" },
	[23] = { "SEND Only with Invalidate", 4, "send", "first" },
}
local NAKS = {
	[0] = "packet sequence error", [1] = "invalid request",
	[2] = "remote access error", [3] = "remote operational error",
	[4] = "invalid RD request",
}

-- Attribute of a MAD of the connection manager: name, its private data's offset
local CM = {
	[0x10] = { "connection request", 140 },
	[0x11] = { "message receipt acknowledgment", 10 },
	[0x12] = { "connection refusal", 84 },
	[0x13] = { "connection reply", 36 },
	[0x14] = { "ready to use", 8 },
	[0x15] = { "disconnect request", 12 },
	[0x16] = { "disconnect reply", 8 },
}
local CM_REQ, CM_REJ, CM_REP, CM_DREQ = 0x10, 0x12, 0x13, 0x15
local MAD_BYTES, CM_CLASS, IP_CM_BYTES = 24, 7, 36

-- -------------------------------------------------------------- fields

local f = rds.fields
f.name = ProtoField.string("rds.name", "Packet")
f.version = ProtoField.string("rds.version", "Version of the connection")
f.bundled = ProtoField.none("rds.bundled", "Further message of a bundle")
f.continues = ProtoField.framenum("rds.continues", "Began in frame")

f.seq = ProtoField.uint64("rds.seq", "Sequence number")
f.ack = ProtoField.uint64("rds.ack", "Acknowledgment")
f.len = ProtoField.uint32("rds.len", "Message length")
f.sport = ProtoField.uint16("rds.sport", "Source port")
f.dport = ProtoField.uint16("rds.dport", "Destination port")
f.ctl = ProtoField.uint16("rds.ctl", "Control message", base.DEC, CONTROLS)
f.flags = ProtoField.uint8("rds.flags", "Flags", base.HEX)
for _, flags in ipairs({ FLAGS, XRDS_FLAGS, LEGACY_FLAGS }) do
	for _, flag in ipairs(flags) do
		f["flag_" .. flag[2]] =
			ProtoField.bool("rds.flags." .. flag[2], flag[3], 8,
					nil, flag[1])
	end
end
f.flag_unknown = ProtoField.bool("rds.flags.unknown", "Not defined", 8, nil,
				 F_UNKNOWN)
f.flag_unknown_legacy = ProtoField.bool("rds.flags.unknown", "Not defined", 8,
					 nil, F_UNKNOWN_LEGACY)
f.credit = ProtoField.uint8("rds.credit", "Credits granted")
f.tag = ProtoField.uint16("rds.tag", "Tag")
f.frag = ProtoField.uint16("rds.frag", "Fragment")
f.csum = ProtoField.uint16("rds.csum", "Checksum", base.HEX)
f.csum_status = ProtoField.string("rds.csum.status", "Checksum status")
f.data = ProtoField.bytes("rds.data", "Payload")
f.short = ProtoField.uint32("rds.short", "Short header", base.HEX)
f.short_slot = ProtoField.uint32("rds.short.slot", "Slot, or fragment",
				 base.DEC, nil, 0x7f)
f.short_tag = ProtoField.uint32("rds.short.tag", "Tag", base.DEC, nil, 0x80)
f.short_more = ProtoField.bool("rds.short.more", "More fragments", 32, nil,
			       0x100)
f.short_ask = ProtoField.bool("rds.short.ack_required", "ACK_REQUIRED", 32, nil,
			      0x200)
f.short_credit = ProtoField.uint32("rds.short.credit", "Credits granted",
				   base.DEC, nil, 0xfc00)
f.short_check = ProtoField.uint32("rds.short.check", "Check",
				base.DEC, nil, 0xf0000)
f.short_ack = ProtoField.uint32("rds.short.ack", "Acknowledgment, low bits",
				base.DEC, nil, 0xfff00000)

f.ext = ProtoField.none("rds.ext", "Extension headers")
f.ext_type = ProtoField.uint8("rds.ext.type", "Type")
f.ext_version = ProtoField.uint32("rds.ext.version", "Version")
f.ext_rkey = ProtoField.uint32("rds.ext.rdma.key", "Key used", base.HEX)
f.ext_dest_rkey = ProtoField.uint32("rds.ext.rdma_dest.key", "Key offered",
				    base.HEX)
f.ext_dest_off = ProtoField.uint32("rds.ext.rdma_dest.offset", "Offset")
f.ext_bytes = ProtoField.uint32("rds.ext.rdma_bytes.len", "Bytes moved")
f.ext_dir = ProtoField.uint8("rds.ext.rdma_bytes.dir", "Direction", base.DEC,
			     DIRECTIONS)
f.ext_npaths = ProtoField.uint16("rds.ext.npaths", "Paths")
f.ext_gen = ProtoField.uint32("rds.ext.gen_num", "Generation", base.HEX)
f.ext_caps = ProtoField.uint32("rds.ext.cap_bits", "Capabilities", base.HEX)
f.ext_sport_idx = ProtoField.uint8("rds.ext.sport_idx", "Path")
f.ext_csum = ProtoField.uint32("rds.ext.csum", "Payload checksum", base.HEX)
f.ext_csum_used = ProtoField.bool("rds.ext.csum.used", "In use")
f.ext_eos = ProtoField.uint32("rds.ext.eos", "Reason", base.DEC, EOS_REASONS)

f.hello_revision = ProtoField.uint16("rds.hello.revision", "Revision")
f.hello_flags = ProtoField.uint16("rds.hello.flags", "Flags", base.HEX)
f.hello_frag = ProtoField.uint32("rds.hello.frag_bytes", "Fragment size")
f.hello_credits = ProtoField.uint16("rds.hello.credits", "Credits")
f.hello_tags = ProtoField.uint16("rds.hello.tags", "Tags")
f.hello_lane = ProtoField.uint8("rds.hello.lane", "Lane")
f.hello_epoch = ProtoField.uint8("rds.hello.epoch", "Epoch")
f.hello_node = ProtoField.uint64("rds.hello.node", "Node", base.HEX)
f.hello_peer_node = ProtoField.uint64("rds.hello.peer_node", "Peer node",
				     base.HEX)
f.hello_ack = ProtoField.uint64("rds.hello.ack", "Acknowledgment")

f.cong_flags = ProtoField.uint16("rds.cong.flags", "Flags (1: full)", base.HEX)
f.cong_count = ProtoField.uint16("rds.cong.count", "Entries")
f.cong_port = ProtoField.uint16("rds.cong.port", "Port")
f.cong_state = ProtoField.bool("rds.cong.congested", "Congested")
f.cong_map = ProtoField.bytes("rds.cong.map", "Congestion map")

f.refused_seq = ProtoField.uint64("rds.refused.seq", "First refused message")
f.refused_sport = ProtoField.uint16("rds.refused.sport", "Source port")
f.refused_dport = ProtoField.uint16("rds.refused.dport", "Destination port")

f.priv_saddr4 = ProtoField.ipv4("rds.priv.src", "Source")
f.priv_daddr4 = ProtoField.ipv4("rds.priv.dst", "Destination")
f.priv_saddr6 = ProtoField.ipv6("rds.priv.src6", "Source")
f.priv_daddr6 = ProtoField.ipv6("rds.priv.dst6", "Destination")
f.priv_major = ProtoField.uint8("rds.priv.major", "Major version")
f.priv_minor = ProtoField.uint8("rds.priv.minor", "Minor version")
f.priv_mask = ProtoField.uint16("rds.priv.mask", "Minor versions spoken",
				base.HEX)
f.priv_tos = ProtoField.uint8("rds.priv.tos", "Type of service")
f.priv_epoch = ProtoField.uint8("rds.priv.epoch", "Epoch")
f.priv_payload = ProtoField.uint16("rds.priv.frag", "Fragment size")
f.priv_ack = ProtoField.uint64("rds.priv.ack", "Acknowledgment")
f.priv_credits = ProtoField.uint32("rds.priv.credits", "Credits")
f.reject = ProtoField.uint32("rds.reject", "Reason", base.DEC, REJECTS)

local bad = ProtoExpert.new("rds.malformed", "Not as the format says",
			    expert.group.MALFORMED, expert.severity.ERROR)
rds.experts = { bad }

local get_bth = Field.new("infiniband.bth")
local get_icrc = Field.new("infiniband.invariant.crc")

-- --------------------------------------------------------------- state

local contexts		-- frame: the state left by earlier packets
local queue_pairs	-- address and number: the connection
local requests		-- address and communication id: the connection

function rds.init()
	contexts, queue_pairs, requests = {}, {}, {}
end

-- ------------------------------------------------------------- helpers

-- The name under construction, and the place of the tree.
local Packet = {}
Packet.__index = Packet

function Packet:say(format, ...)
	self.name = self.name .. string.format(format, ...)
end

function Packet:complain(format, ...)
	local text = string.format(format, ...)

	self:say(", malformed: %s", text)
	self.tree:add_proto_expert_info(bad, text)
end

-- fields { field, offset, bytes } ... of a range
local function add_all(tree, range, list)
	for _, item in ipairs(list) do
		tree:add(item[1], range(item[2], item[3]))
	end
end

local function checksum_good(range)
	local sum = 0

	for offset = 0, HEADER_BYTES - 2, 2 do
		sum = sum + range(offset, 2):uint()
	end
	while sum > 0xffff do
		sum = bit32.band(sum, 0xffff) + bit32.rshift(sum, 16)
	end
	return sum == 0xffff
end

local function is_header(range)
	return range and range:len() >= HEADER_BYTES and
	       range(16, 4):uint() <= MAX_MSG_BYTES and checksum_good(range)
end

-- --------------------------------------------------- extension headers

-- Type: name, bytes of body, function that shows the body and returns a summary
local EXTENSIONS = {
	[1] = { "VERSION", 4, function(tree, body)
		tree:add(f.ext_version, body)
	end },
	[2] = { "RDMA", 4, function(tree, body)
		tree:add(f.ext_rkey, body)
		return string.format("used key 0x%08x", body:uint())
	end },
	[3] = { "RDMA_DEST", 8, function(tree, body)
		add_all(tree, body, { { f.ext_dest_rkey, 0, 4 },
				      { f.ext_dest_off, 4, 4 } })
		return string.format("offers key 0x%08x", body(0, 4):uint())
	end },
	[4] = { "RDMA_BYTES", 8, function(tree, body)
		add_all(tree, body, { { f.ext_bytes, 0, 4 }, { f.ext_dir, 4, 1 } })
		return string.format("%s %d bytes",
				     DIRECTIONS[body(4, 1):uint()] or "moved",
				     body(0, 4):uint())
	end },
	[5] = { "NPATHS", 2, function(tree, body)
		tree:add(f.ext_npaths, body)
	end },
	[6] = { "GEN_NUM", 4, function(tree, body)
		tree:add(f.ext_gen, body)
	end },
	[7] = { "CAP_BITS", 4, function(tree, body)
		tree:add(f.ext_caps, body)
		return bit32.btest(body:uint(), 1) and "answers heartbeats" or
		       "answers no heartbeats"
	end },
	[8] = { "SPORT_IDX", 1, function(tree, body)
		tree:add(f.ext_sport_idx, body)
	end },
	[9] = { "CSUM", 8, function(tree, body)
		add_all(tree, body, { { f.ext_csum, 0, 4 },
				      { f.ext_csum_used, 4, 1 } })
		return body(4, 1):uint() ~= 0 and
		       string.format("payload checksum 0x%08x",
				     body(0, 4):uint()) or nil
	end },
	[16] = { "EOS", 4, function(tree, body)
		tree:add(f.ext_eos, body)
		return EOS_REASONS[body:uint()] or "unknown reason"
	end },
	[17] = { "SILENT", 0, function()
		return "not delivered"
	end },
}

-- Legacy: an extension that is unknown, or does not fit, ends the list silently.
local function show_extensions(packet, range, legacy)
	local offset = 0
	local all

	while offset < range:len() do
		local kind = range(offset, 1):uint()
		local known = EXTENSIONS[kind]
		local tree, words

		if kind == 0 then
			return
		end
		all = all or packet.tree:add(f.ext, range)
		if not known then
			all:add(f.ext_type, range(offset, 1))
			if not legacy then
				packet:complain("unknown extension %d", kind)
			end
			return
		end
		if offset + 1 + known[2] > range:len() then
			if not legacy then
				packet:complain("extension %s does not fit",
						known[1])
			end
			return
		end
		tree = all:add(f.ext_type, range(offset, 1))
		tree:append_text(" (" .. known[1] .. ")")
		words = known[3](tree, known[2] > 0 and range(offset + 1, known[2]))
		if words then
			packet:say(", %s", words)
		end
		offset = offset + 1 + known[2]
	end
end

-- ------------------------------------------------------------- payload

local function show_hello(packet, range)
	if range:len() ~= 48 then
		packet:complain("HELLO of %d bytes", range:len())
		return
	end
	add_all(packet.tree, range, {
		{ f.hello_revision, 0, 2 }, { f.hello_flags, 2, 2 },
		{ f.hello_frag, 4, 4 }, { f.hello_credits, 8, 2 },
		{ f.hello_tags, 10, 2 }, { f.hello_lane, 12, 1 },
		{ f.hello_epoch, 13, 1 }, { f.hello_node, 16, 8 },
		{ f.hello_peer_node, 24, 8 }, { f.hello_ack, 32, 8 },
	})
	packet:say(": clear to send, fragments of %d bytes, %d credits, %d tags",
		   range(4, 4):uint(), range(8, 2):uint(), range(10, 2):uint())
end

-- A part that does not fit into one packet of the path is not shown.
local function show_cong_list(packet, range, len)
	local count = range:len() >= 4 and range(2, 2):uint() or 0

	if range:len() < 4 or len ~= 4 + 4 * count then
		packet:complain("list of %d bytes", range:len())
		return
	end
	add_all(packet.tree, range, { { f.cong_flags, 0, 2 },
				      { f.cong_count, 2, 2 } })
	for offset = 4, range:len() - 4, 4 do
		packet.tree:add(f.cong_port, range(offset, 2))
			   :add(f.cong_state, range(offset + 2, 1))
	end
	packet:say(": %s of %d ports", bit32.band(range(0, 2):uint(), 1) == 1
		   and "full state" or "changes", count)
end

local function show_refused(packet, range, len)
	if len == 0 or len % 16 ~= 0 or len > 208 then
		packet:complain("list of %d bytes", len)
		return
	end
	packet:say(": ")
	for offset = 0, range:len() - 16, 16 do
		local entry = range(offset, 16)

		add_all(packet.tree:add(f.refused_seq, entry(0, 8)), entry,
			{ { f.refused_sport, 8, 2 }, { f.refused_dport, 10, 2 } })
		packet:say("%s%d > %d from %s", offset > 0 and ", " or "",
			   entry(8, 2):uint(), entry(10, 2):uint(),
			   tostring(entry(0, 8):uint64()))
	end
end

local function show_payload(packet, header, range)
	if header.control then
		if header.dport == CTL_HELLO then
			show_hello(packet, range)
			return
		elseif header.dport == CTL_CONG then
			show_cong_list(packet, range, header.len)
			return
		elseif header.dport == CTL_REFUSED then
			show_refused(packet, range, header.len)
			return
		end
	end
	if range:len() == 0 then
		return
	end
	if header.map then
		packet.tree:add(f.cong_map, range)
	else
		packet.tree:add(f.data, range)
	end
end

-- -------------------------------------------------------------- header

-- Flags, ports, length and number determine the kind of a message.
local function kind_of(header)
	if header.control then
		return CONTROLS[header.dport] or
		       string.format("unknown control message %d", header.dport)
	elseif bit32.btest(header.flags, F_EOS) then
		return "EOS"
	elseif bit32.btest(header.flags, F_CONG_BITMAP) then
		return "congestion map"
	elseif header.sport ~= 0 and header.dport ~= 0 then
		return "data"
	elseif header.sport ~= 0 then
		return "ping"
	elseif header.dport ~= 0 then
		return "pong"
	elseif header.len == 0 and header.seq == "0" then
		return "acknowledgment"
	elseif bit32.btest(header.flags, F_HB_PING) then
		return "heartbeat"
	elseif bit32.btest(header.flags, F_HB_PONG) then
		return "heartbeat answer"
	end
	return "unknown kind of message"
end

local function read_header(range)
	local flags = range(24, 1):uint()
	local header = {
		seq = tostring(range(0, 8):uint64()),
		ack = tostring(range(8, 8):uint64()),
		len = range(16, 4):uint(),
		sport = range(20, 2):uint(),
		dport = range(22, 2):uint(),
		flags = flags,
		tag = range(26, 2):uint(),
		frag = range(28, 2):uint(),
		control = bit32.btest(flags, F_CONTROL),
	}

	header.map = bit32.btest(flags, F_CONG_BITMAP) or
		     header.control and header.dport == CTL_CONG_MAP
	header.kind = kind_of(header)
	return header
end

-- The same bit means one thing in XRDS mode and another in legacy versions.
-- Where the beginning was not captured, only a heartbeat or a congestion map with
-- its flag distinguishes them.
local function is_legacy(packet, header)
	local version = packet.context.version

	return version == "3.1" or version == "4.0" or version == "4.1" or
	       version ~= XRDS_VERSION and
	       (header.kind == "heartbeat" or header.kind == "congestion map" or
		header.kind == "heartbeat answer")
end

local function show_flags(packet, header, range)
	local tree = packet.tree:add(f.flags, range)
	local legacy = is_legacy(packet, header)

	for _, flags in ipairs({ FLAGS, legacy and LEGACY_FLAGS or
				 XRDS_FLAGS }) do
		for _, flag in ipairs(flags) do
			tree:add(f["flag_" .. flag[2]], range)
		end
	end
	if not legacy and bit32.btest(header.flags, F_RESUME) then
		packet:say(", first again of those refused")
	end
	tree:add(legacy and f.flag_unknown_legacy or f.flag_unknown, range)
	if not legacy and bit32.btest(range:uint(), F_UNKNOWN) then
		packet:complain("unknown flag")
	end
end

local function show_checksum(packet, range)
	local value = range(30, 2):uint()
	local status = "bad"

	if checksum_good(range) then
		status = "good"
	elseif value == 0 and packet.context.version ~= XRDS_VERSION then
		status = "none"
	end
	packet.tree:add(f.csum, range(30, 2)):add(f.csum_status, status)
		   :set_generated()
	if status == "bad" then
		packet:complain("bad checksum")
	end
end

-- Of an interleaved message only the last fragment has the sequence number.
local function number_of(header)
	if header.seq == "0" and header.tag > 0 then
		return string.format("(tag %d)", header.tag)
	end
	return header.seq
end

local function name_header(packet, header, fragment)
	packet:say("%s", header.kind)
	if not header.control and header.kind ~= "acknowledgment" then
		packet:say(" %s, %d > %d, %d bytes", number_of(header),
			   header.sport, header.dport, header.len)
	end
	if fragment > 0 then
		packet:say(", fragment %d", fragment)
	end
	packet:say(", ack %s", header.ack)
	if bit32.btest(header.flags, F_ACK_REQUIRED) then
		packet:say(", wants one")
	end
	if bit32.btest(header.flags, F_RETRANSMITTED) then
		packet:say(", sent again")
	end
end

-- Where the message ends: a bundle has the next header there.
local function message_bytes(header, range)
	local bytes = HEADER_BYTES + header.len

	if header.control or header.frag > 0 or bytes > range:len() then
		return range:len()
	end
	return bytes
end

local function show_message(packet, range, fragment)
	local header = read_header(range)
	local tree = packet.tree
	local bytes = message_bytes(header, range)

	name_header(packet, header, fragment)
	add_all(tree, range, { { f.seq, 0, 8 }, { f.ack, 8, 8 },
			       { f.len, 16, 4 }, { f.sport, 20, 2 },
			       { header.control and f.ctl or f.dport, 22, 2 } })
	show_flags(packet, header, range(24, 1))
	add_all(tree, range, { { f.credit, 25, 1 }, { f.tag, 26, 2 },
			       { f.frag, 28, 2 } })
	show_checksum(packet, range)
	if header.len > MAX_MSG_BYTES then
		packet:complain("message of %d bytes", header.len)
	end
	show_extensions(packet, range(32, 16), is_legacy(packet, header))
	if bytes > HEADER_BYTES then
		show_payload(packet, header, range(HEADER_BYTES,
						   bytes - HEADER_BYTES))
	elseif header.control and (header.dport == CTL_HELLO or
				   header.dport == CTL_CONG or
				   header.dport == CTL_REFUSED) then
		packet:complain("no payload")
	end
	return bytes
end

-- One message or a part of it, or a bundle: several, each with a header
local function show_messages(packet, range, fragment, whole)
	local all = packet.tree
	local offset = show_message(packet, range, fragment)

	while offset + HEADER_BYTES <= range:len() do
		local rest = range(offset)

		packet:say("; ")
		packet.tree = all:add(f.bundled, rest)
		offset = offset + show_message(packet, rest, 0)
	end
	packet.tree = all
	if whole and offset < range:len() then
		packet:complain("%d bytes behind the message",
				range:len() - offset)
	end
end

-- ------------------------------------------------- connection manager

local function show_private(packet, range, family)
	local addr = family == 6 and 16 or 4
	local at = 2 * addr
	local major, minor = range(at, 1):uint(), range(at + 1, 1):uint()

	add_all(packet.tree, range, {
		{ family == 6 and f.priv_saddr6 or f.priv_saddr4, 0, addr },
		{ family == 6 and f.priv_daddr6 or f.priv_daddr4, addr, addr },
		{ f.priv_major, at, 1 }, { f.priv_minor, at + 1, 1 },
		{ f.priv_mask, at + 2, 2 }, { f.priv_tos, at + 4, 1 },
		{ f.priv_epoch, at + 5, 1 }, { f.priv_payload, at + 6, 2 },
		{ f.priv_ack, at + 8, 8 },
		{ f.priv_credits, at + 16, 4 },
	})
	packet:say(", version %d.%d, mask 0x%04x, TOS %d", major, minor,
		   range(at + 2, 2):uint(), range(at + 4, 1):uint())
	return string.format("%d.%d", major, minor)
end

-- Four bytes in the byte order of their sender; often they are missing
local function show_reject(packet, range)
	local reason = range(0, 4)

	if reason:uint() == 0 then
		return
	end
	if reason:uint() > 0xffff then
		packet.tree:add_le(f.reject, reason)
		packet:say(": %s", REJECTS[reason:le_uint()] or "unknown reason")
	else
		packet.tree:add(f.reject, reason)
		packet:say(": %s", REJECTS[reason:uint()] or "unknown reason")
	end
end

local function learn_request(body, src)
	local prefix, port = body(12, 2):uint(), body(14, 2):uint()
	local conn

	-- 00 00 00 00 01 06 and the port
	if body(8, 4):uint() ~= 0 or prefix ~= SERVICE_PREFIX or
	   not SERVICES[port] then
		queue_pairs[src .. " " .. body(32, 3):uint()] = nil
		return nil
	end
	conn = { family = SERVICES[port], version = "offered" }
	requests[src .. " " .. body(0, 4):uint()] = conn
	queue_pairs[src .. " " .. body(32, 3):uint()] = conn
	return conn
end

-- All but the request have both ids: the sender's first, then the receiver's
local function learn_other(attribute, body, src, dst)
	local mine = src .. " " .. body(0, 4):uint()
	local conn = requests[dst .. " " .. body(4, 4):uint()] or requests[mine]

	if attribute == CM_REP then
		requests[mine] = conn
		queue_pairs[src .. " " .. body(12, 3):uint()] = conn
	end
	return conn
end

local function learn_cm(packet, range)
	local attribute = range(16, 2):uint()
	local body = range(MAD_BYTES)

	if attribute == CM_REQ then
		return learn_request(body, packet.src)
	end
	return learn_other(attribute, body, packet.src, packet.dst)
end

local function show_cm(packet, range)
	local attribute = range(16, 2):uint()
	local body = range(MAD_BYTES)
	local conn = packet.context
	local known = CM[attribute]
	local private = body(known[2])

	packet:say("%s", known[1])
	if attribute == CM_REQ then
		show_private(packet, private(IP_CM_BYTES), conn.family)
	elseif attribute == CM_REP then
		conn.version = show_private(packet, private, conn.family)
	elseif attribute == CM_REJ then
		packet:say(", code %d", body(10, 2):uint())
		show_reject(packet, private)
	elseif attribute == CM_DREQ then
		packet:say(", QP 0x%06x", body(8, 3):uint())
	end
end

local function is_cm(range)
	return range and range:len() >= 256 and range(1, 1):uint() == CM_CLASS and
	       CM[range(16, 2):uint()] ~= nil
end

-- ------------------------------------------------------ reliable QPs

-- The highest seven bits of the product of 32 bits: its parts stay exact.
local function slot_of(sport, dport)
	local high = bit32.band(sport * 0x79b1 + dport * 0x9e37, 0xffff)
	local low = dport * 0x79b1

	return bit32.rshift(bit32.band(high + bit32.rshift(low, 16), 0xffff), 9)
end

-- What full headers leave for the short ones behind them
local function learn_full(flows, header, range)
	local ack, seq = range(8, 8):uint64(), range(0, 8):uint64()

	if range(32, 1):uint() == 2 then		-- RDMA
		return
	end
	if not flows.ack or ack > flows.ack then
		flows.ack = ack
	end
	if header.seq ~= "0" then
		flows.seq = seq
	end
	if header.sport ~= 0 and header.dport ~= 0 then
		flows[slot_of(header.sport, header.dport)] = header
	end
end

-- All messages of a SEND, in their order
local function learn_messages(flows, range)
	local offset = 0

	while is_header(offset < range:len() and range(offset)) do
		local header = read_header(range(offset))

		learn_full(flows, header, range(offset))
		if header.control or header.frag > 0 then
			return
		end
		offset = offset + HEADER_BYTES + header.len
	end
end

-- Messages of which fragments are still to come, by tag. More bytes of one:
local function learn_bytes(flows, tag, bytes)
	local message = flows.messages[tag]

	if not message then
		return
	end
	message.got = message.got + bytes
	if message.len and message.got >= message.len then
		flows.messages[tag] = nil
	end
end

local function learn_fragment(flows, header, bytes)
	local tag = header.tag
	local message = flows.messages[tag]

	if header.frag == 0 or not message then
		message = { flow = header, got = 0 }
		flows.messages[tag] = message
	end
	message.fragment = header.frag + 1
	message.len = header.len
	learn_bytes(flows, tag, bytes - HEADER_BYTES)
end

-- A short header; the flow of a message is that of its first fragment.
local function learn_short(flows, imm, bytes)
	local value = imm:uint()
	local tag = bit32.extract(value, 7)
	local slot = bit32.band(value, 0x7f)
	local message = flows.messages[tag] or
			{ flow = flows[slot], fragment = 0, got = 0 }
	local short = { flow = message.flow, fragment = message.fragment }

	message.fragment = message.fragment + 1
	flows.messages[tag] = message
	learn_bytes(flows, tag, bytes)
	if not bit32.btest(value, 0x100) then		-- the last one
		flows.messages[tag] = nil
		flows.seq = flows.seq and flows.seq + 1
		short.seq = flows.seq and tostring(flows.seq)
	end
	return short
end

-- The packet's place in its message
local function learn_place(packet, op, flows, part, bytes)
	part.bytes = (part.bytes or 0) + bytes
	if string.find(op[1], "Immediate") then
		part.short = learn_short(flows,
					 packet.frame_range(packet.extra, 4),
					 part.bytes)
	elseif part.header and op[4] == "first" then
		learn_fragment(flows, part.header, bytes)
	elseif part.header then
		learn_bytes(flows, part.header.tag, bytes)
	end
end

-- A later packet of a SEND, write or read response belongs to the packet
-- before. One that is transmitted again is not counted again. Packet sequence
-- numbers start anew after 2^24.
local function learn_part(packet, op, range)
	local flows = packet.conn.flows or { messages = {}, began = {} }
	local began = flows.began	-- PSN: the SEND or op of the packet
	local part = began[packet.psn]

	packet.conn.flows = flows
	if part then
		return part
	end
	began[(packet.psn + 0x800000) % 0x1000000] = nil
	if op[4] == "first" then
		part = { frame = packet.frame, fragment = 0 }
		if op[3] == "send" and op[2] == 0 and is_header(range) then
			learn_messages(flows, range)
			local header = read_header(range)
			local last = packet.conn.last

			-- legacy fragments have no index: count them
			part.header = header
			part.fragment = header.frag
			if header.map and last and last.header.map and
			   not header.control and last.fragment == 0 then
				part.fragment = 1
			elseif header.frag == 0 and last and header.seq ~= "0" and
			   last.header.seq == header.seq and
			   not bit32.btest(header.flags, F_RETRANSMITTED) and
			   header.len > 4096 then
				part.fragment = last.fragment + 1
			end
			if header.seq ~= "0" or header.map then
				packet.conn.last = part
			end
		end
	else
		part = began[(packet.psn - 1) % 0x1000000]
	end
	began[packet.psn] = part
	if part and op[3] == "send" then
		learn_place(packet, op, flows, part, range and range:len() or 0)
	end
	return part
end

local function learn_rc(packet, op, range)
	local key = packet.dst .. " " .. packet.qp
	local context = {}

	packet.conn = queue_pairs[key]
	if not packet.conn then
		if op[3] ~= "send" or op[4] ~= "first" or not is_header(range) then
			return nil
		end
		packet.conn = { version = "the beginning was not captured" }
		queue_pairs[key] = packet.conn
	end
	-- each direction counts its own messages
	context.version = packet.conn.version
	packet.conn[key] = packet.conn[key] or {}
	packet.conn = packet.conn[key]
	if op[3] == "send" or op[3] == "write" then
		context.part = learn_part(packet, op, range)
	end
	return context
end

local function show_rdma(packet, op, range)
	local tvb = packet.frame_range

	packet:say("%s", op[1])
	if op[3] == "atomic" then
		packet:say(", key 0x%08x", tvb(packet.extra + 8, 4):uint())
	elseif op[4] == "first" then
		packet:say(", key 0x%08x, %d bytes",
			   tvb(packet.extra + 8, 4):uint(),
			   tvb(packet.extra + 12, 4):uint())
	elseif range then
		packet:say(", %d bytes here", range:len())
	end
end

local function show_ack(packet, op)
	local syndrome = packet.frame_range(packet.extra, 1):uint()
	local class = bit32.extract(syndrome, 5, 2)
	local code = bit32.band(syndrome, 0x1f)

	if class == 0 then
		packet:say("%s of packet %d", op[1], packet.psn)
	elseif class == 1 then
		packet:say("RNR NAK of packet %d", packet.psn)
	else
		packet:say("NAK of packet %d: %s", packet.psn,
			   NAKS[code] or "unknown code")
	end
end

local function show_short(packet, op, range)
	local imm = packet.frame_range(packet.extra, 4)
	local part = packet.context.part
	local short = part and part.short or {}
	local tree = packet.tree:add(f.short, imm)

	add_all(tree, imm, { { f.short_slot, 0, 4 }, { f.short_tag, 0, 4 },
			     { f.short_more, 0, 4 }, { f.short_ask, 0, 4 },
			     { f.short_credit, 0, 4 }, { f.short_check, 0, 4 },
			     { f.short_ack, 0, 4 } })
	packet:say("data %s", short.seq or
		   string.format("(tag %d)", bit32.extract(imm:uint(), 7)))
	if short.flow then
		packet:say(", %d > %d", short.flow.sport, short.flow.dport)
		packet.tree:add(f.sport, short.flow.sport):set_generated()
		packet.tree:add(f.dport, short.flow.dport):set_generated()
	else
		packet:say(", ports before the capture")
	end
	if short.fragment and short.fragment > 0 then
		packet:say(", fragment %d", short.fragment)
	end
	packet:say(", short header")
	if bit32.btest(imm:uint(), 0x200) then
		packet:say(", wants an acknowledgment")
	end
	packet:say(" (%s)", op[1])
	if part and part.frame ~= packet.frame then
		packet.tree:add(f.continues, part.frame):set_generated()
	end
	if range then
		packet.tree:add(f.data, range)
	end
end

local function show_send(packet, op, range)
	local part = packet.context.part

	if string.find(op[1], "Immediate") then
		show_short(packet, op, range)
		return
	end
	if op[4] == "first" and op[1] ~= "SEND Only" and not is_header(range) then
		packet:say("data, the header is in the last packet (%s)", op[1])
		if range then
			packet.tree:add(f.data, range)
		end
		return
	end
	if op[4] == "first" then
		if not range or range:len() < HEADER_BYTES then
			packet:complain("SEND shorter than a header")
			return
		end
		show_messages(packet, range, part and part.fragment or 0,
			      op[1] == "SEND Only")
		return
	end
	if part and part.header then
		packet:say("%s", part.header.kind)
		if number_of(part.header) ~= "0" then
			packet:say(" %s", number_of(part.header))
		end
		packet:say(", fragment %d", part.fragment)
		packet.tree:add(f.continues, part.frame):set_generated()
	elseif part then
		packet:say("data, the header is in the last packet")
		packet.tree:add(f.continues, part.frame):set_generated()
	else
		packet:say("payload of a message that began before the capture")
	end
	packet:say(" (%s)", op[1])
	if range then
		packet.tree:add(f.data, range)
	end
end

local function show_rc(packet, op, range)
	packet.tree:add(f.version, packet.context.version):set_generated()
	if op[3] == "send" then
		show_send(packet, op, range)
	elseif op[3] == "ack" then
		show_ack(packet, op)
	else
		show_rdma(packet, op, range)
	end
end

-- ---------------------------------------------------------- the packet

-- Behind the BTH: further headers, payload, up to three padding bytes, CRC.
local function payload(tvb, bth, headers)
	local first = bth + 12 + headers
	local pad = bit32.extract(tvb(bth + 1, 1):uint(), 4, 2)
	local icrc = get_icrc()
	local last = (icrc and icrc.offset or tvb:len() - 4) - pad

	return last > first and tvb(first, last - first) or nil
end

-- With IP below, the infiniband dissector may have put LIDs in its place
local function address(net, other)
	net = tostring(net)
	return net ~= "" and net or tostring(other)
end

function rds.dissector(tvb, pinfo, root)
	local bth = get_bth()
	local packet, at, opcode, op, range, learn, show

	if not bth or bth.offset + 12 > tvb:len() then
		return
	end
	at = bth.offset
	opcode = tvb(at, 1):uint()
	op = OPS[bit32.band(opcode, 0x1f)]
	packet = setmetatable({
		name = "", frame = pinfo.number, extra = at + 12,
		frame_range = tvb, qp = tvb(at + 5, 3):uint(),
		psn = tvb(at + 9, 3):uint(),
		src = address(pinfo.net_src, pinfo.src),
		dst = address(pinfo.net_dst, pinfo.dst),
	}, Packet)

	if bit32.rshift(opcode, 5) == UD then
		range = payload(tvb, at, 8)
		if not is_cm(range) then
			return
		end
		learn, show = learn_cm, show_cm
	elseif bit32.rshift(opcode, 5) == RC and op then
		if at + 12 + op[2] > tvb:len() then
			return
		end
		range = payload(tvb, at, op[2])
		learn = function(p, r) return learn_rc(p, op, r) end
		show = function(p, r) show_rc(p, op, r) end
	else
		return
	end

	if not pinfo.visited then
		contexts[packet.frame] = learn(packet, range)
	end
	packet.context = contexts[packet.frame]
	if not packet.context then
		return
	end
	packet.tree = root:add(rds, range or tvb(at))
	show(packet, range)
	packet.tree:add(f.name, packet.name):set_generated()
	packet.tree:append_text(": " .. packet.name)
	pinfo.cols.protocol = "RDS"
	pinfo.cols.info = packet.name
end

register_postdissector(rds)

-- Other dissectors may take an RDS header for theirs: claim the payload first.
rds:register_heuristic("infiniband.payload", function(tvb, pinfo)
	local bth = get_bth()
	local dst = address(pinfo.net_dst, pinfo.dst)

	return contexts[pinfo.number] ~= nil or
	       bth and queue_pairs[dst .. " " .. bth.range(5, 3):uint()] ~= nil or
	       is_header(tvb())
end)
