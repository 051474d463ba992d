//! The bytes of a control socket's clients, for fuzz targets.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

use super::control::{Answer, MayAsk, Question, talk};

/// The clients of one input.
const MOST_CLIENTS: usize = 64;

/// The requests that clients with these lines make. A client sends one line. `answer` answers whatever was taken from
/// the socket; any other client is refused, unless its line is no text.
pub fn each<Q: Question, A: Answer>(lines: &[u8], is_routing: bool, mut answer: impl FnMut(Q) -> A) {
    let may = if is_routing { MayAsk::OfRouting } else { MayAsk::All };
    for line in lines.split_inclusive(|byte| *byte == b'\n').take(MOST_CLIENTS) {
        if let Some(question) = asked::<Q, A>(line, may) {
            assert!(question.is_of_routing() || !is_routing, "it was only for root");
            let text = serde_json::to_string(&answer(question)).expect("an answer is JSON");
            assert!(!text.contains('\n') && serde_json::from_str::<A>(&text).is_ok(), "{text}");
        }
    }
}

/// The request of one client, read as a daemon reads it.
fn asked<Q: Question, A: Answer>(line: &[u8], may: MayAsk) -> Option<Q> {
    let (mut client, server) = StdStream::pair().expect("a pair of sockets");
    client.write_all(line).expect("it fits into a socket");
    client.shutdown(Shutdown::Write).expect("it is open");
    server.set_nonblocking(true).expect("it is open");
    let taken = Arc::new(Mutex::new(None));
    let take = {
        let taken = Arc::clone(&taken);
        move |question| {
            *taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(question);
            A::refused(String::new())
        }
    };
    let talked = runtime().block_on(async {
        let server = UnixStream::from_std(server).expect("there is a runtime");
        talk::<Q, A>(server, may, Arc::new(take)).await
    });
    let mut answer = String::new();
    // After a line that is too long, the other end closes before it has read all.
    let _ = client.read_to_string(&mut answer);
    match talked {
        Ok(()) => {
            let is_line = answer.find('\n') == answer.len().checked_sub(1);
            assert!(is_line && serde_json::from_str::<A>(&answer).is_ok(), "{answer}");
        }
        Err(error) => assert_eq!((error.kind(), &*answer), (io::ErrorKind::InvalidData, ""), "{error}"),
    }
    taken.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_current_thread().enable_io().build().expect("a runtime"))
}
