//! Where nodes listen.
//!
//! Owns addresses and their text. What is spoken there is the protocols'.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Over TCP.
    Tcp {
        /// The address and port.
        address: SocketAddr,
        /// The name it was found by, which its certificate must carry; the address itself where absent.
        host: Option<String>,
    },
    /// At a Unix socket (the socket itself, such as `/run/n1/.s.PGSQL.5432`).
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp { address, host: None }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { address, .. } => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A node and where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The node's name, for histories.
    pub node: String,
    pub address: Address,
}
