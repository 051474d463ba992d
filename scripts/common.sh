# Sourced by the scripts: where things are, what is missing and how it gets here.
# shellcheck shell=bash

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root" || exit
build_dir="${CARGO_TARGET_DIR:-$root/target}"
tools_dir="$build_dir/tools"
# The last is rustup's place, which the shell that installed it does not know yet.
PATH="$tools_dir/bin:$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"

# Why the last need_… could not be met.
missing=""

say() { printf '%s\n' "$*"; }

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# What the user typed is not understood: exit status 2, as the command has it.
refuse() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 2
}

# has COMMAND…: all of them are there; `command -v` is content with one.
has() {
    local command
    for command in "$@"; do
        command -v "$command" > /dev/null || return 1
    done
}

# install_packages WHAT PACKAGE…: through apt when we may, otherwise says what to install.
install_packages() {
    local what="$1" as_root=()
    shift
    missing="$what is missing: install it (on Debian: apt-get install $*) and run this again"
    command -v apt-get > /dev/null || return 1
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2> /dev/null || return 1
        as_root=(sudo -n)
    fi
    say "installing $* with apt-get, for $what"
    "${as_root[@]}" apt-get update -qq || say "apt-get update failed; trying with the lists that are there"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" > /dev/null
}

# need_space GB: for the build folder. It counts what is built there already.
need_space() {
    local free used
    free="$(df -Pk "$build_dir" | awk 'NR == 2 { print $4 }')"
    used="$(du -sk "$build_dir" | cut -f 1)"
    [ $((free + used)) -ge $(($1 * 1000 * 1000)) ] \
        || die "$build_dir may grow to $1 GB, and only $((free / 1000 / 1000)) GB are free: free some space there," \
            "or name another folder as CARGO_TARGET_DIR"
}

# Flags of rustc, as CARGO_ENCODED_RUSTFLAGS has them: no path of this machine gets into the command.
# shellcheck disable=SC2034 # Scripts that source this use it
without_paths="--remap-path-prefix=${CARGO_HOME:-${HOME:-}/.cargo}=/cargo"$'\x1f'"--remap-path-prefix=$root=/hopwise"

# need_profdata: sets `target` to this machine, and `profdata` to the program that joins counts of what runs.
need_profdata() {
    target="$(rustc -vV | sed -n 's/^host: //p')"
    profdata="$(rustc --print sysroot)/lib/rustlib/$target/bin/llvm-profdata"
    [ ! -x "$profdata" ] || return 0
    missing="there is no rustup, which installs the component llvm-tools"
    has rustup || return 1
    say "installing the component llvm-tools with rustup"
    missing="rustup did not install the component llvm-tools"
    rustup component add llvm-tools
}

# commit_time: in SOURCE_DATE_EPOCH, the time that all files of packages and images bear.
commit_time() {
    SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || stat -c %Y CHANGELOG.md)}"
    export SOURCE_DATE_EPOCH
}

# tarred FOLDER: its content as a tar on standard output; equal files give equal bytes.
tarred() {
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu \
        --directory "$1" .
}

# foreign_apt FOLDER ARCHITECTURE SUITE: lists of Debian's packages in that folder. The machine's own are not touched;
# with the options in `apt`, apt-get and apt-cache read these.
foreign_apt() {
    mkdir -p "$1/lists/partial" "$1/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $3 main" \
        > "$1/sources.list"
    apt=(-qq -o "APT::Architecture=$2" -o "APT::Architectures=$2" -o APT::Sandbox::User=root
        -o "Dir::State::lists=$1/lists" -o Dir::State::status=/dev/null -o "Dir::Cache=$1"
        -o "Dir::Etc::sourcelist=$1/sources.list" -o Dir::Etc::sourceparts=/dev/null)
    apt-get "${apt[@]}" update
}

# scenarios FOLDER: copies there what `hopwise run` and `trial` may begin with.
scenarios() {
    local file
    while IFS= read -r file; do
        install -D -m 644 "$file" "$1/${file#configs/}"
    done < <(find configs -type f ! -name '*.service' ! -name '*.sysusers' ! -path 'configs/keys/*')
}

# What dpkg compares: builds before a release are older than it, and newer the later their commit is.
commit_version() {
    local of_cargo commit
    of_cargo="$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)"
    commit="$(git rev-parse --short=8 HEAD 2> /dev/null || true)"
    if [ -z "$commit" ] || git tag --points-at HEAD | grep -qxF "v$of_cargo"; then
        echo "$of_cargo"
    else
        echo "$of_cargo~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S).$commit"
    fi
}

# need_pcap: the header of libpcap, which the feature pcap takes.
need_pcap() { [ -e /usr/include/pcap/pcap.h ] || install_packages "the header of libpcap" libpcap-dev; }

# build_debug WORD…: the command or examples, as scripts/test has built them. With another choice of packages or
# features, cargo would build most libraries anew.
build_debug() {
    local features=parquet quiet=(--quiet)
    [ ! -e /usr/include/pcap/pcap.h ] || features=pcap,parquet
    # A person sees cargo's own progress.
    if [ -t 2 ]; then quiet=(); else say "building, which takes minutes the first time" >&2; fi
    cargo build --workspace --features "$features" --locked "${quiet[@]}" "$@" >&2
}

# A Rust toolchain that is new enough, and a linker.
need_rust() {
    command -v cargo > /dev/null || die "no Rust toolchain: install one (https://rustup.rs) and run this again"
    local have need
    have="$(rustc --version 2> /dev/null | cut -d ' ' -f 2)" || true
    [ -n "$have" ] || die "rustc does not run; with rustup: rustup default stable"
    need="$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)"
    printf '%s\n%s\n' "$need" "$have" | sort -V -C \
        || die "Rust $have is too old, $need or newer is needed; with rustup: rustup update stable"
    command -v cc > /dev/null || install_packages "a linker (cc)" gcc libc6-dev || die "$missing"
}

# need_component COMPONENT SUBCOMMAND PACKAGE: part of the toolchain, from rustup or from the distribution.
need_component() {
    cargo "$2" --version > /dev/null 2>&1 && return
    if command -v rustup > /dev/null; then
        say "installing the toolchain's component $1 with rustup"
        missing="rustup could not install $1"
        rustup component add "$1"
    elif [ "$(command -v cargo)" = /usr/bin/cargo ]; then
        install_packages "cargo $2" "$3" && cargo "$2" --version > /dev/null 2>&1
    else
        missing="this toolchain has no cargo $2 and there is no rustup to get it"
        return 1
    fi
}

# need_tool CRATE VERSION HOW_LONG [OPTION…]: a program of crates.io, built once into the build folder.
need_tool() {
    command -v "$1" > /dev/null && return
    say "installing $1 $2 with cargo into the build folder ($3)"
    missing="cargo could not install $1 $2"
    local began=$SECONDS crate="$1" version="$2"
    shift 3
    # Its own build folder: what is asked of our code (flags, lints) is not asked of tools.
    env -u RUSTFLAGS -u RUSTDOCFLAGS CARGO_TARGET_DIR="$tools_dir/build" \
        cargo install --locked --root "$tools_dir" --version "$version" "$@" "$crate" 2>&1 | only_progress || return 1
    rm -rf "$tools_dir/build"
    say "installed $crate in $((SECONDS - began)) s"
}

# Of cargo's output, every fiftieth crate and whatever went wrong.
only_progress() {
    awk '/^ +Compiling / { if (++crates % 50 == 0) { print "  " crates " crates compiled"; fflush() } }
         /^(error|warning)|^Caused by|^  /{ if (!/^ +[A-Z][a-z]+ /) { print; fflush() } }'
}

# need_python MINOR: a python3 of at least 3.MINOR that can make environments. Its name is then in `python`.
need_python() {
    local has="import ensurepip, sys, venv; sys.exit(sys.version_info < (3, $1))"
    find_python "$has" && return
    install_packages "venv for python3" --no-install-recommends python3-venv || return 1
    missing="a python3 of version 3.$1 or newer is missing"
    find_python "$has"
}

# find_python PROGRAM: the first python3 that runs it. That one need not be the distribution's, which apt-get installs
# for.
find_python() {
    for python in python3 /usr/bin/python3; do
        "$python" -c "$1" 2> /dev/null && return
    done
    return 1
}

pip_install() { "$environment/bin/pip" install --quiet --disable-pip-version-check --no-input "$@"; }

# need_environment NAME PROJECT PACKAGE…: packages of PyPI, in an environment in the build folder. It is made anew when
# the project asks for something else, or for another Python. keep_environment says that it is whole.
need_environment() {
    environment="$build_dir/$1"
    made_of="$("$python" --version) $(sha256sum < "$2/pyproject.toml")"
    shift 2
    [ "$(cat "$environment/made-of" 2> /dev/null)" != "$made_of" ] || return 0
    rm -rf "$environment"
    "$python" -m venv "$environment" || die "$python could not make an environment in $environment"
    missing="packages of Python cannot be fetched from PyPI"
    pip_install --retries 2 "$@"
}

keep_environment() { printf '%s\n' "$made_of" > "$environment/made-of"; }

# has_target KIND NAME: whether there is such an example or benchmark.
has_target() { [ -f "$1/$2.rs" ] || [ -f "$1/$2/main.rs" ]; }
