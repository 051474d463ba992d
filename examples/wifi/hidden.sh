# Two clients that do not hear each other send to an access point at once. With RTS fewer frames collide there.
#   hopwise air hwsim configs/chain.yaml --set topology.hops=2 --set 'channel.links=[link n0-n2 gains -30 dB]' \
#     --set radio.rts_threshold=off --bare --package hostapd --package wpasupplicant -- sh examples/wifi/hidden.sh
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
access_point n1 open
address n1 10.1.0.1/24
for node in n0 n2; do join "$node" open; done
address n0 10.1.0.2/24
address n2 10.1.0.3/24
await 60 "n0 has joined" is_joined n0
await 60 "n2 has joined" is_joined n2
for port in 5000 5002; do on n1 iperf3 -s -D -p "$port"; done
await 20 "n0 reaches the access point" on n0 ping -c 1 -W 1 10.1.0.1
await 20 "n2 reaches the access point" on n2 ping -c 1 -W 1 10.1.0.1
for node in n0 n2; do
    # Together 1.2 of the channel's 2 Mbit/s.
    on "$node" iperf3 -c 10.1.0.1 -p "500${node#n}" -u -b 600K -l 1000 -t 20 > "/run/$node.iperf" &
done
wait
for node in n0 n2; do
    line=$(grep receiver "/run/$node.iperf") || exit 1
    echo "$node: $line"
done
