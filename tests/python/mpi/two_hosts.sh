#!/usr/bin/env bash
# Two hosts on one machine: two network namespaces with a cable between them, and an MPI rank in each.
#
#   two_hosts.sh COMMAND...      runs `mpirun -np 2 COMMAND...`, rank 0 on host lw-a, rank 1 on host lw-b
#
# mpirun starts its daemon on the other host through an agent, usually ssh; here the agent enters the
# namespace instead (and a host name of its own), so no login and no key is needed. Ends with 77 and the
# reason where namespaces are not allowed. Needs root, iproute2, util-linux and Open MPI.
set -eu
skip() { echo "skipped: $1" >&2; exit 77; }
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "iproute2 is not installed"
command -v unshare >/dev/null || skip "util-linux is not installed"
mpirun --version 2>/dev/null | grep -q "Open MPI" || skip "the agent is a setting of Open MPI's mpirun"
# So that several of these can run at once; interface names have at most 15 letters.
id=$$ a=lwa$$ b=lwb$$ work=$(mktemp -d)
net=$((id % 250)).$((id / 250 % 250))
finish() { ip netns del "$a" 2>/dev/null || true; ip netns del "$b" 2>/dev/null || true; rm -rf "$work"; }
trap finish EXIT
ip netns add "$a" 2>/dev/null || skip "network namespaces are not allowed here"
ip netns add "$b"
ip link add "$a" type veth peer name "$b" 2>/dev/null || skip "no virtual cables (veth) are allowed here"
for end in "$a" "$b"; do
    ip link set "$end" netns "$end"
    ip -n "$end" link set "$end" up
    ip -n "$end" link set lo up
done
ip -n "$a" address add "10.$net.1/24" dev "$a"
ip -n "$b" address add "10.$net.2/24" dev "$b"

# mpirun calls: agent HOST COMMAND...
cat >"$work/agent" <<AGENT
#!/bin/sh
host=\$1; shift
exec ip netns exec $b unshare --uts sh -c 'hostname lw-b; exec sh -c "\$1"' sh "\$*"
AGENT
chmod +x "$work/agent"
printf '10.%s.1 slots=1\n10.%s.2 slots=1\n' "$net" "$net" >"$work/hosts"
ip netns exec "$a" unshare --uts sh -c 'hostname lw-a; exec "$@"' sh \
    mpirun --allow-run-as-root --hostfile "$work/hosts" --map-by node --bind-to none -np 2 \
    --mca plm rsh --mca plm_rsh_agent "$work/agent" --mca btl tcp,self --mca pml ob1 \
    --mca btl_tcp_if_include "10.$net.0/24" --mca oob_tcp_if_include "10.$net.0/24" "$@"
