//! A request of one segment whose answer carries the ACK, then one whose answer comes late.

use super::Case;

pub(super) const SCRIPTS: &Case = &[
    ("immediate", "0ms in 100B push -> ack 1 (each)\n50ms in 100B push -> ack 1 (each)\n99s wait"),
    (
        "delayed",
        "0ms   in 100B push -> hold (count 1 of 2)
         5ms   piggyback    -> ack 1
         50ms  in 100B push -> hold (count 1 of 2)
         150ms timer        -> ack 1 (deadline)
         99s   wait",
    ),
    (
        "altman-jimenez",
        "0ms   in 100B push -> ack 1 (count 1 of 1)
         50ms  in 100B push -> hold (count 1 of 2)
         55ms  piggyback    -> ack 1
         100ms in 100B push -> hold (count 1 of 2)
         200ms timer        -> ack 1 (deadline)
         99s   wait",
    ),
    (
        "daa",
        "0ms   in 100B push -> hold (count 1 of 2)
         5ms   piggyback    -> ack 1
         50ms  in 100B push -> hold (count 1 of 2)
         160ms timer        -> ack 1 (deadline)
         99s   wait",
    ),
    // The window is that of `tell-cwnd` at first, and later that of `tell-cwnd:raw`.
    (
        "dca:again=off",
        "0ms   set cwnd=1 hops=2
         0ms   in 100B push -> ack 1 (count 1 of 1)
         10ms  set cwnd=40
         50ms  in 100B push -> hold (count 1 of 40)
         55ms  piggyback    -> ack 1
         100ms in 100B push -> hold (count 1 of 40)
         590ms timer        -> ack 1 (deadline)
         99s   wait",
    ),
    (
        "tda",
        "0ms   set cwnd=1
         0ms   in 100B push -> ack 1 (window 1 of 1)
         10ms  set cwnd=40
         50ms  in 100B push -> hold (window 1 of 25)
         55ms  piggyback    -> ack 1
         100ms in 100B push -> hold (window 1 of 25)
         300ms timer        -> ack 1 (deadline)
         99s   wait",
    ),
    (
        "ada",
        "0ms   in 100B push -> hold (deadline)
         5ms   piggyback    -> ack 1
         50ms  in 100B push -> hold (deadline)
         110ms timer        -> ack 1 (deadline)
         99s   wait",
    ),
    (
        "adw",
        "0ms   set cwnd=1
         0ms   in 100B push -> hold (window 100 of 1000)
         5ms   piggyback    -> ack 1
         50ms  in 100B push -> hold (window 100 of 1000)
         200ms timer        -> ack 1 (deadline)
         99s   wait",
    ),
    (
        "aad",
        "0ms   in 100B push -> hold (deadline)
         5ms   piggyback    -> ack 1
         50ms  in 100B push -> hold (deadline)
         200ms timer        -> ack 1 (deadline)
         99s   wait",
    ),
    (
        "tack",
        "0ms   in 100B push -> hold (count 1 of 2)
         5ms   piggyback    -> ack 1
         6ms   set rtt=20ms
         50ms  in 100B push -> ack 1 (rate)
         51ms  in 100B push -> hold (rate)
         55ms  timer        -> ack 1 (rate)
         99s   wait",
    ),
    (
        "tarr",
        "0ms   in 100B push rate=4 -> hold (rate 1 of 4)
         5ms   piggyback           -> ack 1
         50ms  in 100B push        -> hold (rate 1 of 4)
         150ms timer               -> ack 1 (deadline)
         200ms in 100B push rate=0 -> ack 1 (asked)
         99s   wait",
    ),
    (
        "train",
        "0ms   in 100B push after=1 -> ack 1 (asked 1 of 1)
         50ms  in 100B push        -> hold (count 1 of 2)
         55ms  piggyback           -> ack 1
         100ms in 100B push        -> hold (count 1 of 2)
         200ms timer               -> ack 1 (deadline)
         99s   wait",
    ),
    (
        "dup-count(delayed)",
        "0ms   in 100B push -> hold (count 1 of 2)
         5ms   piggyback    -> ack 1 dup_count=0
         50ms  in 100B push -> hold (count 1 of 2)
         150ms timer        -> ack 1 (deadline) dup_count=0
         99s   wait",
    ),
];
