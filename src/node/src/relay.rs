//! Carries bytes between two streams, in each direction until its sender has closed.

mod carrier;

use std::io;
use std::net::Ipv6Addr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hopwise_core::tcp::{Info, KeepAlive, Options};
use hopwise_host::TcpStream as MeshStream;
use hopwise_host::netlink::is_unacknowledged;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::{sleep, timeout};

use carrier::{ByChunk, Carrier, InPlace};

use super::counts::count;
use super::hangup;
use super::origin::Origin;
use super::seats::Sitter;
use super::unfinished::Unfinished;

/// Bytes that went through relays.
#[derive(Debug, Default)]
pub(crate) struct Relayed {
    pub(crate) to_mesh: AtomicU64,
    pub(crate) from_mesh: AtomicU64,
    /// Relays with a side that broke off.
    pub(crate) broken: AtomicU64,
}

/// Linux lets a full socket be written again once a third of its buffer is free. In a buffer that grew to megabytes a
/// slow reader frees that much only in minutes, and seems not to read meanwhile. Linux doubles this value. Over the
/// loopback a writer is fastest with 64 to 256 KiB, faster than with a growing buffer. With 32 KiB it has a tenth of
/// that speed.
const SEND_BUFFER: usize = 128 << 10;

/// Bounds the send buffer of a client with a seat.
pub(crate) fn bound_send_buffer(client: &TcpStream) {
    // Without the bound a slow reader only seems slower.
    let _ = sockopt::set_socket_send_buffer_size(client, SEND_BUFFER);
}

/// Keep-alive for a peer that may have closed. A peer that has closed fully, not only for writing, forgets the
/// connection after a minute (Linux) and then answers with a reset. A link that fades may be silent for longer, and
/// takes eleven more.
const SOON: KeepAlive =
    KeepAlive { idle: Duration::from_secs(60), interval: Duration::from_secs(75), probes: 9 };

/// A vanished peer over Hopwise keeps its seat for seven minutes at the most. Its reset may have been lost, which is
/// common on a mesh. A link that fades may be silent for four and a half of these.
const MESH: KeepAlive =
    KeepAlive { idle: Duration::from_secs(120), interval: Duration::from_secs(30), probes: 9 };

/// A peer that has closed may get no data for hours.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Sends written data at once, keeps urgent octets in the stream, and detects vanished peers in time.
fn prepare(local: &TcpStream, mesh: &MeshStream) {
    // A connection that is over shows at the next read.
    let _ = local.set_nodelay(true);
    // Otherwise the kernel takes them out of the stream, though the mark is all that is not carried (RFC 6093 §4).
    let _ = sockopt::set_socket_oobinline(local, true);
    // Probes cost nothing here; over a mesh they take airtime.
    let _ = ask_soon(local);
    set_options(mesh, of_relay);
}

/// The options over the mesh; the file's `keep_alive` takes precedence.
fn of_relay(options: Options) -> Options {
    let keep_alive = options.keep_alive.or(Some(MESH));
    Options { nagle: false, keep_alive, ..options }
}

fn ask_soon(local: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_tcp_keepidle(local, SOON.idle)?;
    sockopt::set_tcp_keepintvl(local, SOON.interval)?;
    sockopt::set_tcp_keepcnt(local, SOON.probes.into())?;
    sockopt::set_socket_keepalive(local, true)
}

/// Marks the packets of a connection with this DSCP.
pub(crate) fn mark(mesh: &MeshStream, dscp: u8) {
    set_options(mesh, |options| Options { dscp, ..options });
}

/// Counts a connection for the client that it is carried for: its peer may be one node for many clients.
fn count_as(mesh: &MeshStream, client: Origin) {
    let address = match client {
        Origin::Host(address) => address,
        // A range that no host has.
        Origin::User(user) => Ipv6Addr::from_bits(u128::from(user) << 64).into(),
        Origin::Unknown | Origin::Local => return,
    };
    mesh.stack().with(|_, endpoint| endpoint.count_as(mesh.id(), address));
}

fn set_options(mesh: &MeshStream, change: impl FnOnce(Options) -> Options) {
    mesh.stack().with(|now, endpoint| {
        if let Ok(options) = endpoint.options(mesh.id()) {
            let _ = endpoint.set_options(now, mesh.id(), change(options));
        }
    });
}

/// End of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEnd {
    /// Both sides have closed, or one has for both directions.
    InOrder,
    BrokeOff,
    /// Another client got the client's seat.
    GaveWay,
    /// No data moved for too long.
    Quiet,
}

/// Carries bytes until both sides have closed, one is gone, no data has moved for `idle`, or another client gets the
/// client's seat.
pub(crate) async fn carry(
    mut local: Unfinished<TcpStream>,
    mut mesh: Unfinished<MeshStream>,
    relayed: &Relayed,
    sitter: &Sitter,
    idle: Duration,
) -> RelayEnd {
    prepare(local.stream(), mesh.stream());
    count_as(mesh.stream(), sitter.origin());
    let peer = mesh.stream().peer_addr();
    let carriers = (InPlace::default(), ByChunk::default());
    tokio::select! {
        // If the relay ends and another client gets the seat at the same time, the relay's end counts.
        biased;
        ended = relay((local.stream(), &*mesh.stream()), carriers, relayed, sitter) => match ended {
            Ok(()) => {
                local.has_ended();
                mesh.has_ended();
                RelayEnd::InOrder
            }
            Err(cut) => {
                tracing::debug!(error = %cut.error(), %peer, "a relay broke off");
                count(&relayed.broken);
                if let Cut::Gone(_) = cut {
                    local.has_ended();
                    mesh.has_ended();
                }
                RelayEnd::BrokeOff
            }
        },
        () = sitter.told_to_go() => RelayEnd::GaveWay,
        () = sitter.quiet_for(idle) => RelayEnd::Quiet,
    }
}

/// The end of a relay before both sides have closed.
#[derive(Debug)]
enum Cut {
    /// A side broke off in the middle.
    Broken(io::Error),
    /// A side broke off after it had closed: its data is complete, and still goes to the other side, however slow.
    Gone(io::Error),
}

impl Cut {
    fn error(&self) -> &io::Error {
        match self {
            Cut::Broken(error) | Cut::Gone(error) => error,
        }
    }
}

/// One side of a relay.
trait RelaySide {
    type In: AsyncRead + Unpin;
    type Out: AsyncWrite + Unpin;
    fn split(self) -> (Self::In, Self::Out);
    /// Ends when a side that has closed for writing is found not to read either; with an error if it broke off.
    fn hung_up(from: &Self::In) -> impl Future<Output = io::Result<()>> + Send;
    /// Ends when a side has broken off that is not being read.
    fn broke_off(from: &Self::In) -> impl Future<Output = ()> + Send;
    /// Returns whether all written data has come to the side's own TCP, or never will.
    fn has_it_all(out: &Self::Out) -> bool;
}

impl<'a> RelaySide for &'a mut TcpStream {
    type In = ReadHalf<'a>;
    type Out = WriteHalf<'a>;

    fn split(self) -> (Self::In, Self::Out) {
        TcpStream::split(self)
    }

    async fn hung_up(from: &Self::In) -> io::Result<()> {
        hangup::by_local(from.as_ref(), LOOK_EVERY).await;
        from.as_ref().take_error()?.map_or(Ok(()), Err)
    }

    async fn broke_off(from: &Self::In) {
        hangup::by_breaking_local(from.as_ref(), LOOK_EVERY).await;
    }

    fn has_it_all(out: &Self::Out) -> bool {
        let ends = out.local_addr().and_then(|ours| Ok((ours, out.peer_addr()?)));
        !ends.is_ok_and(|(ours, theirs)| is_unacknowledged(ours, theirs))
    }
}

impl RelaySide for &MeshStream {
    type In = Self;
    type Out = Self;

    fn split(self) -> (Self::In, Self::Out) {
        (self, self)
    }

    async fn hung_up(from: &Self::In) -> io::Result<()> {
        set_options(from, |options| Options { keep_alive: Some(SOON), ..options });
        hangup::by_mesh(from, LOOK_EVERY).await;
        // This side has not closed yet: the connection did not end by itself.
        Err(io::ErrorKind::ConnectionReset.into())
    }

    async fn broke_off(from: &Self::In) {
        hangup::by_breaking_mesh(from, LOOK_EVERY).await;
    }

    fn has_it_all(out: &Self::Out) -> bool {
        let still_waits =
            |info: Info| info.closed.is_none() && (info.unsent_bytes > 0 || info.snd_una < info.snd_nxt);
        !out.info().is_some_and(still_waits)
    }
}

/// Ends when both sides have closed, or when one breaks. A side that closes only for writing goes on reading
/// (half-close), and the relay goes on while that side exists. The client's seat notes when data moves.
async fn relay<L: RelaySide, M: RelaySide>(
    (local, mesh): (L, M),
    (out, back): (impl Carrier<L::In, M::Out>, impl Carrier<M::In, L::Out>),
    relayed: &Relayed,
    sitter: &Sitter,
) -> Result<(), Cut> {
    let ((local_in, local_out), (mesh_in, mesh_out)) = (local.split(), mesh.split());
    let has_broken = AtomicBool::new(false);
    let (count_out, count_back) = (&relayed.to_mesh, &relayed.from_mesh);
    let out = one_way::<L, M>((local_in, mesh_out), out, (count_out, sitter), &has_broken);
    let back = one_way::<M, L>((mesh_in, local_out), back, (count_back, sitter), &has_broken);
    let (mut out, mut back) = (pin!(out), pin!(back));
    tokio::select! {
        ended = &mut out => match ended {
            Ok(ends) => unless_gone::<L, M, _>(ends, back).await,
            Err(broken) => Err(broken.after_last_words(back, &has_broken).await),
        },
        ended = &mut back => match ended {
            Ok(ends) => unless_gone::<M, L, _>(ends, out).await,
            Err(broken) => Err(broken.after_last_words(out, &has_broken).await),
        },
    }
}

/// Carries the other direction after one has ended, while its reader exists. A side that has closed fully has sent all
/// its data. The stack or the kernel resets data that still goes to it.
async fn unless_gone<S: RelaySide, D: RelaySide, R>(
    (closed, other): (S::In, D::Out),
    other_way: impl Future<Output = Result<R, Broken>>,
) -> Result<(), Cut> {
    let gone = tokio::select! {
        biased;
        ended = other_way => match ended {
            Ok(_) => return Ok(()),
            Err(Broken::Source(error)) => return Err(Cut::Broken(error)),
            Err(Broken::Sink(error)) => error,
        },
        hung_up = S::hung_up(&closed) => match hung_up {
            Ok(()) => return Ok(()),
            Err(error) => error,
        },
    };
    // Data of the other side that is not taken turns its end into a reset, too.
    let _ = timeout(LAST_WORDS_WITHIN, has_come::<D>(&other)).await;
    Err(Cut::Gone(gone))
}

/// The end of one direction that broke.
#[derive(Debug)]
enum Broken {
    Source(io::Error),
    Sink(io::Error),
}

/// A short interval, since the reset is awaited.
const LOOK_FOR_ACKS_EVERY: Duration = Duration::from_millis(10);

/// The time for received data to be written: a reader takes it at once, and otherwise it is lost with the connection.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(5);

impl Broken {
    fn error(self) -> io::Error {
        match self {
            Broken::Source(error) | Broken::Sink(error) => error,
        }
    }

    /// A peer that does not take data may have sent the reason, which is still to be carried: a server that refuses an
    /// upload answers first.
    async fn after_last_words<R>(
        self,
        other_way: impl Future<Output = Result<R, Broken>>,
        has_broken: &AtomicBool,
    ) -> Cut {
        if matches!(self, Broken::Sink(_)) {
            has_broken.store(true, Ordering::Relaxed);
            let _ = timeout(LAST_WORDS_WITHIN, other_way).await;
        }
        Cut::Broken(self.error())
    }
}

/// Carries one direction until its source has closed. Once the relay has broken, that end is not passed on: the kernel
/// reports a reset only once, to a read or to a write.
async fn one_way<S: RelaySide, D: RelaySide>(
    (mut from, mut to): (S::In, D::Out),
    mut carrier: impl Carrier<S::In, D::Out>,
    (count, sitter): (&AtomicU64, &Sitter),
    has_broken: &AtomicBool,
) -> Result<(S::In, D::Out), Broken> {
    loop {
        let read = carrier.read(&mut from, &to).await;
        let has_broken = has_broken.load(Ordering::Relaxed);
        if read.is_err() || has_broken && matches!(read, Ok(false)) {
            // A reset discards data that was written but has not come.
            let _ = timeout(LAST_WORDS_WITHIN, has_come::<D>(&to)).await;
        }
        if !read.map_err(Broken::Source)? {
            if !has_broken {
                to.shutdown().await.map_err(Broken::Sink)?;
            }
            return Ok((from, to));
        }
        // The next read waits until this is written: a slow reader stops its sender.
        while carrier.has_more() {
            let written = tokio::select! {
                biased;
                written = carrier.write(&from, &mut to) => written.map_err(Broken::Sink)?,
                () = has_spoken_its_last::<S>(&from) => {
                    return Err(Broken::Source(io::ErrorKind::ConnectionReset.into()));
                }
            };
            if written > 0 {
                sitter.moves();
                count.fetch_add(u64::try_from(written).unwrap_or(0), Ordering::Relaxed);
            }
        }
    }
}

async fn has_come<D: RelaySide>(to: &D::Out) {
    while !D::has_it_all(to) {
        sleep(LOOK_FOR_ACKS_EVERY).await;
    }
}

/// A peer that breaks off while its data is not taken would keep its seat for as long as that lasts.
async fn has_spoken_its_last<S: RelaySide>(from: &S::In) {
    S::broke_off(from).await;
    sleep(LAST_WORDS_WITHIN).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};

    use super::carrier::CHUNK;
    use super::*;
    use crate::seats::{Seat, Seats};

    const PATIENCE: Duration = Duration::from_secs(10);

    impl RelaySide for DuplexStream {
        type In = tokio::io::ReadHalf<DuplexStream>;
        type Out = tokio::io::WriteHalf<DuplexStream>;

        fn split(self) -> (Self::In, Self::Out) {
            tokio::io::split(self)
        }

        async fn hung_up(_: &Self::In) -> io::Result<()> {
            std::future::pending().await
        }

        async fn broke_off(_: &Self::In) {
            std::future::pending::<()>().await;
        }

        fn has_it_all(_: &Self::Out) -> bool {
            true
        }
    }

    #[test]
    fn a_vanished_peer_over_the_mesh_keeps_its_seat_for_minutes_unless_the_file_says_otherwise() {
        let plain = Options {
            nagle: true,
            keep_alive: None,
            user_timeout: Duration::from_secs(300),
            hop_limit: 64,
            dscp: 0,
            report_errors: true,
        };
        let asked = of_relay(plain).keep_alive.expect("it asks by itself");
        let gone_after = asked.idle + asked.interval * u32::from(asked.probes);
        let minutes = |count: u64| Duration::from_secs(60 * count);
        assert!((minutes(2)..=minutes(7)).contains(&gone_after), "{gone_after:?}");
        let of_file = KeepAlive { idle: minutes(60), ..asked };
        let kept = of_relay(Options { keep_alive: Some(of_file), ..plain });
        assert_eq!((kept.keep_alive, kept.nagle), (Some(of_file), false));
    }

    fn carriers() -> (ByChunk, ByChunk) {
        (ByChunk::default(), ByChunk::default())
    }

    fn seat() -> Seat {
        Seats::new(1, PATIENCE, None).take(std::net::Ipv4Addr::LOCALHOST).expect("free")
    }

    #[tokio::test]
    async fn a_side_that_closed_for_writing_still_hears_the_other() {
        let (mut client, local) = duplex(64);
        let (mut server, mesh) = duplex(64);
        let (relayed, seat) = (Relayed::default(), seat());
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
        let both = async { tokio::join!(relay((local, mesh), carriers(), &relayed, seat.sitter()), talk) };
        let (ended, heard) = timeout(PATIENCE, both).await.expect("it ends");
        ended.expect("both sides closed in order");
        assert_eq!(heard, ("question".to_owned(), "answer".to_owned()));
        assert_eq!(relayed.to_mesh.load(Ordering::Relaxed), 8);
        assert_eq!(relayed.from_mesh.load(Ordering::Relaxed), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_does_not_read_stops_its_sender() {
        let (mut client, local) = duplex(1024);
        let (_server, mesh) = duplex(1024);
        let (relayed, seat) = (Relayed::default(), seat());
        let endless = async {
            let mut written = 0_usize;
            loop {
                written += client.write(&[7; 1024]).await.expect("open");
                assert!(written <= CHUNK + 16 * 1024, "nothing holds the sender back");
            }
        };
        tokio::select! {
            _ = relay((local, mesh), carriers(), &relayed, seat.sitter()) => panic!("nobody closed"),
            () = endless => {}
            () = sleep(Duration::from_secs(60)) => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_slow_but_steady_keeps_its_seat() {
        let seats = Seats::new(1, Duration::from_secs(30), None);
        let seat = seats.take(std::net::Ipv4Addr::LOCALHOST).expect("free");
        let (mut client, local) = duplex(1024);
        let (mut server, mesh) = duplex(CHUNK);
        let relayed = Relayed::default();
        server.write_all(&[7; CHUNK]).await.expect("open");
        let steady = async {
            for _ in 0..10 {
                sleep(Duration::from_secs(20)).await;
                client.read_exact(&mut [0; 512]).await.expect("open");
                assert!(seats.take(std::net::Ipv4Addr::LOCALHOST).is_none(), "it is taken");
            }
        };
        tokio::select! {
            _ = relay((local, mesh), carriers(), &relayed, seat.sitter()) => panic!("nobody closed"),
            () = seat.sitter().told_to_go() => panic!("it reads"),
            () = steady => {}
        }
    }

    #[tokio::test]
    async fn a_side_that_breaks_ends_the_other() {
        let (client, local) = duplex(64);
        let (mut server, mesh) = duplex(64);
        drop(client);
        let (relayed, seat) = (Relayed::default(), seat());
        let talk = async {
            // The client is gone: writing to it fails, and the relay ends.
            for _ in 0..64 {
                if server.write_all(&[1; 64]).await.is_err() {
                    break;
                }
            }
        };
        let both = async { tokio::join!(relay((local, mesh), carriers(), &relayed, seat.sitter()), talk) };
        let (ended, ()) = timeout(PATIENCE, both).await.expect("it ends");
        assert!(ended.is_err());
    }
}
