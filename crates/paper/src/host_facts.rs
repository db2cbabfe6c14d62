//! Facts about the machine a run stands on, in words for its report. What a rule of best practice asks is `this_host`'s.

use std::collections::BTreeMap;
use std::fs;

use crate::this_host::meminfo_kib;

/// Facts for the report: kernel, processor, cores, memory, user.
#[must_use]
pub fn facts_of_this_host() -> BTreeMap<String, String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut facts = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value);
        }
    };
    put("kernel", Some(read("/proc/sys/kernel/osrelease").trim().to_owned()));
    put("cpu", after_colon(&read("/proc/cpuinfo"), "model name"));
    put("cores", std::thread::available_parallelism().ok().map(|cores| cores.to_string()));
    put("memory_bytes", meminfo_kib("MemTotal").map(|kib| (kib * 1024).to_string()));
    let release = read("/etc/os-release");
    let distribution = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    put("distribution", distribution.map(|name| name.trim_matches('"').to_owned()));
    let root = nix::unistd::geteuid().is_root();
    put("user", Some(if root { "root" } else { "ordinary user" }.to_owned()));
    facts
}

fn after_colon(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_whatever_stands_around_it() {
        assert_eq!(
            after_colon("a : 1\nmodel name\t: Some CPU @ 2\n", "model name"),
            Some("Some CPU @ 2".to_owned())
        );
    }
}
