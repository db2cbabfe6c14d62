//! Borders inside crates, which dependencies cannot show: pure files that must not name the file that does I/O.

use super::Violation;
use super::source::Source;

/// Files under `within`, but for those in `but`, must not name any of `banned`, each a row of tokens.
struct Border {
    within: &'static [&'static str],
    but: &'static [&'static str],
    banned: &'static [&'static [&'static str]],
    instead: &'static str,
}

const BORDERS: &[Border] = &[
    Border {
        within: &["crates/fabric/src/"],
        but: &[
            "crates/fabric/src/lib.rs",
            "crates/fabric/src/carrier.rs",
            "crates/fabric/src/commands.rs",
            "crates/fabric/src/fabric.rs",
            "crates/fabric/src/recorder.rs",
        ],
        banned: &[
            &["carrier"],
            &["recorder"],
            &["crate", ":", ":", "fabric"],
            &["Instant", ":", ":", "now"],
            &["SystemTime", ":", ":", "now"],
        ],
        instead: "the fabric's core does no I/O and reads no clock; take time, chance and frames as arguments",
    },
    Border {
        within: &["crates/workload/src/"],
        but: &[],
        banned: &[&["postgres"]],
        instead: "workloads speak no protocol; use the session traits of `client`",
    },
    Border {
        within: &[
            "crates/check/src/",
            "crates/faults/src/",
            "crates/measure/src/",
            "crates/model/src/",
            "crates/scenario/src/",
        ],
        but: &[],
        banned: &[
            &["Instant", ":", ":", "now"],
            &["SystemTime", ":", ":", "now"],
            &["fs"],
            &["File"],
            &["TcpStream"],
            &["env", ":", ":", "var"],
        ],
        instead: "this crate is pure: no clock, no file, no network; take times, texts and streams as arguments",
    },
];

/// Every place where a border is crossed.
pub fn check(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for border in BORDERS {
        let within = border.within.iter().any(|folder| source.path.starts_with(folder));
        if !within || border.but.contains(&source.path.as_str()) {
            continue;
        }
        for banned in border.banned {
            // As tokens anywhere, so that no way of writing a `use` escapes.
            for line in source.lines_with(banned).filter(|line| !source.is_test(*line)) {
                let message = format!("`{}` must not be named here: {}", banned.concat(), border.instead);
                found.push(Violation { path: source.path.clone(), line, message });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source::parsed;
    use super::*;

    #[test]
    fn the_fabrics_core_may_not_name_its_carrier_however_it_is_written() {
        for text in [
            "use crate::carrier::Fabric;",
            "use crate::{packet, carrier};",
            "fn f() { super::carrier::go(); }",
        ] {
            assert_eq!(check(&parsed("crates/fabric/src/router.rs", text)).len(), 1, "{text}");
            assert_eq!(check(&parsed("crates/fabric/src/lib.rs", text)).len(), 0, "{text}");
        }
    }

    #[test]
    fn a_pure_crate_may_not_read_a_clock_or_open_a_file_outside_its_tests() {
        let text = "fn f() { std::time::Instant::now(); }\n#[cfg(test)]\nmod tests { use std::fs; }\n";
        assert_eq!(check(&parsed("crates/check/src/ledger.rs", text)).len(), 1);
        assert_eq!(check(&parsed("crates/run/src/launch.rs", text)).len(), 0);
    }

    #[test]
    fn a_workload_may_not_name_a_protocol() {
        let text = "use client::postgres::Connection;";
        assert_eq!(check(&parsed("crates/workload/src/tpcb.rs", text)).len(), 1);
        assert_eq!(check(&parsed("crates/load/src/shared.rs", text)).len(), 0);
    }
}
