# A client walks from one access point to another, and stays in the network. Both have one name and one password.
#   hopwise air hwsim examples/wifi/roam.yaml --bare --package hostapd --package wpasupplicant \
#     -- sh examples/wifi/roam.sh
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
access_point n0 wpa2
access_point n2 wpa2
join n1 wpa2 'bgscan="simple:2:-55:5"'
at() { on n1 iw dev wlan0 link | grep -q "Connected to 02:00:00:00:00:0$1"; }
await 40 "n1 has joined" is_joined n1
await 5 "at n0" at 0
await 120 "n1 has gone over to n2" at 2
await 20 "with keys" is_joined n1
on n1 iw dev wlan0 link
