//! `holdfast agent`: the load generator under another's command, by lines on standard input and output.

use agent::{ServeEnd, serve};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::complained;
use crate::exit::Exit;

/// Serves until its input ends. A load that was under way ends with this process.
pub fn agent() -> Result<Exit, Exit> {
    // Every client takes a socket; the soft limit is often 1,024.
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    match serve(std::io::stdin(), std::io::stdout(), env!("CARGO_PKG_VERSION")) {
        ServeEnd::InputEnded => Ok(Exit::Done),
        ServeEnd::Silence => {
            complained!("nobody has spoken to this agent for too long; it ends");
            Ok(Exit::Done)
        }
        ServeEnd::NotAnOrder { why } => Err(Exit::wrong(anyhow::anyhow!(
            "this is no order for an agent: {why}\n  `holdfast run` starts agents and speaks to them"
        ))),
    }
}
