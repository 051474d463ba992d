# A WebSocket server that echoes (RFC 6455), and a client that checks the echo of messages of three sizes.
import base64, hashlib, os, socket, struct, sys

def exactly(stream, count):
    data = b''
    while len(data) < count:
        data += stream.recv(count - len(data))
    return data

def frame(stream):
    length = exactly(stream, 2)[1]
    size, masked = length & 127, length & 128
    size = struct.unpack('!H', exactly(stream, 2))[0] if size == 126 else size
    mask = exactly(stream, 4) if masked else bytes(4)
    return bytes(byte ^ mask[at % 4] for at, byte in enumerate(exactly(stream, size)))

def head(stream):
    text = b''
    while not text.endswith(b'\r\n\r\n'):
        text += exactly(stream, 1)
    return text.decode()

def accept(key):
    guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
    return base64.b64encode(hashlib.sha1((key + guid).encode()).digest()).decode()

if sys.argv[1] == 'serve':
    server = socket.create_server((sys.argv[2], 84))
    open('ready', 'w').close()
    client, _ = server.accept()
    key = [line.split(': ')[1] for line in head(client).split('\r\n') if line.startswith('Sec-WebSocket-Key')][0]
    client.sendall(f'HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept(key)}\r\n\r\n'.encode())
    while True:
        data = frame(client)
        client.sendall(b'\x82' + (bytes([len(data)]) if len(data) < 126 else b'\x7e' + struct.pack('!H', len(data))) + data)
else:
    stream, key = socket.create_connection((sys.argv[2], 84)), base64.b64encode(os.urandom(16)).decode()
    stream.sendall(f'GET / HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Key: {key}\r\n\r\n'.encode())
    assert accept(key) in head(stream)
    for size in [1, 100, 5000] * 20:
        data, mask = os.urandom(size), os.urandom(4)
        length = bytes([128 | size]) if size < 126 else b'\xfe' + struct.pack('!H', size)
        stream.sendall(b'\x82' + length + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))
        assert frame(stream) == data
    print('echoed')
