//! An inventory of Ansible in its INI form: hosts with variables, `[group]`, `[group:children]`, `[group:vars]`.

use std::ops::RangeInclusive;

use super::ansible::{ALL, Groups, Line, Set, Variables};
use crate::failure::Failure;

/// Hosts without a group stand above the first section.
const UNGROUPED: &str = "ungrouped";
/// No range of names is longer, and no name with ranges has more hosts.
const LONGEST_RANGE: u32 = 10_000;
/// The most ranges in a name.
const MOST_RANGES: usize = 8;
/// The most digits of a number in a range.
const MOST_DIGITS: usize = 9;

/// The meaning of the lines of a section.
enum Section {
    Hosts(String),
    Children(String),
    Variables(String),
}

pub(super) fn read(file: &str, text: &str) -> Result<Groups, Failure> {
    let mut groups = Groups::default();
    let mut section = Section::Hosts(UNGROUPED.to_owned());
    for (nth, line) in text.lines().enumerate() {
        let number = nth + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let taken = match line.strip_prefix('[').filter(|_| is_section(line)) {
            Some(rest) => section_of(rest).map(|of| {
                let (Section::Hosts(name) | Section::Children(name) | Section::Variables(name)) = &of;
                groups.groups.entry(name.clone()).or_default();
                section = of;
            }),
            None => take(&mut groups, &section, line, number),
        };
        taken.map_err(|problem| Failure::refused(format!("{file}:{number}"), problem))?;
    }
    Ok(groups)
}

/// A line that begins with a bracket is a section; a host may begin with a range.
fn is_section(line: &str) -> bool {
    let inside = line.split(']').next().unwrap_or_default();
    let after = line[inside.len()..].trim_start_matches(']').trim_start();
    after.is_empty() || after.starts_with(['#', ';'])
}

fn section_of(rest: &str) -> Result<Section, String> {
    let Some((inside, _)) = rest.split_once(']') else { return Err("a section without its `]`".to_owned()) };
    let (name, kind) = inside.split_once(':').unwrap_or((inside, ""));
    let name = name.trim();
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(format!("`{name}` is no name of a group: expected one word, such as [mesh]"));
    }
    match kind.trim() {
        "" => Ok(Section::Hosts(name.to_owned())),
        "children" => Ok(Section::Children(name.to_owned())),
        "vars" => Ok(Section::Variables(name.to_owned())),
        other => Err(format!("a section has no kind `{other}`: expected children or vars")),
    }
}

fn take(groups: &mut Groups, section: &Section, line: &str, number: Line) -> Result<(), String> {
    match section {
        Section::Hosts(group) => {
            let words = words(line).ok_or("a quote does not end")?;
            let Some((pattern, rest)) = words.split_first() else { return Ok(()) };
            let mut variables = Variables::new();
            for word in rest {
                let (name, value) = word
                    .split_once('=')
                    .ok_or_else(|| format!("`{word}` is no variable: expected NAME=VALUE behind the host"))?;
                variables.insert(name.to_owned(), Set { value: value.to_owned(), line: number });
            }
            let (pattern, port) = with_port(pattern);
            if let Some(port) = port {
                let set = Set { value: port.to_owned(), line: number };
                variables.entry("ansible_port".to_owned()).or_insert(set);
            }
            let names = expanded(pattern)?;
            names.iter().for_each(|name| groups.add(group, name, variables.clone()));
        }
        Section::Children(group) => {
            let name = without_comment(line).to_owned();
            groups.groups.entry(group.clone()).or_default().children.push((name, number));
        }
        Section::Variables(group) => {
            let Some((name, value)) = line.split_once('=') else {
                return Err(format!("`{line}` is no variable: expected NAME=VALUE"));
            };
            let value = words(value.trim()).ok_or("a quote does not end")?.join(" ");
            let set = Set { value, line: number };
            let group = if group == ALL { ALL } else { group };
            groups.groups.entry(group.to_owned()).or_default().variables.insert(name.trim().to_owned(), set);
        }
    }
    Ok(())
}

/// The words of a line, as a shell cuts them, up to a comment. `None` if a quote does not end.
pub(super) fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => word.get_or_insert_default().push(letter),
            None if letter == '"' || letter == '\'' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            None if letter == '#' && word.is_none() => break,
            None => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or(line).trim()
}

/// A host with a port behind its only colon. An address of IPv6 has more colons, and a range has them in brackets.
fn with_port(pattern: &str) -> (&str, Option<&str>) {
    let (mut depth, mut outside) = (0_u32, Vec::new());
    for (at, letter) in pattern.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => outside.push(at),
            _ => {}
        }
    }
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match outside[..] {
        [at] if is_port(&pattern[at + 1..]) => (&pattern[..at], Some(&pattern[at + 1..])),
        _ => (pattern, None),
    }
}

/// The hosts of a pattern such as `pi[01:12]` or `n-[a:c].mesh`.
pub(super) fn expanded(pattern: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = pattern.split_once('[') else { return Ok(vec![pattern.to_owned()]) };
    if rest.matches('[').count() >= MOST_RANGES {
        return Err(format!("a name has too many ranges, expected at most {MOST_RANGES}"));
    }
    let accepted = "expected a range such as [01:12], [0:20:2] or [a:f]";
    let range = rest.split_once(']').ok_or_else(|| format!("`{pattern}` has no `]`: {accepted}"))?;
    let (inside, after) = range;
    let parts: Vec<&str> = inside.split(':').collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, 1),
        [first, last, step] => (first, last, step.parse::<u32>().ok().filter(|step| *step > 0).unwrap_or(0)),
        _ => ("", "", 0),
    };
    let middle = names(first, last, step).ok_or_else(|| format!("`[{inside}]` is no range: {accepted}"))?;
    let rest = expanded(after)?;
    if middle.len().saturating_mul(rest.len()) > LONGEST_RANGE as usize {
        return Err(format!("`{pattern}` has too many hosts, expected at most {LONGEST_RANGE}"));
    }
    let each =
        |middle: &String| rest.iter().map(|rest| format!("{before}{middle}{rest}")).collect::<Vec<_>>();
    Ok(middle.iter().flat_map(each).collect())
}

/// The names from the first to the last: numbers with as many digits as the first, or letters.
fn names(first: &str, last: &str, step: u32) -> Option<Vec<String>> {
    let numbers = |range: RangeInclusive<u32>, step: u32| {
        let step = usize::try_from(step).ok().filter(|step| *step > 0)?;
        let len = range.end().checked_sub(*range.start())?;
        (len < LONGEST_RANGE).then(|| range.step_by(step))
    };
    let only = |text: &str| Some(text.chars().next()?).filter(|_| text.chars().count() == 1);
    if first.len().max(last.len()) <= MOST_DIGITS
        && let (Ok(from), Ok(to)) = (first.parse(), last.parse())
    {
        let width = if first.starts_with('0') { first.len() } else { 0 };
        return Some(numbers(from..=to, step)?.map(|number| format!("{number:0width$}")).collect());
    }
    let (from, to) = (only(first)?, only(last)?);
    let is_letter = from.is_ascii_alphabetic() && to.is_ascii_alphabetic();
    let all = numbers(u32::from(from)..=u32::from(to), step).filter(|_| is_letter)?;
    Some(all.filter_map(char::from_u32).map(String::from).collect())
}
