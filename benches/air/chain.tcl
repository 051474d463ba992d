# One bulk flow over a chain of nodes 200 m apart, as benches/air/chains.rs has it: AODV, NewReno with a window of 2000
# segments, an ACK for each segment. `ns chain.tcl HOPS MBPS SECONDS SEED` prints the segments that arrived.

lassign $argv hops mbps seconds seed
if {$seed eq ""} {
    puts stderr "expected: ns chain.tcl HOPS MBPS SECONDS SEED, such as: ns chain.tcl 8 2 300 1"
    exit 2
}
# The headers of other protocols would make each packet larger, and ns-2 slower.
remove-all-packet-headers
add-packet-header IP TCP LL Mac ARP AODV Flags
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
Agent/TCP set window_ 2000
Agent/TCP set packetSize_ 1000
Agent/TCP set minrto_ 0.2

set ns [new Simulator]
set nodes [expr {$hops + 1}]
# ns-2 asks for a trace.
$ns trace-all [open /dev/null w]
set place [new Topography]
$place load_flatgrid [expr {200 * $hops + 1}] 1
create-god $nodes
$ns node-config -adhocRouting AODV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $place \
    -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF
for {set n 0} {$n < $nodes} {incr n} {
    set node($n) [$ns node]
    $node($n) set X_ [expr {200.0 * $n}]
    $node($n) set Y_ 0.5
    $node($n) set Z_ 0.0
    $node($n) random-motion 0
}
set sender [new Agent/TCP/Newreno]
set sink [new Agent/TCPSink]
$ns attach-agent $node(0) $sender
$ns attach-agent $node($hops) $sink
$ns connect $sender $sink
set source [new Application/FTP]
$source attach-agent $sender
$ns at 0.0 "$source start"
$ns at $seconds {
    puts [$sender set ack_]
    exit 0
}
$ns run
