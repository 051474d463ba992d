# Makes the guest's image of Debian's packages: bash -c SCRIPT image CACHE IMAGE QEMU PACKAGE...
# CACHE keeps the packages, IMAGE is the folder to make, QEMU is "fetch" or "there", the packages are the guest's.
# The environment has the guest's scripts: HOPWISE_EARLY and HOPWISE_INIT.
set -euo pipefail
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
cache=$1 image=$2 qemu=$3
shift 3
say() { echo "hopwise: $*" >&2; }
fail() { say "make the guest's image: $*"; exit 1; }

for tool in apt-get apt-cache dpkg-deb flock mke2fs tar xz; do
  command -v $tool >/dev/null || fail "the command $tool is not installed"
done
mkdir -p "$cache/packages/partial"
# The lock goes with the last process that holds it, also after a kill.
exec 9>"$cache/lock"
flock -n 9 || { say "waiting for another one that makes an image"; flock 9; }
[ -e "$image/ready" ] && exit 0
work=$image.making
rm -rf "$work"
mkdir -p "$work/nothing/partial"

# ---- packages: a closure as if nothing were installed here, so that this machine's own packages do not matter
: >"$work/none"
apt() { # FOLDER ARGUMENT...
  local folder=$1
  shift
  apt-get -qq -y --no-install-recommends -o Dir::State::status="$work/none" -o Dir::Cache::archives="$folder" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Debug::NoLocking=1 -o APT::Sandbox::User= "$@"
}
list() { # FILE PACKAGE...: lines of name and bytes; apt leaves out what its folder has
  local file=$1
  shift
  apt "$work/nothing" --print-uris install "$@" 2>"$work/apt.log" | sed -n "s/^'[^']*' \([^ ]*\) \([0-9]*\) .*/\1 \2/p" >"$file" ||
    { cat "$work/apt.log" >&2; fail "apt-get does not know all packages (apt-get update may help)"; }
}
# A kernel of another suite, such as backports, comes without any further package of that suite.
suite=(${HOPWISE_HWSIM_SUITE:+-o "APT::Default-Release=$HOPWISE_HWSIM_SUITE"})
kernel=$(apt-cache "${suite[@]}" depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' | head -1)
[ -n "$kernel" ] || fail "apt knows no linux-image-amd64, expected the package lists of Debian on amd64 (apt-get update)"
list "$work/of-guest" "$@"
list "$work/of-kernel" "$kernel"
# The kernel is unpacked alone, without what its package needs on a machine that boots by it.
sed -i "/^${kernel}_/!d" "$work/of-kernel"
: >"$work/of-host"
[ "$qemu" = there ] || list "$work/of-host" qemu-system-x86
missing() {
  sort -u "$work"/of-* | while read -r name bytes; do [ -e "$cache/packages/$name" ] || echo "$bytes"; done
}
bytes=$(missing | awk '{ sum += $1 } END { printf "%d", (sum + 999999) / 1000000 }')
if [ "$bytes" -gt 0 ]; then
  say "fetching $(missing | wc -l) packages of Debian, $bytes MB, into $cache/packages:" \
    "$kernel, tools for the guest$([ "$qemu" = there ] || echo ", qemu-system-x86"), and what these need"
  [ "$qemu" = there ] || apt "$cache/packages" -d install qemu-system-x86 >"$work/apt.log" 2>&1 ||
    { cat "$work/apt.log" >&2; fail "apt-get could not fetch qemu-system-x86"; }
  apt "$cache/packages" -d install "$@" "$kernel" >"$work/apt.log" 2>&1 ||
    { cat "$work/apt.log" >&2; fail "apt-get could not fetch the guest's packages"; }
fi

# ---- trees
say "unpacking"
unpack() { # LIST TREE [PATTERN...]
  local list=$1 tree=$2 name
  shift 2
  mkdir -p "$tree"/usr/{bin,sbin,lib,lib64}
  for name in bin sbin lib lib64; do ln -sfn "usr/$name" "$tree/$name"; done
  while read -r name _; do
    dpkg-deb --fsys-tarfile "$cache/packages/$name" |
      tar -x -C "$tree" --no-same-owner --keep-directory-symlink --exclude='./usr/share/'{doc,man,locale,info,icons} "$@"
  done <"$list"
}
root=$work/root
unpack "$work/of-host" "$work/qemu"
unpack "$work/of-guest" "$root" --exclude='./usr/lib/*/perl*' --exclude=./usr/share/perl
unpack "$work/of-kernel" "$work/kernel"

# ---- the kernel: unpacked it starts some seconds sooner under emulation, through its PVH note
version=${kernel#linux-image-}
packed=$work/kernel/boot/vmlinuz-$version
for at in $(grep -abo $'\xfd7zXZ' "$packed" | cut -d: -f1); do
  tail -c +$((at + 1)) "$packed" | xz -dc >"$work/vmlinux" 2>/dev/null || true
  [ "$(head -c4 "$work/vmlinux" | tail -c3)" = ELF ] && break
  rm -f "$work/vmlinux"
done
[ -e "$work/vmlinux" ] || cp "$packed" "$work/vmlinux"
from=$work/kernel/usr/lib/modules/$version
[ -d "$from" ] || from=$work/kernel/lib/modules/$version
to=$root/usr/lib/modules/$version
mkdir -p "$to"
cp "$from"/modules.{order,builtin,builtin.modinfo} "$to/"
for part in arch crypto lib net fs/9p fs/ext4 fs/jbd2 fs/mbcache.ko fs/netfs fs/fscache fs/overlayfs drivers/virtio \
  drivers/block/virtio_blk.ko drivers/char drivers/net/wireless/mac80211_hwsim.ko drivers/net/wireless/virtual \
  drivers/net/net_failover.ko drivers/net/{tun,veth,dummy,nlmon,ifb,vrf}.ko; do
  # Newer kernels have their modules compressed.
  for part in "$part" "$part.xz"; do
    [ -e "$from/kernel/$part" ] || continue
    mkdir -p "$to/kernel/$(dirname "$part")"
    cp -r "$from/kernel/$part" "$to/kernel/$part"
  done
done
find "$to" -name '*.ko.xz' -exec xz --decompress {} +
libraries=$root/usr/lib/x86_64-linux-gnu
kmod() { # NAME ARGUMENT...: the tree's own, under one of its names
  local name=$1
  shift
  "$libraries/ld-linux-x86-64.so.2" --argv0 "$name" --library-path "$libraries" "$root/usr/bin/kmod" "$@"
}
kmod depmod -b "$root" "$version"

# ---- what packages would configure when they are installed
mkdir -p "$root"/{proc,sys,dev,tmp,run,root,share,scenario,out,order,program,etc,var/tmp}
printf '%s\n' 'root:x:0:0:root:/root:/bin/bash' 'nobody:x:65534:65534::/:/bin/false' 'tcpdump:x:100:100::/:/bin/false' \
  >"$root/etc/passwd"
printf '%s\n' 'root:x:0:' 'nogroup:x:65534:' 'tcpdump:x:100:' >"$root/etc/group"
printf '127.0.0.1 localhost hwsim\n' >"$root/etc/hosts"
for name in regulatory.db regulatory.db.p7s; do
  [ -e "$root/usr/lib/firmware/$name" ] || cp "$root/usr/lib/firmware/$name-debian" "$root/usr/lib/firmware/$name"
done
mkdir -p "$root/usr/lib/busybox"
for name in $("$root/usr/bin/busybox" --list); do ln -s ../../bin/busybox "$root/usr/lib/busybox/$name"; done
[ -e "$root/usr/bin/sh" ] || ln -s bash "$root/usr/bin/sh"
[ -e "$root/usr/bin/awk" ] || ln -s gawk "$root/usr/bin/awk"
printf '%s\n' "$HOPWISE_INIT" >"$root/init.sh"

# ---- the first file system: modules that reach the disk, in the order of their needs
first=$work/first
mkdir -p "$first/bin" "$first/modules"
cp "$root/usr/bin/busybox" "$first/bin/busybox"
printf '%s\n' "$HOPWISE_EARLY" >"$first/init"
chmod 755 "$first/init"
count=100
for module in virtio_pci virtio_blk ext4 overlay; do
  while read -r verb file _; do
    [ "$verb" = insmod ] || continue
    compgen -G "$first/modules/*-${file##*/}" >/dev/null && continue
    count=$((count + 1))
    cp "$file" "$first/modules/$count-${file##*/}"
  done < <(kmod modprobe -d "$root" -S "$version" --show-depends "$module")
done
(cd "$first" && find . | sort | "$root/usr/bin/busybox" cpio -o -H newc 2>/dev/null) >"$work/first.cpio"
megabytes=$(($(du -sm "$root" | cut -f1) * 12 / 10 + 32))
mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E root_owner=0:0 -d "$root" "$work/root.img" "${megabytes}M" >/dev/null
rm -rf "$work/kernel" "$root" "$first" "$work/nothing" "$work/none" "$work/apt.log"
touch "$work/ready"
# What killed makers left: the lock is held, so that nobody else makes an image now.
find "$cache" -mindepth 1 -maxdepth 1 -name 'image-*.making' ! -name "$(basename "$work")" -exec rm -rf {} +
# Further images are of further packages, or of another version of this script: each use of an image marks it.
find "$cache" -mindepth 2 -maxdepth 2 -path '*/image-*/ready' -mtime +30 -printf '%h\0' | xargs -0 -r rm -rf
mv "$work" "$image"
