//! A Raspberry Pi's supply and heat, as its firmware tells them.

use super::System;
use super::faults;
use super::finding::Finding;

/// Places of the firmware's program.
const PROGRAMS: [&str; 2] = ["usr/bin/vcgencmd", "opt/vc/bin/vcgencmd"];
/// The same number as a file, in kernels of Raspberry Pi OS.
const FILE: &str = "sys/devices/platform/soc/soc:firmware/get_throttled";
const SENSORS: &str = "sys/class/hwmon";
/// Bits of the number. Each stands sixteen places higher for what was so since the start.
const UNDER_VOLTAGE: u32 = 1;
const CAPPED: u32 = 1 << 1;
const THROTTLED: u32 = 1 << 2;
const SOFT_LIMIT: u32 = 1 << 3;
const SINCE_START: u32 = 16;

pub(super) fn examine(system: &System) -> Vec<Finding> {
    let program = PROGRAMS.iter().find(|program| system.has(program));
    let told = program.map(|program| system.run(program, &["get_throttled"]));
    let number = told.as_ref().and_then(|told| number(told.as_ref().ok()?));
    if let Some(number) = number.or_else(|| number_in(&system.read(FILE)?)) {
        return of(number);
    }
    match (is_too_low(system), told) {
        (Some(true), _) => {
            vec![faults::UNDER_VOLTAGE.found("the supply is too low now, as the sensor rpi_volt tells")]
        }
        (Some(false), _) => vec![faults::UNDER_VOLTAGE.ok("the supply holds, as the sensor rpi_volt tells")],
        (None, Some(Err(error))) => {
            vec![faults::UNDER_VOLTAGE.skipped(format!("vcgencmd get_throttled: {error}"))]
        }
        (None, Some(Ok(said))) => {
            vec![faults::UNDER_VOLTAGE.skipped(format!("vcgencmd get_throttled answers `{said}`"))]
        }
        (None, None) => vec![faults::UNDER_VOLTAGE.skipped("no firmware of a Raspberry Pi tells it")],
    }
}

/// The number in the answer of `vcgencmd get_throttled`, such as `throttled=0x50005`.
fn number(told: &str) -> Option<u32> {
    number_in(told.strip_prefix("throttled=")?)
}

fn number_in(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

fn of(number: u32) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(since) = since(number, UNDER_VOLTAGE) {
        findings.push(faults::UNDER_VOLTAGE.found(format!("the supply {since} below 4.63 V ({number:#x})")));
    }
    if let Some(since) = since(number, CAPPED | THROTTLED | SOFT_LIMIT) {
        findings.push(faults::THROTTLED.found(format!("the CPU {since} slowed down ({number:#x})")));
    }
    if findings.is_empty() {
        let said = "neither under-voltage nor throttling since the start";
        findings.push(faults::UNDER_VOLTAGE.ok(said));
    }
    findings
}

/// Tells whether it is so now, or was since the start.
fn since(number: u32, bits: u32) -> Option<&'static str> {
    if number & bits != 0 {
        return Some("is");
    }
    (number & (bits << SINCE_START) != 0).then_some("was, since the start,")
}

/// The alarm of the sensor of the supply; `None` if there is no such sensor.
fn is_too_low(system: &System) -> Option<bool> {
    let is_it =
        |name: &&String| system.read(&format!("{SENSORS}/{name}/name")).as_deref() == Some("rpi_volt");
    let names = system.names(SENSORS);
    let sensor = names.iter().find(is_it)?;
    Some(system.read(&format!("{SENSORS}/{sensor}/in0_lcrit_alarm"))? != "0")
}
