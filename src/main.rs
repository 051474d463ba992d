//! The `hopwise` command, with our agents alone.

use std::process::ExitCode;

fn main() -> ExitCode {
    hopwise::main_with(&[])
}
