//! Keys that take nothing but numbers, and values of another kind.

use serde_yaml::Value;

use super::Sub;
use super::list::{NO_UNIT, limits_of, unit_of};

/// The problem and the accepted values, if the key takes only numbers and the value is none. `name` is the key's.
pub(super) fn refused(sub: Sub<'_>, name: &str, value: &Value) -> Option<(String, String)> {
    let takes = Takes::of(sub)?;
    let is_off = value.as_bool() == Some(false) || value.as_str() == Some("off");
    let problem = match value {
        _ if takes.off && is_off => return None,
        Value::String(text) => format!("`{text}` does not fit here"),
        Value::Bool(flag) => format!("`{flag}` does not fit here"),
        Value::Number(number) if !takes.fractions && number.is_f64() => {
            format!("`{number}` does not fit here")
        }
        Value::Null if !takes.nothing => "nothing is given here".to_owned(),
        Value::Sequence(_) if !takes.lists => "a list does not fit here".to_owned(),
        Value::Mapping(_) if !takes.maps => "a map does not fit here".to_owned(),
        _ => return None,
    };
    let number = if takes.fractions { "a number" } else { "a whole number" };
    let unit = unit_of(sub, name).filter(|unit| *unit != NO_UNIT);
    let of_unit = unit.map_or_else(String::new, |unit| format!(" of {unit}"));
    let has_unit = value.as_str().is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()));
    let bare = if has_unit { " without unit" } else { "" };
    let range = limits_of(sub).map_or_else(String::new, |range| format!(", {range}"));
    let off = if takes.off { ", or off" } else { "" };
    Some((problem, format!("expected {number}{of_unit}{bare}{range}{off}")))
}

/// The kinds of values that a key with numbers takes.
#[derive(Debug, Default)]
struct Takes {
    numbers: bool,
    fractions: bool,
    off: bool,
    lists: bool,
    maps: bool,
    nothing: bool,
}

impl Takes {
    /// `None` if the key takes no numbers, or texts and flags as well.
    fn of(sub: Sub<'_>) -> Option<Takes> {
        let mut takes = Takes::default();
        let meant = sub.meant();
        let leaves = meant.iter().map(|one| one.schema);
        for leaf in leaves.filter(|leaf| leaf["$ref"].is_null() && leaf["anyOf"].is_null()) {
            if let Some(words) = leaf["enum"].as_array() {
                takes.off |= words.iter().all(|word| word == "off" || word == false);
                takes.off.then_some(())?;
                continue;
            }
            let kinds = leaf["type"].as_array().map_or(std::slice::from_ref(&leaf["type"]), Vec::as_slice);
            for kind in kinds {
                match kind.as_str()? {
                    "integer" => takes.numbers = true,
                    "number" => (takes.numbers, takes.fractions) = (true, true),
                    "array" => takes.lists = true,
                    "object" => takes.maps = true,
                    "null" => takes.nothing = true,
                    _ => return None,
                }
            }
        }
        takes.numbers.then_some(takes)
    }
}
