//! `hopwise top`: a running node's connections, drawn anew each second.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use hopwise_lab::units::Time;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind};

use crate::failure::Failure;
use crate::node::control::client::Control;
use crate::node::snapshot::Snapshot;
use crate::node::status;

pub(super) mod printing;

use printing::draw;

/// Watch a running node's connections: agents, cwnd, RTT, ACKs per segment
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise top
  hopwise top --control /run/hopwise/n2.sock --every 250ms
  hopwise top --once          # one frame as text, for scripts

Keys: q or Esc ends it.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    control: Control,
    /// Time between two updates
    #[arg(long, value_name = "TIME", default_value = "1s")]
    every: Time,
    /// Print one frame as text and exit
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let snapshot = status::ask(&arguments.control)?;
    if arguments.once {
        return crate::failure::printed(
            hopwise_lab::plain::out().write_all(printing::text(&snapshot).as_bytes()),
        );
    }
    if !io::stdout().is_terminal() {
        return Err(Failure::refused("hopwise top", "standard output is no terminal: expected --once"));
    }
    let mut terminal = ratatui::try_init().map_err(|error| Failure::failed("set the terminal up", error))?;
    let ended = watch(arguments, &mut terminal, snapshot);
    ratatui::restore();
    ended
}

fn watch(
    arguments: &Arguments,
    terminal: &mut ratatui::DefaultTerminal,
    mut snapshot: Snapshot,
) -> Result<(), Failure> {
    let system = |error: io::Error| Failure::failed("draw", error);
    let mut before = None;
    loop {
        terminal
            .draw(|frame| draw(&snapshot, before.as_ref(), frame.area(), frame.buffer_mut()))
            .map_err(system)?;
        if is_quit(arguments.every.0).map_err(system)? {
            return Ok(());
        }
        before = Some(std::mem::replace(&mut snapshot, status::ask(&arguments.control)?));
    }
}

/// Waits for a key that quits.
fn is_quit(within: Duration) -> io::Result<bool> {
    if !event::poll(within)? {
        return Ok(false);
    }
    let Event::Key(key) = event::read()? else { return Ok(false) };
    Ok(key.kind == KeyEventKind::Press && matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}
