//! The userspace network that joins hosts, nodes and clients
