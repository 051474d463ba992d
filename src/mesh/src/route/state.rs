//! State that a daemon leaves for its next start: the time of its last routing, and the numbers that it must not use
//! again.
//!
//! A line `number N` is its last sequence number, a line `stamp N` the last time stamp that it signed. More such
//! lines are stamps that it left behind when its clock jumped. A number alone, from older daemons, is the first of
//! these. A line `heard ADDRESS N` is the newest time stamp of a neighbour.
//!
//! A daemon that ends in order also leaves the numbers of nodes: a line `of ADDRESS N` for each, and `numbers COUNT` as
//! the last line. The next start takes them out of the file. A daemon that was killed would go on from old ones.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hopwise_host::own_file::open_own;
use hopwise_mesh::OnDemand;

/// A larger file is no state file.
const LARGEST: u64 = 1 << 20;

/// More numbers of nodes than these would not fit. A node with more loses them.
const MOST_NUMBERS: usize = 16_384;

/// More than a node's number grows between two marks.
const NUMBERS_AHEAD: u16 = 1_024;

/// The numbers from which a node continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SavedState {
    /// For a node that has kept its own number.
    pub(super) number: Option<u16>,
    /// The last time stamp that the daemon signed, or a stamp shortly before it, and the stamps of its earlier starts.
    pub(super) stamps: Vec<u64>,
    /// The newest time stamps of neighbours.
    pub(super) heard: Vec<(Ipv4Addr, u64)>,
    /// The numbers of nodes, of a daemon that ended in order.
    pub(super) numbers: Vec<(Ipv4Addr, u32)>,
}

#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    /// `None` if it cannot be written.
    file: Option<File>,
    text: String,
    /// The previous time of writing, since 1970.
    marked: Option<Duration>,
}

impl StateFile {
    /// Reads the file, and replaces it by its text without the numbers of nodes. A file that is not our own stays, and
    /// nothing is remembered.
    pub(super) fn open(path: &Path) -> StateFile {
        let opened = open_own(path, OpenOptions::new().read(true));
        let is_free = opened.as_ref().map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |_| true);
        if let Err(error) = opened.as_ref()
            && !is_free
        {
            let path = path.display();
            tracing::warn!(%path, %error, "nothing is remembered in `state`: remove this, or name another file");
            return StateFile {
                path: path.to_string().into(),
                file: None,
                text: String::new(),
                marked: None,
            };
        }
        let file = opened.ok();
        let modified = file.as_ref().and_then(|file| file.metadata().ok()?.modified().ok());
        let marked = modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let mut text = String::new();
        if let Some(file) = file
            && file.take(LARGEST).read_to_string(&mut text).is_err()
        {
            text.clear();
        }
        let file = hopwise_daemon::own_files::write(path, &without_numbers(&text));
        let file =
            file.inspect_err(|error| tracing::debug!(path = %path.display(), %error, "not marked")).ok();
        StateFile { path: path.to_owned(), file, text, marked }
    }

    pub(super) fn read(&self) -> SavedState {
        kept(&self.text)
    }

    /// The time that is left until a node that has lost its numbers may route again: no node routes by them then (RFC
    /// 3561 §6.13). `now` counts from 1970, as the file's time does.
    pub(super) fn rest_left(&self, rest: Duration, now: Duration) -> Duration {
        self.marked.map_or(Duration::ZERO, |marked| left(marked, rest, now))
    }

    /// Writes the time of this node's last routing, and its numbers. After the end no message leaves, so that the
    /// numbers of other nodes hold, too.
    pub(super) fn mark(&self, protocol: &dyn OnDemand, is_end: bool) {
        let numbers = if is_end { protocol.numbers() } else { Vec::new() };
        let text = text_of(protocol.number(), &protocol.signed_stamps(), &protocol.heard_stamps());
        self.write(&(text + &text_of_numbers(&numbers)));
    }

    fn write(&self, text: &str) {
        let Some(file) = &self.file else { return };
        if let Err(error) = hopwise_daemon::own_files::rewrite(file, text) {
            tracing::debug!(path = %self.path.display(), %error, "not marked");
        }
    }
}

pub(super) fn text_of(number: Option<u16>, stamps: &[u64], heard: &[(Ipv4Addr, u64)]) -> String {
    let number = number.map(|number| format!("number {number}\n"));
    let stamps = stamps.iter().map(|stamp| format!("stamp {stamp}\n"));
    let heard = heard.iter().map(|(from, stamp)| format!("heard {from} {stamp}\n"));
    number.into_iter().chain(stamps).chain(heard).collect()
}

const OF: &str = "of ";
const COUNT: &str = "numbers ";

pub(super) fn text_of_numbers(numbers: &[(Ipv4Addr, u32)]) -> String {
    if numbers.is_empty() || numbers.len() > MOST_NUMBERS {
        return String::new();
    }
    let rows = numbers.iter().map(|(node, number)| format!("{OF}{node} {number}\n"));
    rows.chain([format!("{COUNT}{}\n", numbers.len())]).collect()
}

fn without_numbers(text: &str) -> String {
    let others = text.split_inclusive('\n').filter(|line| !line.starts_with(OF) && !line.starts_with(COUNT));
    others.collect()
}

/// None, unless all are there: a full disk may have taken a part.
fn numbers(text: &str) -> Vec<(Ipv4Addr, u32)> {
    let row = |line: &str| {
        let (node, number) = line.strip_prefix(OF)?.split_once(' ')?;
        Some((node.parse().ok()?, number.parse().ok()?))
    };
    let count = text.lines().next_back().and_then(|line| line.strip_prefix(COUNT)?.parse().ok());
    let numbers: Vec<_> = text.lines().filter_map(row).collect();
    if count == Some(numbers.len()) { numbers } else { Vec::new() }
}

pub(super) fn kept(text: &str) -> SavedState {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let number = value("number ").unwrap_or(text.trim()).parse::<u16>().ok();
    let stamps = text.lines().filter_map(|line| line.strip_prefix("stamp ")?.trim().parse().ok());
    let heard = text.lines().filter_map(|line| {
        let (from, stamp) = line.strip_prefix("heard ")?.split_once(' ')?;
        Some((from.parse().ok()?, stamp.trim().parse().ok()?))
    });
    SavedState {
        number: number.map(|number| number.wrapping_add(NUMBERS_AHEAD)),
        stamps: stamps.collect(),
        heard: heard.collect(),
        numbers: numbers(text),
    }
}

/// A clock that was set back since, or a mark from the future, makes no rest longer.
pub(super) fn left(marked: Duration, rest: Duration, now: Duration) -> Duration {
    (marked + rest).saturating_sub(now).min(rest)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn numbers_go_on_above_those_that_were_told() {
        for (text, number, stamps) in [
            ("", None, &[][..]),
            ("7\n", Some(1_031), &[]),
            ("number 65535\nstamp 5\n", Some(1_023), &[5]),
            ("stamp 5\nstamp 9\n", None, &[5, 9]),
            ("stamp 18446744073709551615\n", None, &[u64::MAX]),
            ("number x\nstamp -1\n", None, &[]),
        ] {
            let expected = SavedState { number, stamps: stamps.to_vec(), ..SavedState::default() };
            assert_eq!(kept(text), expected, "{text:?}");
        }
        let text = "stamp 5\nheard 10.0.0.2 7\nheard 10.0.0 7\nheard 10.0.0.3\nheard 10.0.0.4 -1\n";
        assert_eq!(kept(text).heard, [(Ipv4Addr::new(10, 0, 0, 2), 7)]);
    }

    #[test]
    fn what_was_marked_is_read() {
        let path = std::env::temp_dir().join(format!("hopwise-state-{}", std::process::id()));
        let mut state = StateFile::open(&path);
        assert_eq!((state.read(), state.marked), (SavedState::default(), None));
        for number in [None, Some(7)] {
            let heard = vec![(Ipv4Addr::new(10, 0, 0, 2), 7), (Ipv4Addr::new(10, 0, 0, 3), u64::MAX)];
            state.write(&text_of(number, &[9, 12], &heard));
            state = StateFile::open(&path);
            let number = number.map(|number| number + NUMBERS_AHEAD);
            let kept = SavedState { number, stamps: vec![9, 12], heard, numbers: Vec::new() };
            assert_eq!(state.read(), kept);
            assert!(state.marked.is_some());
        }
        fs::remove_file(&path).expect("it was marked");
    }

    #[test]
    fn the_numbers_of_an_orderly_end_are_there_for_one_start_and_all_or_none() {
        let path = std::env::temp_dir().join(format!("hopwise-state-end-{}", std::process::id()));
        let numbers = [(Ipv4Addr::new(10, 0, 0, 2), 7), (Ipv4Addr::new(10, 0, 0, 3), u32::MAX)];
        let ended = StateFile::open(&path);
        ended.write(&(text_of(None, &[9], &[]) + &text_of_numbers(&numbers)));
        let next = StateFile::open(&path);
        assert_eq!((next.read().numbers, next.read().stamps), (numbers.to_vec(), vec![9]));
        let killed = StateFile::open(&path);
        assert_eq!(killed.read(), SavedState { stamps: vec![9], ..SavedState::default() });
        fs::remove_file(&path).expect("it was marked");

        let whole = text_of_numbers(&numbers);
        assert_eq!(kept(&whole).numbers, numbers);
        for len in 0..whole.len() - 1 {
            assert!(kept(&whole[..len]).numbers.is_empty(), "{}", &whole[..len]);
        }
        assert!(kept(&(whole + "heard 10.0.0.2 7\n")).numbers.is_empty(), "a part of an older text follows");
        let many: Vec<_> = (0..=MOST_NUMBERS).map(|_| numbers[0]).collect();
        assert_eq!(text_of_numbers(&many), "");
        assert!(text_of_numbers(&many[1..]).len() < 1 << 19);
    }

    #[test]
    fn what_is_none_of_ours_is_not_replaced() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let folder = std::env::temp_dir().join(format!("hopwise-state-others-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (link, two, target) = (folder.join("link"), folder.join("two"), folder.join("target"));
        fs::write(&target, "number 7\n").expect("a file");
        symlink(&target, &link).expect("a link");
        fs::hard_link(&target, &two).expect("another name");
        let socket = folder.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        for path in [&link, &two, &socket] {
            let state = StateFile::open(path);
            state.write(&text_of(Some(9), &[], &[]));
            assert_eq!(state.read(), SavedState::default(), "{path:?}");
        }
        let kind = |path| fs::symlink_metadata(path).expect("it is there").file_type();
        assert!(kind(&link).is_symlink() && kind(&socket).is_socket());
        assert_eq!(fs::read_to_string(&two).expect("it is there"), "number 7\n");
        fs::remove_dir_all(folder).expect("it is there");
    }

    #[test]
    fn a_rest_is_never_longer_than_the_protocol_asks_for() {
        let seconds = Duration::from_secs;
        let rest = seconds(15);
        for (marked, now, expected) in [(100, 100, 15), (100, 110, 5), (100, 115, 0), (100, 900, 0)] {
            assert_eq!(left(seconds(marked), rest, seconds(now)), seconds(expected), "{marked} at {now}");
        }
        assert_eq!(left(seconds(31_536_100), rest, seconds(100)), rest, "a mark from next year");
    }
}
