//! The last segments are fewer than an ACK waits for. The end of the hold acknowledges them, or the sender's FIN does.

use super::Case;

pub(super) const SCRIPTS: &Case = &[
    (
        "immediate",
        "0ms   in      -> ack 1 (each)
         1ms   in push -> ack 1 (each)
         300ms in push -> ack 1 (each)
         301ms fin     -> ack 0
         99s   wait",
    ),
    (
        "delayed",
        "0ms   in      -> hold (count 1 of 2)
         1ms   in      -> ack 2 (count 2 of 2)
         2ms   in push -> hold (count 1 of 2)
         102ms timer   -> ack 1 (deadline)
         300ms in push -> hold (count 1 of 2)
         301ms fin     -> ack 1
         99s   wait",
    ),
    (
        "altman-jimenez",
        "0ms   in      -> ack 1 (count 1 of 1)
         1ms   in      -> hold (count 1 of 2)
         2ms   in      -> ack 2 (count 2 of 2)
         3ms   in push -> hold (count 1 of 2)
         103ms timer   -> ack 1 (deadline)
         300ms in push -> hold (count 1 of 3)
         301ms fin     -> ack 1
         99s   wait",
    ),
    // Average gaps: 1, 1, then .75·1 + .25·298 = 75.25 ms.
    (
        "daa",
        "0ms    in      -> hold (count 1 of 2)
         1ms    in      -> ack 2 (count 2 of 2)
         2ms    in push -> hold (count 1 of 2)
         4200us timer   -> ack 1 (deadline)
         300ms  in push -> hold (count 1 of 3)
         301ms  fin     -> ack 1
         99s    wait",
    ),
    // The hold is 1.5 · 4 gaps of 1 ms. After the FIN the last ACK is repeated twice.
    (
        "dca",
        "0ms    set cwnd=4 hops=2
         0ms    in      -> hold (count 1 of 4)
         1ms    in      -> hold (count 2 of 4)
         2ms    in      -> hold (count 3 of 4)
         3ms    in      -> ack 4 (count 4 of 4)
         4ms    in push -> hold (count 1 of 4)
         10ms   timer   -> ack 1 (deadline)
         300ms  in push -> hold (count 1 of 4)
         301ms  fin     -> ack 1
         1301ms timer   -> repeat (lost-ack)
         3301ms timer   -> repeat (lost-ack)
         99s    wait",
    ),
    (
        "tda",
        "0ms   set cwnd=3
         0ms   in      -> hold (window 1 of 3)
         1ms   in      -> hold (window 2 of 3)
         2ms   in      -> ack 3 (window 3 of 3)
         3ms   in push -> hold (window 1 of 3)
         203ms timer   -> ack 1 (deadline)
         300ms in push -> hold (window 1 of 3)
         301ms fin     -> ack 1
         99s   wait",
    ),
    (
        "ada",
        "0ms    in      -> hold (deadline)
         1ms    in      -> hold (deadline)
         2ms    in push -> hold (deadline)
         3200us timer   -> ack 3 (deadline)
         300ms  in push -> hold (deadline)
         301ms  fin     -> ack 1
         99s    wait",
    ),
    (
        "adw",
        "0ms   in           -> hold (window 1000 of 3000)
         1ms   in           -> hold (window 2000 of 3000)
         2ms   in           -> ack 3 (window 3000 of 3000)
         3ms   in push      -> hold (window 1000 of 3000)
         6ms   timer        -> ack 1 (deadline)
         300ms in 400B push -> hold (window 400 of 3000)
         301ms fin          -> ack 1
         99s   wait",
    ),
    (
        "aad",
        "0ms   in      -> hold (deadline)
         1ms   in      -> hold (deadline)
         2ms   in push -> hold (deadline)
         5ms   timer   -> ack 3 (deadline)
         300ms in push -> hold (deadline)
         301ms fin     -> ack 1
         99s   wait",
    ),
    // Two ACKs lie a quarter of the RTT apart.
    (
        "tack",
        "0ms   set rtt=40ms
         0ms   in      -> ack 1 (rate)
         1ms   in      -> hold (rate)
         2ms   in push -> hold (rate)
         10ms  timer   -> ack 2 (rate)
         300ms in      -> ack 1 (rate)
         301ms in push -> hold (rate)
         302ms fin     -> ack 1
         99s   wait",
    ),
    (
        "tarr",
        "0ms   in rate=4      -> hold (rate 1 of 4)
         1ms   in             -> hold (rate 2 of 4)
         2ms   in push        -> hold (rate 3 of 4)
         100ms timer          -> ack 3 (deadline)
         200ms in push rate=0 -> ack 1 (asked)
         300ms in push        -> hold (rate 1 of 4)
         301ms fin            -> ack 1
         99s   wait",
    ),
    // The sender marks the last segment, or closes in the middle of a train.
    (
        "train",
        "0ms   in after=2      -> hold (asked 2 of 1)
         1ms   in after=1      -> ack 2 (asked 1 of 1)
         2ms   in push after=1 -> ack 1 (asked 1 of 1)
         300ms in push after=3 -> hold (asked 3 of 1)
         301ms fin            -> ack 1
         99s   wait",
    ),
    (
        "dup-count(delayed)",
        "0ms   in      -> hold (count 1 of 2)
         1ms   ooo     -> ack 1 (not-in-order) dup_count=1
         2ms   fill    -> ack 1 (not-in-order) dup_count=0
         3ms   in push -> hold (count 1 of 2)
         4ms   fin     -> ack 1 dup_count=0
         99s   wait",
    ),
];
