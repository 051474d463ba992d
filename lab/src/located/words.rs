//! Errors of serde and of the system, reworded for people who write YAML.

use std::borrow::Borrow;
use std::io;
use std::path::{Path, PathBuf};

use hopwise_agents::SpecError;
use hopwise_agents::registry::{self, Kind};
use nix::unistd::{User, geteuid};

use crate::located::{Document, Refusal, YamlPath};

const NO_SOCKET_ADDRESS: &str = "invalid socket address syntax";

/// The problem, without the names of types.
pub(super) fn problem(said: &str) -> String {
    if said == NO_SOCKET_ADDRESS {
        return "this is no address with a port".to_owned();
    }
    if let Some(word) = said.strip_prefix("unknown variant ") {
        return format!("{word} does not fit here");
    }
    let Some(given) = said.strip_prefix("invalid type: ").or_else(|| said.strip_prefix("invalid value: "))
    else {
        return said.to_owned();
    };
    let quoted = |text: &str| format!("`{}` does not fit here", text.trim_matches(['`', '"']));
    for kind in ["string ", "integer ", "floating point ", "boolean ", "character "] {
        if let Some(text) = given.strip_prefix(kind) {
            return quoted(text);
        }
    }
    match given {
        "unit value" | "null" | "Option value" => "nothing is given here".to_owned(),
        "sequence" => "a list does not fit here".to_owned(),
        "map" => "a map does not fit here".to_owned(),
        other => format!("{other} does not fit here"),
    }
}

/// The accepted values, without the names of types.
pub(super) fn wanted(said: &str) -> String {
    if let Some(value) = said.strip_suffix(", or off") {
        return format!("{}, or off", wanted(value));
    }
    let most: Option<u64> = match said {
        "u8" => Some(u8::MAX.into()),
        "u16" => Some(u16::MAX.into()),
        _ => None,
    };
    if let Some(most) = most {
        return format!("a whole number from 0 to {most}");
    }
    match said {
        // The type's range is wider than the key's range, which the refusal of a larger number tells.
        "u32" | "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "a borrowed string" | "string" => "a text".to_owned(),
        "a sequence" | "sequence" => "a list, such as [a, b]".to_owned(),
        "a map" | "map" => "keys with values, such as { key: value }".to_owned(),
        "unit" | "null" => "nothing".to_owned(),
        "path string" => "a path, such as /run/hopwise/n2.sock, in quotes where it is a number".to_owned(),
        "socket address" => "an address with a port up to 65535, such as 127.0.0.1:1080".to_owned(),
        other if other.starts_with("struct ") => "keys with values, such as { key: value }".to_owned(),
        other => match other.strip_prefix("an array of length ").or(other.strip_prefix("a tuple of size ")) {
            Some(count) => format!("a list of {count} values"),
            None => other.to_owned(),
        },
    }
}

/// Advice where serde names no accepted values: write a missing key, or the form of an address.
pub(super) fn advice(said: &str) -> Option<String> {
    match said {
        NO_SOCKET_ADDRESS => return Some(format!("expected {}", wanted("socket address"))),
        "invalid IP address syntax" => return Some("expected an address, such as 10.7.0.2".to_owned()),
        _ => {}
    }
    let key = said.strip_prefix("missing field `")?.strip_suffix('`')?;
    Some(format!("the key `{key}` with its value, here"))
}

/// The most names in a refusal: more of them hide the nearest.
const MOST_NAMED: usize = 24;

/// The names that are accepted, after the one among them that is nearest to the wrong one. Of very many names it gives
/// the ones that begin as the wrong one does or have it as a part, or else the first.
pub fn one_of(wrong: &str, names: &[&str]) -> String {
    let begins = wrong.split_once('-').map_or(wrong, |(begins, _)| begins);
    // Somebody may know a part of a name: `mcs3` of `ht20-mcs3`.
    let has_part = |name: &&str| name.split(['-', '_']).any(|part| part == wrong);
    let is_akin = |name: &&str| name.starts_with(begins) || has_part(name);
    let akin: Vec<_> = names.iter().copied().filter(is_akin).collect();
    let shown = match &akin[..] {
        _ if names.len() <= MOST_NAMED => names,
        [] => &names[..MOST_NAMED],
        akin => &akin[..akin.len().min(MOST_NAMED)],
    };
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let all = shown.join(", ") + &more;
    let near = hopwise_agents::spec::nearest(wrong, names.iter().copied());
    match near.or_else(|| names.iter().copied().find(has_part)) {
        Some(name) => format!("did you mean `{name}`? expected one of {all}"),
        None => format!("expected one of {all}"),
    }
}

/// Names as a sentence has them: `a, b or c`.
pub(crate) fn either(names: &[impl Borrow<str>]) -> String {
    match names {
        [] => String::new(),
        [only] => only.borrow().to_owned(),
        [first @ .., last] => format!("{} or {}", first.join(", "), last.borrow()),
    }
}

/// The reason why a file was not read. It names a file in its folder with a similar name, and the user: a daemon that
/// reads its file anew may run as another user.
pub(super) fn unreadable(error: &io::Error, path: &Path) -> String {
    if error.kind() == io::ErrorKind::NotFound
        && let Some(near) = near(path)
    {
        return format!("{error}; did you mean `{near}`?");
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let own = geteuid();
            let name = User::from_uid(own).ok().flatten().map_or_else(|| own.to_string(), |user| user.name);
            format!("{error}; this runs as user `{name}`, who may not read it or look into its folder")
        }
        // Such an error says itself what is expected.
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => error.to_string(),
        _ => format!("{error}; expected a YAML file"),
    }
}

/// The file of this folder with the most similar name and an equal ending.
fn near(path: &Path) -> Option<String> {
    let folder = path.parent()?;
    let stem = |name: &Path| Some(name.file_stem()?.to_str()?.to_owned());
    let all = if folder.as_os_str().is_empty() { Path::new(".") } else { folder }.read_dir().ok()?;
    let beside = all.filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name())));
    let alike = beside.filter(|name| name.extension() == path.extension());
    let stems: Vec<_> = alike.filter_map(|name| stem(&name)).collect();
    let near = hopwise_agents::spec::nearest(&stem(path)?, stems.iter().map(String::as_str))?;
    let ending = path.extension().map_or(String::new(), |ending| format!(".{}", ending.display()));
    Some(folder.join(format!("{near}{ending}")).display().to_string())
}

impl Document {
    /// The end of `error` gives the accepted values; if there are none, the advice lists all names.
    pub fn refuse_spec(&self, at: &YamlPath, kind: Kind, error: &SpecError) -> Box<Refusal> {
        let text = error.to_string();
        let mut lines = text.lines();
        let problem = lines.next().unwrap_or_default().to_owned();
        let names: Vec<_> = registry::names(kind).collect();
        let accepted = lines.last().map_or_else(|| names.join(", "), str::to_owned);
        // The refusal shows the item of a YAML list; a list in one text has no items.
        let at = error.item().map_or_else(|| at.clone(), |nth| at.index(nth));
        let refusal = self.refuse(&at, problem, accepted.trim());
        let parts = [Some((error.spec.as_str(), error.place.clone())), error.in_item()];
        let narrower = parts.into_iter().flatten().find_map(|(spec, wrong)| refusal.within(spec, wrong));
        narrower.unwrap_or(refusal)
    }
}
