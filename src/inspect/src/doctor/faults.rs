//! All faults that `hopwise doctor` knows: the harm of each, how it is found, and its remedy.
//!
//! Findings are made of these alone, and the page `docs/doctor.md` is made of them. A test with the fault stands behind
//! each.

use super::finding::{CheckFault, CheckVerdict};

pub(super) mod page;

macro_rules! faults {
    ($($constant:ident $name:literal of $check:literal $verdict:ident
        spoils $spoils:literal found $found:literal remedy $remedy:literal)+) => {
        $(pub(super) static $constant: CheckFault = CheckFault {
            name: $name,
            check: $check,
            verdict: CheckVerdict::$verdict,
            spoils: $spoils,
            found: $found,
            remedy: $remedy,
        };)+

        /// All of them, in the order of the page.
        pub(super) static ALL: &[&CheckFault] = &[$(&$constant),+];
    };
}

faults! {
    // The machine.
    TUN_MISSING "tun-missing" of "tun" Failure
    spoils "a node has no device for its packets"
    found "`/dev/net/tun` is not there"
    remedy "modprobe tun; in a container, pass the device in with --device=/dev/net/tun"

    TUN_REFUSED "tun-refused" of "tun" Failure
    spoils "a node has no device for its packets"
    found "`/dev/net/tun` cannot be opened"
    remedy "run as root, or chmod 0666 /dev/net/tun"

    NO_NET_ADMIN "no-net-admin" of "net-admin" Failure
    spoils "a node can set no devices, addresses and routes"
    found "the capabilities of this process"
    remedy "run as root, or: setcap cap_net_admin+ep $(command -v hopwise)"

    NO_NET_RAW "no-net-raw" of "net-raw" Failure
    spoils "raw links and live captures cannot be opened"
    found "the capabilities of this process; looked at only where a link takes it"
    remedy "run as root, or: setcap cap_net_raw+ep $(command -v hopwise)"

    NO_BPF "no-bpf" of "bpf" Failure
    spoils "a link cannot have several queues"
    found "the capabilities of this process, and `kernel.unprivileged_bpf_disabled`"
    remedy "run as root, or: setcap cap_bpf+ep $(command -v hopwise)"

    RP_FILTER_STRICT "rp-filter-strict" of "rp-filter" Warning
    spoils "the kernel drops packets that come in by another interface than replies would leave by"
    found "`rp_filter` of all interfaces, of new ones, and of each interface of the mesh"
    remedy "sysctl -w net.ipv4.conf.{OF}.rp_filter=2"

    FORWARDING_OFF "forwarding-off" of "forwarding" Warning
    spoils "a node on a TUN reaches this machine alone, and the kernel sends nothing on for a mesh"
    found "the switch of each interface of the mesh, or `net.ipv4.ip_forward`; looked at where a node has a TUN, where \
        several interfaces are named, and in a fleet where routes of other hosts lead through this one"
    remedy "sysctl -w net.ipv4.ip_forward=1"

    FORWARDING6_OFF "forwarding6-off" of "forwarding6" Warning
    spoils "packets over IPv6 end at this machine, where other hosts route through it"
    found "`net.ipv6.conf.all.forwarding`; looked at under the conditions of `forwarding-off`"
    remedy "sysctl -w net.ipv6.conf.all.forwarding=1, and net.ipv6.conf.IF.accept_ra=2 for an interface IF that \
        learns its address from a router"

    HOP_LIMIT_OTHER "hop-limit-other" of "hop-limit" Warning
    spoils "agents that count hops by hop limits count wrongly: they take 64 for the first one"
    found "the hop limits with which this machine begins: `ip_default_ttl`, and `hop_limit` of IPv6"
    remedy "sysctl -w net/{KEY}=64, or peers_hop_limit: {LIMIT} in the file of each peer"

    HOP_LIMIT_RULE "hop-limit-rule" of "hop-limit" Warning
    spoils "packets have another hop limit on the way, and agents count hops wrongly"
    found "rules that `nft list ruleset` shows, also rules of iptables-nft"
    remedy "remove that rule of {TABLE}, or give the number of hops: hops: N"

    CLOCK_SLOW "clock-slow" of "clock" Warning
    spoils "each reading of the clock is a system call and a device access, and a node reads it for every packet"
    found "the kernel's clock source"
    remedy "echo {CLOCK} > /sys/devices/system/clocksource/clocksource0/current_clocksource"

    CLOCK_ALONE "clock-unsynchronised" of "clock-sync" Warning
    spoils "times in captures and reports of several hosts cannot be compared"
    found "the kernel's state of its clock (adjtimex)"
    remedy "timedatectl set-ntp true, or start chrony; behind a mesh, give all hosts one server"

    CLOCK_SKEW "clock-skew" of "clock-sync" Warning
    spoils "times in captures and reports of several hosts cannot be compared"
    found "with `--fleet`: each host tells its time between a question and its answer"
    remedy "one server of NTP for all hosts, such as chrony on one of them; then wait until `chronyc tracking` is \
        steady"

    VERSIONS_DIFFER "versions-differ" of "version" Warning
    spoils "hosts of a trial may do different things"
    found "with `--fleet`: the version of each host"
    remedy "install one package on all hosts (docs/packages.md)"

    GOVERNOR "governor-slow" of "governor" Warning
    spoils "a CPU that sleeps answers late: round trips and rates change with its clock"
    found "`scaling_governor` of each CPU in `/sys`"
    remedy "echo performance | tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"

    UNDER_VOLTAGE "under-voltage" of "power" Warning
    spoils "a Raspberry Pi slows down, and its USB radios fail now and then"
    found "`vcgencmd get_throttled`, the firmware's file in `/sys`, or the sensor `rpi_volt`"
    remedy "a supply of 5 V that holds 3 A (5 A for a Pi 5) with a short cable, or radios at a hub of their own; \
        then restart, which clears the mark"

    THROTTLED "throttled" of "power" Warning
    spoils "the CPU is slower than it was, for heat or for want of power"
    found "`vcgencmd get_throttled`, or the firmware's file in `/sys`"
    remedy "a heat sink, a fan or shade; then restart, which clears the mark"

    CAPTURES_SLOW "captures-slow" of "captures" Warning
    spoils "captures have gaps: the disk takes less than the links carry"
    found "with `--captures FOLDER`: a file is written there, synchronised and removed, and timed"
    remedy "capture to another disk (USB 3, or a tmpfs), or a faster card (A2); or a shorter snaplen"

    CAPTURES_FULL "captures-full" of "captures" Warning
    spoils "captures end early: the disk is full before the trial is over"
    found "with `--captures FOLDER`: the free space there, and the rate of `--capture-rate`"
    remedy "make room in {FOLDER}, or capture to another disk"

    CAPTURES_REFUSED "captures-refused" of "captures" Failure
    spoils "there are no captures"
    found "with `--captures FOLDER`: no file can be written there"
    remedy "name a folder that this user may write"

    // Interfaces of the mesh.
    INTERFACE_MISSING "interface-missing" of "interface" Failure
    spoils "a link or a radio cannot be opened"
    found "`/sys/class/net`, and the addresses of interfaces"
    remedy "name an interface of `ip link`, or an address of `ip address`; `hopwise mesh up` gives a mesh's addresses"

    INTERFACE_DOWN "interface-down" of "interface" Failure
    spoils "nothing is sent and nothing is heard"
    found "`operstate` of the interface"
    remedy "ip link set {IF} up, or name it in the file of `hopwise mesh up`"

    RADIO_DOWN "radio-down" of "interface" Warning
    spoils "no mesh is on this machine's radio, if one is wanted there"
    found "`operstate` of all radios, where neither --interface nor --config names one and none is up. Other \
        failures of these radios are warnings then, too"
    remedy "name it in the file of `hopwise mesh up`, which brings it up; an unused radio may stay as it is"

    OFFLOADS_JOIN "offloads-join" of "offloads" Warning
    spoils "a node's link is handed segments that the kernel has joined, which never were packets of the air"
    found "GRO and LRO of the interface of a `raw` or `pcap` link, by ethtool's netlink; elsewhere it is only noted \
        that captures show joined segments"
    remedy "ethtool -K {IF} {OFFLOADS}"

    CHECKSUMS_LATE "checksums-late" of "checksums" Warning
    spoils "a link that captures drops this machine's own packets as `tcp-checksum`"
    found "the offloads that the kernel lists for the interface (ethtool's netlink)"
    remedy "checksums: trust for {IF} in the configuration, or: ethtool -K {IF} tx off"

    DUPLICATE "duplicate-address" of "address" Failure
    spoils "packets for one host reach two, by turns"
    found "by ARP probes, by the kernel's search for duplicates (IPv6), and with `--fleet` by comparing all hosts"
    remedy "give one of the two another address, such as by `addresses` in the file of `hopwise mesh up`"

    MTU_DIFFERS "mtu-differs" of "mtu" Warning
    spoils "packets of one host are too long for another: they are cut, or lost without a word"
    found "the MTU of each interface of the mesh, here and with `--fleet` on all hosts"
    remedy "ip link set {IF} mtu {MTU}, or `mtu` in the file of `hopwise mesh up`"

    MTU_OF_PATH "mtu-of-path" of "mtu" Warning
    spoils "a node's packets are longer than an interface behind the kernel carries: paths are found by trial"
    found "the MTU of every interface that is up, compared with the MTU of the node's link"
    remedy "mtu: {MTU} for {IF} in the configuration"

    // Radios.
    RADIO_BLOCKED "radio-blocked" of "rfkill" Failure
    spoils "the radio is switched off and cannot be taken up"
    found "the switch of the radio (rfkill) in `/sys`"
    remedy "rfkill unblock wifi, or `hopwise mesh up`, which does so; Raspberry Pi OS blocks Wi-Fi until \
        `raspi-config` gives the country. A hard block is a button's or the firmware's"

    NO_MESH_MODE "no-mesh-mode" of "mode" Failure
    spoils "the radio can be part of no mesh"
    found "the types of interfaces that the driver offers (nl80211): neither IBSS nor mesh point"
    remedy "another radio: docs/drivers.md has a table of drivers and modes"

    NO_AD_HOC "no-ad-hoc" of "mode" Warning
    spoils "the radio cannot join an ad hoc network (IBSS)"
    found "the types of interfaces that the driver offers (nl80211)"
    remedy "mode: mesh on all hosts, or another radio: docs/drivers.md has a table of drivers and modes"

    POWER_SAVE "power-save-on" of "power-save" Warning
    spoils "the radio sleeps between frames, and frames for it wait or are lost"
    found "the driver's setting (nl80211)"
    remedy "iw dev {IF} set power_save off, or power_save: false in the file of `hopwise mesh up`"

    COUNTRY_UNSET "country-unset" of "country" Warning
    spoils "the radio sends with little power, on few channels, and may begin no network on most of 5 GHz"
    found "the regulatory domain (nl80211) is `00`, the world's"
    remedy "iw reg set DE with your country's code, or country: DE in the file of `hopwise mesh up`"

    COVERAGE_FAR "coverage-far" of "coverage-class" Warning
    spoils "each slot and each wait for an ACK is 60 µs longer or more: airtime is lost on links below 9 km"
    found "the coverage class of the radio (nl80211): 20 or more"
    remedy "iw phy $(cat /sys/class/net/{IF}/phy80211/name) set distance METRES, or \
        host.coverage_class: 0 in a scenario"

    COVERAGE_SHORT "coverage-short" of "coverage-class" Warning
    spoils "ACKs of far stations come too late: their frames are sent again, and rates fall"
    found "with `--fleet`: `place_m` of hosts in the inventory, and less than a class for each 450 m to a station that \
        is heard"
    remedy "iw phy $(cat /sys/class/net/{IF}/phy80211/name) set distance {METRES}, or \
        host.coverage_class: {CLASS} in a scenario"

    MULTICAST_SLOW "multicast-slow" of "slowest-basic-rate" Warning
    spoils "routing messages and ARP take up to eleven times the airtime that they take at 11 Mbit/s"
    found "the slowest basic rate in the own beacon is 1 Mbit/s. The kernel tells no `multicast_rate` that was set"
    remedy "basic_rates: [11mbit] in the file of `hopwise mesh up` of all hosts; multicast_rate: 11mbit mends it, too"

    ALONE_UNHEARD "alone-unheard" of "mode" Warning
    spoils "stations that start later may not find the network"
    found "the driver is `mt76x2u`, its network is ad hoc (IBSS), and it hears no station"
    remedy "start a station with another driver first, or take mode: mesh in the file of `hopwise mesh up` of all hosts"

    SIGNAL_HOPELESS "signal-hopeless" of "signal" Warning
    spoils "frames to the station go at the lowest rates or are lost, and take airtime from all others"
    found "the mean signal of each station (nl80211): below -85 dBm"
    remedy "a relay or another antenna; in 802.11s: iw dev {IF} set mesh_param mesh_rssi_threshold=-80"

    RATE_STUCK "rate-stuck" of "signal" Warning
    spoils "a frame takes many times the airtime that the link allows"
    found "during `--look` 100 packets or more to a station, none of them above 6.5 Mbit/s although its frames come \
           with -60 dBm or better, or above a quarter of the 24 Mbit/s or more at which its frames come"
    remedy "iw dev {IF} set bitrates, without any rate; or another driver (docs/drivers.md)"

    RTS_HIDDEN "rts-off-hidden" of "rts" Warning
    spoils "frames of stations that do not hear each other collide at the station between them"
    found "with `--fleet`: RTS is off, and a neighbour hears a station that this host does not hear"
    remedy "iw phy $(cat /sys/class/net/{IF}/phy80211/name) set rts 500, or \
        host.rts_threshold: 500 in a scenario; `hopwise trial --recipe rts` tells whether it helps"

    LARGE_VANISH "large-packets-vanish" of "sizes" Warning
    spoils "connections stand and carry nothing: handshakes pass, full segments do not"
    found "pings of neighbours in `/proc/net/arp`: three of 64 bytes are answered, and none of three of the MTU"
    remedy "ip link set {IF} mtu {MTU}, or mtu: {MTU} in the file of `hopwise mesh up`; below batman-adv an MTU of 1532"

    RATE_ROAMS "rate-roams" of "rate" Warning
    spoils "arms of a trial meet other rates: the rate control changes them while it runs"
    found "the rates of frames to each station, as the driver reports them during `--look`; traffic has to flow"
    remedy "rates: [11mbit] in the file of `hopwise mesh up`, or: iw dev {IF} set bitrates legacy-2.4 11"

    OTHER_NETWORKS "other-networks" of "channel" Warning
    spoils "stations of foreign networks take airtime on the channel, by their own times of day"
    found "beacons on the channel that the radio has heard lately (nl80211)"
    remedy "another channel for all hosts (`channel`); 5 GHz is often free"

    CELL_SPLIT "cell-split" of "channel" Failure
    spoils "two parts of the mesh have one name and two BSSIDs, and do not hear each other"
    found "beacons with the name of our ad hoc network and another BSSID"
    remedy "give the BSSID in the file of `hopwise mesh up`, one BSSID for all hosts: bssid: \"02:ca:fe:00:00:01\""

    CHANNEL_BUSY "channel-busy" of "channel" Warning
    spoils "there is less airtime than the trial believes"
    found "the share of busy time that the driver counts during `--look`, without what this radio sends"
    remedy "another channel for all hosts; run `hopwise doctor` while nothing of ours sends"

    ACKS_MISSING "acks-missing" of "acks" Failure
    spoils "a driver or a queue drops or merges ACKs: trials compare its ACKs, and not the agents'"
    found "with `--acks-to`, or `--fleet` and `--acks`: ACKs that one host sends and another hears, beside the \
        loss of data"
    remedy "another driver, or its switch in /sys/module (such as tcp_ack_suppression_disable); no qdisc with \
        ack-filter (tc qdisc show)"

    DRIVER_ODD "driver-odd" of "stations" Warning
    spoils "facts about links are wrong; facts that break a rule are left out"
    found "three reports of the driver about its stations, against rules of sanity"
    remedy "another driver or firmware; `route` and `proxy` go on by hellos and by silence"

    // Links of a node's file.
    DEVICE_TAKEN "device-taken" of "device" Warning
    spoils "a node cannot make its TUN, if a running node has it"
    found "a TUN of that name in `/sys/class/net`"
    remedy "end the node that has it, or: ip link del {IF}"

    DEVICE_OVERFLOWED "device-overflowed" of "device" Warning
    spoils "packets are lost before the node reads them, most often in a flood of SYNs"
    found "`tx_dropped` of the TUN device"
    remedy "in a flood of SYNs: the rule of nftables in docs/node.md, under Bounds, with `oifname {IF} tcp flags syn`"

    DEVICE_NO_TUN "device-no-tun" of "device" Failure
    spoils "a node cannot make its TUN"
    found "a device of that name in `/sys/class/net` that is no TUN"
    remedy "name another device in the configuration"

    RECORDING_UNREAD "recording-unreadable" of "capture" Failure
    spoils "a link that replays a capture has nothing to replay"
    found "the file of the link cannot be opened"
    remedy "name a capture that is there"

    NO_NFT "nft-missing" of "kernel-rst" Failure
    spoils "the kernel resets connections of a raw link, since it does not know them"
    found "nft is not installed"
    remedy "apt-get install nftables"

    NFT_MUTE "nft-mute" of "kernel-rst" Failure
    spoils "the kernel may reset connections of a raw link"
    found "nft lists no tables"
    remedy "`nft list tables` has to answer"

    RST_UNGUARDED "kernel-answers" of "kernel-rst" Failure
    spoils "the kernel answers segments of a raw link with RST, which ends its connections"
    found "a node has the interface, and its nft table is gone"
    remedy "start that node again; no other program may remove {TABLE}"

    LINK_IN_USE "link-in-use" of "kernel-rst" Warning
    spoils "another node on the interface is refused when it starts"
    found "a node holds the interface's name as a socket"
    remedy "end the node that has it first"

    GUARD_LEFT "guard-left" of "kernel-rst" Warning
    spoils "the kernel stays silent for addresses of a killed node; the next start replaces the table"
    found "an nft table of a node, and no node"
    remedy "start the node, or: nft delete table inet {TABLE}"

    // Things that killed daemons left.
    SWITCHES_LEFT "switches-left" of "switches" Warning
    spoils "switches of the kernel are not as the administrator set them"
    found "a file of old values that no running daemon holds"
    remedy "hopwise doctor --repair, or start that daemon again"

    SWITCHES_STAY "switches-stay" of "switches" Failure
    spoils "switches of the kernel are not as the administrator set them"
    found "with `--repair`: the kernel refuses the old values"
    remedy "run it as root, in the network namespace of that daemon"

    LENT_LEFT "lent-left" of "lent" Warning
    spoils "a device that was there before has addresses and routes of a killed daemon"
    found "a file of old values that no running daemon holds"
    remedy "hopwise doctor --repair, or start that daemon again, and end it"

    LENT_STAYS "lent-stays" of "lent" Failure
    spoils "a device that was there before has addresses and routes of a killed daemon"
    found "with `--repair`: the kernel refuses the old values"
    remedy "run it as root, in the network namespace of that daemon"

    MESH_UP_LEFT "mesh-up-left" of "mesh-up" Warning
    spoils "interfaces are half-way up"
    found "a file of a killed `hopwise mesh up`, or of a killed trial with settings of hosts"
    remedy "hopwise doctor --repair; for `hopwise mesh up` also hopwise mesh down"

    MESH_UP_STAYS "mesh-up-stays" of "mesh-up" Failure
    spoils "interfaces are half-way up"
    found "with `--repair`: not all is undone"
    remedy "run it as root, and end the programs that use the interfaces"

    RULES_LEFT "rules-left" of "rules" Warning
    spoils "packets are led to devices that are gone"
    found "rules of routing (`ip rule`) with our mark, and no proxy"
    remedy "hopwise doctor --repair, or start a proxy there again"

    RULES_STAY "rules-stay" of "rules" Failure
    spoils "packets are led to devices that are gone"
    found "with `--repair`: the kernel refuses to remove them"
    remedy "run it as root, in the network namespace of that proxy"

    PROXY_PASSED "proxy-passed-by" of "rules" Warning
    spoils "packets go on without the proxy; its rules stay"
    found "a running `hopwise proxy` whose device is down, or was: it has no routes"
    remedy "ip link set {IF} up, and start that proxy again"

    ROUTES_LEFT "routes-left" of "routes" Warning
    spoils "packets for hosts go by old ways"
    found "routes of ours (`ip route show proto 87`), and no routing daemon"
    remedy "hopwise doctor --repair, or start that daemon again"

    ROUTES_STAY "routes-stay" of "routes" Failure
    spoils "packets for hosts go by old ways"
    found "with `--repair`: the kernel refuses to remove them"
    remedy "run it as root, in the network namespace of that daemon"

    QUEUES_LEFT "queues-left" of "queues" Warning
    spoils "rules lead into queues without a reader; packets go on there"
    found "rules of nft or iptables into a netfilter queue, and no proxy"
    remedy "hopwise doctor --repair, or start a proxy there again"

    QUEUES_STAY "queues-stay" of "queues" Failure
    spoils "rules lead into queues without a reader"
    found "with `--repair`: not all of them are removed"
    remedy "run it as root, in the network namespace of that proxy"

    TRANSPARENT_LEFT "transparent-left" of "transparent" Warning
    spoils "rules and routes stand for marks that nobody sets"
    found "rules of routing (`ip rule`) and chains of iptables (`HOPWISE-T`) of a transparent node, and no node"
    remedy "hopwise doctor --repair, or start the node there again"

    TRANSPARENT_STAYS "transparent-stays" of "transparent" Failure
    spoils "rules and routes stand for marks that nobody sets"
    found "with `--repair`: not all of them are removed"
    remedy "run it as root, in the network namespace of that node"

    FIREWALL_NO_NFT "firewall-no-nft" of "firewall" Warning
    spoils "with `hopwise route`, what comes in from the mesh is forwarded to all devices"
    found "nft is not installed"
    remedy "install the package nftables, and start that daemon again"

    FIREWALL_BYPASSED "firewall-bypassed" of "firewall" Warning
    spoils "a rule of the firewall does not match TCP that passes a proxy"
    found "rules that name both interfaces of a running proxy, and not its device"
    remedy "name {FIXED} wherever that rule names {RADIO} (docs/base-station.md)"
}
