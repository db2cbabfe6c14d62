//! Which processes a signal ended, read from the log of the process that had started them.
//!
//! Owns the reading. What a line looks like, the engine file says.

use capabilities::file::Process;

use crate::Killed;

/// What the log of a process tells; `lines_with` gives the lines of a log that have a text in them.
pub(super) fn in_log_of(process: &Process, lines_with: impl Fn(&str, &str) -> Vec<String>) -> Vec<Killed> {
    let mut told = Vec::new();
    for lines in &process.killed {
        for line in lines_with(&process.name, lines.mark()) {
            told.extend(lines.told(&line).map(|(program, signal)| Killed { program, signal }));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the processes of a shipped engine tell, where all their logs are this one.
    fn told(engine: &str, log: &str) -> Vec<(String, i32)> {
        let file = capabilities::named(engine).and_then(|engine| engine.file).expect("an engine by file");
        let lines_with = |_: &str, mark: &str| -> Vec<String> {
            log.lines().filter(|line| line.contains(mark)).map(str::to_owned).collect()
        };
        let killed = file.processes.iter().flat_map(|process| in_log_of(process, lines_with));
        killed.map(|killed| (killed.program, killed.signal)).collect()
    }

    #[test]
    fn what_patronis_postgresql_says_of_a_killed_process_is_read() {
        let log = "2026-11-25 09:00:00,001 INFO: no action. I am (n1), the leader with the lock\n\
                   2026-11-25 09:00:00.000 UTC [12] LOG:  server process (PID 4242) was terminated by signal 9: Killed\n\
                   2026-11-25 09:00:00.001 UTC [12] LOG:  terminating any other active server processes\n\
                   2026-11-25 09:00:02.000 UTC [12] LOG:  background worker \"logical replication launcher\" (PID 13) \
                   was terminated by signal 15: Terminated\n";
        let worker = "PostgreSQL's background worker \"logical replication launcher\"";
        let expected = [("PostgreSQL's server process".to_owned(), 9), (worker.to_owned(), 15)];
        assert_eq!(told("patroni", log), expected);
    }

    #[test]
    fn an_exit_code_a_clients_words_and_a_background_worker_of_postgresql_are_no_killed_process() {
        let log = "[12] LOG:  server process (PID 4242) exited with exit code 2\n\
                   [14] ERROR:  backend (PID 7) was terminated by signal 9 at character 8\n\
                   [14] LOG:  statement: SELECT 'x was terminated by signal 9'\n\
                   [15] LOG:  archive command was terminated by signal 15: Terminated\n";
        assert_eq!(told("patroni", log), []);
    }

    #[test]
    fn redis_tells_of_a_killed_save_and_what_it_ends_itself_is_none() {
        let log = "7:M 25 Nov 2026 09:00:00.000 # Background saving terminated by signal 9\n\
                   7:M 25 Nov 2026 09:00:01.000 # Background transfer terminated by signal 10\n\
                   7:M 25 Nov 2026 09:00:02.000 * Background saving terminated with success\n";
        assert_eq!(told("redis", log), [("Redis's saving".to_owned(), 9)]);
    }
}
