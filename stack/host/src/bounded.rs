//! A bound on the files that a program writes, in force before its first instruction.
#![expect(unsafe_code, reason = "a closure between fork and exec has no safe type")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Bounds each file that this command and all that it starts will write: the signal SIGXFSZ ends a longer one. A bound
/// that is set once the program runs misses the children that it already has.
pub fn bound_files(command: &mut Command, most: u64) {
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    let set = move || setrlimit(Resource::Fsize, limit).map_err(io::Error::from);
    // SAFETY: the closure makes one system call. It takes no lock and no memory, so that it may run after a fork.
    unsafe { command.pre_exec(set) };
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_child_that_starts_at_once_has_the_bound_of_its_parent() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -f; sh -c 'ulimit -f'"]).stdin(Stdio::null());
        bound_files(&mut shell, 16 << 20);
        let said = shell.output().expect("there is a shell");
        // A shell counts in blocks of 512 bytes.
        assert_eq!(String::from_utf8_lossy(&said.stdout), "32768\n32768\n");
    }
}
