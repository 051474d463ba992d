//! `hopwise --completions` and `hopwise --man`: what shells and `man` know of the command, made from its arguments.

use std::path::Path;
use std::{fs, io};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use hopwise_lab::named;

use hopwise_daemon::failure::{Failure, say};

/// Prints what a shell needs to complete the arguments of the command.
pub(crate) fn complete(shell: Shell, whole: &Command) -> Result<(), Failure> {
    // Completions name hidden commands, too.
    let shown = whole.get_subcommands().filter(|one| !one.is_hide_set()).cloned();
    let mut shown = Command::new("hopwise").version(env!("CARGO_PKG_VERSION")).subcommands(shown);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown, "hopwise", &mut script);
    say(String::from_utf8_lossy(&script).trim_end())
}

/// Writes a manual page for each command.
pub(crate) fn write(folder: &Path, whole: Command) -> Result<(), Failure> {
    // `help` repeats the tree of commands, which have pages of their own.
    let mut whole = whole.disable_help_subcommand(true);
    whole.build();
    let place = |error| Failure::refused(folder.display().to_string(), error);
    fs::create_dir_all(folder).map_err(place)?;
    add(&whole, folder)
}

/// The page of a command, and those of the commands below it.
fn add(command: &Command, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(format!("{}.1", command.get_display_name().unwrap_or("hopwise")));
    let written = page(command).and_then(|page| named::write(&path, page));
    written.map_err(|error| Failure::failed("write a page", format_args!("{}: {error}", path.display())))?;
    command.get_subcommands().filter(|one| !one.is_hide_set()).try_for_each(|one| add(one, folder))
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    // A page is the same for all commits of a version, so that packages are, too.
    let version = concat!("hopwise ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(version).manual("Hopwise");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|one| !one.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(examples) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        let mut roff = Roff::new();
        // Lines as they stand: `man` would fill them into a paragraph.
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.to_string().lines().skip_while(|line| *line == "Examples:") {
            roff.text([roman(line)]);
        }
        roff.control("fi", []).to_writer(&mut page)?;
    }
    Ok(page)
}
