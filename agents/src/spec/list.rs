//! Lists of specs, with the quoting rules of a YAML flow sequence.

use std::ops::Range;
use std::time::Duration;
use std::{fmt, iter};

use hopwise_core::agent::{FastEnd, ReceiverAgent, SenderAgent, SenderAgents, Tunables};

use super::accepted::{AgentSpec, InForce, Settled};
use super::error::{Problem, SpecError};
use super::parse::spec_in;
use super::role::{CwndOwner, Narrower, Receiver, Role, Unplaced};
use crate::descriptor::Descriptor;
use crate::param::Profile;
use crate::registry::{self, Registry};
use crate::sender::train::SharedPath;

/// The largest number of agents that only watch the ledger.
pub const MOST_SHADOWS: usize = 8;
/// A longer list makes no sense: each agent occurs at most once.
pub const MOST_SENDERS: usize = 16;

const QUOTES: [char; 2] = ['"', '\''];

/// Writes the items of a YAML list as one string: `[newreno, limit:4]`. An item with a comma or a bracket gets quotes.
pub fn join<S: AsRef<str>>(items: &[S]) -> String {
    let mut list = String::from("[");
    for (i, item) in items.iter().map(AsRef::as_ref).enumerate() {
        let bare = !item.trim().is_empty() && !item.contains([',', '[', ']']);
        let quote = if bare { "" } else { "\"" };
        let comma = if i == 0 { "" } else { ", " };
        list.extend([comma, quote, item, quote]);
    }
    list.push(']');
    list
}

/// Sender agents: the owner of cwnd, then the agents that narrow what it allows.
#[derive(Clone, Debug)]
pub struct SenderList {
    owner: AgentSpec<CwndOwner>,
    others: Vec<AgentSpec<Narrower>>,
}

impl SenderList {
    /// Reads a list that names agents of this table.
    pub(crate) fn parse_among(agents: &Registry, spec: &str) -> Result<SenderList, SpecError> {
        SenderList::checked(agents, spec).map_err(|error| error.among(agents))
    }

    fn checked(agents: &Registry, spec: &str) -> Result<SenderList, SpecError> {
        let (places, items): (Vec<_>, Vec<_>) = items(agents, spec, MOST_SENDERS)?.into_iter().unzip();
        let list = SenderList::of(spec, &places, items)?;
        check_repeats(spec, &places, &list)?;
        check_tunables(spec, &places, &list)?;
        Ok(list)
    }

    /// Exactly the first agent owns cwnd.
    fn of(
        text: &str,
        places: &[Range<usize>],
        items: Vec<AgentSpec<Unplaced>>,
    ) -> Result<SenderList, SpecError> {
        let refuse = |nth: usize, problem| {
            let place = places.get(nth).cloned().unwrap_or(0..text.len());
            SpecError::new(text, place, problem)
        };
        let mut items = items.into_iter();
        let owner = items.next().and_then(AgentSpec::at::<CwndOwner>);
        let owner = owner.ok_or_else(|| refuse(0, Problem::NoOwner))?;
        let first = owner.agent;
        let narrower = |(nth, item): (usize, AgentSpec<Unplaced>)| {
            item.at::<Narrower>().ok_or_else(|| refuse(nth, Problem::TwoOwners { first }))
        };
        let others = (1..).zip(items).map(narrower).collect::<Result<_, _>>()?;
        Ok(SenderList { owner, others })
    }

    fn agents(&self) -> Vec<&'static Descriptor> {
        iter::once(self.owner.agent).chain(self.others.iter().map(|spec| spec.agent)).collect()
    }

    /// The spec of each agent in canonical form; the owner of cwnd is the first.
    pub fn each(&self) -> Vec<String> {
        iter::once(self.owner.to_string()).chain(self.others.iter().map(ToString::to_string)).collect()
    }

    /// Every parameter in force of every agent, in the order of the list.
    pub fn parameters(&self, profile: Profile) -> Vec<InForce> {
        let mut all = self.owner.parameters(profile);
        all.extend(self.others.iter().flat_map(|spec| spec.parameters(profile)));
        all
    }

    /// `shared` returns what the flows between the connection's two hosts know of their path.
    pub fn make(&self, profile: Profile, shared: impl FnOnce() -> SharedPath) -> SenderAgents {
        self.clone().settle(profile).make(shared)
    }

    pub(crate) fn settle(self, profile: Profile) -> SettledSenders {
        SettledSenders {
            owner: self.owner.settle(profile),
            others: self.others.into_iter().map(|spec| spec.settle(profile)).collect(),
        }
    }
}

/// The constructors of a list's agents under one profile.
#[derive(Clone, Debug)]
pub(crate) struct SettledSenders {
    owner: Settled<CwndOwner>,
    others: Box<[Settled<Narrower>]>,
}

impl SettledSenders {
    pub(crate) fn make(&self, shared: impl FnOnce() -> SharedPath) -> SenderAgents {
        SenderAgents {
            owner: self.owner.make(shared),
            others: self.others.iter().map(Settled::<Narrower>::make).collect(),
        }
    }
}

impl fmt::Display for SenderList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.each()))
    }
}

/// Receiver agents that watch a connection. They report what they would have done.
#[derive(Clone, Debug, Default)]
pub struct ShadowList(Vec<AgentSpec<Receiver>>);

impl ShadowList {
    /// An empty text is an empty list, as `[]` is.
    pub fn parse(spec: &str) -> Result<ShadowList, SpecError> {
        if spec.trim().is_empty() {
            return Ok(ShadowList::default());
        }
        let items = items(registry::in_force(), spec, MOST_SHADOWS)?;
        Ok(ShadowList(items.into_iter().map(|(_, item)| item).collect()))
    }

    /// The spec of each agent in canonical form, in the order in which a connection counts their ACKs.
    pub fn each(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// New agents for one connection, in the order of the list.
    pub fn make(&self, profile: Profile) -> Vec<Box<dyn ReceiverAgent>> {
        self.0.iter().map(|spec| spec.make(profile)).collect()
    }
}

impl fmt::Display for ShadowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.each()))
    }
}

type Item<R> = (Range<usize>, AgentSpec<R>);

fn items<R: Role>(agents: &Registry, text: &str, most: usize) -> Result<Vec<Item<R>>, SpecError> {
    let mut items = Vec::new();
    for span in spans(text)? {
        if items.len() == most {
            return Err(SpecError::new(text, span, Problem::TooMany { most }));
        }
        let spec = spec_in(agents, text, span.clone())?;
        items.push((span, spec));
    }
    Ok(items)
}

impl SpecError {
    /// The index of the wrong item in its list; `None` if the list as a whole is wrong.
    pub fn item(&self) -> Option<usize> {
        spans(&self.spec).ok()?.iter().rposition(|span| span.start <= self.place.start)
    }

    /// The text of that item, and the place of the wrong part in it.
    pub fn in_item(&self) -> Option<(&str, Range<usize>)> {
        let place = &self.place;
        let item = spans(&self.spec).ok()?.into_iter().rfind(|span| span.start <= place.start)?;
        let within = |at: usize| at.clamp(item.start, item.end) - item.start;
        Some((&self.spec[item.clone()], within(place.start)..within(place.end)))
    }
}

/// The places of the items of a list. A text without brackets is a list of one item.
fn spans(text: &str) -> Result<Vec<Range<usize>>, SpecError> {
    let open = text.len() - text.trim_start().len();
    if !text[open..].starts_with('[') {
        return Ok(vec![trimmed(text, 0..text.len())]);
    }
    let mut spans = Vec::new();
    let mut at = open + 1;
    loop {
        let (span, end) = item_from(text, at);
        let Some(mark) = text[end..].chars().next() else {
            if text[span.clone()].starts_with(QUOTES) {
                unquoted(text, span, end)?;
            }
            return Err(SpecError::new(text, open..open + 1, Problem::Unclosed('[')));
        };
        let last = mark == ']';
        if !(last && span.is_empty() && spans.is_empty()) {
            spans.push(unquoted(text, span, end)?);
        }
        at = end + 1;
        if last {
            break;
        }
    }
    let after = trimmed(text, at..text.len());
    if after.is_empty() { Ok(spans) } else { Err(SpecError::new(text, after, Problem::Trailing)) }
}

/// Returns the item that begins at `at`, and the place of the `,` or `]` that ends it. Without such a mark it returns
/// the end of the text. Quotes hide both marks.
fn item_from(text: &str, at: usize) -> (Range<usize>, usize) {
    let mut quote = None;
    for (i, c) in text[at..].char_indices() {
        match (quote, c) {
            (None, open) if QUOTES.contains(&open) => quote = Some(c),
            (None, ',' | ']') => return (trimmed(text, at..at + i), at + i),
            (Some(open), _) if c == open => quote = None,
            _ => {}
        }
    }
    (trimmed(text, at..text.len()), text.len())
}

/// Removes the item's quotes.
fn unquoted(text: &str, span: Range<usize>, end: usize) -> Result<Range<usize>, SpecError> {
    let item = &text[span.clone()];
    let Some(quote) = item.chars().next() else {
        return Err(SpecError::new(text, end..end + 1, Problem::EmptyItem));
    };
    if !QUOTES.contains(&quote) {
        return Ok(span);
    }
    let inside = span.start + 1;
    let Some(length) = text[inside..span.end].find(quote) else {
        return Err(SpecError::new(text, span.start..inside, Problem::Unclosed(quote)));
    };
    let after = inside + length + 1;
    if after < span.end {
        return Err(SpecError::new(text, after..span.end, Problem::Trailing));
    }
    Ok(inside..inside + length)
}

fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    let inside = &text[span.clone()];
    let start = span.start + (inside.len() - inside.trim_start().len());
    start..(start + inside.trim().len())
}

fn check_repeats(text: &str, places: &[Range<usize>], list: &SenderList) -> Result<(), SpecError> {
    let agents = list.agents();
    for (i, (place, agent)) in places.iter().zip(&agents).enumerate() {
        if agents[..i].iter().any(|earlier| earlier.name == agent.name) {
            return Err(SpecError::new(text, place.clone(), Problem::AgentRepeated));
        }
    }
    Ok(())
}

fn check_tunables(text: &str, places: &[Range<usize>], list: &SenderList) -> Result<(), SpecError> {
    let made = list.make(Profile::Modern, SharedPath::default);
    let agents: Vec<_> = made.all().collect();
    for (i, place) in places.iter().enumerate() {
        for (first, agent) in list.agents().into_iter().zip(&agents).take(i) {
            if let Some(tunable) = disagreement(*agent, agents[i]) {
                return Err(SpecError::new(text, place.clone(), Problem::Conflict { first, tunable }));
            }
        }
    }
    Ok(())
}

/// Two settings that differ in every field. A field that is equal after an agent has tuned both was set by the agent.
const PROBES: [Tunables; 2] = [probe(101, FastEnd::FullAck), probe(103, FastEnd::NewAck)];

const fn probe(number: u8, fast_end: FastEnd) -> Tunables {
    let rto_min = Duration::from_secs(number as u64);
    Tunables { dup_threshold: number, rto_min, rto_factor: number, rto_held: number, fast_end }
}

/// The name of the first setting that the two agents set differently.
fn disagreement(one: &dyn SenderAgent, other: &dyn SenderAgent) -> Option<&'static str> {
    let (one, other) = (probed(one), probed(other));
    let differ = [
        ("duplicate-ACK threshold", differs(one, other, |it| it.dup_threshold)),
        ("least RTO", differs(one, other, |it| it.rto_min)),
        ("RTO factor", differs(one, other, |it| it.rto_factor)),
        ("timeouts that hold the RTO", differs(one, other, |it| it.rto_held)),
        ("end of fast recovery", differs(one, other, |it| it.fast_end)),
    ];
    differ.into_iter().find(|(_, differ)| *differ).map(|(name, _)| name)
}

fn probed(agent: &dyn SenderAgent) -> [Tunables; 2] {
    PROBES.map(|mut tunables| {
        agent.tune(&mut tunables);
        tunables
    })
}

fn differs<T: PartialEq>(one: [Tunables; 2], other: [Tunables; 2], field: fn(&Tunables) -> T) -> bool {
    let set = |probed: [Tunables; 2]| {
        let [first, second] = probed.map(|tunables| field(&tunables));
        (first == second).then_some(first)
    };
    matches!((set(one), set(other)), (Some(one), Some(other)) if one != other)
}

#[cfg(test)]
mod tests {
    use hopwise_core::Instant;
    use hopwise_core::agent::{Allowance, Needs, SendView};
    use hopwise_core::ignores;

    use super::*;

    #[derive(Debug)]
    struct Insists(fn(&mut Tunables));

    impl SenderAgent for Insists {
        ignores!(on_sent, on_acked, on_dup_ack, on_loss, on_recovered, on_path, note);

        fn needs(&self) -> Needs {
            Needs::default()
        }

        fn tune(&self, tunables: &mut Tunables) {
            self.0(tunables);
        }

        fn narrow(&self, _: Instant, _: &SendView<'_>, so_far: Allowance) -> Allowance {
            so_far
        }

        fn gauges(&self, _: &mut dyn FnMut(&'static str, u64)) {}
    }

    const NOTHING: Insists = Insists(|_| {});
    const TWO: Insists = Insists(|it| it.dup_threshold = 2);
    const HELD: Insists = Insists(|it| it.rto_held = u8::MAX);

    #[test]
    fn agents_that_set_the_same_or_different_things_agree() {
        for pair in [[NOTHING, TWO], [TWO, TWO], [TWO, HELD], [HELD, HELD]] {
            assert_eq!(disagreement(&pair[0], &pair[1]), None, "{pair:?}");
        }
    }

    #[test]
    fn each_setting_can_be_disagreed_on() {
        let pairs: [[fn(&mut Tunables); 2]; 5] = [
            [|it| it.dup_threshold = 2, |it| it.dup_threshold = 3],
            [|it| it.rto_min = Duration::ZERO, |it| it.rto_min = Duration::from_secs(1)],
            [|it| it.rto_factor = 5, |it| it.rto_factor = 1],
            [|it| it.rto_held = u8::MAX, |it| it.rto_held = 0],
            [|it| it.fast_end = FastEnd::NewAck, |it| it.fast_end = FastEnd::FullAck],
        ];
        let named: Vec<_> =
            pairs.iter().filter_map(|[one, other]| disagreement(&Insists(*one), &Insists(*other))).collect();
        let all = [
            "duplicate-ACK threshold",
            "least RTO",
            "RTO factor",
            "timeouts that hold the RTO",
            "end of fast recovery",
        ];
        assert_eq!(named, all);
    }
}
