//! `program`: a receiver agent that is a program of the user's own, in any language.
//!
//! The program named by `HOPWISE_AGENT` is started for each connection whose receiver agent is `program`. Each data
//! segment is a line of JSON on its standard input, and each answer a line on its standard output. The command waits
//! for the answer, so that equal segments get equal ACKs in virtual time, however slow the program is.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use hopwise_agents::agent::{
    AckRule, Arrival, Decision, Descriptor, Form, Holds, Instant, LONGEST_MS, Make, Needs, RecvView, Why,
    host, params, since,
};
use hopwise_agents::registry::Listed;
use hopwise_daemon::failure::Failure;
use serde_json::json;
use sha2::{Digest, Sha256};

const VARIABLE: &str = "HOPWISE_AGENT";
const ANSWERS: &str = "expected `ack`, or `hold MS` or `join MS` with milliseconds from 0 to 490";

params! {
    /// a number for the program, such as the segments that it counts
    value: u32 = Form::count("units", 0, 4_000_000_000).is(0),
}

static DESCRIPTOR: Descriptor = Descriptor {
    name: "program",
    rule: "asks a program of your own about each segment, in simulations",
    source: "the program that HOPWISE_AGENT names",
    params: Params::TABLE,
    shorthand: Some("value"),
    make: Make::Receiver(|args| host(Program { value: Params::of(args).value, talk: None })),
};

/// Its path, since the start of the command.
static PATH: OnceLock<PathBuf> = OnceLock::new();

/// The agent, if `HOPWISE_AGENT` names a program. Its text becomes a part of the version: runs of two drafts are never
/// taken for one agent's.
pub fn of_environment() -> Result<Option<Listed>, Failure> {
    // Daemons start no programs.
    let is_of_lab =
        env::args().nth(1).is_some_and(|verb| ["agents", "report", "run", "trial"].contains(&&*verb));
    env::var_os(VARIABLE).filter(|path| is_of_lab && !path.is_empty()).map(listed).transpose()
}

fn listed(path: OsString) -> Result<Listed, Failure> {
    // A run may begin in another folder.
    let read = std::fs::canonicalize(&path).and_then(|whole| Ok((std::fs::read(&whole)?, whole)));
    let (text, whole) = read.map_err(|error| {
        let problem = format_args!("{}: {error}; expected a program's file", Path::new(&path).display());
        Failure::refused(VARIABLE, problem)
    })?;
    // It tells drafts of a compiled program apart, which are no text.
    let hash = hopwise_lab::hex(&Sha256::digest(&text));
    let text = String::from_utf8_lossy(&text);
    let head =
        "//! Source: the program that HOPWISE_AGENT names.\n//!\n//! Rule: it says when to acknowledge.\n";
    let _ = PATH.set(whole);
    Ok((&DESCRIPTOR, format!("{head}\n{hash}\n{text}").leak()))
}

#[derive(Debug)]
struct Program {
    value: u32,
    talk: Option<Talk>,
}

/// A program that runs.
#[derive(Debug)]
struct Talk {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Drop for Talk {
    fn drop(&mut self) {
        // It may have ended by itself, and nothing more is asked of it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Talk {
    fn start(value: u32) -> std::io::Result<Talk> {
        let path = PATH.get().expect("the agent is listed with its path");
        let mut child =
            Command::new(path).arg(value.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (ask, answers) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Ok(Talk { child, ask, answers: BufReader::new(answers) })
    }

    /// The answer to a question, or why there is none.
    #[expect(
        clippy::disallowed_methods,
        reason = "a program that ends takes a moment, and nothing else waits"
    )]
    fn ask(&mut self, question: &str) -> Result<String, String> {
        let mut answer = Vec::new();
        // A program that has ended takes no question, and its status says more than the error.
        let asked = self.ask.write_all(question.as_bytes());
        let heard = asked.and_then(|()| self.answers.read_until(b'\n', &mut answer));
        if heard.is_ok_and(|bytes| bytes > 0) {
            return Ok(String::from_utf8_lossy(&answer).into_owned());
        }
        let ended = (0..100).find_map(|_| {
            thread::sleep(Duration::from_millis(10));
            self.child.try_wait().ok().flatten()
        });
        Err(ended.map_or("it takes no more questions".to_owned(), |status| format!("it ended ({status})")))
    }
}

/// An agent cannot refuse a segment: without its program the command ends.
fn give_up(problem: &str) -> ! {
    let path = PATH.get().map(|path| path.display().to_string()).unwrap_or_default();
    Failure::failed("ask the agent's program", format!("{path}: {problem}")).print();
    process::exit(1)
}

impl Program {
    fn decide(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        let question = question(arrival, view);
        let talk = self.talk.get_or_insert_with(|| {
            Talk::start(self.value)
                .unwrap_or_else(|error| give_up(&format!("{error}; expected a file that can be executed")))
        });
        match talk.ask(&question) {
            Ok(answer) => decision(answer.trim_end(), arrival, view)
                .unwrap_or_else(|| give_up(&format!("it answered {answer:?}: {ANSWERS}"))),
            Err(problem) => give_up(&problem),
        }
    }
}

impl Holds for Program {
    fn in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        self.decide(arrival, view)
    }

    fn not_in_order(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> Decision {
        self.decide(arrival, view)
    }

    fn needs(&self) -> Needs {
        Needs { peer_cwnd: true, ..Needs::default() }
    }
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

fn question(arrival: &Arrival, view: &RecvView<'_>) -> String {
    let since = since(arrival, view);
    let line = json!({
        "now_s": seconds(Some(arrival.now.since(Instant::ZERO))),
        "class": arrival.class.name(),
        "bytes": arrival.bytes,
        "gap_s": seconds(arrival.gap),
        "push": arrival.push,
        "owed_segments": view.owed.segments,
        "owed_bytes": view.owed.bytes,
        "waited_s": seconds(Some(arrival.now.since(since))),
        "in_order_total": view.owed.in_order_total,
        "peer_cwnd_segments": view.peer_cwnd,
        "hops": view.path.hops_from_peer.or(view.path.hops_to_peer).map(|(hops, _)| hops),
        "least_rtt_s": seconds(view.path.rtt.min),
        "segment_bytes": view.mss,
        "advertised_bytes": view.advertised,
        "holes": view.holes,
    });
    format!("{line}\n")
}

fn decision(answer: &str, arrival: &Arrival, view: &RecvView<'_>) -> Option<Decision> {
    let why = Why::plain(AckRule::Count);
    let (word, millis) = answer.split_once(' ').unwrap_or((answer, "0"));
    let millis: f64 = millis.parse().ok().filter(|millis| (0.0..=LONGEST_MS as f64).contains(millis))?;
    let wait = Duration::from_secs_f64(millis / 1e3);
    match word {
        "ack" => Some(Decision::Now(why)),
        "hold" => Some(Decision::Hold { until: arrival.now + wait, why }),
        "join" => Some(Decision::Join { until: since(arrival, view) + wait, why }),
        _ => None,
    }
}
