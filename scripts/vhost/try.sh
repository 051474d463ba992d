# In the machines of scripts/check-vhost: joins an ad hoc network. The second machine pings the first one and sends to
# it over TCP, says what became of it, and ends.
export PATH=/usr/sbin:/usr/bin:/usr/lib/busybox HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
for place in /tmp /run; do mount -t tmpfs tmpfs $place; done
node=0 lasts=0
# shellcheck disable=SC2013 # They are words.
for word in $(cat /proc/cmdline); do
  case $word in node=* | lasts=*) eval "$word" ;; esac
done
ip link set lo up
modprobe mac80211_hwsim radios=1
ip link set wlan0 address 02:00:00:00:0"$node":00
iw dev wlan0 set type ibss
ip link set wlan0 up
iw dev wlan0 ibss join medium 2412 NOHT fixed-freq 02:ca:fe:00:00:01
ip address add 10.1.0.$((node + 1))/24 dev wlan0
iperf3 -s -D
echo ready
if [ "$node" = 1 ]; then
  tries=0
  until ping -q -c 1 -W 1 10.1.0.1 >/dev/null || [ $tries -ge 120 ]; do tries=$((tries + 1)); done
  ping -q -i 0.2 -c $((lasts * 5)) 10.1.0.1 &
  iperf3 -c 10.1.0.1 -t "$lasts" -i 0
  wait %1
  iw dev wlan0 station dump
  echo "all is done"
  poweroff -f
fi
sleep 100000
