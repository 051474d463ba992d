//! Honest programs: each transfer is random bytes both ways, and both ends' SHA-256 are compared.
//!
//! A client sends a header of 24 bytes: the seed of its bytes, their number, and the number of bytes that it wants. The
//! server answers with the SHA-256 of the received bytes, and then with the wanted bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hopwise_testing::memory::Random;
use sha2::{Digest, Sha256};

use crate::Tally;
use crate::inside::pause;
use crate::place::{Namespace, enter};

/// A transfer without progress for this long is given up, and a new transfer begins.
const STILL: Duration = Duration::from_secs(20);
const CHUNK: usize = 16 << 10;
const HEADER: usize = 24;
const DIGEST: usize = 32;

/// The end of a transfer.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Whole,
    Cut(String),
    /// A fault that must never happen: wrong bytes.
    Wrong(String),
    /// The client went away on purpose.
    Left,
}

/// A client's route to its server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) to: SocketAddr,
    /// The target in the request to a SOCKS5 proxy at `to`.
    pub(crate) through: Option<SocketAddr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) place: Namespace,
    pub(crate) route: Route,
    /// The most bytes in each direction.
    pub(crate) most: u64,
    /// The client leaves one of this many transfers early.
    pub(crate) leaves_one_in: u64,
    /// No event is an excuse for a transfer that is cut.
    pub(crate) is_unbroken: bool,
}

/// A client that makes one transfer after the other.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) name: String,
    whole: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flow {
    /// Starts a client. `kills` is odd while daemons of its site are killed, and grows: a kernel closes a killed
    /// program's connections in good order.
    pub(crate) fn start(plan: Plan, seed: u64, kills: &Arc<AtomicU64>, tally: &Arc<Tally>) -> Flow {
        let (whole, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let name = plan.name.clone();
        let (kills, tally) = (Arc::clone(kills), Arc::clone(tally));
        let (count, until) = (Arc::clone(&whole), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut random = Random::new(seed, 0);
            while !until.load(Ordering::Relaxed) {
                let before = kills.load(Ordering::SeqCst);
                let seed = random.next_u64();
                let ended = plan.place.inside(|| transfer(&plan, seed));
                let ended = ended.unwrap_or_else(|error| Ended::Cut(error.to_string()));
                let ended = match ended {
                    Ended::Cut(why) if plan.is_unbroken => Ended::Wrong(format!("a transfer was cut: {why}")),
                    ended => ended,
                };
                let is_killed = before % 2 == 1 || kills.load(Ordering::SeqCst) != before;
                let is_killed = is_killed && !plan.is_unbroken;
                tally.book(&plan.name, is_killed, &ended);
                count.fetch_add(u64::from(ended == Ended::Whole), Ordering::Relaxed);
                pause(Duration::from_millis(random.between(20, 300)));
            }
        });
        Flow { name, whole, stop, thread: Some(thread) }
    }

    /// Transfers that came whole.
    pub(crate) fn whole(&self) -> u64 {
        self.whole.load(Ordering::Relaxed)
    }

    pub(crate) fn tell_to_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.tell_to_stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Tally {
    fn book(&self, flow: &str, is_killed: bool, ended: &Ended) {
        match ended {
            Ended::Whole => drop(self.whole.fetch_add(1, Ordering::Relaxed)),
            Ended::Left => drop(self.left.fetch_add(1, Ordering::Relaxed)),
            Ended::Cut(why) => {
                self.cut.fetch_add(1, Ordering::Relaxed);
                *self.cut_by.lock().entry(why.clone()).or_default() += 1;
            }
            Ended::Wrong(what) if is_killed && what.starts_with(EARLY) => {
                self.cut.fetch_add(1, Ordering::Relaxed);
                *self.cut_by.lock().entry(format!("a kill: {EARLY}")).or_default() += 1;
            }
            Ended::Wrong(what) => self.violated(format!("{flow}: {what}")),
        }
    }
}

const EARLY: &str = "a clean end came early";

fn transfer(plan: &Plan, seed: u64) -> Ended {
    let mut random = Random::new(seed, 1);
    let up = random.log_between(1, plan.most);
    let down = random.log_between(1, plan.most);
    let closes_early = random.one_in(2);
    let leaves = plan.leaves_one_in > 0 && random.one_in(plan.leaves_one_in);
    let mut stream = match connect(plan.route) {
        Ok(stream) => stream,
        Err(error) => return Ended::Cut(format!("connect: {error}")),
    };
    let mut header = [0; HEADER];
    for (into, value) in header.chunks_mut(8).zip([seed, up, down]) {
        into.copy_from_slice(&value.to_be_bytes());
    }
    let sent = stream.write_all(&header).and_then(|()| send(&mut stream, seed, up));
    let sent = match sent {
        Ok(sent) => sent,
        Err(error) => return Ended::Cut(format!("send: {error}")),
    };
    if leaves {
        return Ended::Left;
    }
    if closes_early && let Err(error) = stream.shutdown(Shutdown::Write) {
        return Ended::Cut(format!("close: {error}"));
    }
    match check(&mut stream, &sent, seed, (up, down)) {
        Ok(ended) => ended,
        Err(error) => Ended::Cut(format!("receive: {error}")),
    }
}

fn connect(route: Route) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&route.to, STILL)?;
    stream.set_read_timeout(Some(STILL))?;
    stream.set_write_timeout(Some(STILL))?;
    let Some(SocketAddr::V4(target)) = route.through else { return Ok(stream) };
    let mut asks = vec![5, 1, 0, 5, 1, 0, 1];
    asks.extend(target.ip().octets());
    asks.extend(target.port().to_be_bytes());
    stream.write_all(&asks[..3])?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer)?;
    stream.write_all(&asks[3..])?;
    let mut answer = [0; 10];
    stream.read_exact(&mut answer)?;
    if answer[1] != 0 {
        return Err(io::Error::other(format!("the proxy answers {}", answer[1])));
    }
    Ok(stream)
}

/// Sends this many bytes of the seed. Returns their SHA-256.
fn send(stream: &mut TcpStream, seed: u64, bytes: u64) -> io::Result<[u8; DIGEST]> {
    let (mut random, mut hash, mut rest) = (Random::new(seed, 2), Sha256::new(), bytes);
    let mut chunk = vec![0; CHUNK];
    while rest > 0 {
        let size = rest.min(CHUNK as u64) as usize;
        for word in chunk[..size].chunks_mut(8) {
            word.copy_from_slice(&random.next_u64().to_le_bytes()[..word.len()]);
        }
        hash.update(&chunk[..size]);
        stream.write_all(&chunk[..size])?;
        rest -= size as u64;
    }
    Ok(hash.finalize().into())
}

/// Reads this many bytes, or what comes before a clean end.
fn receive(stream: &mut TcpStream, bytes: u64) -> io::Result<(u64, [u8; DIGEST])> {
    let (mut hash, mut got) = (Sha256::new(), 0);
    let mut chunk = vec![0; CHUNK];
    while got < bytes {
        let room = (bytes - got).min(CHUNK as u64) as usize;
        match stream.read(&mut chunk[..room]) {
            Ok(0) => break,
            Ok(read) => {
                hash.update(&chunk[..read]);
                got += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((got, hash.finalize().into()))
}

fn expected(seed: u64, bytes: u64) -> [u8; DIGEST] {
    let (mut random, mut hash, mut rest) = (Random::new(seed, 2), Sha256::new(), bytes);
    while rest > 0 {
        let word = random.next_u64().to_le_bytes();
        let size = rest.min(8) as usize;
        hash.update(&word[..size]);
        rest -= size as u64;
    }
    hash.finalize().into()
}

/// Reads the server's answer, and compares it with the figures known here.
fn check(
    stream: &mut TcpStream,
    sent: &[u8; DIGEST],
    seed: u64,
    (up, down): (u64, u64),
) -> io::Result<Ended> {
    let mut digest = [0; DIGEST];
    let mut filled = 0;
    while filled < DIGEST {
        match stream.read(&mut digest[filled..])? {
            0 => return Ok(Ended::Wrong(format!("{EARLY}: {filled} of {DIGEST} bytes of the answer"))),
            read => filled += read,
        }
    }
    if digest != *sent {
        return Ok(Ended::Wrong(format!("other bytes came than were sent: {up} from seed {seed}")));
    }
    let (got, hash) = receive(stream, down)?;
    if got < down {
        return Ok(Ended::Wrong(format!("{EARLY}: after {got} of {down} bytes")));
    }
    if hash != expected(!seed, down) {
        return Ok(Ended::Wrong(format!("other bytes came back than were sent: {down} from seed {}", !seed)));
    }
    stream.shutdown(Shutdown::Write).or_else(|error| {
        // Both ends have closed already.
        if error.kind() == ErrorKind::NotConnected { Ok(()) } else { Err(error) }
    })?;
    match stream.read(&mut [0]) {
        Ok(0) => Ok(Ended::Whole),
        Ok(_) => Ok(Ended::Wrong("more bytes came than were sent".to_owned())),
        Err(error) => Err(error),
    }
}

/// A server for such clients, in threads of its own.
#[derive(Debug)]
pub(crate) struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(place: &Namespace, at: SocketAddr) -> io::Result<Server> {
        let listener = place.inside(|| TcpListener::bind(at))??;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (until, name) = (Arc::clone(&stop), place.name().to_owned());
        let thread = thread::spawn(move || {
            let _ = enter(&name);
            while !until.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => drop(thread::spawn(move || serve(stream))),
                    Err(_) => pause(Duration::from_millis(10)),
                }
            }
        });
        Ok(Server { stop, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Serves a client, which reports any break.
fn serve(mut stream: TcpStream) {
    let _ = serve_one(&mut stream);
}

/// The client's seed, the number of its bytes, and the number that it wants.
fn read_header(header: &[u8; HEADER]) -> (u64, u64, u64) {
    let value = |at: usize| header[at..at + 8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    (value(0), value(8), value(16))
}

fn serve_one(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(STILL))?;
    stream.set_write_timeout(Some(STILL))?;
    let mut header = [0; HEADER];
    stream.read_exact(&mut header)?;
    let (seed, up, down) = read_header(&header);
    let (got, digest) = receive(stream, up)?;
    if got < up {
        return Ok(());
    }
    stream.write_all(&digest)?;
    send(stream, !seed, down)?;
    stream.shutdown(Shutdown::Write)?;
    // The client sends nothing more.
    let _ = stream.read(&mut [0]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a transfer with a server that answers so.
    fn met_by(server: fn(TcpStream) -> io::Result<()>) -> Ended {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let to = listener.local_addr().expect("it is bound");
        let serving = thread::spawn(move || server(listener.accept().expect("a client").0));
        let (place, route) = (Namespace::named("here"), Route { to, through: None });
        let plan = Plan {
            name: "a client".to_owned(),
            place,
            route,
            most: 100_000,
            leaves_one_in: 0,
            is_unbroken: false,
        };
        let ended = transfer(&plan, 7);
        let _ = serving.join();
        ended
    }

    fn header(stream: &mut TcpStream) -> io::Result<(u64, u64, u64)> {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header)?;
        Ok(read_header(&header))
    }

    #[test]
    fn an_honest_server_is_believed_and_every_other_one_is_found_out() {
        assert_eq!(met_by(|mut stream| serve_one(&mut stream)), Ended::Whole);
        let spoils_what_came = met_by(|mut stream| {
            let (_, up, _) = header(&mut stream)?;
            let (_, mut digest) = receive(&mut stream, up)?;
            digest[31] ^= 1;
            stream.write_all(&digest)
        });
        let spoils_what_leaves = met_by(|mut stream| {
            let (seed, up, down) = header(&mut stream)?;
            let (_, digest) = receive(&mut stream, up)?;
            stream.write_all(&digest)?;
            send(&mut stream, seed, down).map(drop)
        });
        for ended in [spoils_what_came, spoils_what_leaves] {
            assert!(matches!(&ended, Ended::Wrong(what) if what.starts_with("other bytes")), "{ended:?}");
        }
        let stops_early = met_by(|mut stream| {
            let (seed, up, down) = header(&mut stream)?;
            let (_, digest) = receive(&mut stream, up)?;
            stream.write_all(&digest)?;
            send(&mut stream, !seed, down - 1).map(drop)
        });
        assert!(matches!(&stops_early, Ended::Wrong(what) if what.starts_with(EARLY)), "{stops_early:?}");
        let goes_on = met_by(|mut stream| serve_honestly_and(&mut stream, b"more"));
        assert_eq!(goes_on, Ended::Wrong("more bytes came than were sent".to_owned()));
    }

    fn serve_honestly_and(stream: &mut TcpStream, more: &[u8]) -> io::Result<()> {
        let (seed, up, down) = header(stream)?;
        let (_, digest) = receive(stream, up)?;
        stream.write_all(&digest)?;
        send(stream, !seed, down)?;
        stream.write_all(more)
    }
}
