//! One question to a registry, put by curl.
//!
//! Owns what curl is told, and that there is an end to its work whatever is answered: to how long an answer is, how
//! long it takes, how often another address is tried. Which questions there are is `registry`'s.
//!
//! curl brings what else it takes: the machine's certificates and its proxies. Source: curl(1).

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::run_to_end::last_words;

use super::error::ImageError;

/// Options of every call of curl: to follow to where a registry keeps its parts, to take addresses as they stand, to
/// give up where nothing comes. It tells the status.
const ALWAYS: &str = "silent\nshow-error\nlocation\nmax-redirs = 5\ngloboff\nretry = 2\nretry-max-time = 60\n\
                      connect-timeout = 20\nspeed-limit = 100\nspeed-time = 30\nwrite-out = \"%{http_code}\"\n";
/// To a registry on this machine: in the clear if it wants that, and never by a proxy.
const TO_HERE: &str = "proto = \"=http,https\"\nnoproxy = \"*\"\n";
/// To any other. What curl is redirected to is held to it as well.
const TO_ELSEWHERE: &str = "proto = \"=https\"\n";
/// How long an answer may take that has nothing in it, seconds.
const PATIENCE_S: u64 = 120;
/// How slow the rest of it may be on the whole, bytes a second.
const SLOWEST_BYTES_PER_S: u64 = 20_000;
/// How often the length of what has come is looked at.
const GLANCE: Duration = Duration::from_millis(20);
/// How long the heads of answers may be, bytes.
const MOST_OF_HEADS: u64 = 1 << 20;
/// What curl ends with where more is announced than it was told to take.
const TOO_LONG: i32 = 63;

/// What is asked.
#[derive(Debug)]
pub(super) struct Question<'a> {
    /// Who is asked, as people know it.
    pub(super) registry: &'a str,
    /// For what, in words.
    pub(super) what: &'a str,
    /// The address, without what `query` adds.
    pub(super) address: &'a str,
    /// Whether it is on this machine.
    pub(super) is_here: bool,
    /// How many bytes the answer can have.
    pub(super) most: u64,
    /// Lines of the question's head.
    pub(super) head: Vec<String>,
    /// What follows the address behind a question mark.
    pub(super) query: Vec<(&'a str, &'a str)>,
    /// Where the answer goes.
    pub(super) into: &'a Path,
}

/// What a registry answered.
#[derive(Debug)]
pub(super) struct Answer {
    /// The HTTP status.
    pub(super) status: u16,
    /// The heads of all answers on the way.
    pub(super) heads: String,
}

impl Question<'_> {
    /// What curl is told; the heads of answers go into the file given.
    pub(super) fn words(&self, heads: &Path) -> String {
        let mut words = ALWAYS.to_owned();
        words.push_str(if self.is_here { TO_HERE } else { TO_ELSEWHERE });
        let longest_s = PATIENCE_S + self.most / SLOWEST_BYTES_PER_S;
        // Writing into memory cannot fail.
        let _ = writeln!(words, "max-time = {longest_s}");
        let _ = writeln!(words, "max-filesize = {}", self.most);
        let _ = writeln!(words, "url = {}", quoted(self.address));
        let _ = writeln!(words, "output = {}", quoted(&self.into.display().to_string()));
        let _ = writeln!(words, "dump-header = {}", quoted(&heads.display().to_string()));
        for line in &self.head {
            let _ = writeln!(words, "header = {}", quoted(line));
        }
        if !self.query.is_empty() {
            words.push_str("get\n");
        }
        for (name, value) in &self.query {
            let _ = writeln!(words, "data-urlencode = {}", quoted(&format!("{name}={value}")));
        }
        words
    }

    /// Puts it; `scratch` is for what curl writes beside the answer.
    pub(super) fn put(&self, scratch: &Path) -> Result<Answer, ImageError> {
        let at = |name: &str| scratch.join(name);
        let (list, heads, said, status) = (at("curl.conf"), at("heads"), at("said"), at("status"));
        fs::write(&list, self.words(&heads)).map_err(|source| file(&list, source))?;
        // Nothing of an earlier question is taken for an answer to this one.
        create(&heads)?;
        let _ = fs::remove_file(self.into);
        let mut curl = Command::new("curl");
        // -q comes first: a user's own configuration could send the question elsewhere.
        curl.arg("-q").arg("--config").arg(&list).current_dir(scratch).env("LC_ALL", "C");
        curl.stdin(Stdio::null()).stdout(create(&status)?).stderr(create(&said)?);
        let ended = self.watched(&mut curl, &heads)?;
        if !ended.success() {
            if ended.code() == Some(TOO_LONG) {
                return Err(self.too_long());
            }
            let last_words = last_words(&read(&said)?);
            return Err(ImageError::Curl(format!("curl failed ({ended}): {last_words}")));
        }
        let status = read(&status)?.trim().parse().unwrap_or(0);
        Ok(Answer { status, heads: read(&heads)? })
    }

    /// Runs curl to its end, or to where it has fetched more than there can be. It knows that limit itself, but
    /// before its version 8.4 only of answers that announce their length.
    fn watched(&self, curl: &mut Command, heads: &Path) -> Result<ExitStatus, ImageError> {
        let cannot = |error: io::Error| ImageError::Curl(format!("curl cannot be run: {error}"));
        let mut running = curl.spawn().map_err(cannot)?;
        loop {
            if let Some(ended) = running.try_wait().map_err(cannot)? {
                break Ok(ended);
            }
            if length(self.into) > self.most || length(heads) > MOST_OF_HEADS {
                // It may have ended by itself meanwhile.
                let _ = running.kill();
                running.wait().map_err(cannot)?;
                break Err(self.too_long());
            }
            thread::sleep(GLANCE);
        }
    }

    fn too_long(&self) -> ImageError {
        // What has come of it may be large.
        let _ = fs::remove_file(self.into);
        ImageError::LongAnswer {
            registry: self.registry.to_owned(),
            most: self.most,
            what: self.what.to_owned(),
        }
    }
}

fn file(path: &Path, source: io::Error) -> ImageError {
    ImageError::File { path: path.to_owned(), source }
}

fn create(path: &Path) -> Result<File, ImageError> {
    File::create(path).map_err(|source| file(path, source))
}

fn read(path: &Path) -> Result<String, ImageError> {
    let bytes = fs::read(path).map_err(|source| file(path, source))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The length of a file, bytes; none of one that is not there yet.
fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |facts| facts.len())
}

/// A text as curl's configuration has it. It is in one line: none of what comes here has another.
pub(crate) fn quoted(text: &str) -> String {
    let line: String = text.chars().filter(|letter| !letter.is_control()).collect();
    format!("\"{}\"", line.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(is_here: bool) -> String {
        let question = Question {
            registry: "r.example.com",
            what: "a thing",
            address: "https://r.example.com/x",
            is_here,
            most: 7,
            head: vec!["Authorization: Bearer secret".to_owned()],
            query: vec![("scope", "a\nb")],
            into: Path::new("/a \"b\""),
        };
        question.words(Path::new("/heads"))
    }

    #[test]
    fn curl_is_told_where_to_stop_and_takes_no_line_from_a_stranger() {
        let words = words(false);
        assert!(words.contains("proto = \"=https\"\nmax-time = 120\nmax-filesize = 7\n"), "{words}");
        assert!(words.contains("url = \"https://r.example.com/x\"\noutput = \"/a \\\"b\\\"\"\n"), "{words}");
        let end = "header = \"Authorization: Bearer secret\"\nget\ndata-urlencode = \"scope=ab\"\n";
        assert!(words.ends_with(end), "{words}");
    }

    #[test]
    fn a_registry_on_this_machine_may_be_asked_in_the_clear() {
        assert!(words(true).contains("proto = \"=http,https\"\nnoproxy = \"*\"\n"));
    }
}
