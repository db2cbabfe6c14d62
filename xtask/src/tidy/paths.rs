//! Borders inside crates, which dependencies cannot show: pure files that must not name the file that does I/O.

use super::Violation;
use super::source::Source;

/// Files under `within`, but for those in `but`, must not name `banned`.
struct Border {
    within: &'static str,
    but: &'static [&'static str],
    banned: &'static str,
    instead: &'static str,
}

const BORDERS: &[Border] = &[
    Border {
        within: "crates/fabric/src/",
        but: &["crates/fabric/src/lib.rs", "crates/fabric/src/carrier.rs", "crates/fabric/src/fabric.rs"],
        banned: "carrier",
        instead: "the fabric's core does no I/O; take time and frames as arguments",
    },
    Border {
        within: "crates/fabric/src/",
        but: &["crates/fabric/src/lib.rs", "crates/fabric/src/carrier.rs"],
        banned: "recorder",
        instead: "the fabric's core does no I/O; take time and frames as arguments",
    },
    Border {
        within: "crates/workload/src/",
        but: &[],
        banned: "postgres",
        instead: "workloads speak no protocol; use the session traits of `client`",
    },
];

/// Every place where a border is crossed.
pub fn check(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for border in BORDERS {
        if !source.path.starts_with(border.within) || border.but.contains(&source.path.as_str()) {
            continue;
        }
        // As an identifier anywhere, so that no way of writing a `use` escapes.
        for line in source.lines_with(&[border.banned]).filter(|line| !source.is_test(*line)) {
            let message = format!("`{}` must not be named here: {}", border.banned, border.instead);
            found.push(Violation { path: source.path.clone(), line, message });
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
    fn a_workload_may_not_name_a_protocol() {
        let text = "use client::postgres::Connection;";
        assert_eq!(check(&parsed("crates/workload/src/tpcb.rs", text)).len(), 1);
        assert_eq!(check(&parsed("crates/load/src/shared.rs", text)).len(), 0);
    }
}
