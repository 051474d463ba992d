//! Statements about single links: `link n3-n4 down from 10 s to 20 s`.
//!
//! A dash means both directions, an arrow one. The reader of the script gives the nodes' numbers.

use super::Outage;
use crate::truncate;

/// A statement that was understood.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkSentence {
    /// No frame passes the link for a time.
    Outage(Outage),
    /// The link is better or worse than its model for the whole run.
    Change(LinkChange),
}

/// An effect on the frames of one link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkEffect {
    /// The loss of its frames in millionths, in place of the loss everywhere.
    Loss {
        /// Lost frames in a million that would be understood.
        ppm: u32,
    },
    /// The gain of every frame, or its loss if negative.
    Gain {
        /// Decibels that are added to the power at the receiver.
        db: f64,
    },
}

/// A link with an effect of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkChange {
    /// The numbers of its two stations.
    pub ends: (u32, u32),
    /// The change applies to frames from the first end to the second, and not back.
    pub is_one_way: bool,
    /// The effect.
    pub change: LinkEffect,
}

/// The reason why a statement is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The text has none of the forms.
    #[error("not understood")]
    NotUnderstood,
    /// It names a node that the scenario does not have.
    #[error("no node is called `{0}`")]
    NoNode(String),
    /// This text stands in the place of a value, and is none.
    #[error("`{0}` is no value here")]
    NoValue(String),
    /// The time ends before it begins.
    #[error("the end is before the beginning")]
    Backwards,
    /// Both ends are one node.
    #[error("a link has two ends")]
    Itself,
}

/// The largest gain that is believed, up or down.
const MOST_DB: f64 = 200.0;

impl LinkSentence {
    /// The forms that [`LinkSentence::parse`] takes.
    pub const FORMS: &'static str = "`link n3-n4 down from 10 s to 20 s`, `link n3->n4 loses 5%` or \
                                     `link n3->n4 gains -10 dB`; n3-n4 means both directions";

    /// Reads one statement; `node` knows the names.
    pub fn parse(text: &str, node: &dyn Fn(&str) -> Option<u32>) -> Result<LinkSentence, ScriptError> {
        // Units may stand apart from their numbers.
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["link", link, verb, ref rest @ ..] = words[..] else { return Err(ScriptError::NotUnderstood) };
        let (ends, is_one_way) = match (link.split_once("->"), link.split_once('-')) {
            (Some(ends), _) => (ends, true),
            (None, Some(ends)) => (ends, false),
            (None, None) => return Err(ScriptError::NotUnderstood),
        };
        let number = |name: &str| node(name).ok_or_else(|| ScriptError::NoNode(name.to_owned()));
        let ends = (number(ends.0)?, number(ends.1)?);
        if ends.0 == ends.1 {
            return Err(ScriptError::Itself);
        }
        if verb == "down" {
            let (begins_ns, ends_ns) = times(rest)?;
            return Ok(LinkSentence::Outage(Outage {
                from: ends.0,
                to: ends.1,
                begins_ns,
                ends_ns,
                is_one_way,
            }));
        }
        Ok(LinkSentence::Change(LinkChange { ends, is_one_way, change: change(verb, rest)? }))
    }
}

impl LinkChange {
    pub(super) fn is_of(&self, from: u32, to: u32) -> bool {
        self.ends == (from, to) || (!self.is_one_way && self.ends == (to, from))
    }

    /// Returns whether the change differs from frame to frame: a gain does not.
    pub(super) fn is_lively(&self) -> bool {
        matches!(self.change, LinkEffect::Loss { .. })
    }
}

/// `from 10 s to 20 s`
fn times(words: &[&str]) -> Result<(u64, u64), ScriptError> {
    let to = words.iter().position(|word| *word == "to").ok_or(ScriptError::NotUnderstood)?;
    let (Some(&"from"), Some(begin)) = (words.first(), words.get(1..to)) else {
        return Err(ScriptError::NotUnderstood);
    };
    let (begins_ns, ends_ns) = (nanos(&begin.concat())?, nanos(&words[to + 1..].concat())?);
    if ends_ns > begins_ns { Ok((begins_ns, ends_ns)) } else { Err(ScriptError::Backwards) }
}

fn change(verb: &str, rest: &[&str]) -> Result<LinkEffect, ScriptError> {
    match verb {
        "loses" => {
            let text = rest.concat();
            let percent = number(&text, "%")?;
            if !(0.0..=100.0).contains(&percent) {
                return Err(ScriptError::NoValue(text));
            }
            Ok(LinkEffect::Loss { ppm: truncate::to_u32(percent * 10_000.0) })
        }
        "gains" => {
            let text = rest.concat();
            let db = number(&text, "dB")?;
            if db.abs() > MOST_DB {
                return Err(ScriptError::NoValue(text));
            }
            Ok(LinkEffect::Gain { db })
        }
        _ => Err(ScriptError::NotUnderstood),
    }
}

fn number(text: &str, unit: &str) -> Result<f64, ScriptError> {
    let value = text.strip_suffix(unit).and_then(|amount| amount.parse::<f64>().ok());
    value.filter(|value| value.is_finite()).ok_or_else(|| ScriptError::NoValue(text.to_owned()))
}

/// `10s`, `1.5s`, `300ms`.
fn nanos(text: &str) -> Result<u64, ScriptError> {
    let seconds = number(text, "ms").map(|ms| ms / 1e3).or_else(|_| number(text, "s"))?;
    if !(0.0..=1e9).contains(&seconds) {
        return Err(ScriptError::NoValue(text.to_owned()));
    }
    Ok(truncate::to_u64(seconds * 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Option<u32> {
        name.strip_prefix('n')?.parse().ok().filter(|n| *n < 9)
    }

    fn parse(text: &str) -> Result<LinkSentence, ScriptError> {
        LinkSentence::parse(text, &node)
    }

    #[test]
    fn sentences_say_which_link_and_what_of_it() {
        let (begins_ns, ends_ns) = (10_000_000_000, 20_000_000_000);
        let outage = Outage { from: 3, to: 4, begins_ns, ends_ns, is_one_way: false };
        assert_eq!(parse("link n3-n4 down from 10 s to 20 s"), Ok(LinkSentence::Outage(outage)));
        assert_eq!(parse("link n3-n4 down from 10s to 20000 ms"), Ok(LinkSentence::Outage(outage)));
        let Ok(LinkSentence::Change(change)) = parse("link n3->n4 loses 5%") else { panic!("a loss") };
        assert!(change.is_of(3, 4) && !change.is_of(4, 3));
        assert_eq!(change.change, LinkEffect::Loss { ppm: 50_000 });
        let Ok(LinkSentence::Change(change)) = parse("link n0-n1 gains -10 dB") else { panic!("a gain") };
        assert!(change.is_of(1, 0) && change.is_of(0, 1));
        assert_eq!(change.change, LinkEffect::Gain { db: -10.0 });
    }

    #[test]
    fn what_is_no_such_sentence_is_refused() {
        for (text, error) in [
            ("link n3-n9 loses 1%", ScriptError::NoNode("n9".into())),
            ("link n3-n3 loses 1%", ScriptError::Itself),
            ("link n3-n4 loses 101%", ScriptError::NoValue("101%".into())),
            ("link n3-n4 loses -1%", ScriptError::NoValue("-1%".into())),
            ("link n3-n4 gains 999dB", ScriptError::NoValue("999dB".into())),
            ("link n3-n4 gains infdB", ScriptError::NoValue("infdB".into())),
            ("link n3-n4 down from 20 s to 10 s", ScriptError::Backwards),
            ("link n3-n4 down from -1 s to 10 s", ScriptError::NoValue("-1s".into())),
            ("link n3-n4 down from 1 s", ScriptError::NotUnderstood),
            ("link n3-n4 down to 1 s", ScriptError::NotUnderstood),
            ("link n3n4 loses 1%", ScriptError::NotUnderstood),
            ("n3-n4 loses 1%", ScriptError::NotUnderstood),
            ("", ScriptError::NotUnderstood),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }
}
