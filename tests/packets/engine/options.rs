//! TCP options as scripts write them: read from text, put into bytes, found in bytes. None of it is core's code: the
//! one checks the other.

use std::fmt;

use super::text::{Read, bytes, field, number, pair, problem, sequence, show_sequence};

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WSCALE: u8 = 3;
const SACK_OK: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const HOPWISE: u8 = 253;
const RATE: u8 = 254;
const HOPWISE_EXID: [u8; 2] = [0x48, 0x57];
const RATE_EXID: [u8; 2] = [0x00, 0xac];

/// A value of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// `*`: any value; in a packet to be sent, a real peer's value.
    Any,
    Is(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opt {
    End,
    Nop,
    Mss(u16),
    Wscale(u8),
    SackOk,
    Sack(Vec<(u32, u32)>),
    Ts {
        val: Stamp,
        ecr: Stamp,
    },
    /// The offers of agents on a SYN, bit by bit.
    Offer(u8),
    Notes {
        cwnd: Option<u16>,
        dup_count: Option<u8>,
        ack_after: Option<u8>,
    },
    RateOffer,
    Rate(u8),
    Unknown {
        kind: u8,
        body: Vec<u8>,
    },
    /// Raw bytes, options or not.
    Raw(Vec<u8>),
}

/// `[mss 1460, sack_ok]`; with `...` at the end, further options may be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionList {
    pub(crate) options: Vec<Opt>,
    pub(crate) is_open: bool,
}

impl OptionList {
    pub(crate) fn read(text: &str) -> Read<OptionList> {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let inner = inner.ok_or_else(|| problem!("`{text}`: options stand in brackets"))?;
        let mut list = OptionList { options: Vec::new(), is_open: false };
        for part in inner.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if part == "..." {
                list.is_open = true;
            } else {
                list.options.push(read_option(part)?);
            }
        }
        Ok(list)
    }

    /// The options that the segment lacks, or has too many of; padding does not count.
    pub(crate) fn difference(&self, seen: &[Opt]) -> Option<String> {
        let counts = |opt: &&Opt| !matches!(opt, Opt::Nop | Opt::End);
        let mut left: Vec<&Opt> = seen.iter().filter(counts).collect();
        for wanted in self.options.iter().filter(counts) {
            match left.iter().position(|opt| wanted.admits(opt)) {
                Some(place) => {
                    left.remove(place);
                }
                None => return Some(format!("there is no option `{wanted}`")),
            }
        }
        match left.first() {
            Some(extra) if !self.is_open => Some(format!("nobody expects the option `{extra}`")),
            _ => None,
        }
    }
}

impl Stamp {
    fn read(text: &str) -> Read<Stamp> {
        if text == "*" { Ok(Stamp::Any) } else { Ok(Stamp::Is(sequence(text)?)) }
    }

    fn admits(self, seen: Stamp) -> bool {
        self == Stamp::Any || self == seen
    }

    fn value(self) -> u32 {
        match self {
            Stamp::Any => 0,
            Stamp::Is(value) => value,
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stamp::Any => f.write_str("*"),
            Stamp::Is(value) => f.write_str(&show_sequence(*value)),
        }
    }
}

impl Opt {
    fn admits(&self, seen: &Opt) -> bool {
        match (self, seen) {
            (Opt::Ts { val, ecr }, Opt::Ts { val: seen_val, ecr: seen_ecr }) => {
                val.admits(*seen_val) && ecr.admits(*seen_ecr)
            }
            _ => self == seen,
        }
    }

    /// Appends the option's bytes; numbers are the wire's already.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let kind = match self {
            Opt::End => return out.push(END),
            Opt::Nop => return out.push(NOP),
            Opt::Raw(bytes) => return out.extend(bytes),
            Opt::Mss(mss) => {
                body.extend(mss.to_be_bytes());
                MSS
            }
            Opt::Wscale(shift) => {
                body.push(*shift);
                WSCALE
            }
            Opt::SackOk => SACK_OK,
            Opt::Sack(blocks) => {
                body.extend(
                    blocks
                        .iter()
                        .flat_map(|(left, right)| [left.to_be_bytes(), right.to_be_bytes()])
                        .flatten(),
                );
                SACK
            }
            Opt::Ts { val, ecr } => {
                body.extend([val, ecr].iter().flat_map(|stamp| stamp.value().to_be_bytes()));
                TIMESTAMPS
            }
            Opt::Offer(bits) => {
                body.extend(HOPWISE_EXID);
                body.push(*bits);
                HOPWISE
            }
            Opt::Notes { cwnd, dup_count, ack_after } => {
                body.extend(HOPWISE_EXID);
                let bits = [cwnd.is_some(), dup_count.is_some(), ack_after.is_some()];
                body.push(
                    bits.iter().enumerate().map(|(place, is_there)| u8::from(*is_there) << place).sum(),
                );
                body.extend(cwnd.iter().flat_map(|cwnd| cwnd.to_be_bytes()));
                body.extend(dup_count.iter().chain(ack_after));
                HOPWISE
            }
            Opt::RateOffer => {
                body.extend(RATE_EXID);
                RATE
            }
            Opt::Rate(rate) => {
                body.extend(RATE_EXID);
                body.push(*rate << 1);
                RATE
            }
            Opt::Unknown { kind, body: inner } => {
                body.extend(inner);
                *kind
            }
        };
        out.push(kind);
        out.push(body.len() as u8 + 2);
        out.extend(body);
    }
}

fn read_option(text: &str) -> Read<Opt> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    Ok(match (name, rest.as_slice()) {
        ("eol", []) => Opt::End,
        ("nop", []) => Opt::Nop,
        ("mss", [mss]) => Opt::Mss(field(mss)?),
        ("wscale", [shift]) => Opt::Wscale(field(shift)?),
        ("sack_ok", []) => Opt::SackOk,
        ("sack", blocks) if !blocks.is_empty() => {
            Opt::Sack(blocks.iter().map(|block| read_block(block)).collect::<Read<_>>()?)
        }
        ("ts", []) => Opt::Ts { val: Stamp::Any, ecr: Stamp::Any },
        ("ts", [val, ecr]) => Opt::Ts { val: Stamp::read(val)?, ecr: Stamp::read(ecr)? },
        ("offer", bits) if !bits.is_empty() => Opt::Offer(read_offer(bits)?),
        ("notes", notes) if !notes.is_empty() => read_notes(notes)?,
        ("rate", []) => Opt::RateOffer,
        ("rate", [rate]) => Opt::Rate(field(rate)?),
        ("kind", [kind]) => Opt::Unknown { kind: field(kind)?, body: Vec::new() },
        ("kind", [kind, body]) => Opt::Unknown { kind: field(kind)?, body: bytes(body)? },
        ("raw", [hex]) => Opt::Raw(bytes(hex)?),
        _ => return Err(problem!("`{text}` is no option")),
    })
}

fn read_block(text: &str) -> Read<(u32, u32)> {
    let (left, right) =
        text.split_once("..").ok_or_else(|| problem!("`{text}`: a SACK block is written 1461..2921"))?;
    Ok((sequence(left)?, sequence(right)?))
}

const OFFERS: [&str; 8] = [
    "tell_cwnd",
    "use_cwnd",
    "tell_dup_count",
    "use_dup_count",
    "tell_ack_after",
    "use_ack_after",
    "tell_in_window",
    "use_in_window",
];

fn read_offer(words: &[&str]) -> Read<u8> {
    let bit = |word: &&str| match OFFERS.iter().position(|name| name == word) {
        Some(place) => Ok(1 << place),
        None => field(word),
    };
    Ok(words.iter().map(bit).collect::<Read<Vec<u8>>>()?.iter().fold(0, |bits, bit| bits | bit))
}

fn read_notes(words: &[&str]) -> Read<Opt> {
    let (mut cwnd, mut dup_count, mut ack_after) = (None, None, None);
    for word in words {
        match pair(word)? {
            ("cwnd", value) => cwnd = Some(field(value)?),
            ("dup_count", value) => dup_count = Some(field(value)?),
            ("ack_after", value) => ack_after = Some(field(value)?),
            (key, _) => return Err(problem!("`{key}`: notes have cwnd, dup_count and ack_after")),
        }
    }
    Ok(Opt::Notes { cwnd, dup_count, ack_after })
}

impl fmt::Display for Opt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        match self {
            Opt::End => write!(f, "eol"),
            Opt::Nop => write!(f, "nop"),
            Opt::Mss(mss) => write!(f, "mss {mss}"),
            Opt::Wscale(shift) => write!(f, "wscale {shift}"),
            Opt::SackOk => write!(f, "sack_ok"),
            Opt::Sack(blocks) => {
                write!(f, "sack")?;
                let show = |(left, right): &(u32, u32)| {
                    format!(" {}..{}", show_sequence(*left), show_sequence(*right))
                };
                blocks.iter().try_for_each(|block| f.write_str(&show(block)))
            }
            Opt::Ts { val, ecr } => write!(f, "ts {val} {ecr}"),
            Opt::Offer(bits) => {
                let names = OFFERS.iter().enumerate().filter(|(place, _)| bits & (1 << place) != 0);
                write!(f, "offer {}", names.map(|(_, name)| *name).collect::<Vec<_>>().join(" "))
            }
            Opt::Notes { cwnd, dup_count, ack_after } => {
                write!(f, "notes")?;
                cwnd.iter().try_for_each(|cwnd| write!(f, " cwnd={cwnd}"))?;
                dup_count.iter().try_for_each(|count| write!(f, " dup_count={count}"))?;
                ack_after.iter().try_for_each(|ack_after| write!(f, " ack_after={ack_after}"))
            }
            Opt::RateOffer => write!(f, "rate"),
            Opt::Rate(rate) => write!(f, "rate {rate}"),
            Opt::Unknown { kind, body } => write!(f, "kind {kind} {}", hex(body)),
            Opt::Raw(bytes) => write!(f, "raw {}", hex(bytes)),
        }
    }
}

/// The options of a segment that we sent. They have to be well-formed: a length for each (RFC 9293 MUST-68), and
/// nothing but zeros after the end of the list (MUST-69).
pub(crate) fn decode(mut bytes: &[u8]) -> Read<Vec<Opt>> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = bytes {
        match *kind {
            END if rest.iter().all(|byte| *byte == 0) => {
                options.push(Opt::End);
                return Ok(options);
            }
            END => return Err(problem!("bytes other than zero follow the end of the options")),
            NOP => {
                options.push(Opt::Nop);
                bytes = rest;
            }
            kind => {
                let len = rest.first().map_or(0, |len| usize::from(*len));
                if len < 2 || len > bytes.len() {
                    return Err(problem!("option {kind} has a length that cannot be: {len}"));
                }
                options.push(decode_one(kind, &bytes[2..len]));
                bytes = &bytes[len..];
            }
        }
    }
    Ok(options)
}

fn decode_one(kind: u8, body: &[u8]) -> Opt {
    let word = |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
    match (kind, body) {
        (MSS, [high, low]) => Opt::Mss(u16::from_be_bytes([*high, *low])),
        (WSCALE, [shift]) => Opt::Wscale(*shift),
        (SACK_OK, []) => Opt::SackOk,
        (SACK, _) if !body.is_empty() && body.len().is_multiple_of(8) => {
            Opt::Sack((0..body.len()).step_by(8).map(|at| (word(at), word(at + 4))).collect())
        }
        (TIMESTAMPS, _) if body.len() == 8 => Opt::Ts { val: Stamp::Is(word(0)), ecr: Stamp::Is(word(4)) },
        (HOPWISE, [0x48, 0x57, bits]) => Opt::Offer(*bits),
        (HOPWISE, [0x48, 0x57, bits, fields @ ..]) => decode_notes(*bits, fields),
        (RATE, [0x00, 0xac]) => Opt::RateOffer,
        (RATE, [0x00, 0xac, rate]) => Opt::Rate(*rate >> 1),
        _ => Opt::Unknown { kind, body: body.to_vec() },
    }
}

fn decode_notes(bits: u8, fields: &[u8]) -> Opt {
    let mut left = fields.iter().copied();
    let cwnd = if bits & 1 != 0 { left.next().zip(left.next()) } else { None };
    Opt::Notes {
        cwnd: cwnd.map(|(high, low)| u16::from_be_bytes([high, low])),
        dup_count: if bits & 2 != 0 { left.next() } else { None },
        ack_after: if bits & 4 != 0 { left.next() } else { None },
    }
}

#[test]
fn options_come_back_from_their_bytes() {
    let text = "[mss 1460, nop, wscale 7, sack_ok, ts 1 2, sack 1..2 5..9, offer tell_cwnd use_ack_after, \
                notes cwnd=4 dup_count=2 ack_after=1, rate, rate 3, kind 77 0102]";
    let list = OptionList::read(text).unwrap();
    let mut wire = Vec::new();
    list.options.iter().for_each(|option| option.write(&mut wire));
    let seen = decode(&wire).unwrap();
    assert_eq!(seen, list.options);
    assert_eq!(list.difference(&seen), None);
    let printed: Vec<String> = seen.iter().map(ToString::to_string).collect();
    assert_eq!(OptionList::read(&format!("[{}]", printed.join(", "))).unwrap(), list);
}

#[test]
fn a_list_says_what_is_missing_and_what_is_too_much() {
    let list = |text| OptionList::read(text).unwrap();
    let seen = list("[mss 1460, sack_ok, ts 7 9, nop, eol]").options;
    assert_eq!(list("[ts * 9, mss 1460, sack_ok]").difference(&seen), None);
    assert_eq!(list("[mss 1460, ...]").difference(&seen), None);
    assert!(list("[mss 1460]").difference(&seen).is_some());
    assert!(list("[mss 536, ...]").difference(&seen).is_some());
    assert!(list("[ts 8 9, ...]").difference(&seen).is_some());
    assert!(list("[]").difference(&seen).is_some());
}

#[test]
fn options_that_we_may_not_send_are_found() {
    assert!(decode(&[8, 0]).is_err() && decode(&[8, 11, 0]).is_err() && decode(&[8]).is_err());
    assert!(decode(&[0, 0, 1]).is_err());
    assert_eq!(decode(&[1, 0, 0]), Ok(vec![Opt::Nop, Opt::End]));
}

#[test]
fn what_is_no_option_is_refused() {
    for text in ["mss", "[mss]", "[mss 70000]", "[sack 1]", "[notes x=1]", "[notes]", "[what 1]", "[raw 1]"] {
        assert!(OptionList::read(text).is_err(), "{text}");
    }
    assert!(number("").is_err());
}
