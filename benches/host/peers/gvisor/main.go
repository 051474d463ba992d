// The program peer of the host benchmark: gVisor's netstack on a TUN device, used through gonet.
//
// It takes MODE LINK CONNECTIONS BYTES_EACH PORT, makes the device bench0 and writes "ready".
// A line on standard input begins the work; "cpu SECONDS" on standard output ends it.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	nic         = 1
	chunkBytes  = 256 << 10
	echoBytes   = 64
	bufferBytes = 1 << 20
	bufferMost  = 4 << 20
	// The last acknowledgement never takes so long, unless the peer has gone.
	longestEnd = 5 * time.Second
)

var (
	ours    = tcpip.AddrFrom4([4]byte{10, 7, 0, 1})
	kernels = tcpip.AddrFrom4([4]byte{10, 7, 0, 2})
)

// task is what the command line asks for.
type task struct {
	mode        string
	offload     bool
	connections int
	bytesEach   int64
	port        uint16
}

// fail ends the program. Any goroutine may call it.
func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "gvisor: "+format+"\n", arguments...)
	os.Exit(2)
}

func check(doing string, err error) {
	if err != nil {
		fail("%s: %v: expected success", doing, err)
	}
}

// checkStack is check for the errors of the stack, which are of another type.
func checkStack(doing string, err tcpip.Error) {
	if err != nil {
		fail("%s: %s: expected success", doing, err)
	}
}

func number(name, word string, bits int) uint64 {
	value, err := strconv.ParseUint(word, 10, bits)
	if err != nil {
		fail("%s is %q: expected a number of at most %d bits", name, word, bits)
	}
	return value
}

func parse(words []string) task {
	if len(words) != 5 {
		fail("got %d arguments: expected MODE LINK CONNECTIONS BYTES_EACH PORT", len(words))
	}
	if mode := words[0]; mode != "send" && mode != "receive" && mode != "echo" {
		fail("MODE is %q: expected send, receive or echo", mode)
	}
	if link := words[1]; link != "plain" && link != "offload" {
		fail("LINK is %q: expected plain or offload", link)
	}
	parsed := task{
		mode:        words[0],
		offload:     words[1] == "offload",
		connections: int(number("CONNECTIONS", words[2], 31)),
		bytesEach:   int64(number("BYTES_EACH", words[3], 63)),
		port:        uint16(number("PORT", words[4], 16)),
	}
	if parsed.port == 0 {
		fail("PORT is 0: expected 1 to 65535")
	}
	return parsed
}

// newStack makes a stack with one address and a route to the kernel.
func newStack(offload bool) *stack.Stack {
	netstack := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(true)
	// Nagle's delay is off by default, too; gonet cannot set it for one connection.
	delay := tcpip.TCPDelayEnabled(false)
	sends := tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: bufferBytes, Max: bufferMost}
	receives := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: bufferBytes, Max: bufferMost}
	// RACK, the default, sends again here what is not lost, which takes up to half of the rate. SACK works without it.
	var recovery tcpip.TCPRecovery
	options := []tcpip.SettableTransportProtocolOption{&sack, &moderate, &delay, &recovery, &sends, &receives}
	for _, option := range options {
		checkStack("set an option of TCP", netstack.SetTransportProtocolOption(tcp.ProtocolNumber, option))
	}
	device, err := openLink("bench0", offload)
	check("open the TUN device bench0", err)
	checkStack("attach the device", netstack.CreateNIC(nic, device))
	address := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: ours, PrefixLen: 24},
	}
	checkStack("set the address", netstack.AddProtocolAddress(nic, address, stack.AddressProperties{}))
	netstack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return netstack
}

// parallel runs work for each connection and waits for all.
func parallel(connections int, work func()) {
	var group sync.WaitGroup
	group.Add(connections)
	for range connections {
		go func() {
			defer group.Done()
			work()
		}()
	}
	group.Wait()
}

// send writes to one connection and waits until its peer has closed, too.
func send(netstack *stack.Stack, asked task) {
	to := tcpip.FullAddress{NIC: nic, Addr: kernels, Port: asked.port}
	stream, err := gonet.DialTCP(netstack, to, ipv4.ProtocolNumber)
	check("connect", err)
	zeros := make([]byte, chunkBytes)
	for rest := asked.bytesEach; rest > 0; {
		written, err := stream.Write(zeros[:min(rest, chunkBytes)])
		check("write", err)
		rest -= int64(written)
	}
	check("close the side that writes", stream.CloseWrite())
	read, err := stream.Read(make([]byte, 1))
	if !errors.Is(err, io.EOF) {
		fail("read %d bytes (%v): expected the peer's end", read, err)
	}
	check("close", stream.Close())
}

// receive reads one connection to its end.
func receive(listener net.Listener) {
	stream, err := listener.Accept()
	check("accept", err)
	buffer := make([]byte, chunkBytes)
	for !errors.Is(err, io.EOF) {
		check("read", err)
		_, err = stream.Read(buffer)
	}
	check("close", stream.Close())
}

// awaitEnd waits until the peer has acknowledged the end of each connection. The device must not vanish before.
func awaitEnd(netstack *stack.Stack) {
	began := time.Now()
	for netstack.Stats().TCP.CurrentConnected.Value() > 0 {
		if time.Since(began) > longestEnd {
			fail("connections are open %v after their end: expected the peer's acknowledgements", longestEnd)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// echo returns what one connection brings. A reset ends the connection, as its end does.
func echo(stream net.Conn) {
	defer stream.Close()
	buffer := make([]byte, echoBytes)
	for {
		read, err := stream.Read(buffer)
		if err != nil {
			return
		}
		if _, err = stream.Write(buffer[:read]); err != nil {
			return
		}
	}
}

func echoAll(listener net.Listener) {
	for {
		stream, err := listener.Accept()
		check("accept", err)
		go echo(stream)
	}
}

func cpu() time.Duration {
	var now unix.Timespec
	check("read the CPU clock", unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now))
	return time.Duration(now.Nano())
}

func main() {
	asked := parse(os.Args[1:])
	netstack := newStack(asked.offload)
	var listener net.Listener
	if asked.mode != "send" {
		at := tcpip.FullAddress{NIC: nic, Addr: ours, Port: asked.port}
		bound, err := gonet.ListenTCP(netstack, at, ipv4.ProtocolNumber)
		check("listen", err)
		listener = bound
	}
	fmt.Println("ready")
	input := bufio.NewReader(os.Stdin)
	if _, err := input.ReadString('\n'); err != nil {
		fail("standard input: %v: expected one line", err)
	}
	began := cpu()
	switch asked.mode {
	case "send":
		parallel(asked.connections, func() { send(netstack, asked) })
	case "receive":
		parallel(asked.connections, func() { receive(listener) })
		awaitEnd(netstack)
	case "echo":
		go echoAll(listener)
		_, err := io.Copy(io.Discard, input)
		check("wait for the end of standard input", err)
	}
	fmt.Printf("cpu %.6f\n", (cpu() - began).Seconds())
}
