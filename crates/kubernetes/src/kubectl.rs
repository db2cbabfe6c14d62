//! How kubectl is called: its flags, its time limit, and what is made of its answer.
//!
//! Owns no object of the API. kubectl's own rules hold for everything that is not given: `KUBECONFIG`, the current context,
//! programs that log in.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Next, Running, last_lines};

/// Most that one answer may have.
const MOST_OUTPUT_BYTES: usize = 16 << 20;
/// How long an answer about versions may take.
const VERSION_WITHIN: Duration = Duration::from_secs(15);
/// How often it is looked whether kubectl has ended.
const POLL: Duration = Duration::from_millis(5);

/// The program, and which cluster and namespace it is to speak to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubectl {
    /// The program: a path, or a name that is looked for.
    pub program: PathBuf,
    /// The file with clusters and logins, where it is not kubectl's own.
    pub kubeconfig: Option<PathBuf>,
    /// The context of that file, where it is not the current one.
    pub context: Option<String>,
    pub namespace: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum KubectlError {
    /// There is no such program.
    #[error("`{}` was not found; install kubectl, or put it where programs are looked for", program.display())]
    NotFound {
        /// What was looked for.
        program: PathBuf,
    },
    /// It ended with an error.
    #[error("`kubectl {arguments}` failed with {code}: {said}")]
    Failed {
        /// What was asked.
        arguments: String,
        /// Its exit code; that of a shell where a signal ended it.
        code: i32,
        /// The last that it said.
        said: String,
    },
    /// It did not end in time, and was ended.
    #[error("`kubectl {arguments}` gave no answer within {} s", .within.as_secs_f64())]
    TimedOut {
        /// What was asked.
        arguments: String,
        /// The limit.
        within: Duration,
    },
    /// Its answer is not JSON.
    #[error("`kubectl {arguments}` gave an answer that is not JSON: {source}")]
    NotJson {
        /// What was asked.
        arguments: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Its answer is longer than is read.
    #[error("`kubectl {arguments}` gave an answer of more than {most_bytes} bytes")]
    TooMuch {
        /// What was asked.
        arguments: String,
        /// The most that is read.
        most_bytes: usize,
    },
    /// The system refused.
    #[error("`kubectl {arguments}` could not be run: {source}")]
    Io {
        /// What was asked.
        arguments: String,
        /// What the system said.
        source: io::Error,
    },
}

/// An answer, whatever the exit code.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) output: Vec<u8>,
    pub(crate) complaint: String,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// The error that it is when it is none of the answers that were expected.
    pub(crate) fn failed(self, arguments: &[&str]) -> KubectlError {
        let said = if self.complaint.is_empty() { last_lines(&self.text()) } else { self.complaint };
        KubectlError::Failed { arguments: arguments.join(" "), code: self.code, said }
    }
}

impl Kubectl {
    /// The same in another namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Kubectl {
        Kubectl { namespace: namespace.to_owned(), ..self.clone() }
    }

    /// The whole command line, the program first, as it is run.
    #[must_use]
    pub fn words(&self, arguments: &[&str]) -> Vec<String> {
        let mut words = vec![self.program.display().to_string()];
        let mut flag = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(kubeconfig) = &self.kubeconfig {
            flag("--kubeconfig", kubeconfig.display().to_string());
        }
        if let Some(context) = &self.context {
            flag("--context", context.clone());
        }
        flag("--namespace", self.namespace.clone());
        words.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        words
    }

    /// The answer to a question, as JSON.
    ///
    /// # Errors
    /// When there is none in time, or it is no JSON.
    pub fn json(&self, arguments: &[&str], within: Duration) -> Result<Value, KubectlError> {
        let arguments = as_json(arguments);
        read_json(&arguments, &self.succeeded(&arguments, within)?)
    }

    /// The same, and none where kubectl said nothing, as it does of objects that may be missing and are.
    pub(crate) fn json_if_any(
        &self,
        arguments: &[&str],
        within: Duration,
    ) -> Result<Option<Value>, KubectlError> {
        let arguments = as_json(arguments);
        let answer = self.succeeded(&arguments, within)?;
        if answer.output.trim_ascii().is_empty() {
            return Ok(None);
        }
        read_json(&arguments, &answer).map(Some)
    }

    /// The answer to a question, as it is.
    ///
    /// # Errors
    /// When there is none in time.
    pub fn text(&self, arguments: &[&str], within: Duration) -> Result<String, KubectlError> {
        self.succeeded(arguments, within).map(|answer| answer.text())
    }

    /// The versions of kubectl and of the cluster.
    ///
    /// # Errors
    /// When kubectl is not there, or the cluster does not answer.
    pub fn version(&self) -> Result<String, KubectlError> {
        let answer = self.json(&["version"], VERSION_WITHIN)?;
        let of = |side: &str| {
            let version = answer.get(side).and_then(|side| side.get("gitVersion"));
            version.and_then(Value::as_str).unwrap_or("of unknown version").to_owned()
        };
        Ok(format!("client {}, server {}", of("clientVersion"), of("serverVersion")))
    }

    /// The context that is current in the user's configuration; none where it has none, as within a pod of the cluster.
    ///
    /// # Errors
    /// When kubectl is not there, or does not answer.
    pub fn current_context(&self) -> Result<Option<String>, KubectlError> {
        match self.text(&["config", "current-context"], VERSION_WITHIN) {
            Ok(context) => Ok(Some(context.trim().to_owned()).filter(|context| !context.is_empty())),
            // A configuration that cannot be read fails whatever is asked next, and says why.
            Err(KubectlError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts kubectl; for one that goes on until it is dropped.
    pub(crate) fn start(&self, arguments: &[&str]) -> Result<Running, KubectlError> {
        let mut command = Command::new(&self.program);
        command.args(self.words(arguments).into_iter().skip(1));
        Running::start(&mut command).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => KubectlError::NotFound { program: self.program.clone() },
            _ => KubectlError::Io { arguments: arguments.join(" "), source },
        })
    }

    /// Runs kubectl to its end, however it ends.
    pub(crate) fn run(&self, arguments: &[&str], within: Duration) -> Result<Answer, KubectlError> {
        let mut running = self.start(arguments)?;
        let arguments = || arguments.join(" ");
        let began = Instant::now();
        let mut output = Vec::new();
        loop {
            match running.next(POLL) {
                Ok(Next::Said(chunk)) => output.extend(chunk),
                Ok(Next::Quiet) => {}
                Ok(Next::Ended(code)) => return Ok(Answer { code, output, complaint: running.last_words() }),
                Err(source) => return Err(KubectlError::Io { arguments: arguments(), source }),
            }
            if output.len() > MOST_OUTPUT_BYTES {
                return Err(KubectlError::TooMuch { arguments: arguments(), most_bytes: MOST_OUTPUT_BYTES });
            }
            if began.elapsed() >= within {
                return Err(KubectlError::TimedOut { arguments: arguments(), within });
            }
        }
    }

    fn succeeded(&self, arguments: &[&str], within: Duration) -> Result<Answer, KubectlError> {
        let answer = self.run(arguments, within)?;
        if answer.code == 0 { Ok(answer) } else { Err(answer.failed(arguments)) }
    }
}

fn as_json<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    arguments.iter().copied().chain(["-o", "json"]).collect()
}

fn read_json(arguments: &[&str], answer: &Answer) -> Result<Value, KubectlError> {
    serde_json::from_slice(&answer.output)
        .map_err(|source| KubectlError::NotJson { arguments: arguments.join(" "), source })
}
