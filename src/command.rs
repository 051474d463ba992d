//! The `hopwise` command: subcommands by what a person does with them.
//!
//! Exit status: 0 done, 1 the work failed, 2 the input was refused (with the place and what would be accepted).

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use crate::{daemon, exec, inspect, keys, lab, manual, measure, mesh, node, proxy, table};

/// A user-level TCP for multi-hop 802.11, with the ACK decision and the sending decision chosen per connection.
#[derive(Debug, Parser)]
#[command(version = hopwise_lab::version::with_commit(), arg_required_else_help = true, term_width = help_width())]
struct Command {
    #[command(subcommand)]
    subcommand: Sub,
}

/// Helps fit the terminal. Elsewhere their lines are not broken, which 0 stands for.
fn help_width() -> usize {
    table::width().unwrap_or(0)
}

#[derive(Debug, Subcommand)]
enum Sub {
    Run(lab::run::Arguments),
    Trial(lab::trial::Arguments),
    Route(mesh::route::Arguments),
    Mesh(mesh::Arguments),
    Air(mesh::air::Arguments),
    World(mesh::world::Arguments),
    Certify(lab::certify::Arguments),
    Claims(lab::claims::Arguments),
    Node(node::Arguments),
    Exec(exec::Arguments),
    Status(node::status::Arguments),
    Top(node::top::Arguments),
    Capture(inspect::capture::Arguments),
    Send(measure::send::Arguments),
    Recv(measure::recv::Arguments),
    Proxy(proxy::Arguments),
    Report(lab::report::Arguments),
    Explain(lab::explain::Arguments),
    Agents(lab::agents::Arguments),
    Schema(keys::schema::Arguments),
    ExplainKey(keys::explain::Arguments),
    Doctor(inspect::doctor::Arguments),
    Trace(inspect::trace::Arguments),
    Replay(inspect::replay::Arguments),
    Completions(manual::Completions),
    Man(manual::Pages),
    #[command(hide = true)]
    Guest(lab::live::guest::Arguments),
    #[command(hide = true)]
    Part(lab::live::part::Arguments),
    #[command(hide = true)]
    Reread(daemon::reader::Arguments),
    #[command(hide = true)]
    Bypass(node::transparent_hangs::Arguments),
    #[command(hide = true)]
    Enclosed(exec::within::Arguments),
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

/// Does what the command line asks for.
pub(crate) fn run() -> ExitCode {
    if let Some(commit) = option_env!("HOPWISE_COMMIT") {
        hopwise_lab::version::of_commit(commit);
    }
    let Command { subcommand } = match Command::try_parse_from(asked_words(std::env::args_os())) {
        Ok(command) => command,
        Err(error) => return refused(&with_names(error, std::env::args()), std::env::args().nth(1)),
    };
    // Dropped last, so that the failure is in the log.
    let _flushed = daemon::log::Flushed;
    let done = match subcommand {
        Sub::Run(arguments) => lab::run::run(&arguments),
        Sub::Trial(arguments) => lab::trial::run(&arguments),
        Sub::Route(arguments) => mesh::route::run(&arguments),
        Sub::Mesh(arguments) => mesh::run(&arguments),
        Sub::Air(arguments) => match mesh::air::run(&arguments) {
            Ok(status) => return status,
            Err(failure) => Err(failure),
        },
        Sub::World(arguments) => match mesh::world::run(&arguments) {
            Ok(status) => return status,
            Err(failure) => Err(failure),
        },
        Sub::Certify(arguments) => lab::certify::run(&arguments),
        Sub::Claims(arguments) => lab::claims::run(&arguments),
        Sub::Node(arguments) => node::run(&arguments),
        Sub::Exec(arguments) => return exec::run(&arguments),
        Sub::Enclosed(arguments) => return exec::within::run(&arguments),
        Sub::Status(arguments) => node::status::run(&arguments),
        Sub::Top(arguments) => node::top::run(&arguments),
        Sub::Capture(arguments) => inspect::capture::run(&arguments),
        Sub::Send(arguments) => measure::send::run(&arguments),
        Sub::Recv(arguments) => measure::recv::run(&arguments),
        Sub::Proxy(arguments) => proxy::run(&arguments),
        Sub::Report(arguments) => lab::report::run(&arguments),
        Sub::Explain(arguments) => lab::explain::run(&arguments),
        Sub::Agents(arguments) => lab::agents::run(&arguments),
        Sub::Schema(arguments) => keys::schema::run(&arguments),
        Sub::ExplainKey(arguments) => keys::explain::run(&arguments),
        Sub::Doctor(arguments) => inspect::doctor::run(&arguments),
        Sub::Trace(arguments) => inspect::trace::run(&arguments),
        Sub::Guest(arguments) => lab::live::guest::run(&arguments),
        Sub::Part(arguments) => lab::live::part::run(&arguments),
        Sub::Replay(arguments) => inspect::replay::run(&arguments),
        Sub::Completions(arguments) => manual::complete(&arguments, &Command::command()),
        Sub::Man(arguments) => manual::write(&arguments, Command::command()),
        Sub::Reread(arguments) => daemon::reader::run(&arguments),
        Sub::Bypass(arguments) => node::transparent_hangs::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let exit_code = failure.exit_code();
            failure.print();
            exit_code
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book;

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
        book::holds("docs/commands.md", &book::commands(Command::command()));
    }
}
