//! The algorithms of congestion control that this kernel has.

use std::fs;
use std::path::Path;

use hopwise_host::KernelTcp;
use hopwise_lab::machine;

use hopwise_daemon::failure::Failure;

/// Refuses an algorithm that this kernel does not let us use.
pub fn check(algorithm: &str) -> Result<(), Failure> {
    let refused = |error| {
        let problem = format_args!("{error}; expected one of: {}", known().join(", "));
        Failure::refused(format!("kernel:{algorithm}"), problem)
    };
    KernelTcp { algorithm, segment_bytes: None, nagle: true }.check().map_err(refused)
}

/// The algorithms that are loaded, and the algorithms of modules that the kernel loads on request.
fn known() -> Vec<String> {
    let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let folder =
        Path::new("/lib/modules").join(machine::kernel().unwrap_or_default()).join("kernel/net/ipv4");
    let modules = fs::read_dir(folder).into_iter().flatten().flatten();
    let modules = modules.filter_map(|entry| algorithm_of(&entry.file_name().to_string_lossy()));
    let mut all: Vec<String> = there.split_whitespace().map(str::to_owned).chain(modules).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The algorithm in a module's file, such as tcp_bbr.ko.xz.
fn algorithm_of(file: &str) -> Option<String> {
    let (name, _) = file.strip_prefix("tcp_")?.split_once(".ko")?;
    (name != "diag").then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_the_kernels_tcp_has_an_algorithm_of_its_name() {
        assert_eq!(algorithm_of("tcp_bbr.ko").as_deref(), Some("bbr"));
        assert_eq!(algorithm_of("tcp_htcp.ko.xz").as_deref(), Some("htcp"));
        for other in ["tcp_diag.ko", "udp_diag.ko", "tcp_bbr", "netfilter"] {
            assert_eq!(algorithm_of(other), None, "{other}");
        }
    }
}
