# Sourced by the scripts that check packages: fresh roots of Debian's, and what is in them.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # The scripts that source this use its variables, and source common.sh before it.

roots="$(mkdir -p "$build_dir" && realpath "$build_dir")/roots"
suite=bookworm
# What a machine has before the package comes; perl, which serves files, is in each root.
includes=libpcap0.8,iproute2,nftables,systemd,dbus
# What the guests of scripts/check-pi have; `scripts/wheels --check` takes their root, too, for its Python.
guest_includes=systemd-sysv,udev,dbus,kmod,iproute2,iw,nftables,python3,curl,procps,busybox-static,iputils-ping
guest_includes+=,libpcap0.8

skip() {
    say "skipped: $*"
    exit 77
}

need_root_maker() {
    has mmdebstrap arch-test && return
    install_packages "what makes roots" --no-install-recommends mmdebstrap arch-test \
        && has mmdebstrap arch-test
}

# need_root ARCHITECTURE: a tar of a fresh root, whose path is then in `fresh`.
need_root() {
    fresh="$roots/$suite-$1-$(cksum <<< "$includes" | cut -d ' ' -f 1).tar"
    [ ! -e "$fresh" ] || return 0
    mkdir -p "$roots"
    say "making a root of Debian's for $1 (a minute; ten where qemu runs it)"
    missing="mmdebstrap could not make a root for $1"
    mmdebstrap --quiet --mode=root --variant=minbase --architectures="$1" --include="$includes" --format=tar \
        "$suite" "$fresh.new" "deb http://deb.debian.org/debian $suite main" || return 1
    mv "$fresh.new" "$fresh"
}

interpreters=()
mounted=""

# interpret ARCHITECTURE: lets the kernel run its programs by qemu until the end of this script.
interpret() {
    local name format=/usr/lib/binfmt.d kernel=/proc/sys/fs/binfmt_misc
    case "$1" in
        "$machine") return ;;
        arm64) name=qemu-aarch64 ;;
        armhf) name=qemu-arm ;;
        amd64) name=qemu-x86_64 ;;
    esac
    [ -e "$format/$name.conf" ] || install_packages "what runs programs of $1" qemu-user-static || return 1
    if [ ! -e "$kernel/register" ]; then
        missing="the kernel has no binfmt_misc, which runs programs of $1"
        mount -t binfmt_misc none "$kernel" 2> /dev/null || return 1
        mounted="$kernel"
    fi
    [ -e "$kernel/$name" ] && return
    tail -n 1 "$format/$name.conf" > "$kernel/register"
    interpreters+=("$kernel/$name")
}

stop_interpreting() {
    local interpreter
    for interpreter in "${interpreters[@]}"; do
        echo -1 > "$interpreter"
    done
    [ -z "$mounted" ] || umount "$mounted"
}

# files_of ROOT: without what apt and dpkg write by themselves.
files_of() {
    find "$1" \( -path "$1/dev" -o -path "$1/var/log" -o -path "$1/var/lib/dpkg" -o -path "$1/etc/*-" \
        -o -path "$1/etc/.pwd.lock" -o -path "$1/var/cache" \
        -o -path "$1/var/lib/apt" \) -prune -o -print | sort
}
