//! Ends of a node's processes that the lab had not asked for: by a signal, or in order as a server ends that is told to.
//!
//! Owns which ends count. Who is told of them is `node`'s business.

/// A process that ended though the lab had not asked it to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnaskedEnd {
    pub program: String,
    /// The signal's number, where one ended it. None where it ended in order, with exit code 0: a server does that when it is
    /// told to.
    pub signal: Option<i32>,
}

/// What it tells that a process ended so, to which the lab had sent no signal; `lasts` where it was to go on until told to end.
/// Java catches a signal and exits with 128 and its number. Of those codes only SIGHUP's and SIGTERM's count: programs give
/// others for defects of their own.
pub(crate) fn unasked(
    program: &str,
    (code, signal): (Option<i32>, Option<i32>),
    lasts: bool,
) -> Option<UnaskedEnd> {
    let signal = match (signal, code) {
        (Some(signal), _) => Some(signal),
        (None, Some(0)) if lasts => None,
        (None, Some(code)) if lasts && [libc::SIGHUP, libc::SIGTERM].contains(&(code - 128)) => {
            Some(code - 128)
        }
        _ => return None,
    };
    Some(UnaskedEnd { program: program.to_owned(), signal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_nobody_asked_for_is_told_by_its_signal_or_its_exit_code() {
        let check = |code, signal, lasts, expected: Option<Option<i32>>| {
            let told = unasked("server", (code, signal), lasts);
            assert_eq!(told.map(|end| end.signal), expected, "{code:?} {signal:?} {lasts}");
        };
        check(None, Some(9), true, Some(Some(9)));
        check(None, Some(9), false, Some(Some(9)));
        // PostgreSQL and MariaDB, then Java, that are told to end.
        check(Some(0), None, true, Some(None));
        check(Some(143), None, true, Some(Some(15)));
        // A command that has done its work; a server that gives up by itself.
        check(Some(0), None, false, None);
        check(Some(1), None, true, None);
        check(Some(130), None, true, None);
    }
}
