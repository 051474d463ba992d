//! Settings of routing in force, in the simulation and over kernels.

use super::{CHAIN, read, refused};

#[test]
fn dymo_stands_in_the_settings_of_a_run_with_all_its_constants() {
    let scenario = read(CHAIN, &["routing={ protocol: dymo, dymo: { max_hopcount: 30 } }"]);
    let in_force = &scenario.under("x").expect("an arm").settings()["routing"]["dymo"];
    assert_eq!((&in_force["max_hopcount"], &in_force["rreq_wait_time"]), (&30.into(), &"2s".into()));
}

#[test]
fn a_run_beside_kernels_has_the_hellos_of_its_daemons_in_its_settings() {
    for (world, given, says_hello) in
        [("sim", "", false), ("netns", "", true), ("hwsim", ", hello: false", false)]
    {
        let routing = format!("routing={{ protocol: aodv{given} }}");
        let scenario = read(CHAIN, &[&routing, &format!("world={world}")]);
        let in_force = &scenario.under("x").expect("an arm").settings()["routing"];
        assert_eq!(in_force["hello"], says_hello, "{world}");
        let prepared = scenario.plan(None, 1).expect("it is a plan");
        assert_eq!(prepared.routing.given().is_on("hello"), says_hello, "{world}");
    }
}

#[test]
fn protocols_of_the_kernel_are_routed_by_its_wi_fi_alone_and_have_its_constants() {
    for (protocol, constant) in [("batman", "orig_interval: 2s"), ("hwmp", "max_preq_retries: 2")] {
        let routed = |constants: &str| format!("routing={{ protocol: {protocol}{constants} }}");
        let scenario = read(CHAIN, &[&routed(""), "world=hwsim"]);
        let in_force = &scenario.under("x").expect("an arm").settings()["routing"];
        assert_eq!((&in_force["protocol"], in_force.get(protocol)), (&protocol.into(), None));
        let said = refused(&["world=hwsim", &routed(&format!(", {protocol}: {{ {constant} }}"))]);
        assert!(
            said.contains("the kernel's own protocol has its own constants in the world hwsim"),
            "{said}"
        );
        let said = refused(&["world=netns", &routed("")]);
        assert!(said.contains("over Wi-Fi alone") && said.contains("world: hwsim, or world: sim"), "{said}");
    }
}
