//! The fields of `info`, and how a script compares them.

use std::fmt;
use std::time::Duration;

use hopwise_core::agent::HopSource;
use hopwise_core::tcp::Info;
use hopwise_core::trace::Lacking;

use super::checks::show_reason;
use super::peer::Peer;
use super::text::{Read, number, problem, show_sequence, show_time, time};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u64),
    /// Nanoseconds.
    Time(u64),
    Word(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Time(nanos) => f.write_str(&show_time(*nanos)),
            Value::Word(word) => f.write_str(word),
        }
    }
}

type Fields = Vec<(&'static str, Value)>;

/// All fields of `info`, with relative sequence numbers.
pub(crate) fn of(info: &Info, peer: &Peer) -> Fields {
    let mut fields = state(info, peer);
    fields.extend(amounts(info));
    fields.extend(counters(info));
    for (name, value) in &info.gauges {
        fields.push((name, Value::Number(*value)));
    }
    fields
}

fn word(text: impl Into<String>) -> Value {
    Value::Word(text.into())
}

fn yes(is: bool) -> Value {
    word(if is { "yes" } else { "no" })
}

fn nanos(duration: Option<Duration>) -> Value {
    duration.map_or_else(|| word("none"), |duration| Value::Time(duration.as_nanos() as u64))
}

/// `4-ttl`: the number of hops and its source.
fn hops(hops: Option<(u8, HopSource)>) -> Value {
    hops.map_or_else(|| word("none"), |(hops, source)| word(format!("{hops}-{}", source.name())))
}

fn lacks(what: &[Lacking]) -> Value {
    let names: Vec<_> = what.iter().map(|what| what.name()).collect();
    word(if names.is_empty() { "none".to_owned() } else { names.join(",") })
}

fn state(info: &Info, peer: &Peer) -> Fields {
    let ours = |number: hopwise_core::Seq| word(show_sequence(peer.our_script(number.0)));
    let scales = info.window_scales.map_or_else(|| "none".to_owned(), |(snd, rcv)| format!("{snd}/{rcv}"));
    vec![
        ("state", word(info.state.name())),
        ("closed", word(info.closed.map_or("no", show_reason))),
        ("local", word(info.flow.local.to_string())),
        ("remote", word(info.flow.remote.to_string())),
        ("receiver", word(&*info.receiver)),
        ("senders", word(&*info.senders)),
        ("shadows", word(&*info.shadows)),
        ("shadow_acks", word(format!("{:?}", info.shadow_acks))),
        ("shadow_holds", word(format!("{:?}", info.shadow_holds))),
        ("snd_una", ours(info.snd_una)),
        ("snd_nxt", ours(info.snd_nxt)),
        ("rcv_nxt", word(show_sequence(peer.its_script(info.rcv_nxt.0)))),
        ("recovering", yes(info.is_recovering)),
        ("sack", yes(info.has_sack)),
        ("timestamps", yes(info.has_timestamps)),
        ("ecn", yes(info.has_ecn)),
        ("window_scales", word(scales)),
        ("frozen", yes(info.is_frozen)),
        ("hops_to_peer", hops(info.path.hops_to_peer)),
        ("hops_from_peer", hops(info.path.hops_from_peer)),
        ("receiver_lacks", lacks(&info.receiver_lacks)),
        ("senders_lack", lacks(&info.senders_lack)),
    ]
}

fn amounts(info: &Info) -> Fields {
    let segments = |count: u32| Value::Number(count.into());
    vec![
        ("rto", nanos(Some(info.rto))),
        ("srtt", nanos(info.path.rtt.smoothed)),
        ("rttvar", nanos(Some(info.path.rtt.variance))),
        ("min_rtt", nanos(info.path.rtt.min)),
        ("latest_rtt", nanos(info.path.rtt.latest)),
        ("since_last_sent", nanos(info.since_last_sent)),
        ("since_last_received", nanos(info.since_last_received)),
        ("busy", nanos(Some(info.busy_time.busy))),
        ("held_by_window", nanos(Some(info.busy_time.held_by_window))),
        ("held_by_buffer", nanos(Some(info.busy_time.held_by_buffer))),
        ("backoff", Value::Number(info.backoff.into())),
        ("snd_mss", Value::Number(info.snd_mss.into())),
        ("peer_mss", Value::Number(info.peer_mss.into())),
        ("rcv_mss", segments(info.rcv_mss)),
        ("told_mss", segments(info.told_mss)),
        ("send_buffer", segments(info.send_buffer_bytes)),
        ("recv_buffer", segments(info.recv_buffer_bytes)),
        ("probes", Value::Number(info.probes.into())),
        ("path_mtu", Value::Number(info.path_mtu.into())),
        ("allowed", Value::Number(info.allowed_bytes)),
        ("cwnd", info.cwnd_bytes.map_or_else(|| word("none"), Value::Number)),
        ("ssthresh", Value::Number(info.ssthresh_bytes)),
        ("flight", Value::Number(info.flight.bytes)),
        ("flight_segments", segments(info.flight.segments)),
        ("lost_segments", segments(info.lost.segments)),
        ("sacked_segments", segments(info.sacked.segments)),
        ("snd_wnd", Value::Number(info.snd_wnd.into())),
        ("rcv_wnd", Value::Number(info.rcv_wnd.into())),
        ("unsent", Value::Number(info.unsent_bytes.into())),
        ("unread", Value::Number(info.unread_bytes.into())),
        ("out_of_order", Value::Number(info.out_of_order_bytes.into())),
        ("owed_segments", segments(info.owed_segments)),
        ("seconds_held", segments(info.seconds_held)),
    ]
}

fn counters(info: &Info) -> Fields {
    let stats = &info.stats;
    let small = |count: u32| Value::Number(count.into());
    vec![
        ("segments_sent", Value::Number(stats.segments_sent)),
        ("segments_retransmitted", Value::Number(stats.segments_retransmitted)),
        ("bytes_sent", Value::Number(stats.bytes_sent)),
        ("bytes_retransmitted", Value::Number(info.bytes_retransmitted)),
        ("dsacks", small(stats.dsacks)),
        ("bytes_acked", Value::Number(stats.bytes_acked)),
        ("segments_received", Value::Number(stats.segments_received)),
        ("segments_in_order", Value::Number(stats.segments_in_order)),
        ("segments_out_of_order", Value::Number(stats.segments_out_of_order)),
        ("segments_duplicate", Value::Number(stats.segments_duplicate)),
        ("bytes_received", Value::Number(stats.bytes_received)),
        ("acks_sent", Value::Number(stats.acks_sent)),
        ("acks_repeated", Value::Number(stats.acks_repeated)),
        ("timeouts", small(stats.timeouts)),
        ("fast_retransmits", small(stats.fast_retransmits)),
        ("tail_probes", small(stats.tail_probes)),
        ("window_probes", small(stats.window_probes)),
        ("undone", small(stats.undone)),
    ]
}

const SIGNS: [&str; 5] = ["<=", ">=", "!=", "<", ">"];

/// Compares `key=value`, `key<=value` and such; returns the difference, if there is one.
pub(crate) fn difference(claim: &str, fields: &[(&'static str, Value)]) -> Read<Option<String>> {
    let at = claim.find(['<', '>', '=', '!']).ok_or_else(|| problem!("`{claim}`: expected key=value"))?;
    let (key, rest) = claim.split_at(at);
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).copied().unwrap_or("=");
    let wanted = &rest[sign.len()..];
    let known = fields.iter().find(|(name, _)| *name == key);
    let (_, is) = known.ok_or_else(|| problem!("`{key}` is nothing that info tells"))?;
    let order = match is {
        Value::Number(is) => is.cmp(&number(wanted)?),
        Value::Time(is) => is.cmp(&time(wanted)?),
        Value::Word(is) if sign == "=" || sign == "!=" => is.as_str().cmp(wanted),
        Value::Word(is) => numeric(is)?.cmp(&numeric(wanted)?),
    };
    let holds = match sign {
        "<=" => order.is_le(),
        ">=" => order.is_ge(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        ">" => order.is_gt(),
        _ => order.is_eq(),
    };
    Ok((!holds).then(|| format!("{key} is {is}")))
}

fn numeric(text: &str) -> Read<i64> {
    text.parse().map_err(|_| problem!("`{text}` has no order"))
}

#[test]
fn fields_are_compared_as_what_they_are() {
    let fields =
        [("a", Value::Number(9)), ("b", Value::Time(200_000_000)), ("c", word("open")), ("d", word("-3"))];
    for good in ["a=9", "a<10", "a>=9", "a!=8", "b=200ms", "b<1s", "c=open", "c!=shut", "d<0"] {
        assert_eq!(difference(good, &fields), Ok(None), "{good}");
    }
    for bad in ["a=8", "a<9", "b>200ms", "c=shut", "d>0"] {
        assert!(difference(bad, &fields).unwrap().is_some(), "{bad}");
    }
    for wrong in ["x=1", "a", "a=x", "b=3", "c<open"] {
        assert!(difference(wrong, &fields).is_err(), "{wrong}");
    }
}
