# Functions for the scripts beside it, which run under `hopwise air hwsim --bare`.
# SECURITY is open, wpa2 or sae. All stations are on channel 1.

on() { ip netns exec "$@"; }

# await TRIES WHAT COMMAND…: tries the command until it succeeds, with a second between two tries.
await() {
    limit=$1 what=$2
    shift 2
    until "$@" > /dev/null 2>&1; do
        limit=$((limit - 1))
        [ "$limit" -gt 0 ] || { echo "failed: $what" >&2; exit 1; }
        sleep 1
    done
    echo "ok: $what"
}

# address NODE ADDRESS: with a prefix, such as 10.1.0.1/24.
address() { ip -n "$1" address add "$2" dev wlan0; }

# access_point NODE SECURITY [LINE…]: the network "hop", with further lines for hostapd.
access_point() {
    node=$1 security=$2
    shift 2
    {
        printf '%s\n' interface=wlan0 driver=nl80211 ssid=hop hw_mode=g channel=1 "$@"
        case $security in
            wpa2) printf '%s\n' wpa=2 wpa_key_mgmt=WPA-PSK rsn_pairwise=CCMP wpa_passphrase=one-two-three ;;
            sae) printf '%s\n' wpa=2 wpa_key_mgmt=SAE rsn_pairwise=CCMP ieee80211w=2 sae_password=one-two-three ;;
        esac
    } > "/run/$node.hostapd"
    on "$node" hostapd -B "/run/$node.hostapd" > /dev/null
}

# join NODE SECURITY [LINE…]: looks for the network "hop", with further lines for wpa_supplicant's network.
join() {
    node=$1 security=$2
    shift 2
    {
        printf '%s\n' "ctrl_interface=/run/$node" 'network={' 'ssid="hop"' scan_freq=2412 "$@"
        case $security in
            open) printf '%s\n' key_mgmt=NONE ;;
            wpa2) printf '%s\n' 'psk="one-two-three"' ;;
            sae) printf '%s\n' key_mgmt=SAE ieee80211w=2 'sae_password="one-two-three"' ;;
        esac
        echo '}'
    } > "/run/$node.supplicant"
    on "$node" wpa_supplicant -B -D nl80211 -i wlan0 -c "/run/$node.supplicant" > /dev/null
}

# is_joined NODE: to an access point, with keys.
is_joined() { on "$1" wpa_cli -p "/run/$1" -i wlan0 status | grep -q wpa_state=COMPLETED; }
