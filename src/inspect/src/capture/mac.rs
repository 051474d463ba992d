//! Summary of the MAC from the comments of a radio's capture, by receiver.

use std::collections::BTreeMap;

use hopwise_air::dcf::FrameKind;
use serde::Serialize;

use super::packets::name;

/// Frames of one kind for one receiver.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct FrameTries {
    pub to: String,
    pub(super) frame: String,
    pub(super) tries: u64,
    /// Tries that were not the first of their frame.
    pub(super) again: u64,
    /// Packets whose last try this was.
    pub(super) given_up: u64,
}

/// Unanswered frames of one kind for one receiver, and the cause of the loss.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct LostFrames {
    pub to: String,
    pub(super) frame: String,
    pub(super) lost_to: String,
    pub(super) count: u64,
}

/// The receiver and the kind of frame.
type Which = (String, &'static str);

#[derive(Debug, Default)]
struct FrameSums {
    tries: u64,
    again: u64,
    given_up: u64,
}

#[derive(Debug, Default)]
pub(super) struct MacCounts {
    tries: BTreeMap<Which, FrameSums>,
    lost: BTreeMap<(Which, String), u64>,
}

impl MacCounts {
    /// Counts the comments of a sent frame of that kind. A response frame (CTS, ACK) has no tries.
    pub(super) fn hear(&mut self, kind: FrameKind, comment: &str) {
        let Some(it) = Try::read(comment) else { return };
        let which = (it.to.to_owned(), name(kind));
        let sums = self.tries.entry(which.clone()).or_default();
        sums.tries += 1;
        sums.again += u64::from(it.nth > 1);
        sums.given_up += u64::from(it.is_given_up);
        if let Some(lost_to) = it.lost.and_then(lost_to) {
            *self.lost.entry((which, lost_to.to_owned())).or_default() += 1;
        }
    }

    pub(super) fn into_rows(self) -> (Vec<FrameTries>, Vec<LostFrames>) {
        let tries = self.tries.into_iter().map(|((to, frame), sums)| {
            let FrameSums { tries, again, given_up } = sums;
            FrameTries { to, frame: frame.to_owned(), tries, again, given_up }
        });
        let lost = self.lost.into_iter().map(|(((to, frame), lost_to), count)| LostFrames {
            to,
            frame: frame.to_owned(),
            lost_to,
            count,
        });
        (tries.collect(), lost.collect())
    }
}

const NO_ANSWER: &str = "no answer: ";
const ANSWERED: &str = " answered, but that was ";

/// The MAC's comment on a frame that needs an answer or is broadcast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Try<'a> {
    /// The receiver's name.
    pub to: &'a str,
    /// Its number among the tries of this frame, from 1 on.
    pub(super) nth: u32,
    /// The part about its loss.
    lost: Option<&'a str>,
    /// It was the last try of its packet.
    pub(super) is_given_up: bool,
}

impl<'a> Try<'a> {
    /// Finds it behind the endpoint's comments: "for n1, try 3 of at most 7, …; no answer: …".
    pub(super) fn read(comment: &'a str) -> Option<Try<'a>> {
        let mut parts = comment.split("; ").skip_while(|part| tried(part).is_none());
        let (to, nth) = tried(parts.next()?)?;
        let mut it = Try { to, nth, lost: None, is_given_up: false };
        for part in parts {
            it.is_given_up |= part == "the packet is given up";
            if part.starts_with(NO_ANSWER) || part.contains(ANSWERED) {
                it.lost = it.lost.or(Some(part));
            }
        }
        Some(it)
    }

    /// The cause of its loss, in words.
    pub(super) fn why_lost(&self) -> Option<&'a str> {
        self.lost.map(|part| part.strip_prefix(NO_ANSWER).unwrap_or(part))
    }
}

/// The receiver and the number of the try: "for n1, try 3 of at most 7, …", or "for everyone, sent once, …".
fn tried(part: &str) -> Option<(&str, u32)> {
    let (to, rest) = part.strip_prefix("for ")?.split_once(", ")?;
    match rest.strip_prefix("try ") {
        Some(rest) => Some((to, rest.split(' ').next()?.parse().ok()?)),
        None => rest.starts_with("sent once").then_some((to, 1)),
    }
}

fn lost_to(part: &str) -> Option<&str> {
    let by = match part.strip_prefix(NO_ANSWER) {
        Some(by) => by,
        None => part.split_once(ANSWERED)?.1,
    };
    if by.starts_with("the channel did not carry it") || by == "lost on the channel" {
        return Some("the channel");
    }
    let to = by.strip_prefix("lost ").and_then(|lost| lost.split_once(" to "));
    Some(to.map_or(by, |(_, to)| to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_counted_by_receiver_with_what_they_were_lost_to() {
        let mut counts = MacCounts::default();
        for (kind, comment) in [
            (FrameKind::Rts, "for n1, try 1 of at most 7, contention window 31, backoff 4 slots"),
            (
                FrameKind::Rts,
                "for n1, try 2 of at most 7, without backoff on an idle medium; no answer: lost at n1 to an RTS of n3",
            ),
            (
                FrameKind::Rts,
                "for n1, try 7 of at most 7, contention window 1023, backoff 4 slots; no answer: the \
                 channel did not carry it to n1; the packet is given up",
            ),
            (
                FrameKind::Data,
                "1000 bytes, new; 3 hops; for n1, try 1 of at most 4, SIFS after the CTS; n1 answered, \
                 but that was lost here to several frames together",
            ),
            (FrameKind::Data, "for everyone, sent once, contention window 31, backoff 0 slots"),
            (FrameKind::Ack, "in answer to a frame of n1"),
        ] {
            counts.hear(kind, comment);
        }
        let (tries, lost) = counts.into_rows();
        let tries: Vec<_> =
            tries.iter().map(|of| (&*of.to, &*of.frame, of.tries, of.again, of.given_up)).collect();
        assert_eq!(tries, [("everyone", "data", 1, 0, 0), ("n1", "RTS", 3, 2, 1), ("n1", "data", 1, 0, 0)]);
        let lost: Vec<_> = lost.iter().map(|of| (&*of.frame, &*of.lost_to, of.count)).collect();
        let expected =
            [("RTS", "an RTS of n3", 1), ("RTS", "the channel", 1), ("data", "several frames together", 1)];
        assert_eq!(lost, expected);
    }
}
