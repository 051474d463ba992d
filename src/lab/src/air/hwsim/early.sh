#!/bin/busybox sh
# The guest's first process: reaches the read-only disk, lays memory over it, and goes on with init.sh there.
b=/bin/busybox
$b mkdir -p /dev /disk /memory /new
$b mount -t devtmpfs dev /dev
for module in /modules/*; do $b insmod $module; done
tries=0
until [ -b /dev/vda ] || [ $tries -ge 50 ]; do $b sleep 0.1; tries=$((tries + 1)); done
$b mount -t ext4 -o ro /dev/vda /disk || $b poweroff -f
$b mount -t tmpfs -o size=75% memory /memory
$b mkdir /memory/files /memory/work
$b mount -t overlay -o lowerdir=/disk,upperdir=/memory/files,workdir=/memory/work root /new
$b mount --move /dev /new/dev
exec $b switch_root /new /usr/bin/busybox sh /init.sh
