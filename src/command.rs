//! The `hopwise` command: subcommands by what a person does with them.
//!
//! Exit status: 0 done, 1 the work failed, 2 the input was refused (with the place and what would be accepted).

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::manual;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::table;
use hopwise_node::exec;

/// A user-level TCP for multi-hop 802.11, with the ACK decision and the sending decision chosen per connection.
#[derive(Debug, Parser)]
#[command(
    version = hopwise_lab::version::with_commit(),
    arg_required_else_help = true,
    override_usage = "hopwise <COMMAND>",
    // Elsewhere than on a terminal the lines of helps are not broken, which 0 stands for.
    term_width = table::width().unwrap_or(0)
)]
struct Command {
    /// Print what a shell needs to complete the arguments of `hopwise`
    #[arg(long, value_name = "SHELL", exclusive = true)]
    completions: Option<Shell>,
    /// Write a manual page for each command into a folder
    #[arg(long, value_name = "FOLDER", exclusive = true)]
    man: Option<PathBuf>,
    #[command(subcommand)]
    subcommand: Option<Sub>,
}

#[derive(Debug, Subcommand)]
enum Sub {
    #[cfg(feature = "lab")]
    Run(hopwise_trial::run::Arguments),
    #[cfg(feature = "lab")]
    Trial(hopwise_trial::trial::Arguments),
    #[cfg(feature = "lab")]
    Report(hopwise_trial::report::Arguments),
    #[cfg(feature = "lab")]
    Claims(hopwise_trial::claims::Arguments),
    #[cfg(feature = "lab")]
    Agents(hopwise_trial::agents::Arguments),
    #[cfg(feature = "lab")]
    Keys(hopwise_trial::keys::Arguments),
    #[cfg(feature = "node")]
    Node(hopwise_node::Arguments),
    #[cfg(feature = "node")]
    Exec(exec::Arguments),
    #[cfg(feature = "node")]
    Send(hopwise_node::measure::send::Arguments),
    #[cfg(feature = "node")]
    Recv(hopwise_node::measure::recv::Arguments),
    #[cfg(feature = "mesh")]
    Mesh(hopwise_router::Arguments),
    #[cfg(feature = "mesh")]
    Route(hopwise_router::route::Arguments),
    #[cfg(feature = "mesh")]
    Proxy(hopwise_router::proxy::Arguments),
    #[cfg(feature = "mesh")]
    Thin(hopwise_router::thin::Arguments),
    #[cfg(feature = "lab")]
    Air(hopwise_trial::air::Arguments),
    #[cfg(feature = "node")]
    Status(hopwise_node::status::Arguments),
    #[cfg(feature = "mesh")]
    Capture(hopwise_inspect::capture::Arguments),
    #[cfg(feature = "mesh")]
    Doctor(hopwise_inspect::doctor::Arguments),
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    Guest(hopwise_trial::live::guest::Arguments),
    #[cfg(feature = "mesh")]
    #[command(hide = true)]
    Part(hopwise_part::Arguments),
    #[cfg(feature = "node")]
    #[command(hide = true)]
    Bypass(hopwise_node::transparent_hangs::Arguments),
    #[cfg(feature = "node")]
    #[command(hide = true)]
    Enclosed(exec::within::Arguments),
}

/// What people come for, and the commands for it.
const DOORS: [(&str, &[&str]); 3] = [
    ("Compare agents", &["run", "trial", "report", "claims", "agents", "keys"]),
    ("Run on a mesh", &["node", "exec", "send", "recv", "mesh", "route", "proxy", "thin", "air"]),
    ("Look inside", &["status", "capture", "doctor"]),
];

/// The help of the whole command: a line for each subcommand, below what people come for.
fn template(whole: &clap::Command) -> String {
    let line = |name: &&str| {
        let about = whole.find_subcommand(name)?.get_about();
        Some(format!("  {name:8} {}\n", about.cloned().unwrap_or_default()))
    };
    let door = |(title, names): &(&str, &[&str])| {
        format!("{title}:\n{}\n", names.iter().filter_map(line).collect::<String>())
    };
    // A build without a door's feature has none of its commands.
    let has_any =
        |(_, names): &&(&str, &[&str])| names.iter().any(|name| whole.find_subcommand(name).is_some());
    let doors: String = DOORS.iter().filter(has_any).map(door).collect();
    format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{doors}Options:\n{{options}}\n\n`hopwise help COMMAND` has \
         the options of a command, with examples.\n"
    )
}

/// Names the subcommands where a word is none of them.
fn with_names(mut error: clap::Error, words: impl Iterator<Item = String>) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand {
        let whole = Command::command();
        let deepest = words.skip(1).try_fold(&whole, |above, word| above.find_subcommand(word).ok_or(above));
        let (Ok(of) | Err(of)) = deepest;
        let shown = of.get_subcommands().filter(|one| !one.is_hide_set());
        let names = shown.map(clap::Command::get_name).collect::<Vec<_>>().join(", ");
        let accepted = ContextValue::StyledStrs(vec![format!("expected one of {names}").into()]);
        // A command without any takes no word here, and clap says so.
        if !names.is_empty() {
            error.insert(ContextKind::Suggested, accepted);
        }
    }
    error
}

/// Prints what is wrong with the command line, or the help that it asks for. A command that `exec` runs may itself end
/// with the usual status.
fn refused(error: &clap::Error, subcommand: Option<String>) -> ExitCode {
    // A closed pipe has enough of it.
    let _ = error.print();
    let is_exec = error.use_stderr() && subcommand.is_some_and(|word| word == "exec");
    if is_exec { exec::NOT_RUN.into() } else { u8::try_from(error.exit_code()).unwrap_or(2).into() }
}

/// `hopwise help --help` asks for help as `hopwise help` does.
fn asked_words(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<_> = words.collect();
    if words.get(1).is_some_and(|word| word == "help") {
        words.retain(|word| word != "--help" && word != "-h");
    }
    words
}

/// Reads a command line. The tree of all commands is built once, and its help is made of it.
fn parsed(words: Vec<OsString>) -> Result<Command, clap::Error> {
    let whole = Command::command();
    let template = template(&whole);
    let matches = whole.help_template(template).try_get_matches_from(words)?;
    Command::from_arg_matches(&matches).map_err(|error| error.format(&mut Command::command()))
}

/// Does what the command line asks for.
pub(crate) fn run() -> ExitCode {
    if let Some(commit) = option_env!("HOPWISE_COMMIT") {
        hopwise_lab::version::of_commit(commit);
    }
    let asked = match parsed(asked_words(std::env::args_os())) {
        Ok(command) => command,
        Err(error) => return refused(&with_names(error, std::env::args()), std::env::args().nth(1)),
    };
    // Dropped last, so that the failure is in the log.
    let _flushed = hopwise_daemon::log::Flushed;
    match done(&asked) {
        Ok(status) => status,
        Err(failure) => {
            let exit_code = failure.exit_code();
            failure.print();
            exit_code
        }
    }
}

/// Runs a command to its exit status.
fn done(asked: &Command) -> Result<ExitCode, Failure> {
    match asked {
        Command { completions: Some(shell), .. } => manual::complete(*shell, &Command::command()),
        Command { man: Some(folder), .. } => manual::write(folder, Command::command()),
        Command { subcommand: Some(subcommand), .. } => return of_subcommand(subcommand),
        // clap has shown the help.
        Command { subcommand: None, .. } => Ok(()),
    }
    .map(|()| ExitCode::SUCCESS)
}

fn of_subcommand(subcommand: &Sub) -> Result<ExitCode, Failure> {
    match subcommand {
        #[cfg(feature = "node")]
        Sub::Exec(arguments) => return Ok(exec::run(arguments)),
        #[cfg(feature = "node")]
        Sub::Enclosed(arguments) => return Ok(exec::within::run(arguments)),
        #[cfg(feature = "lab")]
        Sub::Air(arguments) => return hopwise_trial::air::run(arguments),
        #[cfg(feature = "lab")]
        Sub::Run(arguments) => hopwise_trial::run::run(arguments),
        #[cfg(feature = "lab")]
        Sub::Trial(arguments) => hopwise_trial::trial::run(arguments),
        #[cfg(feature = "lab")]
        Sub::Report(arguments) => hopwise_trial::report::run(arguments),
        #[cfg(feature = "lab")]
        Sub::Claims(arguments) => hopwise_trial::claims::run(arguments),
        #[cfg(feature = "lab")]
        Sub::Agents(arguments) => hopwise_trial::agents::run(arguments),
        #[cfg(feature = "lab")]
        Sub::Keys(arguments) => hopwise_trial::keys::run(arguments),
        #[cfg(feature = "node")]
        Sub::Node(arguments) => hopwise_node::run(arguments),
        #[cfg(feature = "node")]
        Sub::Send(arguments) => hopwise_node::measure::send::run(arguments),
        #[cfg(feature = "node")]
        Sub::Recv(arguments) => hopwise_node::measure::recv::run(arguments),
        #[cfg(feature = "mesh")]
        Sub::Mesh(arguments) => hopwise_router::run(arguments),
        #[cfg(feature = "mesh")]
        Sub::Route(arguments) => hopwise_router::route::run(arguments),
        #[cfg(feature = "mesh")]
        Sub::Proxy(arguments) => hopwise_router::proxy::run(arguments),
        #[cfg(feature = "mesh")]
        Sub::Thin(arguments) => hopwise_router::thin::run(arguments),
        #[cfg(feature = "node")]
        Sub::Status(arguments) => hopwise_node::status::run(arguments),
        #[cfg(feature = "mesh")]
        Sub::Capture(arguments) => hopwise_inspect::capture::run(arguments),
        #[cfg(feature = "mesh")]
        Sub::Doctor(arguments) => hopwise_inspect::doctor::run(arguments),
        #[cfg(feature = "lab")]
        Sub::Guest(arguments) => hopwise_trial::live::guest::run(arguments),
        #[cfg(feature = "mesh")]
        Sub::Part(arguments) => hopwise_part::run(arguments),
        #[cfg(feature = "node")]
        Sub::Bypass(arguments) => hopwise_node::transparent_hangs::run(arguments),
    }
    .map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book;

    #[test]
    fn each_shown_command_stands_behind_one_door() {
        let whole = Command::command();
        let shown = whole.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name);
        let told: Vec<_> = DOORS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(shown.collect::<Vec<_>>(), told);
    }

    #[test]
    fn help_is_helped_too() {
        for words in [&["hopwise", "help", "--help"][..], &["hopwise", "help", "-h", "mesh"]] {
            let words = asked_words(words.iter().map(OsString::from));
            let shown = Command::try_parse_from(words).expect_err("help").kind();
            assert_eq!(shown, ErrorKind::DisplayHelp);
        }
        let of_trial = asked_words(["hopwise", "trial", "--help"].iter().map(OsString::from));
        assert_eq!(of_trial.len(), 3);
    }

    #[test]
    fn each_shown_command_has_a_line_of_help_that_fits_80_columns() {
        let whole = Command::command();
        let shown = whole.get_subcommands().filter(|one| !one.is_hide_set());
        let wide = |about: &clap::builder::StyledStr| about.to_string().len() > 80;
        let long: Vec<_> = shown.filter(|one| one.get_about().is_none_or(wide)).collect();
        assert!(long.is_empty(), "{long:#?}");
    }

    /// Calls `each` for a command and all below it, with their words.
    fn walk(command: &clap::Command, words: &[String], each: &mut impl FnMut(&clap::Command, &[String])) {
        each(command, words);
        for sub in command.get_subcommands() {
            walk(sub, &[words, &[sub.get_name().to_owned()]].concat(), each);
        }
    }

    #[test]
    fn an_option_that_refuses_a_value_says_what_it_accepts() {
        let whole = Command::command();
        let (mut mute, mut refusals) = (Vec::new(), 0);
        walk(&whole, &["hopwise".to_owned()], &mut |command, words| {
            for option in command.get_opts().filter_map(clap::Arg::get_long) {
                let wrong = [words, &[format!("--{option}"), "?".to_owned()]].concat();
                let error = match whole.clone().try_get_matches_from(wrong) {
                    Err(error) if error.kind() == ErrorKind::ValueValidation => error.to_string(),
                    _ => continue,
                };
                refusals += 1;
                if !["expected", "accepted: ", "write it as"].iter().any(|words| error.contains(words)) {
                    mute.push(error);
                }
            }
        });
        assert!(mute.is_empty() && refusals > 30, "{refusals}: {mute:#?}");
    }

    #[test]
    fn a_wrong_subcommand_is_told_those_of_its_command() {
        let said = |words: &[&str]| {
            let error = Command::try_parse_from(words).expect_err("no such subcommand");
            with_names(error, words.iter().map(|word| (*word).to_owned())).to_string()
        };
        let event = said(&["hopwise", "proxy", "event", "down"]);
        assert!(event.contains("expected one of going-down, gone, signal, up\n"), "{event}");
        let whole = said(&["hopwise", "fly"]);
        assert!(whole.contains("expected one of run, trial,") && !whole.contains("enclosed"), "{whole}");
        assert!(said(&["hopwise", "prox"]).contains("'proxy'"), "the nearest stays");
    }

    #[test]
    fn commands_that_pages_and_helps_show_are_taken() {
        let (wrong, count) = book::refused(&Command::command());
        assert!(wrong.is_empty() && count > 150, "{count} commands: {wrong:#?}");
    }

    #[test]
    fn a_shown_command_with_a_wrong_word_key_or_arm_is_found() {
        let is_taken = |text: &str| book::refusals(&Command::command(), text).is_empty();
        let run = |rest: &str| is_taken(&format!("hopwise run configs/chain.yaml {rest}"));
        assert!(run("--arm delayed --set topology.hops=3 > out") && run("--arm every"));
        assert!(!run("--arms delayed") && !run("--arm late") && !run("--arm delayed --set topology.hop=3"));
        assert!(!is_taken("hopwise run configs/chains.yaml --arm delayed") && !is_taken("hopwise ran"));
    }

    #[test]
    fn the_book_has_the_help_of_every_command() {
        hopwise_testing::book::holds("docs/commands.md", &book::commands(Command::command()));
    }
}
