# A user's test: n0 and n2 reach each other through the access point n1, under WPA2.
set -e
on() { ip netns exec "$@"; }
printf '%s\n' interface=wlan0 driver=nl80211 ssid=hop hw_mode=g channel=1 wpa=2 wpa_key_mgmt=WPA-PSK \
    rsn_pairwise=CCMP wpa_passphrase=one-two-three > /run/hostapd
printf '%s\n' 'network={' 'ssid="hop"' 'scan_freq=2412' 'psk="one-two-three"' '}' > /run/supplicant
on n1 hostapd -B /run/hostapd
for node in n0 n2; do on "$node" wpa_supplicant -B -D nl80211 -i wlan0 -c /run/supplicant; done
for number in 0 1 2; do ip -n "n$number" address add "10.1.0.$((number + 1))/24" dev wlan0; done
tries=30
until on n0 ping -c 1 -W 1 10.1.0.3; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ]
done
on n0 ping -c 10 -i 0.2 -W 2 10.1.0.3
