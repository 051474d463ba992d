#!/usr/bin/env bash
# A live mesh in eleven lines, for root: radios of 802.11 in real time, AODV that finds the routes, and two transfers over
# three hops, with one receiver agent after the other. It needs `hopwise` in PATH, and refuses names that are in use.
# `sudo env PATH="$PATH" examples/live-mesh.sh` also finds a command that cargo installed.
hopwise air netns configs/chain.yaml --set topology.hops=3 --set routing.protocol=aodv -- bash << 'END'
for n in 1 2 3 4; do
  ip netns exec chain-n$((n - 1)) hopwise route <(echo "{address: 10.0.0.$n, serves: [10.1.0.$n], network: 10.0.0.0/8, \
    interfaces: [air0], routing: {protocol: aodv}}") 2> >(grep --line-buffered -v INFO >&2) & jobs="$! $jobs"
done
for receiver in immediate dca; do
  ip netns exec chain-n3 hopwise recv --once --address 10.1.0.4/32 --receiver $receiver & sleep 1
  ip netns exec chain-n0 hopwise send 10.1.0.4 --address 10.1.0.1/32 --sender '[newreno, tell-cwnd]' --time 10s
done
kill $jobs; wait
END
