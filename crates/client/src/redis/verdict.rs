//! What an error of Redis says: the class it is counted under, whether the transaction certainly did not happen, and
//! whether the primary should be looked for elsewhere.
//!
//! Owns the table. Source: Redis 7.0, `src/server.c` (`createSharedObjects`, `processCommand`) and `src/cluster.c`
//! (`clusterRedirectClient`), and the pages "Replication", "Redis cluster specification" and "Scripting with Lua" of its
//! documentation. `processCommand` refuses a command before it runs; a script meets the same refusals at its first
//! write, before it has written anything. So each code here is definite, and what is not here is not.

use history::ErrorClass;

/// What is known of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) class: ErrorClass,
    pub(super) definite: bool,
    /// The session is to be given up: this node takes no writes, or none now.
    pub(super) looks_elsewhere: bool,
}

const fn elsewhere(code: &'static str) -> (&'static str, Verdict) {
    (code, Verdict { class: ErrorClass::ReadOnly, definite: true, looks_elsewhere: true })
}

const fn refused(code: &'static str) -> (&'static str, Verdict) {
    (code, Verdict { class: ErrorClass::Other, definite: true, looks_elsewhere: false })
}

/// The codes that prove that nothing was written.
const CODES: [(&str, Verdict); 18] = [
    // A replica was asked to write.
    elsewhere("READONLY"),
    // A replica without its primary, with `replica-serve-stale-data no`.
    elsewhere("MASTERDOWN"),
    // Fewer replicas than `min-replicas-to-write` are near enough: the sign of a primary that others have left.
    elsewhere("NOREPLICAS"),
    // It reads its files after a start.
    ("LOADING", Verdict { class: ErrorClass::Connection, definite: true, looks_elsewhere: true }),
    // Cluster: not enough of it is there; the slot is somebody else's, or is on its way there.
    elsewhere("CLUSTERDOWN"),
    elsewhere("MOVED"),
    elsewhere("ASK"),
    ("TRYAGAIN", Verdict { class: ErrorClass::Serialization, definite: true, looks_elsewhere: false }),
    refused("CROSSSLOT"),
    // It cannot write its files, with `stop-writes-on-bgsave-error yes` or a failing append-only file.
    refused("MISCONF"),
    // `maxmemory` is reached and nothing may be evicted.
    refused("OOM"),
    // Another script has run for longer than `busy-reply-threshold`.
    refused("BUSY"),
    refused("NOSCRIPT"),
    refused("NOAUTH"),
    refused("WRONGPASS"),
    refused("NOPERM"),
    refused("NOPROTO"),
    // Nothing of a queued transaction was run.
    refused("EXECABORT"),
];

/// The code of an error, its first word. Before Redis 7 an error within a script stands in the text of another.
pub(super) fn code_of(text: &str) -> &str {
    let first = text.trim_start_matches('-').split(' ').next().unwrap_or_default();
    if first != "ERR" || !text.contains("@user_script") {
        return first;
    }
    let words = text.split(|sign: char| !sign.is_ascii_uppercase());
    words.into_iter().find(|word| CODES.iter().any(|(code, _)| code == word)).unwrap_or(first)
}

/// See the module.
pub(super) fn verdict(code: &str) -> Verdict {
    let unknown = Verdict { class: ErrorClass::Other, definite: false, looks_elsewhere: false };
    CODES.iter().find(|(known, _)| *known == code).map_or(unknown, |(_, verdict)| *verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_redis_turns_down_before_it_writes_certainly_did_not_happen() {
        let check = |text: &str, code: &str, class, definite, looks_elsewhere| {
            assert_eq!(code_of(text), code, "{text}");
            assert_eq!(verdict(code), Verdict { class, definite, looks_elsewhere }, "{text}");
        };
        let readonly = "READONLY You can't write against a read only replica.";
        check(readonly, "READONLY", ErrorClass::ReadOnly, true, true);
        let of_version_7 =
            "READONLY You can't write against a read only replica. script: 5f2, on @user_script:24.";
        check(of_version_7, "READONLY", ErrorClass::ReadOnly, true, true);
        let of_version_6 = "ERR Error running script (call to f_5f2): @user_script:24: @user_script: 24: -NOREPLICAS Not enough";
        check(of_version_6, "NOREPLICAS", ErrorClass::ReadOnly, true, true);
        check(
            "LOADING Redis is loading the dataset in memory",
            "LOADING",
            ErrorClass::Connection,
            true,
            true,
        );
        check("MASTERDOWN Link with MASTER is down", "MASTERDOWN", ErrorClass::ReadOnly, true, true);
        check("CLUSTERDOWN The cluster is down", "CLUSTERDOWN", ErrorClass::ReadOnly, true, true);
        check("MOVED 3999 10.0.0.2:6379", "MOVED", ErrorClass::ReadOnly, true, true);
        check(
            "OOM command not allowed when used memory > 'maxmemory'.",
            "OOM",
            ErrorClass::Other,
            true,
            false,
        );
        // A script that failed in the middle may have written.
        let broken = "ERR user_script:9: Script attempted to access nonexistent global variable 'x' script: 1, on @user_script:9.";
        check(broken, "ERR", ErrorClass::Other, false, false);
        // A primary became a replica while a write waited for its replicas.
        check(
            "UNBLOCKED force unblock from blocking operation",
            "UNBLOCKED",
            ErrorClass::Other,
            false,
            false,
        );
        check("", "", ErrorClass::Other, false, false);
    }
}
