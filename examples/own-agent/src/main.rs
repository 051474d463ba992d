//! `hopwise` with an agent of one's own beside ours.

mod growing;

fn main() -> std::process::ExitCode {
    hopwise::main_with(&[(&growing::DESCRIPTOR, include_str!("growing.rs"))])
}
