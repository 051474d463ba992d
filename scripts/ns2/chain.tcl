# Bulk flows over a chain of nodes 200 m apart, or over a square of such chains: NewReno with an ACK for each segment
# over AODV, if no option says otherwise. `ns chain.tcl HOPS MBPS SECONDS SEED [OPTION VALUE]...` prints the segments
# that were acknowledged.

lassign $argv hops mbps seconds seed
array set given {routes aodv every 1 full 0 window 2000 flows 1 from 0 agents 0 grid 0}
if {[catch {array set given [lrange $argv 4 end]}] || $seed eq "" || [array size given] != 8} {
    puts stderr "expected: ns chain.tcl HOPS MBPS SECONDS SEED \[OPTION VALUE\]...
such as: ns chain.tcl 8 2 300 1 every 2
routes   aodv, or fixed
every    segments to an ACK
full     1: FullTcp at both ends, which takes any \"every\"; 0: one-way agents, whose sinks take 1 or 2
window   the sender's, in segments
flows    all from the first node to the last; over a grid along its second row and column, its fourth, and so on
from     second from which on segments are counted
agents   1: print what agents send and receive, and let them end ten seconds before the end
grid     1: a square, HOPS wide and HOPS high, over AODV"
    exit 2
}
if {$given(grid) && ($given(routes) ne "aodv" || $given(flows) > 2 * ($hops / 2))} {
    puts stderr "over a grid: expected routes aodv, and at most [expr {2 * ($hops / 2)}] flows"
    exit 2
}
# The headers of other protocols would make each packet larger, and ns-2 slower.
remove-all-packet-headers
add-packet-header IP TCP LL Mac ARP AODV Flags Encap
global defaultRNG
$defaultRNG seed $seed

Mac/802_11 set dataRate_ [expr {$mbps * 1e6}]
Mac/802_11 set basicRate_ 1e6
Mac/802_11 set RTSThreshold_ 0
Phy/WirelessPhy set Pt_ 0.28183815
Phy/WirelessPhy set freq_ 914e6
Phy/WirelessPhy set RXThresh_ 3.652e-10
Phy/WirelessPhy set CSThresh_ 1.559e-11
Phy/WirelessPhy set CPThresh_ 10.0
Agent/TCP set window_ $given(window)
Agent/TCP set packetSize_ 1000
Agent/TCP set minrto_ 0.2
Agent/Encapsulator set overhead_ 0
Agent/TCP/FullTcp set segsize_ 1000
Agent/TCP/FullTcp set segsperack_ $given(every)

set ns [new Simulator]
set side [expr {$hops + 1}]
set nodes [expr {$given(grid) ? $side * $side : $side}]
# ns-2 asks for a trace.
$ns trace-all [expr {$given(agents) ? "stdout" : [open /dev/null w]}]
set place [new Topography]
$place load_flatgrid [expr {200 * $hops + 1}] [expr {$given(grid) ? 200 * $hops + 1 : 1}]
create-god $nodes
$ns node-config -adhocRouting [expr {$given(routes) eq "fixed" ? "DumbAgent" : "AODV"}] -llType LL \
    -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $place \
    -agentTrace [expr {$given(agents) ? "ON" : "OFF"}] -routerTrace OFF -macTrace OFF -movementTrace OFF
for {set n 0} {$n < $nodes} {incr n} {
    set node($n) [$ns node]
    $node($n) set X_ [expr {200.0 * ($n % $side)}]
    $node($n) set Y_ [expr {200.0 * ($n / $side) + 0.5}]
    $node($n) set Z_ 0.0
    $node($n) random-motion 0
}

# ns-2 has no routing agent for fixed routes. Here a node hands a packet to its neighbour within one of its own, without
# any bytes more, and the neighbour unpacks it.
if {$given(routes) eq "fixed"} {
    for {set n 0} {$n < $nodes} {incr n} {
        set unpacker($n) [new Agent/Decapsulator]
        $ns attach-agent $node($n) $unpacker($n)
    }
    for {set n 0} {$n < $nodes} {incr n} {
        foreach {next far step} [list [expr {$n + 1}] $hops 1 [expr {$n - 1}] 0 -1] {
            # A neighbour itself is reached without.
            if {($far - $next) * $step <= 0} continue
            set packer [new Agent/Encapsulator]
            $ns attach-agent $node($n) $packer
            $ns connect $packer $unpacker($next)
            for {set to [expr {$next + $step}]} {$to != $far + $step} {incr to $step} {
                $node($n) add-route [$node($to) node-addr] $packer
            }
        }
    }
}

set senders {}
for {set flow 0} {$flow < $given(flows)} {incr flow} {
    if {$given(full)} {
        set sender [new Agent/TCP/FullTcp/Newreno]
        set receiver [new Agent/TCP/FullTcp/Newreno]
    } else {
        set sender [new Agent/TCP/Newreno]
        set receiver [new Agent/TCPSink[expr {$given(every) > 1 ? "/DelAck" : ""}]]
    }
    lassign [list 0 $hops] first last
    if {$given(grid)} {
        # Even flows go along a row, odd ones along a column.
        set line [expr {1 + 2 * ($flow / 2)}]
        set first [expr {$flow % 2 ? $line : $line * $side}]
        set last [expr {$first + $hops * ($flow % 2 ? $side : 1)}]
    }
    $ns attach-agent $node($first) $sender
    $ns attach-agent $node($last) $receiver
    $ns connect $sender $receiver
    if {$given(full)} { $receiver listen }
    set source [new Application/FTP]
    $source attach-agent $sender
    $ns at 0.0 "$source start"
    if {$given(agents)} { $ns at [expr {$seconds - 10}] "$source stop" }
    lappend senders $sender
}
# FullTcp counts bytes.
proc acknowledged {} {
    global senders given
    set sum 0
    foreach sender $senders { incr sum [$sender set ack_] }
    return [expr {$given(full) ? $sum / 1000 : $sum}]
}
set before 0
$ns at $given(from) { set before [acknowledged] }
$ns at $seconds {
    puts [expr {[acknowledged] - $before}]
    exit 0
}
$ns run
