//! The accepted name that is nearest to a wrong one.

use std::cmp::Reverse;

/// At most this many letters are compared. Longer texts resemble no name, and the work stays bounded.
const LONGEST: usize = 32;

/// Returns the candidate that needs the fewest changes, unless it needs many. Among equal candidates it returns the one
/// with the longest common beginning.
pub fn nearest<'a>(wrong: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if wrong.chars().count() > LONGEST {
        return None;
    }
    let alike = |name: &str| wrong.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
    let measured = candidates.map(|name| (changes_between(wrong, name), Reverse(alike(name)), name));
    // A name of the same length with the same first letter may need one change more: `tun` for `tap`.
    let more = |alike: usize, name: &str| usize::from(alike > 0 && name.len() == wrong.len());
    // A name in which every letter would change resembles nothing: `a` for `c`.
    let is_near = |(changes, Reverse(alike), name): &(usize, Reverse<usize>, &str)| {
        *changes <= name.len().div_ceil(3) + more(*alike, name) && *changes < name.len().max(wrong.len())
    };
    measured.filter(is_near).min().map(|(.., name)| name)
}

/// The number of letters to insert, delete or exchange, and of neighbours to swap (optimal string alignment).
fn changes_between(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let exchanged = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = exchanged.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_of_the_finger_is_one_change() {
        assert_eq!(changes_between("delyed", "delayed"), 1);
        assert_eq!(changes_between("dleayed", "delayed"), 1);
        assert_eq!(changes_between("delayyed", "delayed"), 1);
        assert_eq!(changes_between("delaxed", "delayed"), 1);
        assert_eq!(changes_between("", "cubic"), 5);
    }

    #[test]
    fn of_names_that_are_equally_near_the_one_that_begins_alike_is_suggested() {
        assert_eq!(nearest("dcaa", ["daa", "dca"].into_iter()), Some("dca"));
        assert_eq!(nearest("daaa", ["daa", "dca"].into_iter()), Some("daa"));
        assert_eq!(nearest("tap", ["tun", "tun-fast", "raw", "pcap", "replay"].into_iter()), Some("tun"));
    }

    #[test]
    fn nothing_is_suggested_for_a_name_that_resembles_none() {
        let names = || ["immediate", "delayed"].into_iter();
        assert_eq!(nearest("imediate", names()), Some("immediate"));
        assert_eq!(nearest("window", names()), None);
        assert_eq!(nearest(&"delayed".repeat(9), names()), None);
        assert_eq!(
            [nearest("c", ["a", "b"].into_iter()), nearest("ab", ["a"].into_iter())],
            [None, Some("a")]
        );
    }
}
