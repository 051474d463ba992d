//! The path grows from 2 hops to 12 and shrinks to 6 while segments wait. Only `dca` of these agents counts hops.

use super::Case;

pub(super) const SCRIPTS: &Case = &[
    (
        "immediate",
        "0ms set hops=2
         0ms in -> ack 1 (each)
         0ms set hops=12
         1ms in -> ack 1 (each)
         99s wait",
    ),
    (
        "delayed:d=3",
        "0ms set hops=2
         0ms in -> hold (count 1 of 3)
         0ms set hops=12
         1ms in -> hold (count 2 of 3)
         1ms set hops=6
         2ms in -> ack 3 (count 3 of 3)
         99s wait",
    ),
    (
        "altman-jimenez",
        "0ms set hops=2
         0ms in -> ack 1 (count 1 of 1)
         1ms in -> hold (count 1 of 2)
         1ms set hops=12
         2ms in -> ack 2 (count 2 of 2)
         99s wait",
    ),
    (
        "daa",
        "0ms set hops=2
         0ms in -> hold (count 1 of 2)
         0ms set hops=12
         1ms in -> ack 2 (count 2 of 2)
         99s wait",
    ),
    // The hold of the waiting segments stays; the next hold is 1.5 · 5 gaps.
    (
        "dca:again=off",
        "0ms    set cwnd=20 hops=2
         0ms    in    -> hold (count 1 of 20)
         10ms   in    -> hold (count 2 of 20)
         10ms   set hops=12
         20ms   in    -> ack 3 (count 3 of 3)
         20ms   set hops=6
         30ms   in    -> hold (count 1 of 5)
         40ms   in    -> hold (count 2 of 5)
         40ms   set hops=3
         50ms   in    -> hold (count 3 of 20)
         105ms  timer -> ack 3 (deadline)
         99s    wait",
    ),
    (
        "tda",
        "0ms set cwnd=3 hops=2
         0ms in -> hold (window 1 of 3)
         0ms set hops=12
         1ms in -> hold (window 2 of 3)
         1ms set hops=6
         2ms in -> ack 3 (window 3 of 3)
         99s wait",
    ),
    (
        "ada",
        "0ms    set hops=2
         0ms    in    -> hold (deadline)
         0ms    set hops=12
         1ms    in    -> hold (deadline)
         2200us timer -> ack 2 (deadline)
         99s    wait",
    ),
    (
        "adw",
        "0ms set hops=2
         0ms in -> hold (window 1000 of 3000)
         0ms set hops=12
         1ms in -> hold (window 2000 of 3000)
         1ms set hops=6
         2ms in -> ack 3 (window 3000 of 3000)
         99s wait",
    ),
    (
        "aad",
        "0ms set hops=2
         0ms in    -> hold (deadline)
         0ms set hops=12
         1ms in    -> hold (deadline)
         4ms timer -> ack 2 (deadline)
         99s wait",
    ),
    (
        "tack",
        "0ms set hops=2
         0ms in -> hold (count 1 of 2)
         0ms set hops=12
         1ms in -> ack 2 (count 2 of 2)
         99s wait",
    ),
    (
        "tarr",
        "0ms set hops=2
         0ms in -> hold (rate 1 of 2)
         0ms set hops=12
         1ms in -> ack 2 (rate 2 of 2)
         99s wait",
    ),
    (
        "train",
        "0ms set hops=2
         0ms in after=2 -> hold (asked 2 of 1)
         0ms set hops=12
         1ms in after=1 -> ack 2 (asked 1 of 1)
         99s wait",
    ),
    (
        "dup-count(dca:again=off)",
        "0ms set cwnd=20 hops=2
         0ms in -> hold (count 1 of 20)
         1ms in -> hold (count 2 of 20)
         1ms set hops=12
         2ms in -> ack 3 (count 3 of 3) dup_count=0
         99s wait",
    ),
];
