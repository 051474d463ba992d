//! Commands that pages and helps show, held against what the program takes: names, options, files of `configs/`, and
//! the keys that are set in them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use hopwise_lab::scenario::Scenario;

/// The folders of pages for users.
const PAGES: [&str; 6] = ["", "docs", "docs/notebook", "docs/wireshark", "deploy/ansible", "configs"];

/// A simple command, as a shell would split it: by operators, quotes and white space. No variable is replaced.
fn split(block: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut letters = block.chars().peekable();
    let end_word = |word: &mut Option<String>, all: &mut Vec<Vec<String>>| {
        all.last_mut().expect("there is always one").extend(word.take());
    };
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next_if_eq(&'\n').is_some() => end_word(&mut word, &mut all),
            '\\' => word.get_or_insert_default().extend(letters.next()),
            '\'' | '"' => {
                let inside = letters.by_ref().take_while(|other| *other != letter);
                word.get_or_insert_default().extend(inside);
            }
            // A command of its own, or a file that one makes: a part of the word around it.
            '(' if word.is_some() => {
                let mut depth = 1;
                let inside = letters.by_ref().take_while(|other| {
                    depth += i32::from(*other == '(') - i32::from(*other == ')');
                    depth > 0
                });
                word.get_or_insert_default().extend(inside);
            }
            '<' if word.is_none() && letters.peek() == Some(&'(') => word = Some("<".to_owned()),
            '#' if word.is_none() => while letters.next_if(|other| *other != '\n').is_some() {},
            '<' | '>' => {
                // The number of a stream is no word.
                word = word.filter(|word| !word.chars().all(|letter| letter.is_ascii_digit()));
                end_word(&mut word, &mut all);
                all.last_mut().expect("there is always one").push(letter.to_string());
            }
            '\n' | ';' | '|' | '&' | '(' | ')' => {
                end_word(&mut word, &mut all);
                all.push(Vec::new());
            }
            other if other.is_whitespace() => end_word(&mut word, &mut all),
            other => word.get_or_insert_default().push(other),
        }
    }
    end_word(&mut word, &mut all);
    all.into_iter().map(without_files).filter(|words| !words.is_empty()).collect()
}

/// The words without the files that they read or write.
fn without_files(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "<" || word == ">" {
            // `<<` and `>>` have two.
            let _ = words.by_ref().find(|word| word != "<" && word != ">");
        } else {
            kept.push(word);
        }
    }
    kept
}

/// The words from the program's name on, whatever runs it.
fn of_hopwise(words: &[String]) -> Option<&[String]> {
    let is_it = |word: &String| word == "hopwise" || word.ends_with("release/hopwise");
    let at = words.iter().position(is_it)?;
    let runs = ["sudo", "ip", "ssh", "time", "valgrind", "do", "then", "{", "exec", "mesh", "env"];
    let is_run = at == 0 || runs.contains(&words[0].as_str()) || words[0].contains('=');
    is_run.then_some(&words[at..])
}

/// The reason why a shown command is refused.
fn refusal(whole: &Command, words: &[String]) -> Option<String> {
    // A pattern stands for several files.
    let times = |word: &String| if word.contains('*') { 2 } else { 1 };
    let words = words.iter().flat_map(|word| std::iter::repeat_n(word, times(word)));
    match whole.clone().try_get_matches_from(words) {
        Ok(matches) => of_scenario(matches.subcommand()?),
        Err(error) if error.use_stderr() => Some(error.to_string()),
        Err(_) => None,
    }
}

/// The scenario has to load with what is set, and to have the arms.
fn of_scenario((name, matches): (&str, &ArgMatches)) -> Option<String> {
    if !["run", "trial", "air"].contains(&name) {
        return None;
    }
    let matches = matches.subcommand().map_or(matches, |(_, inner)| inner);
    let file = matches.try_get_one::<PathBuf>("file").ok().flatten()?;
    if !file.starts_with("configs") {
        return None;
    }
    let given = |id: &str| -> Vec<String> {
        matches.try_get_many::<String>(id).ok().flatten().into_iter().flatten().cloned().collect()
    };
    let sets: Vec<_> = given("set").into_iter().filter(|set| !set.contains('$')).collect();
    let scenario = match Scenario::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file), &sets) {
        Ok(scenario) => scenario,
        Err(error) => return Some(format!("{error:?}")),
    };
    let arms = given("arm").into_iter().filter(|arm| arm != "every");
    let lacking = arms.filter_map(|arm| scenario.only(Some(&arm)).err());
    lacking.map(|no_plan| format!("{no_plan:?}")).next()
}

/// The blocks of a page that a shell would read.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks
        .filter_map(|block| ["sh\n", "bash\n", "console\n"].iter().find_map(|kind| block.strip_prefix(kind)))
}

/// The examples in the help of a command and of its subcommands.
fn examples(command: &Command, into: &mut Vec<(String, String)>) {
    let helps = [command.get_after_help(), command.get_after_long_help()];
    for help in helps.into_iter().flatten() {
        into.push((format!("the help of {}", command.get_name()), help.to_string()));
    }
    command.get_subcommands().for_each(|one| examples(one, into));
}

fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in PAGES {
        let entries = fs::read_dir(root.join(folder)).expect("a folder of pages").flatten();
        let paths = entries.map(|entry| entry.path());
        for path in paths.filter(|path| path.extension().is_some_and(|kind| kind == "md")) {
            let text = fs::read_to_string(&path).expect("a page");
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            found.extend(blocks(&text).map(|block| (name.clone(), block.to_owned())));
        }
    }
    found
}

/// The shown commands that the program would refuse, and their number in all.
pub(crate) fn refused(whole: &Command) -> (Vec<String>, usize) {
    let mut texts = pages();
    examples(whole, &mut texts);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (place, text) in &texts {
        count += split(text).iter().filter(|words| of_hopwise(words).is_some()).count();
        wrong.extend(refusals(whole, text).into_iter().map(|why| format!("{place}: {why}")));
    }
    (wrong, count)
}

/// The commands of a text that the program would refuse, each with the reason.
pub(crate) fn refusals(whole: &Command, text: &str) -> Vec<String> {
    let all = split(text);
    let ours = all.iter().filter_map(|words| of_hopwise(words));
    ours.filter_map(|words| Some(format!("{}: {}", words.join(" "), refusal(whole, words)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_split_as_a_shell_splits_it() {
        let block = "mesh() { ip netns exec n$1 hopwise route <(echo \"{ a: (b) }\") & }  # a remark\n\
                     sudo hopwise run a.yaml --set 'a=[b, c]' \\\n  --json 2> out | jq . << 'END'\nEND\n";
        let all = split(block);
        let found: Vec<_> =
            all.iter().filter_map(|words| of_hopwise(words)).map(|words| words.join("/")).collect();
        assert_eq!(found, ["hopwise/route/<echo \"{ a: (b) }\"", "hopwise/run/a.yaml/--set/a=[b, c]/--json"]);
    }
}
