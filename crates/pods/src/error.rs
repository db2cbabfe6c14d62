//! Why there are no pods to run against. Owns nothing of agents as pods, which have an error of their own.

use std::io;
use std::path::PathBuf;

use kubernetes::{ForwardError, KubectlError, MemberError};

/// Why there are no pods to run against.
#[derive(Debug, thiserror::Error)]
pub enum PodsError {
    /// The cluster does not answer.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// The members are not there.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// They cannot be reached.
    #[error(transparent)]
    Way(#[from] ForwardError),
    /// Commands cannot be held to the context that is current.
    #[error(
        "kubectl's current context `{context}` cannot be given to commands, which need letters, digits and \
         `._@:/-`; `kubectl config rename-context` renames it"
    )]
    Context {
        /// Its name.
        context: String,
    },
    /// Nobody can write down what is seen of them.
    #[error(
        "no thread records what is seen of the pods: {source}; raise the limit of processes (`ulimit -u`)"
    )]
    Thread {
        /// What the operating system answered.
        source: io::Error,
    },
    /// What is seen of them cannot be written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}
