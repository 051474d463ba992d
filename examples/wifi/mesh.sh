# Four stations of 802.11s on a line, with SAE and CCMP: the ends reach each other over three hops.
#   hopwise air hwsim configs/chain.yaml --set topology.hops=3 --bare --package wpasupplicant \
#     -- sh examples/wifi/mesh.sh
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
is_established() { on "$1" iw dev wlan0 station dump | grep -q 'mesh plink:.*ESTAB'; }
for nth in 0 1 2 3; do
    join "n$nth" sae mode=5 frequency=2412
    address "n$nth" "10.1.0.$((nth + 1))/24"
done
for nth in 0 1 2 3; do await 60 "n$nth has a secured peer" is_established "n$nth"; done
await 60 "n0 reaches n3" on n0 ping -c 1 -W 2 10.1.0.4
on n0 iw dev wlan0 mpath dump
on n0 ping -c 20 -i 0.2 10.1.0.4
