//! Carries bytes between two streams, each way until its sender has closed.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use hopwise_core::tcp::{KeepAlive, Options};
use hopwise_host::TcpStream as MeshStream;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::seats::Sitter;

/// What one direction reads before it writes; with the sockets' own buffers this is all a slow reader ties up.
const CHUNK: usize = 32 << 10;

/// Bytes that went through relays.
#[derive(Debug, Default)]
pub(crate) struct Relayed {
    pub(crate) to_mesh: AtomicU64,
    pub(crate) from_mesh: AtomicU64,
}

/// On which side the client is, and its seat.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sits<'a> {
    Local(&'a Sitter),
    Mesh(&'a Sitter),
}

/// Linux lets a full socket be written to again when a third of its buffer is free: in one that grew to megabytes a
/// slow reader makes that room in minutes only, and seems not to read meanwhile. Linux doubles this. Over the
/// loopback a writer is the fastest with 64 to 256 KiB, faster than with what grows; with 32 KiB it does a tenth of
/// that.
const SEND_BUFFER: usize = 128 << 10;

/// Of a client who has a seat.
pub(crate) fn bound_send_buffer(client: &TcpStream) {
    // Without it a slow reader is noticed to read less often, and no more.
    let _ = set_socket_send_buffer_size(client, SEND_BUFFER);
}

/// What programs wrote leaves at once, as they decided, and a peer that has vanished is noticed some day.
pub(crate) fn prepare(local: &TcpStream, mesh: &MeshStream) {
    // A connection that is over already says so when it is read.
    let _ = local.set_nodelay(true);
    mesh.stack().with(|now, endpoint| {
        if let Ok(options) = endpoint.options(mesh.id()) {
            let options = Options { nagle: false, keep_alive: Some(KeepAlive::default()), ..options };
            let _ = endpoint.set_options(now, mesh.id(), options);
        }
    });
}

/// Ends when both sides have closed, or when one breaks: then the other is dropped, which resets it where data is
/// still unread. A side that closes for writing only (half-close) goes on reading. The client's seat is told of what
/// waits for it.
pub(crate) async fn relay<L, M>(local: L, mesh: M, relayed: &Relayed, sits: Sits<'_>) -> io::Result<()>
where
    L: AsyncRead + AsyncWrite,
    M: AsyncRead + AsyncWrite,
{
    let (mut local_in, mut local_out) = tokio::io::split(local);
    let (mut mesh_in, mut mesh_out) = tokio::io::split(mesh);
    let (local_sitter, mesh_sitter) = match sits {
        Sits::Local(sitter) => (Some(sitter), None),
        Sits::Mesh(sitter) => (None, Some(sitter)),
    };
    let out = one_way(&mut local_in, &mut mesh_out, &relayed.to_mesh, mesh_sitter);
    let back = one_way(&mut mesh_in, &mut local_out, &relayed.from_mesh, local_sitter);
    tokio::try_join!(out, back).map(|((), ())| ())
}

async fn one_way<R, W>(from: &mut R, to: &mut W, count: &AtomicU64, reader: Option<&Sitter>) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        // The next read waits until this is written: a reader that is slow stops its sender.
        let mut left = &chunk[..read];
        while !left.is_empty() {
            // Anew after each part that it has made room for: one that is slow but steady reads.
            reader.inspect(|reader| reader.waits());
            match to.write(left).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => left = &left[written..],
            }
        }
        reader.inspect(|reader| reader.has_taken());
        count.fetch_add(u64::try_from(read).unwrap_or(0), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::duplex;
    use tokio::time::timeout;

    use super::*;
    use crate::node::seats::{Seat, Seats};

    const SOON: Duration = Duration::from_secs(10);

    async fn seat() -> Seat {
        Seats::new(1, SOON).take().await.expect("free")
    }

    #[tokio::test]
    async fn a_side_that_closed_for_writing_still_hears_the_other() {
        let (mut client, local) = duplex(64);
        let (mut server, mesh) = duplex(64);
        let (relayed, seat) = (Relayed::default(), seat().await);
        let talk = async {
            client.write_all(b"question").await.expect("open");
            client.shutdown().await.expect("open");
            let mut asked = String::new();
            server.read_to_string(&mut asked).await.expect("its end arrives");
            server.write_all(b"answer").await.expect("open");
            server.shutdown().await.expect("open");
            let mut answered = String::new();
            client.read_to_string(&mut answered).await.expect("its end arrives");
            (asked, answered)
        };
        let both = async { tokio::join!(relay(local, mesh, &relayed, Sits::Local(seat.sitter())), talk) };
        let (ended, heard) = timeout(SOON, both).await.expect("it ends");
        ended.expect("both sides closed in order");
        assert_eq!(heard, ("question".to_owned(), "answer".to_owned()));
        assert_eq!(relayed.to_mesh.load(Ordering::Relaxed), 8);
        assert_eq!(relayed.from_mesh.load(Ordering::Relaxed), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_does_not_read_stops_its_sender() {
        let (mut client, local) = duplex(1024);
        let (_server, mesh) = duplex(1024);
        let (relayed, seat) = (Relayed::default(), seat().await);
        let endless = async {
            let mut written = 0_usize;
            loop {
                written += client.write(&[7; 1024]).await.expect("open");
                assert!(written <= CHUNK + 16 * 1024, "nothing holds the sender back");
            }
        };
        tokio::select! {
            _ = relay(local, mesh, &relayed, Sits::Local(seat.sitter())) => panic!("nobody closed"),
            () = endless => {}
            () = tokio::time::sleep(Duration::from_secs(60)) => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_slow_but_steady_keeps_its_seat() {
        let seats = Seats::new(1, Duration::from_secs(30));
        let seat = seats.take().await.expect("free");
        let (mut client, local) = duplex(1024);
        let (mut server, mesh) = duplex(CHUNK);
        let relayed = Relayed::default();
        server.write_all(&[7; CHUNK]).await.expect("open");
        let steady = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                client.read_exact(&mut [0; 512]).await.expect("open");
                assert!(seats.take().await.is_none(), "it is taken");
            }
        };
        tokio::select! {
            _ = relay(local, mesh, &relayed, Sits::Local(seat.sitter())) => panic!("nobody closed"),
            () = seat.sitter().told_to_go() => panic!("it reads"),
            () = steady => {}
        }
    }

    #[tokio::test]
    async fn a_side_that_breaks_ends_the_other() {
        let (client, local) = duplex(64);
        let (mut server, mesh) = duplex(64);
        drop(client);
        let (relayed, seat) = (Relayed::default(), seat().await);
        let talk = async {
            // The client is gone: writing to it fails, and the relay ends.
            for _ in 0..64 {
                if server.write_all(&[1; 64]).await.is_err() {
                    break;
                }
            }
        };
        let both = async { tokio::join!(relay(local, mesh, &relayed, Sits::Local(seat.sitter())), talk) };
        let (ended, ()) = timeout(SOON, both).await.expect("it ends");
        assert!(ended.is_err());
    }
}
