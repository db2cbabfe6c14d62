//! What a run of a campaign may end with, given what was done to it. Everything else is a complaint.

use serde_json::Value;

use super::one_run::{Left, code_or_signal};
use super::seen;
use super::treatment::Treatment;

/// How it ended, in a word, and the complaints.
pub(super) fn judge(treatment: Treatment, left: &Left) -> (String, Vec<String>) {
    let mut complaints: Vec<String> =
        left.leftovers.iter().map(|what| format!("left behind: {what}")).collect();
    complaints.extend(panics(&[&left.stdout, &left.stderr]));
    if let Some((status, said)) = &left.reported {
        complaints.extend(panics(&[said]).into_iter().map(|panic| format!("holdfast report: {panic}")));
        if !matches!(status.code(), Some(0 | 254 | 255)) {
            complaints.push(format!("holdfast report: {status}: {}", last_line(said)));
        }
    }
    let Some(status) = left.status else {
        complaints.push(format!("it hangs; it said last: {}", last_line(&left.stdout)));
        return ("hangs".to_owned(), complaints);
    };
    let (ended, code) = match code_or_signal(status) {
        Ok(0) => ("pass".to_owned(), Some(0)),
        Ok(1) => ("fail".to_owned(), Some(1)),
        Ok(2) => ("unknown".to_owned(), Some(2)),
        Ok(254) => ("refused".to_owned(), Some(254)),
        Ok(255) => ("no lab".to_owned(), Some(255)),
        Ok(code) => {
            complaints.push(format!("exit code {code}, which stands nowhere"));
            (format!("exit code {code}"), None)
        }
        Err(signal) => {
            if !may_be_killed(treatment, left, signal) {
                complaints.push(format!("ended by signal {signal}: {}", last_line(&left.stderr)));
            }
            ("killed".to_owned(), None)
        }
    };
    complaints.extend(code.into_iter().flat_map(|code| contradictions(treatment, left, code)));
    (ended, complaints)
}

/// Why it ended as it did, in its own words.
pub(super) fn why(left: &Left) -> String {
    let reasons = left.result.as_ref().and_then(|result| result["reasons"].as_array());
    let first = reasons.and_then(|reasons| reasons.first()).and_then(Value::as_str);
    let why = first.or_else(|| left.stderr.lines().find(|line| !line.trim().is_empty())).unwrap_or_default();
    why.chars().take(1_500).collect()
}

fn may_be_killed(treatment: Treatment, left: &Left, signal: i32) -> bool {
    signal == libc::SIGKILL
        && (treatment == Treatment::Kill && left.said_when_struck.is_some()
            || treatment == Treatment::LittleMemory)
}

/// What speaks against this exit code.
fn contradictions(treatment: Treatment, left: &Left, code: i32) -> Vec<String> {
    let mut found = Vec::new();
    let verdict = left.result.as_ref().and_then(|result| result["verdict"].as_str());
    let of_code = ["pass", "fail", "unknown"].get(usize::try_from(code).unwrap_or(usize::MAX)).copied();
    // A run that is interrupted before it has a directory has no result either, and one without room cannot write it.
    let may_lack_result = code == 2 || of_code.is_none();
    if of_code != verdict && !(verdict.is_none() && may_lack_result) && of_code.is_some() {
        found.push(format!("exit code {code} beside the verdict {verdict:?}"));
    }
    if code == 254 && !left.stderr.contains("drawn.yaml:") {
        found.push(format!("refused without a place in the file: {}", last_line(&left.stderr)));
    }
    if code == 255 && left.stderr.trim().is_empty() {
        found.push("exit code 255 without a word".to_owned());
    }
    if code == 0
        && left.said_when_struck.as_ref().is_some_and(|said| is_under_way(said))
        && is_felt(treatment)
    {
        found.push(format!("pass, though {} struck while the load was under way", treatment.name()));
    }
    if code == 0 {
        let doubts = match (&left.directory, &left.result) {
            (Some(directory), Some(result)) => seen::doubts(directory, result),
            _ => vec!["no result".to_owned()],
        };
        found.extend(doubts.into_iter().map(|doubt| format!("pass, though {doubt}")));
    }
    if treatment == Treatment::WithoutTun
        && matches!(code, 0..=2)
        && left.result.as_ref().is_some_and(|result| nodes(result) > 0)
    {
        found.push("a lab without /dev/net/tun".to_owned());
    }
    found
}

/// Whether a run that this struck must not pass.
fn is_felt(treatment: Treatment) -> bool {
    matches!(
        treatment,
        Treatment::KillSupervisor
            | Treatment::Interrupt
            | Treatment::InterruptTwice
            | Treatment::Terminate
            | Treatment::Suspend
    )
}

/// Whether the load was under way when this was all that had been said.
fn is_under_way(said: &str) -> bool {
    said.contains("phase baseline") && !said.contains("reading back")
}

fn nodes(result: &Value) -> u64 {
    result["lab"]["nodes"].as_u64().unwrap_or(0)
}

fn panics(texts: &[&str]) -> Vec<String> {
    let lines = texts.iter().flat_map(|text| text.lines());
    lines
        .filter(|line| line.contains("panicked at") || line.contains("memory allocation of"))
        .map(str::to_owned)
        .collect()
}

fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn ended(raw: i32) -> Left {
        Left {
            status: Some(ExitStatus::from_raw(raw)),
            stdout: String::new(),
            stderr: String::new(),
            directory: None,
            result: None,
            said_when_struck: None,
            leftovers: Vec::new(),
            reported: None,
        }
    }

    fn complaints(treatment: Treatment, left: &Left) -> String {
        judge(treatment, left).1.join("; ")
    }

    fn code(code: i32) -> i32 {
        code << 8
    }

    #[test]
    fn each_bad_end_is_complained_about_and_each_good_one_is_not() {
        let unknown = |verdict: &str| Left {
            result: Some(serde_json::json!({ "verdict": verdict })),
            ..ended(code(2))
        };
        assert_eq!(complaints(Treatment::None, &unknown("unknown")), "");
        assert!(complaints(Treatment::None, &unknown("pass")).contains("exit code 2 beside"));
        assert!(complaints(Treatment::None, &ended(code(0))).contains("pass, though no result"));
        assert!(complaints(Treatment::None, &ended(code(101))).contains("stands nowhere"));
        assert!(complaints(Treatment::None, &ended(code(255))).contains("without a word"));
        assert!(complaints(Treatment::None, &ended(libc::SIGKILL)).contains("signal 9"));
        let struck = |raw| Left { said_when_struck: Some("phase baseline".to_owned()), ..ended(raw) };
        assert_eq!(complaints(Treatment::Kill, &struck(libc::SIGKILL)), "");
        assert!(complaints(Treatment::Kill, &struck(libc::SIGSEGV)).contains("signal 11"));
        assert!(complaints(Treatment::Suspend, &struck(code(0))).contains("suspend struck"));
        let refused = |stderr: &str| Left { stderr: stderr.to_owned(), ..ended(code(254)) };
        assert_eq!(complaints(Treatment::None, &refused("[drawn.yaml:3:1]")), "");
        assert!(complaints(Treatment::None, &refused("no")).contains("without a place"));
        assert!(complaints(Treatment::None, &refused("drawn.yaml: panicked at x.rs")).contains("panicked"));
        let leaves = Left { leftovers: vec!["mount x".to_owned()], ..refused("drawn.yaml:1") };
        assert_eq!(complaints(Treatment::None, &leaves), "left behind: mount x");
        assert!(complaints(Treatment::None, &Left { status: None, ..ended(0) }).contains("hangs"));
    }
}
