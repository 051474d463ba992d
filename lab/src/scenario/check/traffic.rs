//! Checks of a flow that need several keys.

use std::fmt::Display;
use std::time::Duration;

use super::LONGEST_S;
use crate::keys::Range;
use crate::located::{Checked, Document, Refusal, YamlPath};
use crate::programs::NUMBER_BYTES;
use crate::scenario::schema::{Drawn, GAPS, REQUESTS, SEGMENT_BYTES, TRANSFERS, TrafficFlows, TrafficKind};
use crate::units::{Size, Time};

/// A flow with the place to refuse it at.
struct TrafficKeys<'a> {
    document: &'a Document,
    at: &'a YamlPath,
    traffic: &'a TrafficFlows,
}

pub(super) fn check(document: &Document, at: &YamlPath, traffic: &TrafficFlows) -> Checked {
    let keys = TrafficKeys { document, at, traffic };
    keys.only_its_own()?;
    keys.times()?;
    match traffic.kind {
        TrafficKind::Bulk => keys.bulk(),
        TrafficKind::Request | TrafficKind::Web | TrafficKind::Iot => keys.request(),
        TrafficKind::Cbr => keys.cbr(),
        TrafficKind::Saturated => Ok(()),
        TrafficKind::Probe | TrafficKind::Voice => keys.probe(),
    }
}

impl TrafficKeys<'_> {
    /// Refuses keys of another kind.
    fn only_its_own(&self) -> Checked {
        let TrafficFlows { direction, bytes, request, response, think, repeat, every, rate, .. } =
            self.traffic;
        let (of_kind, needs) = match self.traffic.kind {
            TrafficKind::Bulk => {
                let keys = &["direction", "bytes", "think", "repeat"][..];
                (keys, "kind: bulk takes direction, bytes, think and repeat")
            }
            TrafficKind::Request | TrafficKind::Web | TrafficKind::Iot => {
                let keys = &["request", "response", "think", "repeat"][..];
                (keys, "kind: request takes request, response, think and repeat")
            }
            TrafficKind::Cbr => (&["every", "rate"][..], "kind: cbr takes every or rate"),
            TrafficKind::Probe | TrafficKind::Voice => (&["every"][..], "kind: probe takes every"),
            TrafficKind::Saturated => (&[][..], "kind: saturated sends as much as leaves"),
        };
        let given = [
            ("direction", direction.is_some()),
            ("bytes", bytes.is_some()),
            ("request", request.is_some()),
            ("response", response.is_some()),
            ("think", think.is_some()),
            ("repeat", repeat.is_some()),
            ("every", every.is_some()),
            ("rate", rate.is_some()),
        ];
        super::only_its_own(self.document, self.at, &given, (of_kind, "kind of traffic", needs))
    }

    /// Refuses the first key's value because of the second's.
    fn among(&self, keys: [&str; 2], problem: impl Display, accepted: &str) -> Box<Refusal> {
        self.document.refuse_among(&keys.map(|key| self.at.key(key)), problem, accepted)
    }

    /// Refuses the lack of a key, which has no place of its own: shown at the flow, or at an assigned kind.
    fn missing(&self, problem: String, accepted: &str) -> Box<Refusal> {
        let kind = self.at.key("kind");
        match self.document.is_set(&kind.to_string()) {
            true => self.document.refuse(&kind, problem, accepted),
            false => self.document.refuse_key(self.at, problem, accepted),
        }
    }

    fn times(&self) -> Checked {
        let TrafficFlows { start, apart, flows, stop, think, .. } = self.traffic;
        let latest = most(*start).0.saturating_add(apart.0.saturating_mul(*flows));
        if latest.as_secs() > LONGEST_S {
            let problem = "a flow starts after the longest possible run";
            return Err(self.document.refuse(&self.at.key("start"), problem, "a start within the run"));
        }
        self.sound("start", Some(*start))?;
        self.sound("think", *think)?;
        if stop.is_some_and(|stop| stop.0 <= least(*start).0) {
            let problem = "the stop is before the start";
            return Err(self.among(["stop", "start"], problem, "a `stop` later than `start`"));
        }
        Ok(())
    }

    /// Checks that `from` is not above `to`.
    fn sound<T: Copy + PartialOrd>(&self, key: &str, drawn: Option<Drawn<T>>) -> Checked {
        match drawn {
            Some(Drawn::Between { from, to }) if to < from => {
                let paths = ["to", "from"].map(|end| self.at.key(key).key(end));
                let problem = "`to` is less than `from`";
                Err(self.document.refuse_among(&paths, problem, "as much as `from`, or more"))
            }
            _ => Ok(()),
        }
    }

    fn size(&self, key: &str, drawn: Option<Drawn<Size>>, range: &str) -> Checked {
        self.sound(key, drawn)?;
        match drawn {
            Some(drawn)
                if [least(drawn), most(drawn)].iter().any(|size| !Range::of(range).holds(size.0 as f64)) =>
            {
                Err(self.document.refuse(&self.at.key(key), format_args!("{key} is out of range"), range))
            }
            _ => Ok(()),
        }
    }

    fn bulk(&self) -> Checked {
        let TrafficFlows { bytes, think, repeat, .. } = self.traffic;
        for (key, is_given) in [("think", think.is_some()), ("repeat", repeat.is_some())] {
            if is_given && bytes.is_none() {
                let problem = format!("`{key}` has no effect on endless data");
                return Err(self.document.refuse_key(&self.at.key(key), problem, "bytes: 100kB beside it"));
            }
        }
        self.size("bytes", *bytes, TRANSFERS)
    }

    fn request(&self) -> Checked {
        for (key, size) in [("request", self.traffic.request), ("response", self.traffic.response)] {
            if size.is_none() {
                let problem = format!("`kind: request` needs `{key}`");
                return Err(self.missing(problem, &format!("{key}: 200B")));
            }
        }
        self.size("request", self.traffic.request, REQUESTS)?;
        self.size("response", self.traffic.response, TRANSFERS)
    }

    fn cbr(&self) -> Checked {
        let TrafficFlows { every, rate, segment_bytes, .. } = self.traffic;
        let largest_rate = u64::from(segment_bytes.unwrap_or(SEGMENT_BYTES)) * 8_000_000;
        self.sound("every", *every)?;
        match (every, rate) {
            (None, None) => {
                let problem = "`kind: cbr` needs `every` or `rate`";
                Err(self.missing(problem.to_owned(), "every: 10ms, or rate: 200kbit"))
            }
            (Some(_), Some(_)) => {
                let problem = "`every` already sets the rate";
                let paths = ["rate", "every"].map(|key| self.at.key(key));
                Err(self.document.refuse_key_among(&paths, problem, "one of the two"))
            }
            (Some(every), None) => self.gap(*every),
            (None, Some(rate)) if rate.0 == 0 || rate.0 > largest_rate => {
                let problem = "no rate for datagrams of this size";
                let accepted = "more than 0, and at most one datagram every 1us";
                Err(self.among(["rate", "segment_bytes"], problem, accepted))
            }
            _ => Ok(()),
        }
    }
}

impl TrafficKeys<'_> {
    fn gap(&self, every: Drawn<Time>) -> Checked {
        if Range::of(GAPS).holds(most(every).nanos() as f64) {
            return Ok(());
        }
        Err(self.document.refuse(&self.at.key("every"), "every is out of range", GAPS))
    }

    fn probe(&self) -> Checked {
        let TrafficFlows { every, segment_bytes, .. } = self.traffic;
        let Some(every) = *every else {
            return Err(self.missing("`kind: probe` needs `every`".to_owned(), "every: 100ms"));
        };
        self.sound("every", Some(every))?;
        self.gap(every)?;
        if segment_bytes.is_some_and(|bytes| usize::from(bytes) < NUMBER_BYTES) {
            let problem = "a probe has no room for its number";
            let accepted = format!("{NUMBER_BYTES} bytes or more");
            return Err(self.document.refuse(&self.at.key("segment_bytes"), problem, &accepted));
        }
        Ok(())
    }
}

/// The largest value, or the mean of an exponential one.
fn most<T>(drawn: Drawn<T>) -> T {
    match drawn {
        Drawn::Fixed(value) | Drawn::Mean { mean: value } | Drawn::Between { to: value, .. } => value,
    }
}

fn least<T: LeastDraw>(drawn: Drawn<T>) -> T {
    match drawn {
        Drawn::Fixed(value) | Drawn::Between { from: value, .. } => value,
        Drawn::Mean { mean } => mean.least(),
    }
}

/// The least value of an exponential amount: none for times; for sizes the mean itself, since smaller draws are made as
/// large as needed.
trait LeastDraw {
    fn least(self) -> Self;
}

impl LeastDraw for Time {
    fn least(self) -> Time {
        Time(Duration::ZERO)
    }
}

impl LeastDraw for Size {
    fn least(self) -> Size {
        self
    }
}
