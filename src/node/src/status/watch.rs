//! `hopwise status --watch`: a running node's connections, another daemon's state, or a fleet's hosts, drawn anew each
//! second.

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::Duration;

use clap::Args;
use hopwise_lab::plain;
use hopwise_lab::units::Time;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind};
use ratatui::widgets::{Paragraph, Wrap};

use crate::control::client::Control;
use crate::control::{Request, Response};
use crate::fleet::ask::Asking;
use crate::fleet::inventory::{ChosenHosts, Host};
use crate::fleet::{view, watch as of_fleet};
use crate::status::page_of;
use hopwise_daemon::failure::{Failure, print};
use hopwise_daemon::signals;

pub(crate) mod printing;

use printing::draw;

#[derive(Args, Debug)]
pub(super) struct WatchArguments {
    /// Time between two updates
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "watch")]
    every: Time,
    /// Print one frame as text and exit; rates are those of the time --every
    #[arg(long, requires = "watch")]
    once: bool,
    /// Watch all hosts of an inventory, as `hopwise mesh status` shows them
    #[arg(long, requires_all = ["watch", "inventory"])]
    fleet: bool,
    #[command(flatten)]
    pub(super) chosen: ChosenHosts,
    /// Longest time to wait for a host of the fleet
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "inventory")]
    within: Time,
    /// Exit status 0 also if hosts of the fleet gave no answer to --once
    #[arg(long, requires_all = ["fleet", "once"])]
    exit_zero: bool,
}

pub(super) fn run(control: &Control, arguments: &WatchArguments) -> Result<(), Failure> {
    if let Some(hosts) = arguments.chosen.hosts()? {
        return watch_fleet(arguments, hosts);
    }
    let told = control.ask(&Request::Status)?;
    if arguments.once {
        // A wait that ends early shortens the time over which rates are taken.
        thread::park_timeout(arguments.every.0);
        let text = match (control.ask(&Request::Status)?, told) {
            (Response::Status(now), Response::Status(before)) => printing::text(&now, &before),
            (now, _) => page_of(&now, false)?,
        };
        return hopwise_daemon::failure::printed(plain::out().write_all(text.as_bytes()));
    }
    on_terminal(|terminal| watch(control, arguments.every.0, terminal, told))
}

/// All hosts of an inventory, once or live.
fn watch_fleet(arguments: &WatchArguments, hosts: Vec<Host>) -> Result<(), Failure> {
    if !arguments.fleet {
        return Err(Failure::refused(
            "--inventory",
            "without --fleet one node is shown: expected both or neither",
        ));
    }
    let (runtime, mut ending) = signals::runtime()?;
    let asking = Asking::new(hosts, arguments.within.0)?;
    if arguments.once {
        return runtime.block_on(async {
            let reports = asking.answers(Asking::round, &mut ending).await?;
            print(view::page(&reports)).await?;
            reports.ended("status", arguments.exit_zero)
        });
    }
    on_terminal(|terminal| of_fleet::watch(&runtime, asking, arguments.every.0, terminal))
}

/// Draws until a key quits, and leaves the terminal as it was.
fn on_terminal(draws: impl FnOnce(&mut DefaultTerminal) -> Result<(), Failure>) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        let said = "standard output is no terminal: expected --once";
        return Err(Failure::refused("hopwise status --watch", said));
    }
    let mut terminal = ratatui::try_init().map_err(Failure::during("set the terminal up"))?;
    let ended = draws(&mut terminal);
    ratatui::restore();
    ended
}

fn watch(
    control: &Control,
    every: Duration,
    terminal: &mut DefaultTerminal,
    mut told: Response,
) -> Result<(), Failure> {
    let system = |error: io::Error| Failure::failed("draw", error);
    let mut before = None;
    loop {
        match told {
            Response::Status(now) => {
                terminal
                    .draw(|frame| draw(&now, before.as_deref(), frame.area(), frame.buffer_mut()))
                    .map_err(system)?;
                before = Some(now);
            }
            told => {
                let page = Paragraph::new(plain::text(&page_of(&told, false)?)).wrap(Wrap { trim: false });
                terminal.draw(|frame| frame.render_widget(page, frame.area())).map_err(system)?;
            }
        }
        if is_quit(every).map_err(system)? {
            return Ok(());
        }
        told = control.ask(&Request::Status)?;
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
