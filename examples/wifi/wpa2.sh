# Two clients do not hear each other, and reach each other through an access point, under WPA2.
# With the word sae behind the script it is WPA3.
#   hopwise air hwsim configs/chain.yaml --set topology.hops=2 --bare --package hostapd --package wpasupplicant \
#     -- sh examples/wifi/wpa2.sh
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
security=${1:-wpa2}
access_point n1 "$security"
address n1 10.1.0.1/24
for node in n0 n2; do join "$node" "$security"; done
address n0 10.1.0.2/24
address n2 10.1.0.3/24
await 60 "n0 has joined" is_joined n0
await 60 "n2 has joined" is_joined n2
await 20 "n0 reaches the access point" on n0 ping -c 1 -W 1 10.1.0.1
await 20 "n0 reaches n2 through it" on n0 ping -c 1 -W 1 10.1.0.3
on n0 ping -c 20 -i 0.2 10.1.0.3
