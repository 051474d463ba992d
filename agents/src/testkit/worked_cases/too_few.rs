//! Three segments are in flight, but ACKs wait for more. The hold of the first segment ends the wait.

use super::Case;

pub(super) const SCRIPTS: &Case = &[
    ("immediate", "0ms in -> ack 1 (each)\n1ms in -> ack 1 (each)\n2ms in -> ack 1 (each)\n99s wait"),
    (
        "delayed:d=4",
        "0ms   in    -> hold (count 1 of 4)
         1ms   in    -> hold (count 2 of 4)
         2ms   in    -> hold (count 3 of 4)
         100ms timer -> ack 3 (deadline)
         99s   wait",
    ),
    (
        "altman-jimenez:l1=0,l2=0,l3=0",
        "0ms   in    -> hold (count 1 of 4)
         1ms   in    -> hold (count 2 of 4)
         2ms   in    -> hold (count 3 of 4)
         100ms timer -> ack 3 (deadline)
         99s   wait",
    ),
    (
        "daa:start=2",
        "0ms    in    -> hold (count 1 of 4)
         1ms    in    -> hold (count 2 of 4)
         2ms    in    -> hold (count 3 of 4)
         4200us timer -> ack 3 (deadline)
         99s    wait",
    ),
    (
        "dca:again=off",
        "0ms   set cwnd=20 hops=2
         0ms   in    -> hold (count 1 of 20)
         1ms   in    -> hold (count 2 of 20)
         2ms   in    -> hold (count 3 of 20)
         200ms timer -> ack 3 (deadline)
         99s   wait",
    ),
    (
        "tda",
        "0ms   set cwnd=20
         0ms   in    -> hold (window 1 of 20)
         1ms   in    -> hold (window 2 of 20)
         2ms   in    -> hold (window 3 of 20)
         200ms timer -> ack 3 (deadline)
         99s   wait",
    ),
    (
        "ada",
        "0ms    in    -> hold (deadline)
         1ms    in    -> hold (deadline)
         2ms    in    -> hold (deadline)
         3200us timer -> ack 3 (deadline)
         99s    wait",
    ),
    (
        "adw:least=9",
        "0ms   set cwnd=20
         0ms   in    -> hold (window 1000 of 9000)
         1ms   in    -> hold (window 2000 of 9000)
         2ms   in    -> hold (window 3000 of 9000)
         5ms   timer -> ack 3 (deadline)
         99s   wait",
    ),
    (
        "aad",
        "0ms   in    -> hold (deadline)
         1ms   in    -> hold (deadline)
         2ms   in    -> hold (deadline)
         5ms   timer -> ack 3 (deadline)
         99s   wait",
    ),
    (
        "tack:l=9",
        "0ms   in    -> hold (count 1 of 9)
         1ms   in    -> hold (count 2 of 9)
         2ms   in    -> hold (count 3 of 9)
         490ms timer -> ack 3 (rate)
         99s   wait",
    ),
    (
        "tarr",
        "0ms   in rate=9 -> hold (rate 1 of 9)
         1ms   in        -> hold (rate 2 of 9)
         2ms   in        -> hold (rate 3 of 9)
         100ms timer     -> ack 3 (deadline)
         99s   wait",
    ),
    (
        "train",
        "0ms   in after=9 -> hold (asked 9 of 1)
         1ms   in after=8 -> hold (asked 8 of 1)
         2ms   in after=7 -> hold (asked 7 of 1)
         485ms timer     -> ack 3 (deadline)
         99s   wait",
    ),
    (
        "dup-count(delayed:d=4)",
        "0ms   in    -> hold (count 1 of 4)
         1ms   in    -> hold (count 2 of 4)
         2ms   in    -> hold (count 3 of 4)
         100ms timer -> ack 3 (deadline) dup_count=0
         99s   wait",
    ),
];
