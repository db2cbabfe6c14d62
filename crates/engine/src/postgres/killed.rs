//! Which of PostgreSQL's processes a signal ended, read from its log: the postmaster reaps them and says so
//! (`LogChildExit` in its source, with `LC_ALL=C`): `server process (PID 4242) was terminated by signal 9: Killed`.

use crate::Killed;

/// What stands between the process and the signal's number.
pub(super) const TERMINATED: &str = " was terminated by signal ";

/// The processes that a log tells of, in its order.
pub(super) fn in_log(log: &str) -> Vec<Killed> {
    log.lines().filter_map(in_line).collect()
}

fn in_line(line: &str) -> Option<Killed> {
    let (before, after) = line.split_once(TERMINATED)?;
    let signal = after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    // A client's own text stands behind other words than a LOG line of the postmaster's begins with.
    let (_, process) = before.split_once("LOG:  ")?;
    let (program, pid) = process.rsplit_once(" (PID ")?;
    pid.strip_suffix(')')?.parse::<u32>().ok()?;
    Some(Killed { program: format!("PostgreSQL's {program}"), signal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_a_signal_ended_is_read_with_its_signal() {
        let log = "2026-11-22 10:00:00.000 UTC [12] LOG:  server process (PID 4242) was terminated by signal 9: Killed\n\
                   2026-11-22 10:00:00.001 UTC [12] LOG:  terminating any other active server processes\n\
                   2026-11-22 10:00:02.000 UTC [12] LOG:  checkpointer process (PID 13) was terminated by signal 6: Aborted\n";
        let killed = |program: &str, signal| Killed { program: program.to_owned(), signal };
        let expected =
            [killed("PostgreSQL's server process", 9), killed("PostgreSQL's checkpointer process", 6)];
        assert_eq!(in_log(log), expected);
    }

    #[test]
    fn an_exit_code_and_a_clients_words_are_no_signal() {
        let log = "[12] LOG:  server process (PID 4242) exited with exit code 2\n\
                   [14] ERROR:  backend was terminated by signal 9 at character 8\n\
                   [14] LOG:  statement: SELECT 'x was terminated by signal 9'\n";
        assert_eq!(in_log(log), []);
    }
}
