# Twenty clients of an access point send more than the channel takes. How they share it is what Bianchi's model says of
# saturated stations (docs/wifi-programs.md).
#   hopwise air hwsim examples/wifi/cell.yaml --accelerator counted --bare --package hostapd --package wpasupplicant \
#     -- sh examples/wifi/cell.sh
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
# One beacon a second takes a thousandth of the airtime.
access_point n0 open beacon_int=1000
address n0 10.1.0.100/24
mac=$(on n0 cat /sys/class/net/wlan0/address)
clients=$(seq 20)
for client in $clients; do join "n$client" open; done
for client in $clients; do
    await 60 "n$client has joined" is_joined "n$client"
    address "n$client" "10.1.0.$client/24"
    # Nobody has this address: the access point takes what comes for it, and answers nothing.
    ip -n "n$client" neigh add 10.1.0.200 lladdr "$mac" dev wlan0 nud permanent
    # 1028 bytes with the headers of IP and ICMP, 160 kbit/s each, for 90 s. -S: some 25 of them may wait.
    on "n$client" ping -q -i 0.05 -s 1000 -S 60000 -w 90 10.1.0.200 > "/run/n$client.ping" &
done
taken() { on n0 cat /sys/class/net/wlan0/statistics/rx_packets; }
sleep 5
before=$(taken)
sleep 60
echo "$(((($(taken) - before) * 8000 + 30000) / 60000)) kbit/s came to the access point, in 1000 bytes each"
wait
for client in $clients; do grep transmitted "/run/n$client.ping"; done
