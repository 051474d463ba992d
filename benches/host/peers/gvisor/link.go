package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/stack/gro"
)

const (
	linkMTU = 1500
	// The length field of an IPv4 header holds no more.
	longestPacket = 65535
	// After so many packets, those that wait to be joined go up as they are.
	packetsPerFlush = 64
	// A bucket of the joiner holds so many packets.
	joinerDepth = 8
)

// Names from linux/virtio_net.h.
const (
	vnetBytes    = 10
	vnetNeedsSum = 1
	vnetGSONone  = 0
	vnetGSOTCP4  = 1
)

// inputSizes are those of the views that take one packet, and together hold the longest one.
// gVisor clears each new view, so a small packet should cost no more than a small view.
func inputSizes(offload bool) []int {
	if offload {
		return []int{2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 4 << 10}
	}
	return []int{2 << 10}
}

// link is a TUN device as a link of gVisor's. With offload, a virtio_net_hdr precedes each packet, and the kernel
// divides and joins segments. Without it, gVisor does so in software, which is much faster than not to do it.
type link struct {
	device     *os.File
	raw        syscall.RawConn
	fd         int
	offload    bool
	dispatcher stack.NetworkDispatcher
	joiner     gro.GRO
}

func openLink(name string, offload bool) (*link, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	flags := uint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if offload {
		flags |= unix.IFF_VNET_HDR
	}
	request.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, fmt.Errorf("TUNSETIFF: %w", err)
	}
	if offload {
		const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6
		if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads); err != nil {
			return nil, fmt.Errorf("TUNSETOFFLOAD: %w", err)
		}
	}
	// The runtime's poller takes the descriptor only now, as it is no device before.
	device := os.NewFile(uintptr(fd), name)
	raw, err := device.SyscallConn()
	return &link{device: device, raw: raw, fd: fd, offload: offload}, err
}

// The methods from here to Capabilities mean little for such a device, but gVisor asks for them.

func (l *link) MTU() uint32                             { return linkMTU }
func (l *link) SetMTU(uint32)                           {}
func (l *link) MaxHeaderLength() uint16                 { return 0 }
func (l *link) LinkAddress() tcpip.LinkAddress          { return "" }
func (l *link) SetLinkAddress(tcpip.LinkAddress)        {}
func (l *link) IsAttached() bool                        { return l.dispatcher != nil }
func (l *link) Wait()                                   {}
func (l *link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }
func (l *link) AddHeader(*stack.PacketBuffer)           {}
func (l *link) ParseHeader(*stack.PacketBuffer) bool    { return true }
func (l *link) Close()                                  {}
func (l *link) SetOnCloseAction(func())                 {}

// Capabilities makes the stack mark each packet that arrives as RXChecksumValidated. Without offload, the joiner has
// verified it.
func (l *link) Capabilities() stack.LinkEndpointCapabilities {
	if l.offload {
		return stack.CapabilityTXChecksumOffload | stack.CapabilityRXChecksumOffload
	}
	return stack.CapabilityRXChecksumOffload
}

func (l *link) GSOMaxSize() uint32 { return longestPacket }

func (l *link) SupportedGSO() stack.SupportedGSO {
	if l.offload {
		return stack.HostGSOSupported
	}
	return stack.GVisorGSOSupported
}

// verified passes packets on whose checksums are right. The joiner leaves others unmarked, and those that are no TCP.
type verified struct{ stack.NetworkDispatcher }

func (v verified) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, packet *stack.PacketBuffer) {
	if packet.RXChecksumValidated {
		v.NetworkDispatcher.DeliverNetworkPacket(protocol, packet)
	}
}

// Attach begins to read. The process ends with its link, so nothing detaches it before.
func (l *link) Attach(dispatcher stack.NetworkDispatcher) {
	l.dispatcher = dispatcher
	if dispatcher == nil {
		return
	}
	l.joiner.Init(!l.offload)
	l.joiner.Dispatcher = verified{dispatcher}
	go l.read()
}

// read delivers packets forever, and leaves it to the runtime's poller to wait for more.
func (l *link) read() {
	sizes := inputSizes(l.offload)
	views := make([]*buffer.View, len(sizes))
	pieces := make([][]byte, 0, len(sizes)+1)
	vnet := make([]byte, vnetBytes)
	err := l.raw.Read(func(fd uintptr) bool {
		for count := 1; ; count++ {
			pieces = pieces[:0]
			if l.offload {
				pieces = append(pieces, vnet)
			}
			for i, view := range views {
				if view == nil {
					views[i] = buffer.NewViewSize(sizes[i])
				}
				pieces = append(pieces, views[i].AsSlice())
			}
			bytes, err := unix.Readv(int(fd), pieces)
			if err == unix.EAGAIN {
				l.flush()
				return false
			}
			if err == unix.EINTR {
				continue
			}
			check("read from the TUN device", err)
			if l.offload {
				bytes -= vnetBytes
			}
			l.deliver(take(views, bytes))
			if count%packetsPerFlush == 0 {
				l.flush()
			}
		}
	})
	check("wait for the TUN device", err)
}

// flush empties the joiner, whose Flush takes just the first packet of each bucket.
func (l *link) flush() {
	for range joinerDepth {
		l.joiner.Flush()
	}
}

// take removes those views from the list that hold a packet.
func take(views []*buffer.View, bytes int) buffer.Buffer {
	var packet buffer.Buffer
	for i := 0; i < len(views) && bytes > 0; i++ {
		view := views[i]
		views[i] = nil
		view.CapLength(bytes)
		bytes -= view.Size()
		check("collect a packet", packet.Append(view))
	}
	return packet
}

func (l *link) deliver(data buffer.Buffer) {
	packet := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: data})
	defer packet.DecRef()
	// The kernel also sends IPv6, with which it looks for routers; this stack has none.
	first, ok := packet.Data().PullUp(1)
	if !ok || header.IPVersion(first) != header.IPv4Version {
		return
	}
	if l.offload {
		l.dispatcher.DeliverNetworkPacket(ipv4.ProtocolNumber, packet)
		return
	}
	packet.NetworkProtocolNumber = ipv4.ProtocolNumber
	l.joiner.Enqueue(packet)
}

// WritePackets writes each packet by itself, as a TUN device takes no more at once.
func (l *link) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	for i, packet := range packets.AsSlice() {
		if err := l.write(packet); err != nil {
			return i, tcpip.TranslateErrno(err.(unix.Errno))
		}
	}
	return packets.Len(), nil
}

func (l *link) write(packet *stack.PacketBuffer) error {
	var room [8][]byte
	pieces := room[:0]
	if l.offload {
		vnet := make([]byte, vnetBytes)
		describe(vnet, packet)
		pieces = append(pieces, vnet)
	}
	views, skip := packet.AsViewList()
	for view := views.Front(); view != nil; view = view.Next() {
		// The first view begins with room for headers that no layer has used.
		piece := view.AsSlice()
		unused := min(skip, len(piece))
		skip -= unused
		if unused < len(piece) {
			pieces = append(pieces, piece[unused:])
		}
	}
	_, err := unix.Writev(l.fd, pieces)
	return err
}

// describe writes the header that tells the kernel what to finish: checksums, and the division into segments.
func describe(vnet []byte, packet *stack.PacketBuffer) {
	if packet.TransportProtocolNumber != header.TCPProtocolNumber {
		return
	}
	network, transport := packet.NetworkHeader().Slice(), header.TCP(packet.TransportHeader().Slice())
	options := packet.GSOOptions
	if options.Type == stack.GSONone {
		// A SYN or a reset comes without a checksum; gVisor has begun that of every other segment.
		ip := header.IPv4(network)
		bytes := uint16(packet.Size() - len(network))
		sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, ip.SourceAddress(), ip.DestinationAddress(), bytes)
		transport.SetChecksum(sum)
	}
	gso, segment := uint8(vnetGSONone), uint16(0)
	if options.Type == stack.GSOTCPv4 && packet.Data().Size() > int(options.MSS) {
		gso, segment = vnetGSOTCP4, options.MSS
	}
	vnet[0], vnet[1] = vnetNeedsSum, gso
	order := binary.NativeEndian
	order.PutUint16(vnet[2:], uint16(packet.HeaderSize()))
	order.PutUint16(vnet[4:], segment)
	order.PutUint16(vnet[6:], uint16(len(network)))
	order.PutUint16(vnet[8:], header.TCPChecksumOffset)
}
