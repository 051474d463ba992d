//! Finds rules of a router's own firewall that do not match packets as a proxy leads them.
//!
//! nft lists its own rules and the rules of iptables-nft. Rules of the older iptables are not among them. A rule counts
//! with the rules that jump to it. Names of interfaces count, and sets of names that have a name do not.

use std::io;

use crate::nft::ruleset;

/// The beginning of the names of our tables.
pub(crate) const OURS: &str = "hopwise_";
/// The kernel lets rules jump so deep.
const DEEPEST: u32 = 16;
/// Rules that are looked at. Jumps from many places to one chain must not take for ever.
const MOST: u32 = 20_000;

/// The rules that nft lists.
#[derive(Clone, Debug)]
pub struct Ruleset {
    chains: Vec<ListedChain>,
}

/// A proxy that leads TCP between two interfaces through devices of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Between {
    /// The interface towards the wire.
    pub wire: String,
    /// The interface towards the mobiles.
    pub radio: String,
    /// The device by which the TCP of mobiles comes in for the second time.
    pub fixed: String,
}

/// A chain in a listing of nft.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedChain {
    /// With the table's family.
    pub(crate) table: String,
    pub(crate) name: String,
    hook: Option<String>,
    /// Its policy is to drop.
    drops_the_rest: bool,
    pub(crate) rules: Vec<String>,
}

impl Ruleset {
    /// Asks nft, which needs CAP_NET_ADMIN.
    pub fn read() -> io::Result<Ruleset> {
        ruleset(None).map(|listed| Ruleset::parse(&listed))
    }

    pub(crate) fn parse(listed: &str) -> Ruleset {
        let (mut chains, mut table, mut open) = (Vec::new(), String::new(), None::<ListedChain>);
        for line in listed.lines() {
            let words = line.trim();
            if let Some(name) = line.strip_prefix("table ") {
                name.split(" {").next().unwrap_or(name).clone_into(&mut table);
            } else if let Some(name) = line.strip_prefix("\tchain ") {
                let name = name.split(" {").next().unwrap_or(name).to_owned();
                open = Some(ListedChain { table: table.clone(), name, ..ListedChain::default() });
            } else if line == "\t}" {
                chains.extend(open.take());
            } else if let Some(chain) = &mut open {
                match words.split_once(" hook ") {
                    Some((kind, rest)) if kind.starts_with("type ") => {
                        chain.hook = rest.split(' ').next().map(str::to_owned);
                        chain.drops_the_rest = rest.ends_with("policy drop;");
                    }
                    _ => chain.rules.push(without_what_varies(words)),
                }
            }
        }
        Ruleset { chains }
    }

    /// Rules of the hook `forward` that name both interfaces and not the proxy's device.
    pub fn between(&self, between: &Between) -> Vec<String> {
        let Between { wire, radio, fixed } = between;
        let names_both = |rule: &str| {
            names(rule, radio) && names(rule, wire) && rule.contains("iif") && rule.contains("oif")
        };
        self.found(&["forward"], between, &|rule| names_both(rule) && !names(rule, fixed))
    }

    /// Rules that give TCP from the radio another destination.
    pub fn redirects(&self, between: &Between) -> Vec<String> {
        let turns = |rule: &str| {
            let rule = rule.to_lowercase().replace("ct status dnat", "");
            ["redirect", "dnat", "tproxy"].iter().any(|word| rule.contains(word))
        };
        let Between { radio, fixed, .. } = between;
        let is_it = |rule: &str| names(rule, radio) && turns(rule) && !names(rule, fixed);
        self.found(&["prerouting"], between, &is_it)
    }

    /// Rules against connections that are cut in two in the router itself: they translate addresses towards the wire,
    /// or drop what connection tracking finds invalid.
    pub fn against_cuts(&self, between: &Between) -> Vec<String> {
        let translates = |rule: &str| {
            let rule_in_lowercase = rule.to_lowercase();
            ["masquerade", "snat"].iter().any(|word| rule_in_lowercase.contains(word))
                && (!rule.contains("oif") || names(rule, &between.wire))
        };
        let drops = |rule: &str| {
            rule.contains("invalid") && ["drop", "reject"].iter().any(|word| rule.contains(word))
        };
        let mut found = self.found(&["postrouting"], between, &translates);
        found.extend(self.found(&["prerouting", "input", "forward", "output"], between, &drops));
        found
    }

    /// Rules that translate addresses towards an interface, or of what comes in there. Those that name no interface
    /// count if `is_default`.
    pub fn translating(&self, device: &str, is_default: bool) -> Vec<String> {
        let is_it = |rule: &str, words: [&str; 2], way: &str| {
            let of_it = if rule.contains(way) { names(rule, device) } else { is_default };
            let rule = rule.to_lowercase().replace("ct status dnat", "").replace("ct status snat", "");
            of_it && words.iter().any(|word| rule.contains(word))
        };
        let (wire, radio, fixed) = Default::default();
        let nothing = Between { wire, radio, fixed };
        let mut found =
            self.found(&["postrouting"], &nothing, &|rule| is_it(rule, ["masquerade", "snat"], "oif"));
        found.extend(self.found(&["prerouting"], &nothing, &|rule| is_it(rule, ["dnat", "redirect"], "iif")));
        found
    }

    /// Rules that give packets another hop limit (TTL), of nft or of iptables-nft.
    pub fn setting_hop_limits(&self) -> Vec<String> {
        let is_it = |rule: &String| {
            ["ttl set ", "hoplimit set ", "\"TTL\"", "\"HL\""].iter().any(|words| rule.contains(words))
        };
        let of = |chain: &ListedChain| {
            let rules = chain.rules.iter().filter(|rule| is_it(rule));
            rules.map(|rule| format!("{} {}: {rule}", chain.table, chain.name)).collect::<Vec<_>>()
        };
        self.chains.iter().filter(|chain| !chain.is_ours()).flat_map(of).collect()
    }

    /// Chains that drop what the router itself sends, unless a rule accepts it.
    pub fn silencing(&self) -> Vec<String> {
        let is_it = |chain: &&ListedChain| {
            chain.hook.as_deref() == Some("output") && chain.drops_the_rest && !chain.is_ours()
        };
        let chains = self.chains.iter().filter(is_it);
        chains.map(|chain| format!("{} {}: policy drop", chain.table, chain.name)).collect()
    }

    pub(crate) fn chains(&self) -> &[ListedChain] {
        &self.chains
    }

    /// The first rules of that kind on each way of packets through these hooks.
    fn found(&self, hooks: &[&str], between: &Between, is_it: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut walk = ChainWalk { all: self, between, is_it, found: Vec::new(), left: MOST };
        for chain in &self.chains {
            if chain.hook.as_deref().is_some_and(|hook| hooks.contains(&hook)) {
                walk.through(chain, "", 0);
            }
        }
        walk.found
    }
}

impl ListedChain {
    fn is_ours(&self) -> bool {
        self.table.split(' ').nth(1).is_some_and(|name| name.starts_with(OURS))
    }

    /// Returns whether the rule is there for the proxy's device as well.
    fn has_twin(&self, rule: &str, Between { radio, fixed, .. }: &Between) -> bool {
        let twin = rule.replace(&format!("\"{radio}\""), &format!("\"{fixed}\""));
        twin != rule && self.rules.contains(&twin)
    }
}

struct ChainWalk<'a> {
    all: &'a Ruleset,
    between: &'a Between,
    is_it: &'a dyn Fn(&str) -> bool,
    found: Vec<String>,
    left: u32,
}

impl ChainWalk<'_> {
    /// `before` has the rules that jumped here.
    fn through(&mut self, chain: &ListedChain, before: &str, depth: u32) {
        if chain.is_ours() || depth > DEEPEST {
            return;
        }
        for rule in &chain.rules {
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            let whole = format!("{before}{rule} ");
            if (self.is_it)(&whole) {
                let said = format!("{} {}: {rule}", chain.table, chain.name);
                if !chain.has_twin(rule, self.between) && !self.found.contains(&said) {
                    self.found.push(said);
                }
                continue;
            }
            let is_next =
                |next: &&ListedChain| next.table == chain.table && targets(rule).any(|to| to == next.name);
            for next in self.all.chains.iter().filter(is_next) {
                self.through(next, &whole, depth + 1);
            }
        }
    }
}

/// The chains that a rule leads to.
fn targets(rule: &str) -> impl Iterator<Item = &str> {
    let mut words = rule.split([' ', ',']).filter(|word| !word.is_empty());
    std::iter::from_fn(move || {
        words.find(|word| ["jump", "goto"].contains(word))?;
        words.next()
    })
}

/// Returns whether a rule names this interface.
fn names(rule: &str, device: &str) -> bool {
    rule.split('"').skip(1).step_by(2).any(|name| match name.strip_suffix('*') {
        Some(beginning) => device.starts_with(beginning),
        None => name == device,
    })
}

/// A rule without its counts and its comment.
fn without_what_varies(rule: &str) -> String {
    let rule = rule.split(" comment \"").next().unwrap_or(rule);
    let mut words = rule.split(' ');
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        // Followed by: packets N bytes N.
        if word == "counter" && words.clone().next() == Some("packets") {
            words.by_ref().take(4).for_each(drop);
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "\
table inet hopwise_detour_7100 { # progname nft
\tchain marked {
\t\ttype filter hook prerouting priority dstnat + 1; policy accept;
\t\tiifname \"radio\" meta l4proto tcp ip saddr 10.9.0.0/24 fib daddr oifname \"wire\" meta mark set 0x1
\t}
}
table inet f {
\tset radios {
\t\ttype ifname
\t\telements = { \"radio\", \"wire\" }
\t}

\tchain fw {
\t\ttype filter hook forward priority filter; policy drop;
\t\tiifname . oifname vmap { \"a\" . \"b\" : jump x, \"radio\" . \"wire\" : drop }
\t\tiifname { \"a\", \"wlan*\" } oifname \"wire\" counter packets 0 bytes 0 log prefix \"radio \" accept
\t\tiifname \"radio\" counter packets 7 bytes 9 jump x
\t\tiifname { \"radio\", \"hopf\" } oifname \"wire\" accept
\t\tiifname \"wire\" oifname \"radio\" counter packets 3 bytes 9 accept comment \"there\"
\t\tiifname \"wire\" oifname \"hopf\" counter packets 5 bytes 99 accept
\t\tiifname \"radio\" oifname \"lan\" drop comment \"not wire\"
\t\tct state vmap { invalid : drop, established : accept }
\t}

\tchain x {
\t\ttcp dport 25 drop
\t\toifname \"wire\" ip saddr 10.9.0.9 reject
\t\tjump y
\t}

\tchain y {
\t\toifname \"wire\" tcp dport 80 drop
\t}
}
table ip nat {
\tchain PREROUTING {
\t\ttype nat hook prerouting priority dstnat; policy accept;
\t\tiifname \"radio\" tcp dport 80 counter packets 0 bytes 0 redirect to :8080
\t\tiifname \"wire\" tcp dport 8000 dnat to 10.9.0.2
\t\tiifname { \"radio\", \"hopf\" } tcp dport 81 redirect to :8081
\t\tiifname \"radio\" jump hotspot
\t}

\tchain hotspot {
\t\ttcp dport 443 xt target \"DNAT\"
\t}

\tchain POSTROUTING {
\t\ttype nat hook postrouting priority srcnat; policy accept;
\t\toifname \"lan\" masquerade
\t\toifname \"wire\" masquerade
\t}
}
";

    fn between(radio: &str) -> Between {
        Between { wire: "wire".into(), radio: radio.into(), fixed: "hopf".into() }
    }

    #[test]
    fn rules_that_name_both_interfaces_count_with_those_that_lead_to_them() {
        let found = Ruleset::parse(LISTED).between(&between("radio"));
        let wanted = [
            "inet f fw: iifname . oifname vmap { \"a\" . \"b\" : jump x, \"radio\" . \"wire\" : drop }",
            "inet f x: oifname \"wire\" ip saddr 10.9.0.9 reject",
            "inet f y: oifname \"wire\" tcp dport 80 drop",
        ];
        assert_eq!(found, wanted);
        let found = Ruleset::parse(LISTED).between(&between("wlan0"));
        let wanted = "inet f fw: iifname { \"a\", \"wlan*\" } oifname \"wire\" log prefix \"radio \" accept";
        assert_eq!(found, [wanted]);
    }

    #[test]
    fn rules_that_redirect_what_comes_in_by_the_radio_are_found() {
        let found = Ruleset::parse(LISTED).redirects(&between("radio"));
        let wanted = [
            "ip nat PREROUTING: iifname \"radio\" tcp dport 80 redirect to :8080",
            "ip nat hotspot: tcp dport 443 xt target \"DNAT\"",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn rules_against_connections_of_the_router_itself_are_found() {
        let found = Ruleset::parse(LISTED).against_cuts(&between("radio"));
        let wanted = [
            "ip nat POSTROUTING: oifname \"wire\" masquerade",
            "inet f fw: ct state vmap { invalid : drop, established : accept }",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn chains_that_drop_what_the_router_sends_are_found() {
        let chain = |hook: &str, policy: &str| {
            format!(
                "\tchain {hook} {{\n\t\ttype filter hook {hook} priority filter; policy {policy};\n\t}}\n"
            )
        };
        for (hook, policy, wanted) in [
            ("output", "drop", vec!["inet f output: policy drop"]),
            ("output", "accept", vec![]),
            ("input", "drop", vec![]),
        ] {
            let listed = format!("table inet f {{\n{}}}\n", chain(hook, policy));
            assert_eq!(Ruleset::parse(&listed).silencing(), wanted, "{hook} {policy}");
        }
    }

    #[test]
    fn chains_that_jump_to_each_other_from_many_places_are_walked_to_an_end() {
        let chain = |nth: u32| {
            let jumps = format!("\t\tjump c{}\n", nth + 1).repeat(8);
            format!("\tchain c{nth} {{\n{jumps}\t}}\n")
        };
        let chains: String = (0..16).map(chain).collect();
        let hook =
            "\tchain base {\n\t\ttype filter hook forward priority 0; policy accept;\n\t\tjump c0\n\t}\n";
        let listed = format!("table inet f {{\n{hook}{chains}}}\n");
        assert!(Ruleset::parse(&listed).between(&between("radio")).is_empty());
    }
}
