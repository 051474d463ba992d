# The guest's init: file systems, modules, the host's folders. Then one command, whose status ends the guest.
export PATH=/usr/sbin:/usr/bin:/usr/lib/busybox HOME=/root LANG=C.UTF-8 OUT=/out
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm /dev/net
mount -t devpts devpts /dev/pts
for place in /dev/shm /tmp /run; do mount -t tmpfs tmpfs $place; done
mount -t debugfs debugfs /sys/kernel/debug
ln -sfn /proc/self/fd /dev/fd
for stream in 0:stdin 1:stdout 2:stderr; do ln -sfn /proc/self/fd/${stream%:*} /dev/${stream#*:}; done
modprobe -a virtio_console 9pnet_virtio 9p tun
[ -c /dev/net/tun ] || mknod /dev/net/tun c 10 200
for port in /sys/class/virtio-ports/*; do
  [ -e $port/name ] && read -r name <$port/name && ln -s /dev/${port##*/} /dev/port-$name
done
# A port can be opened once at a time.
exec 7<>/dev/port-control || poweroff -f
fail() { echo "failed $*" >&7; sleep 1; poweroff -f; }
share() { # TAG PLACE OPTIONS
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,$3 $1 $2 || fail "no share $1"
}
share order /order ro,cache=loose
share program /program ro,cache=loose
share share /share ro,cache=loose
share scenario /scenario ro,cache=loose
share out /out rw,cache=none
. /order/order
hostname hwsim
ip link set lo up
modprobe mac80211_hwsim radios=0 || fail "no mac80211_hwsim in this kernel"
stty -F /dev/hvc0 rows ${rows:-24} cols ${columns:-80} 2>/dev/null
echo "up $(cut -d' ' -f1 /proc/uptime)" >&7
cd /share
if [ $streams = terminal ]; then
  setsid -c sh /order/command <>/dev/hvc0 >&0 2>&0 7>&- &
else
  sh /order/command </dev/port-in >/dev/port-out 2>/dev/port-err 7>&- &
fi
command=$!
{ read -r word && kill -TERM $command; } <&7 &
wait $command
status=$?
cd /
sync
echo "status $status" >&7
poweroff -f
