//! Summary of the MAC from the comments of a radio's capture, by receiver.

use std::collections::BTreeMap;

use serde::Serialize;

/// Frames of one kind for one receiver.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Tries {
    pub(super) to: String,
    pub(super) frame: String,
    pub(super) tries: u64,
    /// Tries that were not the first of their frame.
    pub(super) again: u64,
    /// Packets whose last try this was.
    pub(super) given_up: u64,
}

/// Unanswered frames of one kind for one receiver, and the cause of the loss.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Lost {
    pub(super) to: String,
    pub(super) frame: String,
    pub(super) lost_to: String,
    pub(super) count: u64,
}

/// The receiver and the kind of frame.
type Which = (String, &'static str);

#[derive(Debug, Default)]
struct Sums {
    tries: u64,
    again: u64,
    given_up: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    tries: BTreeMap<Which, Sums>,
    lost: BTreeMap<(Which, String), u64>,
}

impl Counts {
    /// Counts the comments of a sent frame of that kind. A frame that answers another one has no tries.
    pub(super) fn hear(&mut self, kind: &'static str, comment: &str) {
        let mut parts = comment.split("; ").skip_while(|part| tried(part).is_none());
        let Some((to, nth)) = parts.next().and_then(tried) else { return };
        let which = (to.to_owned(), kind);
        let sums = self.tries.entry(which.clone()).or_default();
        sums.tries += 1;
        sums.again += u64::from(nth > 1);
        for part in parts {
            sums.given_up += u64::from(part == "the packet is given up");
            if let Some(lost_to) = lost_to(part) {
                *self.lost.entry((which.clone(), lost_to.to_owned())).or_default() += 1;
            }
        }
    }

    pub(super) fn into_rows(self) -> (Vec<Tries>, Vec<Lost>) {
        let tries = self.tries.into_iter().map(|((to, frame), sums)| {
            let Sums { tries, again, given_up } = sums;
            Tries { to, frame: frame.to_owned(), tries, again, given_up }
        });
        let lost = self.lost.into_iter().map(|(((to, frame), lost_to), count)| Lost {
            to,
            frame: frame.to_owned(),
            lost_to,
            count,
        });
        (tries.collect(), lost.collect())
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
    let by = match part.strip_prefix("no answer: ") {
        Some(by) => by,
        None => part.split_once(" answered, but that was ")?.1,
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
        let mut counts = Counts::default();
        for (kind, comment) in [
            ("RTS", "for n1, try 1 of at most 7, contention window 31, backoff 4 slots"),
            (
                "RTS",
                "for n1, try 2 of at most 7, without backoff on an idle medium; no answer: lost at n1 to an RTS of n3",
            ),
            (
                "RTS",
                "for n1, try 7 of at most 7, contention window 1023, backoff 4 slots; no answer: the \
                 channel did not carry it to n1; the packet is given up",
            ),
            (
                "data",
                "1000 bytes, new; 3 hops; for n1, try 1 of at most 4, SIFS after the CTS; n1 answered, \
                 but that was lost here to several frames together",
            ),
            ("data", "for everyone, sent once, contention window 31, backoff 0 slots"),
            ("MAC ACK", "in answer to a frame of n1"),
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
