#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# wire.sh: runs on a node. Two soft-RoCE devices, rxa (10.7.0.1) and rxb
# (10.7.0.2), on the ends of a veth pair, and routes by which what one sends to
# the other crosses that pair, although both addresses are of this node:
#
#   10.7.0.1  rxa  va ------------ vb  rxb  10.7.0.2
#
# rxb has IDLE more addresses, 10.7.1.1 and so on, for connections that idle.
# In the network namespace far is a second node, 10.8.0.2, at the end of another
# veth pair; here is 10.8.0.1. It is for those who speak to no other address of
# their own node over a wire: in-tree rds_tcp, and TIPC.
#
# Incoming packets look into the local table first, packets from one of the
# addresses to the other look there last.
set -eu

IDLE=100
MTU=9000	# so that packets of RDMA carry 4096 bytes

set_up() {	# DEVICE ADDRESS PEER PEER_ADDRESS TABLE
	ip addr add "$2/32" dev "$1"
	ip link set "$1" mtu "$MTU" up
	echo 1 > "/proc/sys/net/ipv4/conf/$1/accept_local"
	echo 0 > "/proc/sys/net/ipv4/conf/$1/rp_filter"
	ip neigh replace "$4" dev "$1" nud permanent \
		lladdr "$(cat "/sys/class/net/$3/address")"
	ip route add "$4" dev "$1" src "$2" table "$5"
	ip rule add pref "$5" from "$2" to "$4" lookup "$5"
}

# A machine with such a processor loads this by itself: most of the cost of
# soft-RoCE is its checksum.
modprobe -q crc32_pclmul || :
rdma link del rxe0
echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter
ip link add va type veth peer name vb
set_up va 10.7.0.1 vb 10.7.0.2 21
set_up vb 10.7.0.2 va 10.7.0.1 22
ip rule add pref 10 iif va lookup local
ip rule add pref 11 iif vb lookup local
ip rule add pref 100 lookup local
ip rule del pref 0
# more nodes on the far end
mac=$(cat /sys/class/net/vb/address)
for ((n = 1; n <= IDLE; n++)); do
	echo "addr add 10.7.1.$n/32 dev vb"
	echo "neigh replace 10.7.1.$n dev va nud permanent lladdr $mac"
done | ip -batch -
ip route add 10.7.1.0/24 dev va src 10.7.0.1 table 21
ip rule add pref 23 from 10.7.0.1 to 10.7.1.0/24 lookup 21
ip rule add pref 24 from 10.7.1.0/24 to 10.7.0.1 lookup 22
rdma link add rxa type rxe netdev va
rdma link add rxb type rxe netdev vb
ip netns add far
ip link add vc type veth peer name vd netns far
ip link set vc mtu "$MTU" up
ip addr add 10.8.0.1/24 dev vc
ip -n far link set lo up
ip -n far link set vd mtu "$MTU" up
ip -n far addr add 10.8.0.2/24 dev vd
echo 16777216 > /proc/sys/net/core/wmem_max
echo 268435456 > /proc/sys/net/core/rmem_max
