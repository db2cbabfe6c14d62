//! Facts about the machine a run stands on, read outside the lab.

use std::collections::BTreeMap;
use std::fs;

/// Facts for the report: kernel, processor, cores, memory, user.
#[must_use]
pub fn facts() -> BTreeMap<String, String> {
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
    put("memory_bytes", memory_bytes(&read("/proc/meminfo")).map(|bytes| bytes.to_string()));
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

fn memory_bytes(meminfo: &str) -> Option<u64> {
    meminfo_bytes(meminfo, "MemTotal")
}

/// A field of `/proc/meminfo` (proc_meminfo(5)), whose text is given.
pub(crate) fn meminfo_bytes(meminfo: &str, field: &str) -> Option<u64> {
    let kibibytes = after_colon(meminfo, field)?;
    Some(kibibytes.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
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
        assert_eq!(memory_bytes("MemTotal:       16 kB\n"), Some(16_384));
        assert_eq!(memory_bytes("nothing"), None);
    }
}
