//! The streams between this process and the guest's ports.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use ratatui::crossterm::terminal;

/// A terminal that hands over each key, until this is dropped.
#[derive(Debug)]
pub(super) struct Raw(());

impl Raw {
    /// `None` where the input is no terminal.
    pub(super) fn begin() -> Option<Raw> {
        use std::io::IsTerminal;
        let is_one = io::stdin().is_terminal() && terminal::enable_raw_mode().is_ok();
        is_one.then_some(Raw(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = terminal::disable_raw_mode();
    }
}

/// Rows and columns of the terminal, if there is one.
pub(super) fn size() -> (u16, u16) {
    terminal::size().map_or((24, 80), |(columns, rows)| (rows, columns))
}

/// Carries our input to a port until either ends. The thread may wait for input for as long as this process lives.
pub(super) fn carry_in(port: UnixStream) -> io::Result<()> {
    let carry = move || {
        let (mut input, mut buffer) = (io::stdin().lock(), [0; 4 << 10]);
        loop {
            match input.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(bytes) if (&port).write_all(&buffer[..bytes]).is_err() => break,
                Ok(_) => {}
            }
        }
        // The program in the guest reads the end of its input.
        let _ = port.shutdown(Shutdown::Write);
    };
    thread::Builder::new().name("input".into()).spawn(carry).map(drop)
}

/// Carries a port's output to one of ours until the guest ends. It reads on when nobody reads ours any more.
pub(super) fn carry_out(
    mut port: UnixStream,
    mut out: impl Write + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let carry = move || {
        let (mut buffer, mut is_read) = ([0; 16 << 10], true);
        while let Ok(bytes) = port.read(&mut buffer) {
            if bytes == 0 {
                break;
            }
            is_read = is_read && out.write_all(&buffer[..bytes]).and_then(|()| out.flush()).is_ok();
        }
    };
    thread::Builder::new().name("output".into()).spawn(carry)
}
