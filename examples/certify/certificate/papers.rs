//! The papers' own arithmetic, which leaves out preambles, MAC headers and DIFS. The tests compare it with the frames
//! that go on the air here.

use hopwise_air::phy::{ACK_BYTES, CTS_BYTES, Phy, RTS_BYTES, Rate};

fn phy() -> Phy {
    Phy::named("dsss-11mbps").expect("a profile")
}

fn bits_ns(bytes: u32, rate: Rate) -> f64 {
    f64::from(bytes) * 8e9 / rate.bits_per_second as f64
}

/// TDA, section 4: 3 SIFS, RTS, CTS and ACK at the basic rate, the packet at the data rate.
fn bare_exchange_us(bytes: u32) -> f64 {
    let phy = phy();
    let control = RTS_BYTES + CTS_BYTES + ACK_BYTES;
    (3.0 * phy.sifs_ns as f64 + bits_ns(control, phy.basic) + bits_ns(bytes, phy.data)) / 1e3
}

#[test]
fn an_exchange_without_preambles_and_headers_takes_what_tda_says() {
    let rounded = [0, 40, 1_040].map(|bytes| bare_exchange_us(bytes).round());
    assert_eq!(rounded, [414.0, 443.0, 1_170.0]);
}

#[test]
fn preambles_and_headers_make_that_three_times_as_long_for_an_ack() {
    let phy = phy();
    // RTS, CTS, data, ACK.
    let left_out_us = 4.0 * 192.0 + bits_ns(phy.data_overhead, phy.data) / 1e3;
    for bytes in [40, 1_040] {
        let ours_us = phy.exchange_ns(bytes) as f64 / 1e3;
        assert!((ours_us - bare_exchange_us(bytes) - left_out_us).abs() < 0.01, "{bytes}");
    }
}

/// DCA, equation 3: the sum of eight backoffs, each from 0 to CW − 1 slots, with CW from 32 to 1024. The vector holds
/// the probability of each sum.
fn backoffs() -> Vec<f64> {
    let mut sum = vec![1.0];
    for retry in 0..8 {
        let cw = (32_usize << retry).min(1_024);
        let mut next = vec![0.0; sum.len() + cw - 1];
        for (slots, likely) in sum.iter().enumerate() {
            next[slots..slots + cw].iter_mut().for_each(|p| *p += likely / cw as f64);
        }
        sum = next;
    }
    sum
}

/// DCA's f(n): the nth packet of a burst backs off longer than the n − 1 before it take. A packet takes 4 ms, a slot 20
/// µs.
fn f(n: usize, backoffs: &[f64]) -> f64 {
    backoffs.iter().skip((n - 1) * 4_000 / 20 + 1).sum()
}

#[test]
fn bursts_of_three_come_through_and_longer_ones_ever_less_as_dca_says() {
    let backoffs = backoffs();
    assert!((backoffs.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let mean: f64 = (0..).zip(&backoffs).map(|(slots, p)| f64::from(slots) * p).sum();
    assert!((mean - 2_028.0).abs() < 1e-6, "half of 31, 63, 127, 255, 511 and three times 1023: {mean}");
    let f: Vec<f64> = (1..20).map(|n| f(n, &backoffs)).collect();
    assert!(f.is_sorted_by(|sooner, later| sooner >= later), "{f:?}");
    // Equation 5.
    let burst = |w: usize| f[..w - 1].iter().product::<f64>();
    assert!(burst(3) > 0.999, "{}", burst(3));
    assert!(burst(6) < 0.99 && burst(10) < 0.7, "{} {}", burst(6), burst(10));
}
