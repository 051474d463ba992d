//! The control socket: one line of JSON asks, one line answers.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::snapshot::{CaptureSnapshot, Snapshot};

pub(crate) mod client;

/// What may be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Request {
    Status,
    CaptureStart {
        file: PathBuf,
        /// All where none is named.
        links: Vec<String>,
        rotate_bytes: Option<u64>,
        files: u32,
    },
    CaptureStop,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(crate) enum Response {
    Status(Box<Snapshot>),
    Capture(CaptureSnapshot),
    Refused { problem: String },
}

/// Clients at a time, how long one may take to ask, and how much it may say.
const MOST_CLIENTS: usize = 32;
const ASK_WITHIN: Duration = Duration::from_secs(5);
const LONGEST_QUESTION: u64 = 64 << 10;

/// The socket's file; it goes with this value, if it is still the same file.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) listener: StdListener,
    path: PathBuf,
    inode: u64,
    /// The folder, where it was made for the socket.
    folder: Option<PathBuf>,
}

impl Bound {
    /// Refuses where a daemon answers already, and clears away what a crash has left.
    pub(crate) fn new(path: &Path) -> io::Result<Bound> {
        let folder = make_folder(path)?;
        match fs::symlink_metadata(path) {
            Ok(facts) if !facts.file_type().is_socket() => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "a file that is no socket stands there",
                ));
            }
            Ok(_) if StdStream::connect(path).is_ok() => {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon answers there"));
            }
            Ok(_) => fs::remove_file(path)?,
            Err(_) => {}
        }
        let listener = StdListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let inode = std::os::unix::fs::MetadataExt::ino(&fs::symlink_metadata(path)?);
        Ok(Bound { listener, path: path.to_owned(), inode, folder })
    }

    /// The daemon will be someone else, who has to remove it.
    pub(super) fn give_to(&self, uid: u32, gid: u32) -> io::Result<()> {
        for path in self.folder.iter().chain([&self.path]) {
            std::os::unix::fs::lchown(path, Some(uid), Some(gid))?;
        }
        Ok(())
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let is_ours = |facts: fs::Metadata| std::os::unix::fs::MetadataExt::ino(&facts) == self.inode;
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "the control socket stays behind");
        }
    }
}

/// The folder, if it had to be made.
fn make_folder(path: &Path) -> io::Result<Option<PathBuf>> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(None) };
    if folder.is_dir() {
        return Ok(None);
    }
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    Ok(Some(folder.to_owned()))
}

/// Answers root, and whom the daemon is.
pub(super) async fn serve(
    listener: UnixListener,
    answer: impl Fn(Request) -> Response + Send + Sync + 'static,
) {
    let (answer, seats) = (Arc::new(answer), Arc::new(Semaphore::new(MOST_CLIENTS)));
    let own = nix::unistd::geteuid().as_raw();
    loop {
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else { return };
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // The file's permissions say the same; they can be changed, and this cannot.
        let is_allowed = client.peer_cred().is_ok_and(|peer| peer.uid() == 0 || peer.uid() == own);
        if !is_allowed {
            tracing::warn!("control: a user was turned away who is neither root nor the daemon's own");
            continue;
        }
        let answer = Arc::clone(&answer);
        tokio::spawn(async move {
            let _seat = seat;
            // Who is too slow or gone gets nothing.
            let _ = timeout(ASK_WITHIN, talk(client, answer)).await;
        });
    }
}

async fn talk(
    client: UnixStream,
    answer: Arc<impl Fn(Request) -> Response + Send + Sync + 'static>,
) -> io::Result<()> {
    let mut client = BufReader::new(client);
    let mut line = String::new();
    (&mut client).take(LONGEST_QUESTION).read_line(&mut line).await?;
    let response = match serde_json::from_str(&line) {
        // A capture that ends waits for its file.
        Ok(request) => {
            tokio::task::spawn_blocking(move || answer(request)).await.map_err(io::Error::other)?
        }
        Err(error) => Response::Refused { problem: format!("a question that nobody understands: {error}") },
    };
    let mut text = serde_json::to_string(&response).map_err(io::Error::other)?;
    text.push('\n');
    client.get_mut().write_all(text.as_bytes()).await?;
    client.get_mut().shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that no other test uses.
    fn path(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("hopwise-{test}-{}", std::process::id())).join("a.sock")
    }

    #[test]
    fn the_socket_is_its_owners_alone_and_goes_with_the_daemon() {
        let path = path("control-mode");
        let bound = Bound::new(&path).expect("it is bound");
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = Bound::new(&path).expect_err("a daemon answers there");
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(bound);
        assert!(!path.exists());
        let _ = fs::remove_dir(path.parent().expect("a folder"));
    }

    #[test]
    fn what_a_crash_left_is_cleared_and_anything_else_is_kept() {
        let path = path("control-crash");
        let bound = Bound::new(&path).expect("it is bound");
        let Bound { listener, .. } = &bound;
        // A crash closes the socket and leaves its file.
        let copy = path.with_extension("old");
        fs::rename(&path, &copy).expect("a name");
        drop(listener.try_clone());
        drop(bound);
        fs::rename(&copy, &path).expect("a name");
        drop(Bound::new(&path).expect("nobody answers there"));
        fs::write(&path, "precious").expect("a file");
        let refused = Bound::new(&path).expect_err("a file stands there");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        let _ = fs::remove_dir_all(path.parent().expect("a folder"));
    }

    #[tokio::test]
    async fn questions_are_answered_and_nonsense_is_refused() {
        let path = path("control-talk");
        let bound = Bound::new(&path).expect("it is bound");
        let listener = UnixListener::from_std(bound.listener.try_clone().expect("a copy")).expect("a socket");
        let answer = |request| match request {
            Request::Status => Response::Status(Box::new(Snapshot { pid: 7, ..Snapshot::default() })),
            _ => Response::Refused { problem: "no".into() },
        };
        let server = tokio::spawn(serve(listener, answer));
        let ask = |line: &'static str| {
            let path = path.clone();
            tokio::task::spawn_blocking(move || client::ask_line(&path, line).expect("an answer"))
        };
        let status = ask("{\"ask\":\"status\"}").await.expect("no panic");
        assert!(matches!(status, Response::Status(snapshot) if snapshot.pid == 7));
        let nonsense = ask("hello").await.expect("no panic");
        assert!(matches!(nonsense, Response::Refused { problem } if problem.contains("nobody understands")));
        server.abort();
        drop(bound);
        let _ = fs::remove_dir_all(path.parent().expect("a folder"));
    }
}
