//! One stack in a process of its own: `host --peer STACK` and the words of a [`Task`]. It says `ready`, begins when a
//! line comes on standard input, and tells its CPU time at its end. As an echo it ends with standard input.

use std::io::{self, BufRead, Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::kernel;
use crate::ours::{Ours, PORT};
use crate::place::{BEYOND, KERNELS, NEARBY, OURS};
use crate::task::{Mode, Task};
use crate::theirs::{BULK_BUFFER, IDLE_BUFFER, Theirs};
use crate::usage::cpu;

pub(crate) const OPTION: &str = "--peer";

/// Runs the task of the words after [`OPTION`].
pub(crate) fn run(words: &[String]) {
    let (stack, rest) = words.split_first().expect("a stack");
    let task = Task::read(rest).unwrap_or_else(|error| panic!("{error}"));
    match stack.as_str() {
        "ours" => ours(task),
        "smoltcp" => smoltcp(task),
        "kernel" => of_kernel(task),
        "idle" => idle(task),
        other => panic!("{other}: expected ours, smoltcp, kernel or idle"),
    }
}

/// Tells that the stack is there, and waits for the start.
fn begin() -> f64 {
    say("ready");
    io::stdin().lock().read_line(&mut String::new()).expect("standard input is open");
    cpu()
}

fn end(began: f64) {
    say(&format!("cpu {:.6}", cpu() - began));
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the benchmark reads");
}

/// Ends the process once standard input ends.
fn end_with_input(began: f64) {
    thread::spawn(move || {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        end(began);
        std::process::exit(0);
    });
}

fn ours(task: Task) {
    let ours = Ours::start(task.device);
    match task.mode {
        Mode::Send => {
            let began = begin();
            ours.send((KERNELS, task.port).into(), task.connections, task.bytes_each);
            end(began);
        }
        Mode::Receive => {
            let listener = ours.listen();
            let began = begin();
            ours.receive(&listener, task.connections);
            end(began);
        }
        Mode::Echo => {
            let echo = ours.echo();
            end_with_input(begin());
            echo.wait();
        }
    }
    ours.stop();
}

fn smoltcp(task: Task) {
    let buffer = if task.mode == Mode::Echo { IDLE_BUFFER } else { BULK_BUFFER };
    let mut theirs = Theirs::start(task.device, task.connections, buffer);
    match task.mode {
        Mode::Send => {
            let began = begin();
            theirs.send((KERNELS, task.port).into(), task.bytes_each);
            end(began);
        }
        Mode::Receive => {
            theirs.ready();
            let began = begin();
            theirs.receive();
            end(began);
        }
        Mode::Echo => {
            end_with_input(begin());
            theirs.echo(0, || false);
        }
    }
}

/// The kernel's ends of connections that stay idle. A process may have too few descriptors for all that there are.
fn idle(task: Task) {
    let _held = kernel::idle((OURS, task.port).into(), task.connections);
    end_with_input(begin());
    loop {
        thread::park();
    }
}

/// The kernel's own TCP, in the namespace at the other end of a wire.
fn of_kernel(task: Task) {
    match task.mode {
        Mode::Send => {
            let began = begin();
            let source = kernel::source((NEARBY, task.port).into(), task.connections, task.bytes_each);
            source.join().expect("the source ends");
            end(began);
        }
        Mode::Receive => {
            let listener = TcpListener::bind((BEYOND, PORT)).expect("the address is this namespace's");
            let began = begin();
            kernel::sink_of(listener, task.connections).join().expect("the sink ends");
            end(began);
        }
        Mode::Echo => {
            let listener = TcpListener::bind((BEYOND, PORT)).expect("the address is this namespace's");
            end_with_input(begin());
            kernel::echo(&listener);
        }
    }
}
