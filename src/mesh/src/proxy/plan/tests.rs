use clap::Parser;
use hopwise_agents::base_station::plan::{Ask, Mode, Sender};
use serde_json::{Value, json};

use super::printing::{described, tried, value};
use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

fn asked(line: &str) -> Result<Vec<Plan>, Failure> {
    let words = std::iter::once("plan").chain(line.split_whitespace());
    plans(&Command::try_parse_from(words).expect("a line that clap takes").arguments)
}

#[test]
fn a_plan_as_json_has_what_it_says_and_a_time_for_each_ack() {
    let plans = asked("--mode corrected --acks 30 --outage 1000 --rtt 1 --rttvar .3").expect("a plan");
    let value = value(&plans[0]);
    assert_eq!((&value["feasible"], &value["n"]), (&json!(true), &json!(9)));
    assert!((value["final_rto_s"].as_f64().expect("a number") - 34.97).abs() < 0.005);
    assert_eq!(value["release_at_s"].as_array().map(Vec::len), Some(30));
}

#[test]
fn times_are_seconds_or_have_their_unit() {
    let plan = |line| value(&asked(line).expect("a plan")[0]);
    let seconds = plan("--mode corrected --acks 4 --outage 120 --rtt 1 --rttvar .3");
    assert_eq!(plan("--mode corrected --acks 4 --outage 2m --rtt 1s --rttvar 300ms"), seconds);
}

#[test]
fn what_the_search_looks_at_has_the_least_last_rto_where_the_plan_is() {
    let ask = Ask::new(30, 1_000.0, 1.0, 0.3).expect("numbers that are some");
    let all: Vec<_> = plan::every_n(Mode::Corrected, &ask, Sender::Linux).iter().map(tried).collect();
    let least = all.iter().filter(|one| one["feasible"] == json!(true)).map(|one| &one["final_rto_s"]);
    let least = least.filter_map(Value::as_f64).fold(f64::MAX, f64::min);
    assert!((least - 34.97).abs() < 0.005, "{least}");
    assert_eq!(all[0]["n"], json!(0));
}

#[test]
fn what_the_sender_has_beside_its_timer_is_said_by_switches() {
    let choice = |switches: &str| {
        let line = format!(
            "--mode hopwise --acks 100 --outage 2 --rtt .05 --rttvar .01 --sender rfc6298 {switches}"
        );
        asked(&line).expect("a plan")[0].choice.name()
    };
    assert_eq!([choice(""), choice("--frto on"), choice("--frto off --tlp on")], ["pace", "kick", "pace"]);
}

#[test]
fn without_a_mode_every_mode_is_planned_and_drawn() {
    let plans = asked("--acks 30 --outage 1000 --rtt 1 --rttvar .3").expect("plans");
    let text: String = plans.iter().map(described).collect();
    for mode in Mode::ALL {
        assert!(text.contains(&format!("{}: ", mode.name())), "{text}");
    }
    assert!(text.contains("* RTO after it") && text.contains("cannot cover"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let svg = draw::svg(&plans);
    assert_eq!(svg.matches("<polyline").count(), 2 * 3, "paper, corrected and cumulative");
    assert!(svg.ends_with("</svg>\n"));
}

#[test]
fn numbers_that_are_none_are_refused_with_what_is_accepted() {
    for (line, said) in [
        ("--acks 0 --outage 10 --rtt 1 --rttvar .3", "the number of ACKs has to be from 1 to 65536"),
        ("--acks -4 --outage 10 --rtt 1 --rttvar .3", "--acks: `-4` is no count"),
        ("--acks 4 --outage -10 --rtt 1 --rttvar .3", "the outage has to be above 0"),
        ("--acks 4 --outage inf --rtt 1 --rttvar .3", "the outage has to be above 0"),
        ("--acks 4 --outage 10 --rtt nan --rttvar .3", "the RTT has to be above 0"),
        ("--acks 4 --outage 10 --rtt 1 --rttvar 0", "the RTT's variation has to be above 0"),
        ("--acks 4 --outage 1e99 --rtt 1 --rttvar .3", "at most 86400 seconds"),
        ("--acks 4 --outage ten --rtt 1 --rttvar .3", "--outage: `ten` is no time; accepted: seconds"),
        ("--acks 4 --outage 10 --rtt 1 --rttvar .3 --margin 2", "the margin has to be above 0 and at most 1"),
        (
            "--mode best --acks 4 --outage 10 --rtt 1 --rttvar .3",
            "nothing is called `best`; accepted: paper, ",
        ),
        (
            "--sender bsd --acks 4 --outage 10 --rtt 1 --rttvar .3",
            "accepted: textbook, rfc6298, linux, freebsd",
        ),
    ] {
        let failure = asked(line).expect_err(line);
        assert!(failure.to_string().contains(said), "{failure}");
        assert_eq!(format!("{:?}", failure.exit_code()), format!("{:?}", std::process::ExitCode::from(2)));
    }
}
