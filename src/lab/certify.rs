//! `hopwise certify`: checks the radio world against theory, arithmetic and measurements of ns-2.

use std::io::{self, Write};

use clap::Args;
use hopwise_air::certificate::{self, PARTS, Probe};
use hopwise_air::dcf::MacRules;
use hopwise_air::phy::Phy;
use hopwise_lab::located::one_of;
use hopwise_lab::parallel::in_parallel;
use hopwise_lab::sim::certificate_hash;

use crate::failure::{self, Failure, printed};

mod chains;

/// The length of saturation in each saturated probe, in seconds.
const SECONDS: u64 = 60;

/// Check the simulated radio against Bianchi's model, arithmetic, and measurements of ns-2
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise certify
  hopwise certify --profile dsss-11mbps

A line names the quantity, its measured value, the value that is wanted, and the verdict. A profile takes about a minute
of one core. `hopwise certify > configs/calibration/certificate.txt` makes the certificate that results name.")]
pub(crate) struct Arguments {
    /// Radio profile to check (default: dsss-2mbps and dsss-11mbps)
    #[arg(long, value_name = "P")]
    profile: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let profiles = profiles(arguments.profile.as_deref())?;
    failure::remark("a line has a quantity, its measured value, the value that is wanted, and the verdict");
    failure::remark("a profile takes about a minute of one core");
    let (mut failed, mut passed) = (0, 0);
    for (name, phy) in profiles {
        // ns-2 has no 802.11n.
        let of_ns2 = Some(MacRules::Ns2).filter(|_| !phy.is_ht());
        for rules in of_ns2.into_iter().chain([MacRules::Standard]) {
            let probes = certify(name, phy, rules)?;
            let good = probes.iter().filter(|probe| probe.is_passed()).count();
            (passed, failed) = (passed + good, failed + probes.len() - good);
        }
    }
    if failed > 0 {
        let problem = format_args!("{failed} of {} probes failed", failed + passed);
        return Err(Failure::failed("certifying the radio", problem));
    }
    failure::remark(&format!(
        "all {passed} probes passed; results name the certificate {}",
        certificate_hash()
    ));
    Ok(())
}

/// The chosen profile, or else those that results are made with.
fn profiles(chosen: Option<&str>) -> Result<Vec<(&str, Phy)>, Failure> {
    let names = chosen.map_or(vec!["dsss-2mbps", "dsss-11mbps"], |name| vec![name]);
    let of_name = |name| {
        let phy = Phy::named(name).ok_or_else(|| {
            let known: Vec<_> = Phy::names().collect();
            Failure::refused("--profile", format!("{}; {}", Phy::why_unnamed(name), one_of(name, &known)))
        });
        Ok((name, phy?))
    };
    names.into_iter().map(of_name).collect()
}

/// Probes one profile under one set of rules, and prints each part once it is there: a part takes half a minute.
fn certify(name: &str, phy: Phy, rules: MacRules) -> Result<Vec<Probe>, Failure> {
    let under = named(rules);
    printed(writeln!(hopwise_lab::plain::out(), "{name}, mac: {{ rules: {under} }}"))?;
    failure::remark(&format!("{name}, rules {under}: against Bianchi's model and arithmetic"));
    let of_part = |part| certificate::certify_part(part, phy, rules, SECONDS);
    let mut probes = in_parallel(PARTS.to_vec(), of_part).concat();
    printed(print(&probes))?;
    if rules == MacRules::Ns2 && chains::are_measured(name) {
        failure::remark(&format!("{name}, rules {under}: against the chains that ns-2 measured"));
        let of_chains = chains::probes(name);
        printed(print(&of_chains))?;
        probes.extend(of_chains);
    }
    printed(writeln!(hopwise_lab::plain::out()))?;
    Ok(probes)
}

fn named(rules: MacRules) -> &'static str {
    match rules {
        MacRules::Ns2 => "ns2",
        MacRules::Standard => "standard",
    }
}

fn print(probes: &[Probe]) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    probes.iter().try_for_each(|probe| writeln!(out, "  {probe}"))?;
    out.flush()
}
