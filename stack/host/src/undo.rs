//! Commands that undo a change at the end, when this process may neither run programs nor change the system.
//!
//! A shell starts with the change, keeps the privileges of that moment, and waits. It does nothing if this process is
//! killed.

use std::io::{self, Write as _};
use std::process::{ChildStdin, Command, Stdio};

use crate::nft::DEAF;
use crate::running::{Running, WITHIN};

#[derive(Debug)]
pub(crate) struct Undo {
    shell: Running,
    input: Option<ChildStdin>,
}

impl Undo {
    /// Runs the script when this is dropped, in the namespaces of the caller of `by`.
    pub(crate) fn by(script: &str) -> io::Result<Undo> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{DEAF} read -r _ && {{ {script}; }}")]);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = Running::start(&mut shell)?;
        let input = shell.child.stdin.take();
        Ok(Undo { shell, input })
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let written = self.input.take().map(|mut input| input.write_all(b"now\n"));
        let done = self.shell.end_within(WITHIN);
        let is_done = matches!(written, Some(Ok(()))) && done.is_ok_and(|status| status.success());
        if !is_done {
            tracing::warn!("what was changed in the system stays until the next start");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_runs_at_the_end_and_not_when_we_are_killed() {
        let path = std::env::temp_dir().join(format!("hopwise-undo-{}", std::process::id()));
        let script = format!("echo done > {}", path.display());
        let mut killed = Undo::by(&script).expect("there is a shell");
        drop(killed.input.take());
        killed.shell.end_within(WITHIN).expect("it ends");
        assert!(!path.exists());
        drop(killed);
        drop(Undo::by(&script).expect("there is a shell"));
        assert_eq!(std::fs::read_to_string(&path).expect("it was run"), "done\n");
        std::fs::remove_file(path).expect("it is there");
    }
}
