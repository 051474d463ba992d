//! Texts in a narrow terminal: tables leave out their least columns, and a line names them; sentences break at spaces.

/// Takes the columns with the least turns away until the table is no longer too wide, or no other one may go. Returns
/// them in the order in which they went. `turn` is none for a column that stays.
pub fn without_least<T>(
    shown: &mut Vec<T>,
    turn: impl Fn(&T) -> Option<u8>,
    is_too_wide: impl Fn(&[T]) -> bool,
) -> Vec<T> {
    let mut left_out = Vec::new();
    while is_too_wide(shown) {
        let turns = shown.iter().enumerate().filter_map(|(nth, column)| Some((turn(column)?, nth)));
        let Some((_, nth)) = turns.min() else { break };
        left_out.push(shown.remove(nth));
    }
    left_out
}

/// The line that names what was left out; `json` is the command that has it all.
pub fn no_room(heads: &[impl AsRef<str>], json: &str) -> String {
    let named = heads.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    format!("No room in lines so short: {named}. A wider terminal shows them, and {json} has them.")
}

/// The text behind `lead` in lines of that width, with later lines indented by the lead's. Lines break at spaces
/// alone: a unit such as `Mbit/s` or a name such as `ofdm-12mbps` in two parts misleads.
pub fn wrapped(lead: &str, text: &str, width: usize) -> String {
    let mut lines = String::new();
    let indent = " ".repeat(lead.chars().count());
    let mut line = lead.to_owned();
    let mut is_fresh = true;
    for word in text.split_whitespace() {
        if !is_fresh && line.chars().count() + 1 + word.chars().count() > width {
            lines.push_str(&line);
            lines.push('\n');
            line.clone_from(&indent);
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(word);
        is_fresh = false;
    }
    lines + &line
}
