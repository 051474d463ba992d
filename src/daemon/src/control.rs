//! A daemon's control socket: one line of JSON for a request, one for the answer. Only root and the daemon's user may
//! send requests.

use std::fs;
use std::io::{self, BufRead, BufReader as StdReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::failure::Failure;
use super::privileges::NOBODY;
use super::spawn;

/// A request to a daemon.
pub trait Question: DeserializeOwned + Send + 'static {
    /// Returns whether routing daemons send it.
    fn is_of_routing(&self) -> bool;
}

/// The answer of a daemon.
pub trait Answer: Serialize + DeserializeOwned + Send + 'static {
    /// A refusal, and its reason.
    fn refused(problem: String) -> Self;
}

/// The largest number of clients, the time for a request, and its longest size.
const MOST_CLIENTS: usize = 32;
/// The largest number of clients that wait to be accepted.
const MOST_WAITING: i32 = 128;
const ASK_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const LONGEST_QUESTION: u64 = 64 << 10;
/// A snapshot of 1,000 connections is shorter.
const LONGEST_ANSWER: u64 = 16 << 20;

/// The path of the socket. Its file is removed with this value, unless another file has taken the path.
#[derive(Debug)]
pub struct BoundSocket {
    pub listener: StdListener,
    path: PathBuf,
    inode: u64,
    /// The folder, if it was made for the socket.
    folder: Option<PathBuf>,
}

impl BoundSocket {
    /// Refuses if a daemon already answers there, and removes the socket of a crashed one.
    pub fn new(path: &Path) -> io::Result<BoundSocket> {
        let folder = make_folder(path)?;
        match fs::symlink_metadata(path) {
            Ok(facts) if !facts.file_type().is_socket() => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "a file that is no socket stands there",
                ));
            }
            Ok(_) if is_served(path) => {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon answers there"));
            }
            Ok(_) => fs::remove_file(path)?,
            Err(_) => {}
        }
        let listener = listen(path)?;
        let inode = std::os::unix::fs::MetadataExt::ino(&fs::symlink_metadata(path)?);
        Ok(BoundSocket { listener, path: path.to_owned(), inode, folder })
    }

    /// The socket of a daemon that does not run without it.
    pub fn bind(path: &Path) -> Result<BoundSocket, Failure> {
        BoundSocket::new(path).map_err(|error| {
            Failure::failed("make the control socket", format_args!("{}: {error}", path.display()))
        })
    }

    /// Its listener, for tasks of a runtime.
    pub fn listen(&self, runtime: &Runtime) -> io::Result<UnixListener> {
        let _inside = runtime.enter();
        self.listener.try_clone().and_then(UnixListener::from_std)
    }

    /// Answers on a thread of its own, until the process ends.
    pub fn serve_beside<Q: Question, A: Answer>(
        &self,
        answer: impl Fn(Q) -> A + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        let failed = Failure::during("serve the control socket");
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let listener = self.listen(&runtime).map_err(failed)?;
        spawn("control", move || runtime.block_on(serve(listener, answer)))
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        let is_ours = |facts: fs::Metadata| std::os::unix::fs::MetadataExt::ino(&facts) == self.inode;
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::info!(%error, path = %self.path.display(), "the control socket stays until the next start");
        }
        // Another user may run here next. A folder with other files stays.
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Returns whether a program listens there. A stuck one may have a full queue of clients, and waiting there could last
/// for ever.
fn is_served(path: &Path) -> bool {
    matches!(knock(path), Ok(()) | Err(Errno::AGAIN))
}

/// Returns whether no program listens there any more: after a crash, or after a daemon that could not remove it.
pub fn is_left_behind(path: &Path) -> bool {
    knock(path) == Err(Errno::CONNREFUSED)
}

fn knock(path: &Path) -> rustix::io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)
}

/// Makes the folder; returns it if it was missing.
fn make_folder(path: &Path) -> io::Result<Option<PathBuf>> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(None) };
    if folder.is_dir() {
        return Ok(None);
    }
    fs::create_dir_all(folder)?;
    Ok(Some(folder.to_owned()))
}

/// The file has its mode from the start: a later change by name could reach another file.
fn listen(path: &Path) -> io::Result<StdListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, MOST_WAITING)?;
    Ok(socket.into())
}

/// The requests that a user may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MayAsk {
    All,
    /// Many kinds of programs run as `nobody`, the routing daemon among them if its file says so.
    OfRouting,
    Nothing,
}

impl MayAsk {
    fn of(user: u32, own: u32) -> MayAsk {
        match user {
            0 => MayAsk::All,
            NOBODY if own == NOBODY => MayAsk::OfRouting,
            user if user == own => MayAsk::All,
            _ => MayAsk::Nothing,
        }
    }
}

/// Answers root, and the daemon's own user.
pub async fn serve<Q: Question, A: Answer>(
    listener: UnixListener,
    answer: impl Fn(Q) -> A + Send + Sync + 'static,
) {
    let (answer, permits) = (Arc::new(answer), Arc::new(Semaphore::new(MOST_CLIENTS)));
    let own = nix::unistd::geteuid().as_raw();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // The permissions of the socket's file say so too, but somebody may change them.
        let may = client.peer_cred().map_or(MayAsk::Nothing, |peer| MayAsk::of(peer.uid(), own));
        if may == MayAsk::Nothing {
            tracing::warn!("control: a user was turned away: only root and the daemon's own user may ask");
            turn_away::<A>(&client);
            continue;
        }
        let answer = Arc::clone(&answer);
        tokio::spawn(async move {
            let _permit = permit;
            // A client that is too slow or gone gets nothing.
            let _ = timeout(ASK_WITHIN, talk(client, may, answer)).await;
        });
    }
}

/// Answers at once, whatever the request: no other client waits for it.
fn turn_away<A: Answer>(client: &UnixStream) {
    let answer = A::refused("only root and the daemon's user may ask".to_owned());
    if let Ok(text) = serde_json::to_string(&answer) {
        // It fits into an empty socket, unless the client is gone. The runtime has not yet found out that the socket is
        // writable.
        let _ = rustix::io::write(client, format!("{text}\n").as_bytes());
    }
}

pub(super) async fn talk<Q: Question, A: Answer>(
    client: UnixStream,
    may: MayAsk,
    answer: Arc<impl Fn(Q) -> A + Send + Sync + 'static>,
) -> io::Result<()> {
    let mut client = BufReader::new(client);
    let mut line = String::new();
    (&mut client).take(LONGEST_QUESTION).read_line(&mut line).await?;
    let response = match serde_json::from_str::<Q>(&line) {
        Ok(request) if may != MayAsk::All && !request.is_of_routing() => A::refused(
            "only root may ask this of a daemon that is `nobody`: give it another `user`".to_owned(),
        ),
        // An answer may wait for a disk.
        Ok(request) => {
            tokio::task::spawn_blocking(move || answer(request)).await.map_err(io::Error::other)?
        }
        Err(error) => A::refused(format!("a question that nobody understands: {error}")),
    };
    let mut text = serde_json::to_string(&response).map_err(io::Error::other)?;
    text.push('\n');
    client.get_mut().write_all(text.as_bytes()).await?;
    client.get_mut().shutdown().await
}

/// Sends a request to a daemon, and waits for its answer.
pub fn ask<Q: Serialize, A: Answer>(path: &Path, question: &Q) -> io::Result<A> {
    ask_within(path, question, ANSWER_WITHIN)
}

/// Asks a daemon, and waits for the answer no longer than `within`.
pub fn ask_within<Q: Serialize, A: Answer>(path: &Path, question: &Q, within: Duration) -> io::Result<A> {
    ask_line(path, &serde_json::to_string(question).map_err(io::Error::other)?, within)
}

fn ask_line<A: Answer>(path: &Path, question: &str, within: Duration) -> io::Result<A> {
    let until = Instant::now() + within;
    let mut stream = connected(path, within)?;
    // A refused client gets its answer before its request, and can send no more.
    let asked = stream.write_all(format!("{question}\n").as_bytes());
    let mut answer = String::new();
    let answers = Answering { stream, until };
    let heard = StdReader::new(answers).take(LONGEST_ANSWER).read_line(&mut answer);
    if !answer.ends_with('\n') {
        asked?;
        heard?;
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_str(&answer).map_err(io::Error::other)
}

/// A connection whose writes have that time, as the connecting has: a daemon may be too stuck to accept.
fn connected(path: &Path, within: Duration) -> io::Result<StdStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(within))?;
    connect(&socket, &SocketAddrUnix::new(path)?).map_err(in_time)?;
    Ok(socket.into())
}

fn in_time(error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    if error.kind() == io::ErrorKind::WouldBlock { late() } else { error }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time")
}

/// A daemon that answers. It has one time for all of its answer.
struct Answering {
    stream: StdStream,
    until: Instant,
}

impl Read for Answering {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into).map_err(in_time)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    enum Asked {
        Status,
        Other,
    }

    impl Question for Asked {
        fn is_of_routing(&self) -> bool {
            *self == Asked::Other
        }
    }

    #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
    enum Reply {
        Pid(u32),
        No(String),
    }

    impl Answer for Reply {
        fn refused(problem: String) -> Reply {
            Reply::No(problem)
        }
    }

    /// A path that no other test uses.
    fn path(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("hopwise-{test}-{}", std::process::id())).join("a.sock")
    }

    #[test]
    fn nobody_s_programs_may_ask_of_routes_alone_and_the_daemon_s_own_may_ask_all() {
        assert_eq!([MayAsk::of(0, 7), MayAsk::of(7, 7), MayAsk::of(0, NOBODY)], [MayAsk::All; 3]);
        assert_eq!([MayAsk::of(8, 7), MayAsk::of(NOBODY, 7), MayAsk::of(7, NOBODY)], [MayAsk::Nothing; 3]);
        assert_eq!(MayAsk::of(NOBODY, NOBODY), MayAsk::OfRouting);
    }

    #[test]
    fn a_daemon_too_stuck_to_be_asked_is_a_daemon() {
        let path = path("control-stuck");
        make_folder(&path).expect("it can be made");
        let stuck = StdListener::bind(&path).expect("it is bound");
        // Room for one waiting client, and no more.
        rustix::net::listen(&stuck, 0).expect("it is a listener");
        // The first one waits for ever.
        assert!(is_served(&path) && is_served(&path) && is_served(&path) && !is_left_behind(&path));
        drop(stuck);
        assert!(!is_served(&path) && is_left_behind(&path), "what a crash has left");
        fs::remove_dir_all(path.parent().expect("a folder")).expect("it is there");
    }

    #[test]
    fn the_socket_is_its_owners_alone_and_goes_with_the_daemon() {
        let path = path("control-mode");
        let bound = BoundSocket::new(&path).expect("it is bound");
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = BoundSocket::new(&path).expect_err("a daemon answers there");
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(bound);
        assert!(!path.exists());
        assert!(!path.parent().expect("a folder").exists(), "it was made for the socket");
    }

    #[test]
    fn what_a_crash_left_is_cleared_and_anything_else_is_kept() {
        let path = path("control-crash");
        let bound = BoundSocket::new(&path).expect("it is bound");
        let BoundSocket { listener, .. } = &bound;
        // A crash closes the socket and leaves its file.
        let copy = path.with_extension("old");
        fs::rename(&path, &copy).expect("a name");
        drop(listener.try_clone());
        drop(bound);
        fs::rename(&copy, &path).expect("a name");
        drop(BoundSocket::new(&path).expect("nobody answers there"));
        fs::write(&path, "precious").expect("a file");
        let refused = BoundSocket::new(&path).expect_err("a file stands there");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        let _ = fs::remove_dir_all(path.parent().expect("a folder"));
    }

    #[tokio::test]
    async fn questions_are_answered_and_nonsense_is_refused() {
        let path = path("control-talk");
        let bound = BoundSocket::new(&path).expect("it is bound");
        let listener = UnixListener::from_std(bound.listener.try_clone().expect("a copy")).expect("a socket");
        let answer = |question| match question {
            Asked::Status => Reply::Pid(7),
            Asked::Other => Reply::No("no".into()),
        };
        let server = tokio::spawn(serve(listener, answer));
        let ask = |line: &'static str| {
            let path = path.clone();
            tokio::task::spawn_blocking(move || {
                ask_line::<Reply>(&path, line, ANSWER_WITHIN).expect("an answer")
            })
        };
        let status = ask("\"Status\"").await.expect("no panic");
        assert_eq!(status, Reply::Pid(7));
        let nonsense = ask("hello").await.expect("no panic");
        assert!(matches!(nonsense, Reply::No(problem) if problem.contains("nobody understands")));
        server.abort();
        drop(bound);
        let _ = fs::remove_dir_all(path.parent().expect("a folder"));
    }

    #[test]
    fn a_daemon_has_one_time_for_all_of_its_answer() {
        let path = path("control-drip");
        make_folder(&path).expect("it can be made");
        let listener = StdListener::bind(&path).expect("it is bound");
        let drips = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("it asks");
            while client.write_all(b"x").is_ok() {
                std::thread::park_timeout(Duration::from_millis(10));
            }
            // It accepts no other, and its queue is full.
            rustix::net::listen(&listener, 0).expect("it is a listener");
            listener
        });
        let late =
            || ask_line::<Reply>(&path, "\"Status\"", Duration::from_millis(200)).expect_err("no answer");
        assert_eq!(late().kind(), io::ErrorKind::TimedOut);
        let _stuck = drips.join().expect("it drips no more");
        assert_eq!([(); 3].map(|()| late().kind()), [io::ErrorKind::TimedOut; 3]);
        fs::remove_dir_all(path.parent().expect("a folder")).expect("it is there");
    }

    #[tokio::test]
    async fn a_routing_daemon_that_is_nobody_hears_of_routes_and_nothing_else() {
        for (line, expected) in [("\"Other\"", "\"no\""), ("\"Status\"", "only root")] {
            let (client, server) = UnixStream::pair().expect("a pair");
            let talking = tokio::spawn(talk(
                server,
                MayAsk::OfRouting,
                Arc::new(|_: Asked| Reply::No("no".to_owned())),
            ));
            let mut client = BufReader::new(client);
            client.get_mut().write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
            let mut answer = String::new();
            client.read_line(&mut answer).await.expect("it answers");
            assert!(answer.contains(expected), "{answer}");
            talking.await.expect("no panic").expect("it ends well");
        }
    }
}
