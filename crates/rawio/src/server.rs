//! The process on a node: takes passes over TCP, one connection a client, and carries them out on the node's volume.
//!
//! Two passes over the same file never go on at once: one whose asker has gone is ended before the next begins.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use control::wire;
use serde::{Deserialize, Serialize};

use crate::{Ask, Tell, carry_out};

/// The hidden door of the program that runs it; its one argument is a [`Node`] in JSON.
pub const SUBCOMMAND: &str = "rawio-node";

/// What it says once it listens, before the number of the node's boot.
pub const LISTENS: &str = "listening since boot ";

/// How one node is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The folder in which passes make their files.
    pub volume: PathBuf,
    /// Which of the node's boots this is.
    pub boot: u64,
}

/// Why a node cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Nobody can reach it.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The machine gives no more threads.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

type Files = Arc<Mutex<BTreeMap<u64, Arc<Mutex<()>>>>>;

/// Runs a node until it fails.
///
/// # Errors
/// When it cannot listen, or has no thread for a client.
pub fn serve(node: &Node) -> Result<std::convert::Infallible, ServerError> {
    let refused = |source| ServerError::Listen { address: node.listen, source };
    let listener = TcpListener::bind(node.listen).map_err(refused)?;
    // Standard output is the node's log, where whoever started this looks for the line.
    write_line(&format!("{LISTENS}{}", node.boot)).map_err(refused)?;
    let files = Files::default();
    loop {
        let (stream, _) = listener.accept().map_err(refused)?;
        let (volume, files) = (node.volume.clone(), files.clone());
        let talk = move || {
            // A client that has gone, or that speaks another language, is nobody's loss.
            let _ = converse(stream, &volume, &files);
        };
        std::thread::Builder::new().name("client".to_owned()).spawn(talk).map_err(ServerError::Thread)?;
    }
}

fn write_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn converse(mut stream: TcpStream, volume: &Path, files: &Files) -> Result<(), wire::WireError> {
    stream.set_nodelay(true)?;
    while let Some(ask) = wire::read::<Ask>(&mut stream)? {
        let tell = match ask {
            Ask::Hello => Tell::Here,
            Ask::Pass { pass } => {
                let file = {
                    let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
                    files.entry(pass.file).or_default().clone()
                };
                let _turn = file.lock().unwrap_or_else(PoisonError::into_inner);
                match carry_out(volume, &pass) {
                    Ok(done) => Tell::Done { done },
                    Err(why) => Tell::Failed { why },
                }
            }
        };
        wire::write(&mut stream, &tell)?;
    }
    Ok(())
}
