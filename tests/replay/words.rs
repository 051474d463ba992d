//! Any text is read as what users, programs and files say: requests of SOCKS5, scenarios and other YAML, settings on a
//! command line, units, and records. It is taken, or refused at a place inside of it.

// The command's own readers are in no library. This one stands alone, so that its file is read here.
#[allow(dead_code, reason = "a node uses the rest")]
#[path = "../../src/node/src/socks5/protocol.rs"]
mod protocol;

use std::fmt::Debug;
use std::str::FromStr;

use hopwise_lab::keys;
use hopwise_lab::located::{Document, YamlPath};
use hopwise_lab::record::{Record, Trial};
use hopwise_lab::routing::RoutingConfig;
use hopwise_lab::scenario::{Scenario, json_schema};
use hopwise_lab::seal;
use hopwise_lab::tcp::Tcp;
use hopwise_lab::units::{Rate, Share, Size, Time};
use serde::Serialize;

use crate::refusals::check_refusal;
use protocol::{ClientRefusal, LONGEST_MESSAGE, MessageRead, Method};

pub(crate) fn replay(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    if kind % 6 == 0 {
        return socks5(rest);
    }
    let Ok(text) = str::from_utf8(rest) else { return };
    match kind % 6 {
        1 => scenario(text),
        2 => sections(text),
        3 => assigned(text),
        4 => units(text),
        _ => records(text),
    }
}

fn socks5(bytes: &[u8]) {
    for wanted in [Method::None, Method::Password] {
        check_message(bytes, |bytes| protocol::greeting(bytes, wanted));
    }
    check_message(bytes, protocol::login);
    check_message(bytes, protocol::request);
}

/// A message does not depend on what follows it, is not taken before it is whole, and ends.
fn check_message<T: PartialEq + Debug>(
    bytes: &[u8],
    read: impl Fn(&[u8]) -> Result<MessageRead<T>, ClientRefusal>,
) {
    match read(bytes) {
        Ok(MessageRead::More) => {
            assert!(bytes.len() < LONGEST_MESSAGE, "{} bytes are no message", bytes.len());
        }
        Ok(MessageRead::Done(said, taken)) => {
            assert!(taken <= bytes.len().min(LONGEST_MESSAGE));
            assert_eq!(read(&bytes[..taken]), Ok(MessageRead::Done(said, taken)));
            assert_eq!(read(&bytes[..taken - 1]), Ok(MessageRead::More));
        }
        Err(refused) => assert!(refused.answer().len() <= 22),
    }
}

fn scenario(text: &str) {
    match Scenario::parse("a", text, &[]) {
        Ok(scenario) => {
            check_refusal(text, scenario.asked().err());
            check_refusal(text, scenario.claims().err());
        }
        Err(refused) => check_refusal(text, Some(refused)),
    }
}

/// Parts that files of nodes, routing daemons and scenarios share.
fn sections(text: &str) {
    let document = match Document::parse("a", text) {
        Ok(document) => document,
        Err(refused) => return check_refusal(text, Some(refused)),
    };
    let in_range = keys::check(&document, &json_schema()["$defs"]["Tcp"]);
    match in_range.and_then(|()| document.read::<Tcp>()) {
        Ok(tcp) => drop(tcp.config()),
        Err(refused) => check_refusal(text, Some(refused)),
    }
    match document.read::<RoutingConfig>() {
        Ok(routing) => {
            check_refusal(text, routing.plan(&document, &YamlPath::root()).err());
            let _ = routing.in_force();
        }
        Err(refused) => check_refusal(text, Some(refused)),
    }
}

/// A line with an assignment, over the text behind it.
fn assigned(text: &str) {
    let (assignment, text) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(mut document) = Document::parse("a", text) else { return };
    if let Err(refused) = document.set("--set", assignment) {
        return check_refusal(assignment, Some(refused));
    }
    let (path, _) = assignment.split_once('=').expect("it was taken");
    assert!(document.is_set(path.trim()), "{path:?} is not set");
    let _ = (document.read::<Tcp>(), document.read::<RoutingConfig>());
}

/// A unit that is written again reads as before.
fn units(text: &str) {
    fn check<T: FromStr + Serialize + PartialEq + Debug>(text: &str) {
        if let Ok(read) = text.parse::<T>() {
            let written = serde_json::to_value(&read).expect("a text");
            assert_eq!(written.as_str().and_then(|text| text.parse().ok()), Some(read), "{text:?}");
        }
    }
    check::<Time>(text);
    check::<Size>(text);
    check::<Rate>(text);
    check::<Share>(text);
}

/// A record that was read and sealed has a right sum. No bytes break the check of a sum.
fn records(text: &str) {
    let _ = seal::check(text);
    if let Ok(record) = serde_json::from_str::<Record>(text) {
        let line = record.line();
        assert_eq!(seal::check(&line), Ok(()));
        assert_eq!(serde_json::from_str(&line).ok(), Some(record), "{line}");
    }
    if let Ok(trial) = serde_json::from_str::<Trial>(text) {
        assert_eq!(seal::check(&trial.text()), Ok(()));
    }
}
