//! The two ways of bytes through a relay: by a chunk between both sides, or straight into the send buffer.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;

use hopwise_host::TcpStream as MeshStream;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::tcp::ReadHalf;
use tokio::task::coop::consume_budget;

/// The bytes that one direction reads before it writes. A slow reader ties up only these and the sockets' own buffers.
pub(super) const CHUNK: usize = 32 << 10;

/// Moves the bytes of one direction, part by part.
pub(super) trait Carrier<From, To> {
    /// Waits for the next part. Returns whether there is one: `false` is the end. An error is the source's.
    async fn read(&mut self, from: &mut From, to: &To) -> io::Result<bool>;
    /// Returns whether some of the part is not written yet.
    fn has_more(&self) -> bool;
    /// Writes some of the part, and returns the number of bytes. An error comes from the other side.
    async fn write(&mut self, from: &From, to: &mut To) -> io::Result<usize>;
}

/// Reads into a chunk of memory, and writes from there. An idle relay has none.
#[derive(Default)]
pub(super) struct ByChunk {
    chunk: Vec<u8>,
    written: usize,
    read: usize,
}

thread_local! {
    /// A chunk that no relay of this thread has now.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

fn take_chunk() -> Vec<u8> {
    let spare = SPARE.take();
    if spare.is_empty() { vec![0; CHUNK] } else { spare }
}

impl<From: AsyncRead + Unpin, To: AsyncWrite + Unpin> Carrier<From, To> for ByChunk {
    async fn read(&mut self, from: &mut From, _: &To) -> io::Result<bool> {
        (self.written, self.read) = (0, 0);
        let read = poll_fn(|cx| {
            self.chunk = take_chunk();
            let mut room = ReadBuf::new(&mut self.chunk);
            let read = Pin::new(&mut *from).poll_read(cx, &mut room);
            self.read = room.filled().len();
            if self.read == 0 {
                SPARE.set(mem::take(&mut self.chunk));
            }
            read
        });
        read.await?;
        Ok(self.read > 0)
    }

    fn has_more(&self) -> bool {
        self.written < self.read
    }

    async fn write(&mut self, _: &From, to: &mut To) -> io::Result<usize> {
        match to.write(&self.chunk[self.written..self.read]).await? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            written => {
                self.written += written;
                if self.written == self.read {
                    SPARE.set(mem::take(&mut self.chunk));
                }
                Ok(written)
            }
        }
    }
}

/// Lets the kernel put a socket's bytes into the send buffer of a connection over the mesh: one copy less.
#[derive(Default)]
pub(super) struct InPlace {
    part: ReadPart,
    /// An error of the source that a write met, for the next read.
    failed: Option<io::Error>,
}

/// The part that was read last.
#[derive(Clone, Copy, Default)]
enum ReadPart {
    #[default]
    None,
    /// This number of bytes is in the send buffer already.
    Moved(usize),
    /// They are still in the kernel: the send buffer was full.
    Waits,
}

impl<'a> Carrier<ReadHalf<'_>, &'a MeshStream> for InPlace {
    async fn read(&mut self, from: &mut ReadHalf<'_>, to: &&'a MeshStream) -> io::Result<bool> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        loop {
            // A fast socket and a fast mesh never wait, and would keep other tasks from running.
            consume_budget().await;
            from.readable().await?;
            match moved(from, to) {
                Moved::Some(bytes) => {
                    self.part = ReadPart::Moved(bytes);
                    return Ok(bytes > 0);
                }
                // The end and an error show at once, even if the mesh takes nothing now.
                Moved::NoRoom => {
                    let has_any = from.peek(&mut [0]).await? > 0;
                    self.part = if has_any { ReadPart::Waits } else { ReadPart::None };
                    return Ok(has_any);
                }
                Moved::NothingCame => {}
                Moved::Failed(error) => return Err(error),
            }
        }
    }

    fn has_more(&self) -> bool {
        !matches!(self.part, ReadPart::None)
    }

    async fn write(&mut self, from: &ReadHalf<'_>, to: &mut &'a MeshStream) -> io::Result<usize> {
        let written = match self.part {
            ReadPart::None => 0,
            ReadPart::Moved(bytes) => bytes,
            ReadPart::Waits => {
                let mut asked = false;
                let moved = to.write_with(CHUNK, |room| {
                    asked = true;
                    from.try_read(room)
                });
                match moved.await {
                    // The bytes of before are gone: the next read tells why.
                    Err(error) if asked && error.kind() == io::ErrorKind::WouldBlock => 0,
                    Err(error) if asked => {
                        self.failed = Some(error);
                        0
                    }
                    moved => moved?,
                }
            }
        };
        self.part = ReadPart::None;
        Ok(written)
    }
}

/// The outcome of an attempt to move bytes at once.
enum Moved {
    Some(usize),
    NothingCame,
    /// Or the mesh takes no more at all, which a write will tell.
    NoRoom,
    Failed(io::Error),
}

/// `poll_read` would take a read that gets less than it has room for as the last one. But the kernel ends a read at the
/// mark of urgent data as well, and more may be there.
fn moved(from: &ReadHalf<'_>, to: &MeshStream) -> Moved {
    let mut asked = false;
    let moved = to.try_write_with(CHUNK, |room| {
        asked = true;
        from.try_read(room)
    });
    match moved {
        Ok(bytes) => Moved::Some(bytes),
        Err(_) if !asked => Moved::NoRoom,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Moved::NothingCame,
        Err(error) => Moved::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_agents::StandardAgents;
    use hopwise_core::LinkId;
    use hopwise_core::endpoint::{ConnectOptions, EndpointConfig, ListenOptions};
    use hopwise_host::{Stack, StackConfig, Wire, describe};
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);
    const PORT: u16 = 80;

    fn stack(wire: Wire, address: &str) -> Stack {
        let described = describe(&wire, LinkId(0), vec![address.parse().expect("an address")]);
        let config = StackConfig::new(EndpointConfig::new(described, [7; 32]));
        Stack::start(config, vec![Box::new(wire)], Box::new(StandardAgents::default())).expect("it starts")
    }

    /// A connection over a wire, and one of the kernel's, each with both ends.
    struct Sides {
        near: MeshStream,
        far: MeshStream,
        client: TcpStream,
        local: TcpStream,
    }

    async fn sides() -> Sides {
        let (here, there) = Wire::pair(1500).expect("a pair is made");
        let (here, there) = (stack(here, "10.7.0.1/24"), stack(there, "10.7.0.2/24"));
        let listener = there.listen(None, PORT, ListenOptions::default()).expect("a free port");
        let near =
            here.connect(([10, 7, 0, 2], PORT).into(), &ConnectOptions::default()).await.expect("it listens");
        let far = listener.accept().await.expect("it connects");
        let kernel = TcpListener::bind("127.0.0.1:0").await.expect("the loopback is there");
        let client = TcpStream::connect(kernel.local_addr().expect("it is bound")).await.expect("it listens");
        let (local, _) = kernel.accept().await.expect("it connects");
        Sides { near, far, client, local }
    }

    #[tokio::test]
    async fn a_chunk_is_held_only_while_it_has_bytes() {
        let (mut client, mut from) = tokio::io::duplex(CHUNK);
        let (mut to, mut server) = tokio::io::duplex(4);
        let mut carrier = ByChunk::default();
        let waits = timeout(Duration::from_millis(1), carrier.read(&mut from, &to)).await;
        assert!(waits.is_err() && carrier.chunk.is_empty());
        client.write_all(b"12345678").await.expect("open");
        assert!(carrier.read(&mut from, &to).await.expect("open"));
        assert_eq!(carrier.write(&from, &mut to).await.expect("open"), 4);
        assert_eq!(carrier.chunk.len(), CHUNK);
        server.read_exact(&mut [0; 4]).await.expect("open");
        assert_eq!(carrier.write(&from, &mut to).await.expect("open"), 4);
        assert!(carrier.chunk.is_empty());
        drop(client);
        assert!(!carrier.read(&mut from, &to).await.expect("in order"));
        assert!(carrier.chunk.is_empty());
    }

    /// Writes until the mesh takes no more, and returns the number of bytes.
    async fn fill(near: &MeshStream) -> usize {
        let mut filled = 0;
        while let Ok(written) =
            timeout(Duration::from_millis(300), near.write_with(CHUNK, |room| Ok(room.len()))).await
        {
            filled += written.expect("open");
        }
        filled
    }

    fn waits(carrier: &impl for<'a, 'b> Carrier<ReadHalf<'a>, &'b MeshStream>) -> bool {
        carrier.has_more()
    }

    #[tokio::test]
    async fn the_end_shows_while_the_mesh_takes_nothing() {
        let Sides { near, far, mut client, mut local } = sides().await;
        fill(&near).await;
        client.shutdown().await.expect("open");
        let (mut from, _) = local.split();
        let mut carrier = InPlace::default();
        let read = timeout(PATIENCE, carrier.read(&mut from, &&near)).await.expect("it ends");
        assert!(!read.expect("in order"));
        drop(far);
    }

    #[tokio::test]
    async fn what_waited_for_room_comes_after_what_was_there() {
        let Sides { near, mut far, mut client, mut local } = sides().await;
        let filled = fill(&near).await;
        client.write_all(b"late").await.expect("open");
        let (mut from, _) = local.split();
        let mut carrier = InPlace::default();
        let mut to = &near;
        assert!(
            timeout(PATIENCE, carrier.read(&mut from, &to)).await.expect("it has come").expect("in order")
        );
        assert!(waits(&carrier));
        let mut come = vec![0; filled + 4];
        let (written, read) = tokio::join!(carrier.write(&from, &mut to), far.read_exact(&mut come));
        assert_eq!(written.expect("open"), 4);
        read.expect("all comes");
        assert_eq!(come[filled..], *b"late");
        assert!(!waits(&carrier));
    }

    #[tokio::test]
    async fn an_error_of_the_source_is_no_error_of_the_mesh() {
        let Sides { near, far, client, mut local } = sides().await;
        rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).expect("it is a socket");
        drop(client);
        let (mut from, _) = local.split();
        let read = timeout(PATIENCE, InPlace::default().read(&mut from, &&near)).await.expect("it ends");
        assert_eq!(read.expect_err("a reset").kind(), io::ErrorKind::ConnectionReset);
        drop(far);
    }

    /// The kernel ends a read at the mark of urgent data. It does not tell again of the rest, which is there already.
    #[tokio::test]
    async fn urgent_octets_stay_in_the_stream_and_nothing_behind_them_waits() {
        let Sides { near, mut far, mut client, mut local } = sides().await;
        super::super::prepare(&local, &near);
        client.write_all(b"abc").await.expect("open");
        rustix::net::send(&client, b"U", rustix::net::SendFlags::OOB).expect("open");
        client.write_all(b"def").await.expect("open");
        let (mut from, _) = local.split();
        let (mut carrier, mut to) = (InPlace::default(), &near);
        let carries = async {
            while carrier.read(&mut from, &to).await.expect("open") {
                while waits(&carrier) {
                    carrier.write(&from, &mut to).await.expect("open");
                }
            }
        };
        let mut come = [0; 7];
        tokio::select! {
            () = carries => panic!("nobody closed"),
            read = timeout(PATIENCE, far.read_exact(&mut come)) => {
                read.expect("all comes").expect("open");
            }
        }
        assert_eq!(come, *b"abcUdef");
    }
}
