# Four stations in an ad hoc network (IBSS), routed by babeld: the ends reach each other over three hops.
#   hopwise air hwsim configs/chain.yaml --set topology.hops=3 --bare --package babeld -- sh examples/wifi/babel.sh
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
for nth in 0 1 2 3; do
    node=n$nth
    on "$node" iw dev wlan0 set type ibss
    ip -n "$node" link set wlan0 up
    on "$node" iw dev wlan0 ibss join hop 2412 fixed-freq 02:ca:fe:00:00:01
    address "$node" "10.1.0.$((nth + 1))/32"
    on "$node" sysctl -q net.ipv4.ip_forward=1
    on "$node" babeld -D -I "/run/$node.babeld" -S "/run/$node.state" -L "/run/$node.log" \
        -C 'default type wireless hello-interval 1 update-interval 4' \
        -C 'redistribute local ip 10.1.0.0/24' -C 'redistribute local deny' wlan0
done
await 90 "n0 has a route to n3" on n0 ping -c 1 -W 2 10.1.0.4
ip -n n0 route
on n0 ping -c 20 -i 0.2 10.1.0.4
