//! The proxy's control socket: one line of JSON tells or asks, one line answers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use hopwise_core::LinkEvent;
use serde::{Deserialize, Serialize};

/// What a link layer, or whoever speaks for it, says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Request {
    GoingDown {
        peer: IpAddr,
        rtt_us: u64,
        outage_us: u64,
    },
    Gone {
        peer: IpAddr,
    },
    Up {
        peer: IpAddr,
    },
    /// How strongly the mobile was heard just now.
    Signal {
        peer: IpAddr,
        dbm: i8,
    },
    Status,
}

impl Request {
    pub(super) fn event(self) -> Option<LinkEvent<'static>> {
        match self {
            Request::GoingDown { peer, rtt_us, outage_us } => Some(LinkEvent::GoingDown {
                peer,
                rtt: Duration::from_micros(rtt_us),
                outage: Duration::from_micros(outage_us),
            }),
            Request::Gone { peer } => Some(LinkEvent::Gone { peer }),
            Request::Up { peer } => Some(LinkEvent::Up { peer }),
            Request::Signal { .. } | Request::Status => None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Status {
    pub(super) flows: usize,
    pub(super) packets: u64,
    pub(super) untouched: u64,
    pub(super) kept_packets: usize,
    pub(super) kept_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Response {
    Done,
    Status(Status),
    Refused(String),
}

/// Who is slower than this is not waited for.
const WITHIN: Duration = Duration::from_secs(2);
const LONGEST_LINE: u64 = 4096;

/// Serves one client at a time until the listener is gone; `answer` says `None` when the proxy has ended.
pub(super) fn serve(listener: &UnixListener, mut answer: impl FnMut(Request) -> Option<Response>) {
    for client in listener.incoming() {
        // Who is gone or too slow gets nothing.
        let Ok(client) = client else { continue };
        match talk(&client, &mut answer) {
            Ok(true) | Err(_) => {}
            Ok(false) => return,
        }
    }
}

fn talk(client: &UnixStream, answer: &mut impl FnMut(Request) -> Option<Response>) -> io::Result<bool> {
    client.set_read_timeout(Some(WITHIN))?;
    client.set_write_timeout(Some(WITHIN))?;
    let mut line = String::new();
    BufReader::new(client.take(LONGEST_LINE)).read_line(&mut line)?;
    let response = match serde_json::from_str(&line) {
        Ok(request) => match answer(request) {
            Some(response) => response,
            None => return Ok(false),
        },
        Err(error) => Response::Refused(format!("nobody understands that: {error}")),
    };
    let mut text = serde_json::to_string(&response).map_err(io::Error::other)?;
    text.push('\n');
    (&*client).write_all(text.as_bytes())?;
    Ok(true)
}

/// Asks a proxy that runs.
pub(super) fn ask(path: &Path, request: Request) -> io::Result<Response> {
    let client = UnixStream::connect(path)?;
    client.set_read_timeout(Some(WITHIN))?;
    let mut line = serde_json::to_string(&request).map_err(io::Error::other)?;
    line.push('\n');
    (&client).write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(&client).read_line(&mut answer)?;
    serde_json::from_str(&answer).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_told_and_nonsense_is_refused() {
        let folder = std::env::temp_dir().join(format!("hopwise-proxy-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("a.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let server = std::thread::spawn(move || {
            let mut told = Vec::new();
            serve(&listener, |request| {
                if request == Request::Status {
                    return None;
                }
                told.push(request);
                Some(Response::Done)
            });
            told
        });
        let peer = IpAddr::from([10, 9, 0, 2]);
        let down = Request::GoingDown { peer, rtt_us: 20_000, outage_us: 10_000_000 };
        assert_eq!(ask(&path, down).expect("an answer"), Response::Done);
        let mut client = UnixStream::connect(&path).expect("a client");
        client.write_all(b"{\"tell\":\"gone\",\"peer\":\"nobody\"}\n").expect("written");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains("nobody understands that"), "{answer}");
        drop(ask(&path, Request::Status));
        assert_eq!(server.join().expect("no panic"), [down]);
        let _ = std::fs::remove_dir_all(folder);
    }
}
