//! `hopwise part`: the programs of one node in a live run, which a trial begins on that node.

#![allow(missing_docs, reason = "parts of one command: what a name says needs no comment")]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::Args;
use hopwise_core::endpoint::{LinkConfig, Offload};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::AckMerge;
use hopwise_core::{Instant, LinkId};
use hopwise_host::{Clock, Driver, Iteration, Tun, TunConfig, describe, random_key};
use hopwise_lab::live::part::{NoPart, NodePart, NodeResults, PartMessage};
use hopwise_lab::live::{LiveNode, address_of_host, address_of_programs};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::{Plan, address_of};
use hopwise_lab::version;

use captured::Captured;
pub use captured::KnownNames;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::talk::{self, say};
use hopwise_daemon::{live_by_the_clock, spawn};
use hopwise_node::config::TUN_CROSSINGS;
use host::{OnHost, forward, offloads_of};
pub use host::{is_end, v4};
use kernel::Kernel;
use paths::RoutingQuestions;
use settings::Settings;
use traced::Traced;

pub mod algorithms;
mod captured;
mod host;
mod kernel;
mod looks;
pub mod lost;
mod paths;
mod settings;
mod thinning;
mod traced;

/// Events that each endpoint keeps between two drains, which follow every packet.
pub const TRACE_EVENTS: usize = 1024;

/// Run the programs of one node in a live run; a trial starts it and talks to it in lines of JSON
#[derive(Args, Debug)]
pub struct Arguments {}

/// The link between the programs and the node's kernel.
const DEVICE: &str = "hw0";

pub fn run(_: &Arguments) -> Result<(), Failure> {
    let part: NodePart = serde_json::from_str(&talk::line()?).map_err(Failure::during("read the part"))?;
    let played = prepare(&part).and_then(|mut prepared| {
        let is_captured = part.mesh.as_ref().is_some_and(|mesh| mesh.capture);
        let is_traced = part.capture.is_some() || part.trace.is_some() || is_captured;
        prepared.plan.trace_events = if is_traced { TRACE_EVENTS } else { 0 };
        let settings = Settings::change(&prepared, &part)?;
        let offloads = offloads_of(&part)?;
        Ok(NodeResults { offloads, ..play(&prepared, &part, settings)? })
    });
    match played {
        Ok(ended) => {
            say(&PartMessage::Ended(ended))?;
            // A host of a mesh tells its time once more. It ends with the trial.
            while part.mesh.is_some() {
                thread::park();
            }
            Ok(())
        }
        Err(failure) => say(&PartMessage::Refused { problem: failure.to_string() }),
    }
}

pub fn prepare(part: &NodePart) -> Result<Prepared, Failure> {
    let refused = |problem: String| Failure::failed("take part", problem);
    match part.prepare() {
        Ok(prepared) => Ok(prepared),
        Err(NoPart::Refused(refusal)) => Err(Failure::Located(refusal)),
        Err(NoPart::Version { theirs }) => {
            Err(refused(format!("the trial has version {theirs}, expected {}", version::of_program())))
        }
        Err(NoPart::NoPoint) => Err(refused("the scenario has no such point".to_owned())),
    }
}

static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// True from the trial's word on.
pub(crate) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

/// Waits for the beginning. From then on the process ends with the trial.
fn wait_for_beginning() -> Result<(), Failure> {
    talk::wait_for_beginning()?;
    HAS_BEGUN.store(true, Ordering::Relaxed);
    live_by_the_clock();
    let watch = || {
        talk::answer();
        settings::undo_or_warn();
        process::exit(1);
    };
    spawn("trial", watch)
}

fn play(prepared: &Prepared, part: &NodePart, settings: Settings) -> Result<NodeResults, Failure> {
    let Some(mesh) = &part.mesh else {
        let ended = if is_end(&prepared.plan, part.node) {
            let capture = part.capture.as_deref();
            programs(prepared, part, (&address_of, capture), &wait_for_beginning)?
        } else {
            rest(&prepared.plan, &wait_for_beginning)?
        };
        return Ok(NodeResults { host: settings.end()?, ..ended });
    };
    let host = OnHost::open(&prepared.plan, part.node, mesh)?;
    let begin = || -> Result<(), Failure> {
        wait_for_beginning()?;
        host.begin();
        Ok(())
    };
    let address_of =
        |node: u32| mesh.addresses.get(node as usize).map_or_else(|| address_of(node), |own| (*own).into());
    let capture = host.capture();
    let ended = if is_end(&prepared.plan, part.node) {
        programs(prepared, part, (&address_of, capture.as_deref()), &begin)?
    } else {
        rest(&prepared.plan, &begin)?
    };
    let (seen, folder) = host.end();
    // A capture takes no way to the trial that a setting has closed.
    let host = settings.end()?;
    capture.as_deref().map_or(Ok(()), talk::hand_over)?;
    drop(folder);
    Ok(NodeResults { host, seen: Some(seen), ..ended })
}

/// A node without programs: its kernel forwards until the end.
fn rest(plan: &Plan, begin: &dyn Fn() -> Result<(), Failure>) -> Result<NodeResults, Failure> {
    begin()?;
    let clock = Clock::start();
    while clock.now() < plan.end() {
        thread::park_timeout(plan.end().since(clock.now()));
    }
    Ok(NodeResults { lost: Some(0), ..NodeResults::default() })
}

/// Runs the programs of the node. `address_of` gives the addresses of nodes themselves.
fn programs(
    prepared: &Prepared,
    part: &NodePart,
    (address_of, capture): (&dyn Fn(u32) -> IpAddr, Option<&Path>),
    begin: &dyn Fn() -> Result<(), Failure>,
) -> Result<NodeResults, Failure> {
    let (plan, node) = (&prepared.plan, part.node);
    if plan.arm.transparent {
        let kernel = Kernel::of_host().map_err(Failure::during("use the kernel's TCP"))?;
        return kernel.play(plan, (node, address_of_host), begin);
    }
    if let Some(algorithm) = plan.arm.algorithm() {
        algorithms::check(algorithm)?;
        let kernel = Kernel::new(algorithm).map_err(Failure::during("use the kernel's TCP"))?;
        let daemon = thinning::start(prepared, part)?;
        let ended = kernel.play(plan, (node, address_of), begin)?;
        return match daemon {
            Some(daemon) => daemon.end(ended),
            None => Ok(ended),
        };
    }
    let mut captured = capture.map(Captured::new);
    let traced = part.trace.as_deref().map(Traced::begin).transpose()?;
    let mut driver = open(plan, node, (captured.as_ref(), traced.as_ref()))?;
    let questions = part.control.as_deref().map(|path| RoutingQuestions::open(path, &driver)).transpose()?;
    if part.mesh.is_some() {
        forward(DEVICE)?;
    }
    begin()?;
    driver = driver.with_clock(Clock::start());
    let name = part.mesh.as_ref().map_or_else(|| prepared.name_of(node), |mesh| &mesh.name);
    if let Some(captured) = &mut captured {
        captured.begin(name, driver.clock(), peers(plan, node))?;
    }
    driver.act(|_, _| ());
    let late_us = drive(&mut driver, questions.as_ref()).map_err(Failure::during("wait for packets"))?;
    if let Some(captured) = &mut captured {
        captured.end(name)?;
    }
    traced.map_or(Ok(()), Traced::end)?;
    let lost = lost::by_devices(|name| name == DEVICE);
    let ends = driver.machine().results(driver.clock().wall_offset());
    Ok(NodeResults { ends, late_us, lost, ..NodeResults::default() })
}

/// The programs at the other ends of the node's flows.
fn peers(plan: &Plan, node: u32) -> Vec<IpAddr> {
    let ends = plan.flows.iter().filter_map(|flow| match node {
        _ if flow.from == node => Some(flow.to),
        _ if flow.to == node => Some(flow.from),
        _ => None,
    });
    ends.map(address_of_programs).collect()
}

fn open(
    plan: &Plan,
    node: u32,
    (captured, traced): (Option<&Captured<'_>>, Option<&Traced>),
) -> Result<Driver<LiveNode>, Failure> {
    let failed = |doing: &'static str| move |error: &dyn std::fmt::Display| Failure::failed(doing, error);
    let address: IpAddr = address_of_programs(node);
    let settings = TunConfig { routes: vec![Prefix::host(address)], ..TunConfig::new(DEVICE) };
    let tun = Tun::open(&settings).map_err(|error| failed("open a link")(&error))?;
    let link = LinkConfig {
        crossings: TUN_CROSSINGS,
        // A measurement is about each ACK that an agent decides, and about each segment's own time.
        ack_merge: AckMerge::Off,
        offload: Offload::None,
        ..describe(&tun, LinkId(0), vec![Prefix::host(address)])
    };
    let key = random_key().map_err(|error| failed("draw a key")(&error))?;
    let mut machine =
        LiveNode::new(plan, node, link, key).map_err(|error| failed("start the endpoint")(&error))?;
    let captured = captured.map(|captured| captured.watch(&mut machine));
    let observers = captured.into_iter().chain(traced.map(Traced::observer)).collect();
    Driver::new(machine, vec![Box::new(tun)], observers).map_err(|error| failed("start the driver")(&error))
}

/// Runs until the plan's end. Returns by how many microseconds a timer was late at the worst.
fn drive(driver: &mut Driver<LiveNode>, questions: Option<&RoutingQuestions>) -> io::Result<u64> {
    let (mut ready, mut worst) = (Vec::new(), 0);
    let mut is_behind = false;
    while !driver.machine().is_over(driver.clock().now()) {
        worst = worst.max(late_us(driver.poll_timeout(), driver.clock().now()));
        if !is_behind {
            let due = driver.poll_timeout();
            driver.wait(&mut ready)?;
            worst = worst.max(late_us(due, driver.clock().now()));
        }
        questions.iter().for_each(|questions| questions.answer(driver));
        is_behind = driver.iterate(&ready) == Iteration::MoreToRead;
    }
    Ok(worst)
}

fn late_us(due: Option<Instant>, now: Instant) -> u64 {
    due.map_or(0, |due| u64::try_from(now.since(due).as_micros()).unwrap_or(u64::MAX))
}
