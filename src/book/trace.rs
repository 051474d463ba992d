//! The page of trace events, reasons of drops and options: their names from the program, their meanings from the
//! comments on them in its files.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use hopwise_core::Seq;
use hopwise_core::trace::DropReason;
use hopwise_core::trace::text::EVENT_NAMES;
use hopwise_core::wire::{Flags, HopwiseOption, Notes, OfferFlags, RateRequest, TcpHeader, TcpOptions};

use hopwise_testing::book::holds;

const HEAD: &str = "\
# Trace events, drop reasons and options

Written by a test from the program. `hopwise capture trace` reads the events of a file that `run --trace` wrote;
`capture why` says them in words. A column `event` and the metric `hopwise_trace_events_total` have these names, and
`hopwise_drops_total` has the reasons. The facts of an event have the names of the code's `TraceKind`; the details of a
trace in text have most of them.
";

/// A variant or a constant of a type, with the words above it in its file.
#[derive(Debug, Default)]
struct Item {
    /// The name with what follows it in its line, such as `NotOurs = "not-ours"`.
    code: String,
    words: String,
    fields: Vec<(String, String)>,
}

impl Item {
    fn ident(&self) -> &str {
        self.code.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
    }
}

fn source(place: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("stack/core/src").join(place))
        .expect("a file")
}

/// The items of the block that this line begins.
fn items(text: &str, begins: &str) -> Vec<Item> {
    let at = text.find(begins).unwrap_or_else(|| panic!("no {begins}"));
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = format!("\n{}}}", " ".repeat(at - line));
    let block = &text[at..];
    let block = &block[..block.find(&end).expect("it ends")];
    let (mut all, mut words, mut is_open) = (Vec::<Item>::new(), String::new(), false);
    for line in block.lines().skip(1).map(str::trim) {
        if let Some(more) = line.strip_prefix("///") {
            words = format!("{words} {}", more.trim()).trim().to_owned();
        } else if line.starts_with('}') {
            is_open = false;
        } else if let Some((field, _)) = line.split_once(": ").filter(|_| is_open) {
            let last = all.last_mut().expect("fields have a variant");
            last.fields.push((field.trim_start_matches("pub ").to_owned(), std::mem::take(&mut words)));
        } else if !words.is_empty() {
            is_open = line.ends_with('{');
            let code = line.trim_end_matches([',', '{', ';', ' ']).to_owned();
            all.push(Item { code, words: std::mem::take(&mut words), fields: Vec::new() });
        }
    }
    all
}

/// Words as a page has them: without links to items of the code.
fn plain(words: &str) -> String {
    let mut text = words.replace("[`", "`").replace("`]", "`").replace('|', "\\|");
    while let Some((before, rest)) = text.split_once("`(") {
        let Some((_, after)) = rest.split_once(')') else { break };
        text = format!("{before}`{after}");
    }
    text
}

/// The name that a table of names in the code gives a variant: `Type::Variant… => "name"`.
fn name_of<'a>(names: &'a str, variant: &str) -> &'a str {
    let is_it = |line: &&str| line.split([' ', '(', '{']).next() == Some(variant);
    let line = names.lines().map(str::trim).find(is_it).unwrap_or_else(|| panic!("{variant} has no name"));
    line.split('"').nth(1).expect("a name in quotes")
}

fn events(text: &mut String) {
    let (kinds, names) = (items(&source("trace.rs"), "pub enum TraceKind"), source("trace/text.rs"));
    assert_eq!(kinds.len(), EVENT_NAMES.len(), "each event is told");
    text.push_str("\n## Events\n\n| event | meaning | what it has |\n|---|---|---|\n");
    for kind in kinds {
        let name = name_of(&names, &format!("TraceKind::{}", kind.ident()));
        assert!(EVENT_NAMES.contains(&name), "{name}");
        let fields: Vec<_> =
            kind.fields.iter().map(|(name, words)| format!("`{name}`: {}", plain(words))).collect();
        writeln!(text, "| `{name}` | {} | {} |", plain(&kind.words), fields.join("<br>"))
            .expect("a text grows");
    }
}

/// The kinds of values that several events have, with the event that has each.
const VALUES: [(&str, &str); 7] = [
    ("SentWhat", "The reason to send a segment (`sent`)"),
    ("LostBy", "The evidence for a lost segment (`lost`, `recovery-began`)"),
    ("UndoneBy", "The evidence that nothing was lost (`undone`)"),
    ("Lacking", "An unmet need of an agent (`fallback`), as in `receiver_lacks` and `sender_lacks`"),
    ("ChosenBy", "The source of a choice of agents (`agents`)"),
    ("MtuHow", "The cause of another packet size (`path-mtu`)"),
    ("Scarce", "The resource that was scarce (`gave-way`)"),
];

fn values(text: &mut String) {
    let file = source("trace.rs");
    for (kind, says) in VALUES {
        writeln!(text, "\n### {says}\n\n| value | meaning |\n|---|---|").expect("a text grows");
        for item in items(&file, &format!("pub enum {kind} {{")) {
            // The name stands beside the variant, or in a match where a variant has a value.
            let name = item.code.split('"').nth(1);
            let name = name.unwrap_or_else(|| name_of(&file, &format!("{kind}::{}", item.ident())));
            writeln!(text, "| `{name}` | {} |", plain(&item.words)).expect("a text grows");
        }
    }
}

fn reasons(text: &mut String) {
    let told = items(&source("trace/drop_reason.rs"), "pub enum DropReason");
    let names: Vec<_> = told.iter().map(|item| item.code.split('"').nth(1).expect("a name")).collect();
    assert_eq!(names, DropReason::ALL.iter().map(|reason| reason.name()).collect::<Vec<_>>());
    text.push_str("\n## Reasons of drops\n\n| reason | meaning |\n|---|---|\n");
    for (item, name) in told.iter().zip(names) {
        writeln!(text, "| `{name}` | {} |", plain(&item.words)).expect("a text grows");
    }
}

/// The bytes of the option in a header that has no other.
fn bytes_of(flags: Flags, options: &TcpOptions) -> String {
    let header = TcpHeader {
        src_port: 1,
        dst_port: 2,
        seq: Seq(1),
        ack: Seq(1),
        flags,
        window: 1,
        urgent: 0,
        options,
    };
    let address = std::net::IpAddr::from([10, 0, 0, 1]);
    let mut bytes = Vec::new();
    header.emit(address, address, (b"", &[]), hopwise_core::wire::Checksums::Verify, &mut bytes);
    let option: Vec<_> = bytes[20..].iter().map(|byte| format!("{byte:02x}")).collect();
    option.join(" ")
}

fn options(text: &mut String) {
    text.push_str(
        "\n## Options\n\nThe agents of two ends talk in two experimental options of TCP (RFC 6994). A SYN offers what \
         its end can\ntell and use, and a SYN-ACK has what was agreed. Later segments have the notes themselves, in \
         network order.\nPadding up to four bytes is 00, the end of the list.\n",
    );
    let file = source("wire/tcp/hopwise_option.rs");
    text.push_str("\n### The bits of an offer\n\nKind 253, length, ExID 4857, one octet of bits:\n\n");
    text.push_str("| bit | name | meaning |\n|---|---|---|\n");
    for item in items(&file, "impl OfferFlags {").iter().filter(|item| item.code.starts_with("pub const ")) {
        let code = item.code.trim_start_matches("pub const ");
        let (name, bit) = (code.split(':').next(), code.rsplit(['(', ')']).nth(1));
        if let (Some(name), Some(bit)) = (name, bit.filter(|bit| bit.parse::<u8>().is_ok())) {
            writeln!(text, "| {bit} | `{name}` | {} |", plain(&item.words)).expect("a text grows");
        }
    }
    text.push_str(
        "\n### The notes of a segment\n\nKind 253, length, ExID 4857, one octet that says which follow:\n\n",
    );
    text.push_str("| bit | note | bytes | meaning |\n|---|---|---|---|\n");
    let places = [("cwnd", 2), ("dup_count", 1), ("ack_after", 1)];
    let notes = items(&file, "pub struct Notes {");
    assert_eq!(notes.len(), places.len(), "each note is told: {notes:?}");
    for ((name, len), item) in places.into_iter().zip(&notes) {
        let bit = constant(&file, &format!("NOTE_{}", name.to_uppercase()));
        assert!(item.code.contains(name), "{item:?}");
        writeln!(text, "| {bit} | `{name}` | {len} | {} |", plain(&item.words)).expect("a text grows");
    }
    text.push_str(
        "\n### The ACK-rate request\n\nKind 254, length, ExID 00ac. On a SYN it has no more than that. ",
    );
    text.push_str(
        "Later it has one octet, with the\nnumber in its high seven bits:\n\n| form | meaning |\n|---|---|\n",
    );
    for item in items(&file, "pub enum RateRequest {") {
        writeln!(text, "| `{}` | {} |", item.ident(), plain(&item.words)).expect("a text grows");
    }
}

/// The value of a constant of the file.
fn constant<'a>(file: &'a str, name: &str) -> &'a str {
    let line = file.lines().find(|line| line.starts_with(&format!("const {name}: "))).expect("a constant");
    line.rsplit("= ").next().expect("a value").trim_end_matches(';')
}

fn examples(text: &mut String) {
    let of = |hopwise: Option<HopwiseOption>, rate_request| TcpOptions {
        hopwise,
        rate_request,
        ..TcpOptions::default()
    };
    let offer = OfferFlags::TELL_CWND | OfferFlags::USE_DUP_COUNT;
    let notes = Notes { cwnd: Some(10), dup_count: None, ack_after: Some(4) };
    let rows = [
        (
            "a SYN that tells cwnd and uses counts of duplicate ACKs",
            Flags::SYN,
            of(Some(HopwiseOption::Offer(offer)), None),
        ),
        (
            "cwnd 10, and an ACK wanted after 4 segments",
            Flags::ACK,
            of(Some(HopwiseOption::Notes(notes)), None),
        ),
        ("a SYN that understands requests", Flags::SYN, of(None, Some(RateRequest::Offer))),
        ("one ACK wanted for 8 segments", Flags::ACK, of(None, Some(RateRequest::Ask(8)))),
    ];
    text.push_str("\n### Examples\n\n| what | bytes, as they leave |\n|---|---|\n");
    for (what, flags, options) in rows {
        writeln!(text, "| {what} | `{}` |", bytes_of(flags, &options)).expect("a text grows");
    }
}

#[test]
fn the_book_has_every_event_reason_and_option() {
    let mut text = HEAD.to_owned();
    events(&mut text);
    text.push_str("\n## Values of events\n");
    values(&mut text);
    reasons(&mut text);
    options(&mut text);
    examples(&mut text);
    holds("docs/trace.md", &text);
}
